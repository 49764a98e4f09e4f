"""The examples of each step, drawn as the plan says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, final

import numpy as np

import hockeystick as hs
from hockeystick.adapters.loop._random import bits
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.training.batches import Sampling
from hockeystick.numerics import decimal
from hockeystick.release.samplers import Bits, bernoulli, permutation, uniform_integers

Indices = Any


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


def _places(chosen: Any) -> Indices:
    """Return where an array is true."""
    return np.flatnonzero(chosen)


def _poisson(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return each example with one probability; with a cap, a random part of too many."""
    found = _places(bernoulli(rate, examples, bits=source))
    if plan.batch_cap is None or len(found) <= plan.batch_cap:
        return found
    return found[permutation(len(found), bits=source)[: plan.batch_cap]]


def _fixed_size(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return a random set of the batch size."""
    return permutation(examples, bits=source)[: plan.batch_size]


def _with_replacement(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return any example in each of the batch's places."""
    return uniform_integers(examples, int(plan.batch_size or 0), bits=source)


def _full_batch(plan: hs.DPSGD, examples: int, rate: Fraction, source: Bits) -> Indices:
    """Return every example."""
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
