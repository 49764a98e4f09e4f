"""Batches that are drawn as the plan says, one for each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn, final

import torch
from torch.utils import _pytree as trees

from hockeystick.adapters.loop._account import Account
from hockeystick.adapters.loop._random import bits
from hockeystick.adapters.loop._sampler import Indices, Sampler
from hockeystick.adapters.torch._processes import Processes
from hockeystick.errors import IncompatibleError, ParameterError

_ROUNDING: Final = 1e-6  # of an epoch's last step, where the rate as a float is not exact


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What one step uses: none, one or many examples, which stay secret with their number.

    Args:
        step: The number of the step, from 0.
        examples: The model's input and the targets, stacked, where the input is a tensor, a tuple
            or a dictionary of them; empty where no example was drawn.
    """

    step: int
    examples: tuple[Any, ...]

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(trees.tree_leaves(self.examples)[0]) if self.examples else 0


@final
class Loader:
    """Gives the batch of the next step until the plan is done, and the same again until it is used.

    A batch that was drawn cannot be exchanged for another one: choosing among batches would not be
    the sampling that is accounted for.
    """

    __slots__ = (
        "_account",
        "_at",
        "_drawn",
        "_fetched",
        "_fetching",
        "_pending",
        "_processes",
        "_seed",
        "_tensors",
        "_versions",
        "sampler",
    )

    def __init__(
        self,
        account: Account,
        sampler: Sampler,
        fetching: Callable[..., Any],
        tensors: Any,
        processes: Processes,
        seed: int | None,
    ) -> None:
        self._account, self.sampler = account, sampler
        self._processes, self._seed = processes, seed
        self._fetching, self._tensors = fetching, tensors
        self._fetched: Iterator[Any] = iter(())
        self._at = -1  # the step whose batch is fetched next
        self._drawn: dict[int, Indices] = {}
        self._pending: Batch | None = None
        self._versions: tuple[int, ...] = ()

    def __len__(self) -> int:
        """Return the number of steps that are left of the plan and within the budget."""
        return self._account.limit - self._account.counted

    def __iter__(self) -> Iterator[Batch]:
        """Give one batch for each step that is left of the plan.

        Raises:
            BudgetExhausted: If the budget ends before the plan does.
            IncompatibleError: If a batch was left unused, as one without examples may have been.
        """
        return self._batches(self._account.plan.total_steps)

    def epochs(self) -> Iterator[Iterator[Batch]]:
        """Give the batches that are left in epochs, of ``1/rate`` steps each.

        The first one goes on where the last one ended, also within an epoch.

        Raises:
            IncompatibleError: If an epoch was not used to its end.
        """
        rate, total = self._account.plan.sampling_rate, self._account.plan.total_steps
        ended, end = 0, 0
        while self._account.counted < total:
            while end <= self._account.counted:
                ended += 1
                end = min(math.ceil(ended / rate - _ROUNDING), total)
            yield self._batches(end)
            if self._account.counted < end:
                self._refuse(
                    f"an epoch that ends with step {end} was left after {self._account.counted}: "
                    "an epoch is used to its end; to stop early, leave the epochs as well"
                )

    def _batches(self, end: int) -> Iterator[Batch]:
        """Give a batch for each step up to a number of steps."""
        while self._account.counted < end:
            batch = self._next()
            yield batch
            if batch.step == self._account.counted:
                self._refuse(
                    f"the batch of step {batch.step} was drawn and not used: batches that are left "
                    "out are not the plan's sampling; call private.step with each, also with one "
                    "that has no example, whose step releases noise"
                )

    def _refuse(self, reason: str) -> NoReturn:
        """Raise in all processes."""
        with self._processes.together("batch"):
            raise IncompatibleError(reason)

    def check(self, batch: object) -> None:
        """Raise unless a batch is the one that is to be used now, as it was drawn."""
        given = self._pending
        if given is None or batch is not given or not self._is_current():
            allowed = "the one that private.loader gave last, each used once"
            raise ParameterError("batch", type(batch).__name__, allowed)
        if _versions(given) != self._versions:
            allowed = "as it was drawn: what is computed across a batch mixes its examples"
            raise ParameterError("batch", "tensors that were changed", allowed)

    def _is_current(self) -> bool:
        """Return whether the batch that was drawn is that of the next step."""
        return self._pending is not None and self._pending.step == self._account.counted

    def _next(self) -> Batch:
        """Return the batch of the next step, drawing it where it is not drawn yet."""
        if self._pending is not None and self._is_current():
            self._account.check()
            return self._pending
        step = self._account.counted
        self._pending = Batch(step, self._shared(step))
        self._versions = _versions(self._pending)
        self._drawn = {later: one for later, one in self._drawn.items() if later > step}
        return self._pending

    def _shared(self, step: int) -> tuple[Any, ...]:
        """Return this process's share of a step's examples, which the first one draws for all."""
        processes, shares = self._processes, None
        with processes.together("batch", lambda: {"run": self._account.run, "step": step}):
            self._account.check()
            processes.check()
            if processes.first:
                source = bits(self._seed, "process", step)
                shares = processes.shares(self._examples(step), source)
        return processes.shared(shares)

    def _examples(self, step: int) -> tuple[Any, ...]:
        """Return the examples of a step; after an interruption, of the batch that was drawn."""
        if self._tensors is not None:
            places = self._places(step)
            return tuple(self._tensors[places]) if len(places) else ()
        if self._at != step:
            batches = map(self._places, range(step, self._account.limit))
            lists = (places.tolist() for places in batches)
            self._fetched, self._at = iter(self._fetching(batch_sampler=lists)), step
        try:
            found: tuple[Any, ...] = next(self._fetched).examples()
        except BaseException:
            self.close()
            raise
        self._at += 1
        return found

    def _places(self, step: int) -> Indices:
        """Return the places of a step's examples, drawn once, be it ahead of the step."""
        if step not in self._drawn:
            self._drawn[step] = torch.from_numpy(self.sampler.draw(step))
        return self._drawn[step]

    def close(self) -> None:
        """End the workers, and keep what was drawn."""
        self._fetched, self._at = iter(()), -1


def _versions(batch: Batch) -> tuple[int, ...]:
    """Return the number of in-place writes to each of a batch's tensors."""
    return tuple(part._version for part in trees.tree_leaves(batch.examples))
