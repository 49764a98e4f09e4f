"""Batches that are drawn as the plan says, one for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

import torch

import hockeystick as hs
from hockeystick.adapters.torch._account import Account
from hockeystick.adapters.torch._random import numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.dpsgd.samplings import Sampling

Indices = Any
_COLLATED: Final = "a tensor, or a tuple of tensors with the model's input first, for each example"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What one step uses: none, one or many examples, which stay secret with their number.

    Args:
        step: The number of the step, from 0.
        examples: The model's inputs and the targets, stacked; empty where no example was drawn.
    """

    step: int
    examples: tuple[Any, ...]

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.examples[0]) if self.examples else 0


@final
class Sampler:
    """Draws the examples of each step as the plan says; epochs are divided once."""

    __slots__ = ("_epoch", "_factors", "_parts", "_plan", "_seed")

    def __init__(self, plan: hs.DPSGD, seed: int | None) -> None:
        self._plan, self._seed = plan, seed
        schedule = plan.batch_schedule
        self._factors = None if schedule is None else schedule.factors(plan.total_steps)
        self._epoch = -1
        self._parts: Indices = None

    def rate(self, step: int) -> float:
        """Return the probability of an example to be in a step's batch."""
        if self._factors is None:
            return self._plan.sampling_rate
        return min(self._plan.sampling_rate * float(self._factors[step]), 1.0)

    def expected(self, step: int) -> float:
        """Return the expected size of a step's batch."""
        return self.rate(step) * int(self._plan.examples or 0)

    def draw(self, step: int) -> Indices:
        """Return the places of a step's examples in the data."""
        length = self._plan.steps_per_epoch
        if length is None:
            source = numbers(self._seed, "batch", step)
            return _DRAWN[self._plan.sampling](self._plan, self.rate(step), source)
        epoch, place = divmod(step, length)
        if epoch != self._epoch:
            source = numbers(self._seed, "epoch", epoch)
            self._parts = _DIVIDED[self._plan.sampling](self._plan, length, source)
            self._epoch = epoch
        return _places(self._parts == place)


def _places(chosen: Any) -> Indices:
    """Return where an array is true."""
    return torch.from_numpy(chosen).nonzero().flatten()


def _poisson(plan: hs.DPSGD, rate: float, source: Any) -> Indices:
    """Return each example with one probability, to 2^-53; with a cap, a random part of too many."""
    found = _places(source.random(int(plan.examples or 0)) < rate)
    if plan.batch_cap is None or len(found) <= plan.batch_cap:
        return found
    return found[source.permutation(len(found))[: plan.batch_cap]]


def _fixed_size(plan: hs.DPSGD, rate: float, source: Any) -> Indices:
    """Return a random set of the batch size."""
    return torch.from_numpy(source.permutation(int(plan.examples or 0))[: plan.batch_size])


def _with_replacement(plan: hs.DPSGD, rate: float, source: Any) -> Indices:
    """Return any example in each of the batch's places."""
    size = int(plan.batch_size or 0)
    return torch.from_numpy(source.integers(int(plan.examples or 0), size=size))


def _full_batch(plan: hs.DPSGD, rate: float, source: Any) -> Indices:
    """Return every example."""
    return torch.arange(int(plan.examples or 0))


def _allocated(plan: hs.DPSGD, length: int, source: Any) -> Indices:
    """Return one of an epoch's steps for each example, independently."""
    return source.integers(length, size=int(plan.examples or 0))


def _shuffled(plan: hs.DPSGD, length: int, source: Any) -> Indices:
    """Return the steps of an epoch whose batches have one size."""
    examples = int(plan.examples or 0)
    return source.permutation(examples) // (examples // length)


_DRAWN: Final[Mapping[Sampling, Callable[[hs.DPSGD, float, Any], Indices]]] = MappingProxyType(
    {
        Sampling.POISSON: _poisson,
        Sampling.FIXED_SIZE: _fixed_size,
        Sampling.WITH_REPLACEMENT: _with_replacement,
        Sampling.FULL_BATCH: _full_batch,
    }
)
_DIVIDED: Final[Mapping[Sampling, Callable[[hs.DPSGD, int, Any], Indices]]] = MappingProxyType(
    {Sampling.RANDOM_ALLOCATION: _allocated, Sampling.SHUFFLE: _shuffled}
)
SUPPORTED: Final = frozenset({*_DRAWN, *_DIVIDED})


@final
class Loader:
    """Gives the batch of the next step until the plan is done, and the same again until it is used.

    A batch that was drawn cannot be exchanged for another one: choosing among batches would not be
    the sampling that is accounted for.
    """

    __slots__ = ("_account", "_collate", "_dataset", "_pending", "sampler")

    def __init__(
        self, dataset: Any, account: Account, sampler: Sampler, collate: Callable[..., Any] | None
    ) -> None:
        self._dataset, self._account, self.sampler = dataset, account, sampler
        self._collate = collate
        self._pending: Batch | None = None

    def __len__(self) -> int:
        """Return the number of steps that are left of the plan and within the budget."""
        return self._account.limit - self._account.counted

    def __iter__(self) -> Iterator[Batch]:
        """Give one batch for each step that is left of the plan.

        Raises:
            BudgetExhausted: If the budget ends before the plan does.
        """
        while self._account.counted < self._account.plan.total_steps:
            yield self._next()

    def check(self, batch: object) -> None:
        """Raise unless a batch is the one that is to be used now."""
        if batch is None or batch is not self._pending or not self._is_current():
            allowed = "the one that private.loader gave last, each used once"
            raise ParameterError("batch", type(batch).__name__, allowed)

    def _is_current(self) -> bool:
        """Return whether the batch that was drawn is that of the next step."""
        return self._pending is not None and self._pending.step == self._account.counted

    def _next(self) -> Batch:
        """Return the batch of the next step, drawing it where it is not drawn yet."""
        self._account.check()
        if self._pending is None or not self._is_current():
            step = self._account.counted
            self._pending = Batch(step, self._fetched(self.sampler.draw(step)))
        return self._pending

    def _fetched(self, indices: Indices) -> tuple[Any, ...]:
        """Return examples stacked, or nothing of no example."""
        if len(indices) == 0:
            return ()
        if self._collate is None and isinstance(self._dataset, torch.utils.data.TensorDataset):
            return tuple(self._dataset[indices])
        collate = self._collate or torch.utils.data.default_collate
        stacked = collate([self._dataset[index] for index in indices.tolist()])
        parts = (stacked,) if isinstance(stacked, torch.Tensor) else stacked
        tensors = isinstance(parts, tuple | list) and all(
            isinstance(part, torch.Tensor) and len(part) == len(indices) for part in parts
        )
        if not tensors or not parts:
            raise ParameterError("dataset", type(stacked).__name__, _COLLATED)
        return tuple(parts)
