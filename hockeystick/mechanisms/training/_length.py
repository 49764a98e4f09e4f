"""How many steps a DP-SGD plan has, and which of its numbers must be given."""

from __future__ import annotations

import math
from fractions import Fraction
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
        """The number of batches, as given."""

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
    if plan.batch_size is not None and plan.examples is not None:
        return Fraction(plan.batch_size, plan.examples)
    return decimal(cast(float, plan.rate))


def steps_of(plan: Length) -> tuple[int, str]:
    """Return the number of steps and the rule that it comes from."""
    if plan.epochs is None:
        steps = int(plan.steps or 0)
        return steps, f"steps = {steps}, as given"
    if plan.rate is None:
        formula = "epochs * examples / batch_size"
        numbers = f"{plain(plan.epochs)} * {plan.examples} / {plan.batch_size}"
    else:
        formula, numbers = "epochs / rate", f"{plain(plan.epochs)} / {plain(plan.rate)}"
    rate = batch_fraction(plan)
    exact = decimal(plan.epochs) / rate
    nearest = round(exact)
    if exact == nearest:
        return nearest, f"steps = {formula} = {numbers} = {nearest}"
    if _floats_allow(plan, rate, nearest):
        rule = f"steps = {formula} = {numbers} = {nearest}, to the last digit of what was given"
        return nearest, rule
    steps = math.ceil(exact)
    return steps, f"steps = ceil({formula}) = ceil({numbers}) = {steps}: {_PARTIAL_STEP}"


def _floats_allow(plan: Length, rate: Fraction, steps: int) -> bool:
    """Return whether a given float may stand for the number that makes the steps whole."""
    epochs = plan.epochs
    if epochs is None or steps == 0:
        return False
    if plan.rate is not None and float(decimal(epochs) / steps) == plan.rate:
        return True
    return not epochs.is_integer() and float(steps * rate) == epochs
