"""Batches that are drawn as the plan says, one for each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, final

import torch
from torch.utils import _pytree as trees

import hockeystick as hs
from hockeystick.adapters.torch._account import Account
from hockeystick.adapters.torch._random import bits
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.training.batches import Sampling
from hockeystick.numerics import decimal
from hockeystick.release.samplers import Bits, bernoulli, permutation, uniform_integers

Indices = Any
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
class Sampler:
    """Draws the examples of each step exactly as the plan says; epochs are divided once.

    The plan's number of examples is nominal: rates and expected sizes come from it alone, as they
    must not change with an example more or less. How many there are is said beside it.
    """

    __slots__ = ("_epoch", "_examples", "_factors", "_parts", "_plan", "_rate", "_seed")

    def __init__(self, plan: hs.DPSGD, examples: int, seed: int | None) -> None:
        self._plan, self._examples, self._seed = plan, examples, seed
        schedule = plan.batch_schedule
        self._factors = None if schedule is None else schedule.factors(plan.total_steps)
        sized = plan.batch_size is not None and plan.examples is not None
        given = Fraction(plan.batch_size or 0, plan.examples or 1)
        self._rate = given if sized else decimal(plan.sampling_rate)
        self._epoch = -1
        self._parts: Indices = None

    def rate(self, step: int) -> Fraction:
        """Return the probability of an example to be in a step's batch, as it is accounted for."""
        if self._factors is None:
            return self._rate
        return min(self._rate * decimal(float(self._factors[step])), Fraction(1))

    def expected(self, step: int) -> float:
        """Return the expected size of a step's batch."""
        return float(self.rate(step) * int(self._plan.examples or 0))

    def draw(self, step: int) -> Indices:
        """Return the places of a step's examples in the data."""
        length = self._plan.steps_per_epoch
        if length is None:
            source = bits(self._seed, "batch", step)
            draw = _DRAWN[self._plan.sampling]
            return draw(self._plan, self._examples, self.rate(step), source)
        epoch, place = divmod(step, length)
        if epoch != self._epoch:
            source = bits(self._seed, "epoch", epoch)
            self._parts = _DIVIDED[self._plan.sampling](self._examples, length, source)
            self._epoch = epoch
        return _places(self._parts == place)


def _places(chosen: Any) -> Indices:
    """Return where an array is true."""
    return torch.from_numpy(chosen).nonzero().flatten()


def _poisson(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return each example with one probability; with a cap, a random part of too many."""
    found = _places(bernoulli(rate, examples, bits=source))
    if plan.batch_cap is None or len(found) <= plan.batch_cap:
        return found
    return found[permutation(len(found), bits=source)[: plan.batch_cap]]


def _fixed_size(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return a random set of the batch size."""
    return torch.from_numpy(permutation(examples, bits=source)[: plan.batch_size])


def _with_replacement(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return any example in each of the batch's places."""
    return torch.from_numpy(uniform_integers(examples, int(plan.batch_size or 0), bits=source))


def _full_batch(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return every example."""
    return torch.arange(examples)


def _allocated(examples: int, length: int, source: Bits) -> Indices:
    """Return one of an epoch's steps for each example, independently."""
    return uniform_integers(length, examples, bits=source)


def _shuffled(examples: int, length: int, source: Bits) -> Indices:
    """Return the steps of an epoch whose batches have one size."""
    return permutation(examples, bits=source) // (examples // length)


_Draw = Callable[[hs.DPSGD, int, Fraction, Bits], Indices]
_DRAWN: Final[Mapping[Sampling, _Draw]] = MappingProxyType(
    {
        Sampling.POISSON: _poisson,
        Sampling.FIXED_SIZE: _fixed_size,
        Sampling.WITH_REPLACEMENT: _with_replacement,
        Sampling.FULL_BATCH: _full_batch,
    }
)
_DIVIDED: Final[Mapping[Sampling, Callable[[int, int, Any], Indices]]] = MappingProxyType(
    {Sampling.RANDOM_ALLOCATION: _allocated, Sampling.SHUFFLE: _shuffled}
)
SUPPORTED: Final = frozenset({*_DRAWN, *_DIVIDED})
# Where each example is drawn on its own, nothing but the data's length changes with one more: but
# with a cap, how many of them are kept.
ANY_LENGTH: Final = frozenset({Sampling.POISSON, Sampling.RANDOM_ALLOCATION, Sampling.FULL_BATCH})


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
        "_tensors",
        "_versions",
        "sampler",
    )

    def __init__(
        self, account: Account, sampler: Sampler, fetching: Callable[..., Any], tensors: Any
    ) -> None:
        self._account, self.sampler = account, sampler
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
                raise IncompatibleError(
                    f"an epoch that ends with step {end} was left after {self._account.counted}: "
                    "an epoch is used to its end; to stop early, leave the epochs as well"
                )

    def _batches(self, end: int) -> Iterator[Batch]:
        """Give a batch for each step up to a number of steps."""
        while self._account.counted < end:
            batch = self._next()
            yield batch
            if batch.step == self._account.counted:
                raise IncompatibleError(
                    f"the batch of step {batch.step} was drawn and not used: batches that are left "
                    "out are not the plan's sampling; call private.step with each, also with one "
                    "that has no example, whose step releases noise"
                )

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
        self._account.check()
        if self._pending is None or not self._is_current():
            step = self._account.counted
            self._pending = Batch(step, self._examples(step))
            self._versions = _versions(self._pending)
            self._drawn = {later: one for later, one in self._drawn.items() if later > step}
        return self._pending

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
            self._drawn[step] = self.sampler.draw(step)
        return self._drawn[step]

    def close(self) -> None:
        """End the workers, and keep what was drawn."""
        self._fetched, self._at = iter(()), -1


def _versions(batch: Batch) -> tuple[int, ...]:
    """Return the number of in-place writes to each of a batch's tensors."""
    return tuple(part._version for part in trees.tree_leaves(batch.examples))
