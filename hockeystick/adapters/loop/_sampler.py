"""The examples of each step, drawn as the plan says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, final

import numpy as np

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adapters.loop._random import bits
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import CyclicPoisson, Encoder, MatrixFactorization
from hockeystick.mechanisms.training.batches import Sampling
from hockeystick.numerics import decimal
from hockeystick.release.counting import length_of
from hockeystick.release.samplers import Bits, bernoulli, permutation, uniform_integers

Indices = Any
_DIVISOR: Final = Domain(
    symbol="m", low=0, high=math.inf, low_open=True, high_open=True, typical=(16, 16_384)
)


@final
class Sampler:
    """Draws the examples of each step exactly as the plan says; epochs are divided once.

    The plan's number of examples is nominal: rates and expected sizes come from it alone, as they
    must not change with an example more or less. How many there are is said beside it.

    Args:
        plan: An ``hs.DPSGD``.
        examples: How many there are.
        seed: For tests alone: whoever knows it knows the batches.

    Raises:
        ParameterError: If the plan has no batches to draw, or is for data of another length.
    """

    __slots__ = ("_epoch", "_examples", "_factors", "_parts", "_plan", "_rate", "_seed")

    def __init__(self, plan: hs.DPSGD, examples: int, seed: int | None = None) -> None:
        check_examples(checked_plan(plan), examples)
        self._plan, self._examples, self._seed = plan, examples, seed
        schedule = plan.batch_schedule
        self._factors = None if schedule is None else schedule.factors(plan.total_steps)
        sized = plan.batch_size is not None and plan.examples is not None
        given = Fraction(plan.batch_size or 0, plan.examples or 1)
        self._rate = given if sized else decimal(plan.sampling_rate)
        self._epoch = -1
        self._parts: Indices = None

    @property
    def share(self) -> float:
        """The share of the examples that one step is expected to use, which makes an epoch."""
        return self._plan.sampling_rate

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
            self._parts = _DIVIDED[self._plan.sampling](self._plan, self._examples, length, source)
            self._epoch = epoch
        return _places(self._parts == place)


@final
@dataclass(frozen=True, slots=True)
class Grouped:
    """A plan with correlated noise, for examples in groups that are fixed.

    Args:
        plan: ``MatrixFactorization`` with an encoder made from a strategy, or ``CyclicPoisson``.
        groups: The group of each example, from 0 to b - 1; None for place modulo b.
        batch_size: What sums are divided by.
    """

    plan: MatrixFactorization | CyclicPoisson
    groups: Iterable[int] | None = field(repr=False)
    batch_size: float

    def check(self) -> None:
        """Raise unless this can be trained by."""
        if not isinstance(self.plan, MatrixFactorization | CyclicPoisson):
            raise ParameterError("plan", self.plan, "a MatrixFactorization or a CyclicPoisson")
        if self.plan.noise_multiplier == math.inf:
            raise ParameterError("noise_multiplier", self.plan.noise_multiplier, "finite")
        _validate.real("batch_size", self.batch_size, _DIVISOR)

    @property
    def encoder(self) -> Encoder:
        """The encoder that the noise is correlated by."""
        if isinstance(self.plan, CyclicPoisson):
            return Encoder.toeplitz(self.plan.coefficients[: self.plan.bands], self.plan.rounds)
        return self.plan.encoder

    @property
    def cycle(self) -> int:
        """The number of groups b, with which no example takes part too often."""
        if isinstance(self.plan, CyclicPoisson):
            return self.plan.cycle
        encoder = self.plan.encoder
        cycle = encoder.separation if encoder.participations > 1 else encoder.rounds
        times = -(-encoder.rounds // cycle)
        if times > encoder.participations:
            raise IncompatibleError(
                f"with {cycle:,} groups an example of the first takes part in {times:,} of "
                f"{encoder.rounds:,} rounds, and the encoder is for {encoder.participations:,}"
            )
        return cycle

    def places(self, examples: int) -> list[Indices]:
        """Return the places of the examples of each group that has a turn, or raise."""
        cycle, groups = self.cycle, self.groups
        if groups is None and cycle > 1 and self.plan.adjacency is Adjacency.ADD_REMOVE:
            allowed = (
                "given under add-remove, where an example that goes moves up the places of those "
                "after it; or let the plan be under zero-out"
            )
            raise ParameterError("groups", groups, allowed)
        own = np.arange(examples) % cycle if groups is None else np.asarray(list(groups))
        whole = own.shape == (examples,) and own.dtype.kind in "iu"
        if not whole or (own.size and not (own.min() >= 0 and own.max() < cycle)):
            allowed = f"an integer from 0 to {cycle - 1} for each of {examples:,} examples"
            raise ParameterError("groups", f"{own.dtype} of shape {own.shape}", allowed)
        return [_places(own == group) for group in range(min(cycle, length_of(self.plan)))]


@final
class GroupSampler:
    """Draws the examples of each step of a plan with correlated noise.

    Step t uses group ``t mod b``: all of it (``MatrixFactorization``), or a Poisson sample of it
    (``CyclicPoisson``). Arguments are as for ``Sampler``.
    """

    __slots__ = ("_members", "_rate", "_seed", "_size", "share")

    def __init__(self, grouped: Grouped, examples: int, seed: int | None = None) -> None:
        grouped.check()
        self._members, self._seed = grouped.places(examples), seed
        self._size = float(grouped.batch_size)
        plan = grouped.plan
        self._rate = decimal(plan.rate) if isinstance(plan, CyclicPoisson) else Fraction(1)
        self.share = float(self._rate / grouped.cycle) or 1.0

    def expected(self, step: int) -> float:
        """Return what a step's sum is divided by."""
        return self._size

    def draw(self, step: int) -> Indices:
        """Return the places of a step's examples in the data."""
        members = self._members[step % len(self._members)]
        if self._rate == 1:
            return members
        source = bits(self._seed, "batch", step)
        return members[np.asarray(bernoulli(self._rate, len(members), bits=source), dtype=bool)]


def _places(chosen: Any) -> Indices:
    return np.flatnonzero(chosen)


def _poisson(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return each example with one probability; with a cap, a random part of too many."""
    found = _places(bernoulli(rate, examples, bits=source))
    if plan.batch_cap is None or len(found) <= plan.batch_cap:
        return found
    return found[permutation(len(found), bits=source)[: plan.batch_cap]]


def _fixed_size(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    return permutation(examples, bits=source)[: plan.batch_size]


def _with_replacement(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return any example in each of the batch's places."""
    return uniform_integers(examples, int(plan.batch_size or 0), bits=source)


def _full_batch(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    return np.arange(examples)


def _allocated(plan: hs.DPSGD, examples: int, length: int, source: Bits) -> Indices:
    """Return one of an epoch's steps for each example, independently."""
    return uniform_integers(length, examples, bits=source)


def _shuffled(plan: hs.DPSGD, examples: int, length: int, source: Bits) -> Indices:
    """Return each example's step in an epoch, one beyond the last for a rest that is dropped."""
    return permutation(examples, bits=source) // int(plan.batch_size or 1)


_Draw = Callable[[hs.DPSGD, int, Fraction, Bits], Indices]
_DRAWN: Final[Mapping[Sampling, _Draw]] = MappingProxyType(
    {
        Sampling.POISSON: _poisson,
        Sampling.FIXED_SIZE: _fixed_size,
        Sampling.WITH_REPLACEMENT: _with_replacement,
        Sampling.FULL_BATCH: _full_batch,
    }
)
_DIVIDED: Final[Mapping[Sampling, Callable[[hs.DPSGD, int, int, Any], Indices]]] = MappingProxyType(
    {Sampling.RANDOM_ALLOCATION: _allocated, Sampling.SHUFFLE: _shuffled}
)
SUPPORTED: Final = frozenset({*_DRAWN, *_DIVIDED})
# Where each example is drawn on its own, nothing but the data's length changes with one more: but
# with a cap, how many of them are kept.
ANY_LENGTH: Final = frozenset({Sampling.POISSON, Sampling.RANDOM_ALLOCATION, Sampling.FULL_BATCH})


def checked_plan(plan: object) -> hs.DPSGD:
    """Return a plan that can be trained by, or raise."""
    if not isinstance(plan, hs.DPSGD):
        raise ParameterError("plan", plan, "an hs.DPSGD")
    if plan.sampling not in SUPPORTED:
        allowed = f"one of {', '.join(sorted(SUPPORTED))}"
        raise ParameterError("sampling", plan.sampling, allowed)
    if plan.examples is None:
        allowed = "given: a batch is divided by its expected size, which the data must not decide"
        raise ParameterError("examples", None, allowed)
    if plan.sampling_rate == 0:
        raise ParameterError("rate", plan.sampling_rate, "above 0: a batch is divided by its size")
    if plan.noise_multiplier == float("inf"):
        raise ParameterError("noise_multiplier", plan.noise_multiplier, "finite")
    return plan


def check_examples(plan: hs.DPSGD, examples: int) -> None:
    """Raise unless a plan is for data of that length."""
    each = plan.sampling in ANY_LENGTH and plan.batch_cap is None
    any_length = plan.adjacency is Adjacency.ADD_REMOVE and each
    if plan.examples != examples and not any_length:
        allowed = f"the number of examples in the dataset, {examples}"
        raise ParameterError("examples", plan.examples, allowed)
