"""How many steps a DP-SGD plan has, and which of its numbers must be given."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, Protocol, cast

from hockeystick._validate import MAX_COUNT, PARAMETERS
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

_PARTIAL_STEP: Final = "a partial last step is a whole release"


class Length(Protocol):
    """The numbers of a plan that say how large its batches are and how many there are."""

    @property
    def examples(self) -> int | None:
        """The number of examples."""

    @property
    def batch_size(self) -> int | None:
        """The expected or exact size of a batch."""

    @property
    def rate(self) -> float | None:
        """The share of the examples in a batch."""

    @property
    def epochs(self) -> float | None:
        """The number of passes."""

    @property
    def steps(self) -> int | None:
        """The number of batches, as planned."""

    @property
    def total_steps(self) -> int:
        """The number of batches."""


def check_alternatives(plan: Length) -> None:
    """Raise unless exactly one of each pair of alternatives was given, with what it needs."""
    for first, second in (("batch_size", "rate"), ("epochs", "steps")):
        pair = getattr(plan, first), getattr(plan, second)
        if pair == (None, None):
            raise ParameterError(f"{first} or {second}", None, "given")
        if None not in pair:
            got = f"{first} = {plain(pair[0])}, {second} = {plain(pair[1])}"
            raise IncompatibleError(f"give {first} or {second}, not both; got {got}")
    if plan.batch_size is None:
        return
    if plan.examples is None:
        raise ParameterError("examples", None, "given where batch_size is")
    if plan.batch_size > plan.examples:
        allowed = f"at most the number of examples, {plan.examples}"
        raise ParameterError("batch_size", plan.batch_size, allowed)


def check_length(plan: Length) -> None:
    """Raise where the epochs come down to no number of steps, or to too many."""
    if plan.epochs is None:
        return
    if plan.rate == 0:
        allowed = f"{PARAMETERS['rate'].allowed}, and above 0 where epochs is given"
        raise ParameterError("rate", plan.rate, allowed)
    if plan.total_steps > MAX_COUNT:
        raise ParameterError("epochs", plan.epochs, "so few that there are at most 10^15 steps")


def batch_fraction(plan: Length) -> Fraction:
    """Return the sampling rate as an exact number, a given float as the decimal it prints as."""
    return _fraction(plan.batch_size, plan.examples, plan.rate)


@lru_cache(maxsize=256)
def _fraction(batch_size: int | None, examples: int | None, rate: float | None) -> Fraction:
    """Return the sampling rate from the numbers that say it."""
    if batch_size is not None and examples is not None:
        return Fraction(batch_size, examples)
    return decimal(cast(float, rate))


def steps_of(plan: Length) -> tuple[int, str]:
    """Return the number of steps and the rule that it comes from."""
    if plan.epochs is None:
        steps = int(plan.steps or 0)
        return steps, f"steps = {steps}, as planned"
    return _steps_in(plan.epochs, plan.batch_size, plan.examples, plan.rate)


def steps_of_epochs(plan: Length, drop_last: bool) -> tuple[int, str]:
    """Return the steps of epochs whose batches do not divide the examples, and the rule."""
    if plan.epochs is None:
        return steps_of(plan)
    whole = int(1 / batch_fraction(plan))
    per_epoch, name = (whole, "floor") if drop_last else (whole + 1, "ceil")
    steps = math.ceil(decimal(plan.epochs) * per_epoch)
    numbers = f"{plain(plan.epochs)} * {name}({plan.examples} / {plan.batch_size})"
    return steps, f"steps = epochs * {name}(examples / batch_size) = {numbers} = {steps}"


@lru_cache(maxsize=256)
def _steps_in(
    epochs: float, batch_size: int | None, examples: int | None, rate: float | None
) -> tuple[int, str]:
    """Return the number of steps in so many epochs, and the rule."""
    if rate is None:
        formula = "epochs * examples / batch_size"
        numbers = f"{plain(epochs)} * {examples} / {batch_size}"
    else:
        formula, numbers = "epochs / rate", f"{plain(epochs)} / {plain(rate)}"
    share = _fraction(batch_size, examples, rate)
    exact = decimal(epochs) / share
    nearest = round(exact)
    if exact == nearest:
        return nearest, f"steps = {formula} = {numbers} = {nearest}"
    if nearest and _floats_allow(epochs, rate, share, nearest):
        rule = f"steps = {formula} = {numbers} = {nearest}, to the last digit of what was given"
        return nearest, rule
    steps = math.ceil(exact)
    return steps, f"steps = ceil({formula}) = ceil({numbers}) = {steps}: {_PARTIAL_STEP}"


def _floats_allow(epochs: float, rate: float | None, share: Fraction, steps: int) -> bool:
    """Return whether a given float may stand for the number that makes the steps whole."""
    if rate is not None and float(decimal(epochs) / steps) == rate:
        return True
    return not epochs.is_integer() and float(steps * share) == epochs
