"""DP-SGD: the plan of a private training run, as people say it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import final

from hockeystick import _validate
from hockeystick._numerals import plain
from hockeystick._validate import MAX_COUNT, PARAMETERS
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism, Plan
from hockeystick.mechanisms.gaussian import Gaussian
from hockeystick.mechanisms.poisson import PoissonSubsampled, refuse_replace_one

_PARTIAL_STEP = "a partial last step is a whole release"


class Sampling(StrEnum):
    """How the batch of a step is drawn.

    - ``POISSON`` ("poisson"): each example is in each batch independently, with one probability.

    Example:
        >>> from hockeystick.mechanisms import Sampling
        >>> print(Sampling.POISSON)
        poisson
    """

    POISSON = "poisson"

    def __repr__(self) -> str:
        return repr(self.value)


@final
@dataclass(frozen=True, slots=True, init=False)
class DPSGD(Plan):
    """A training run by DP-SGD: clip each example's gradient, add them up, add noise, repeat.

    Each step releases sum of clip(g_i, C) over a random batch + N(0, (noise_multiplier * C)^2 I).
    Batches are drawn with probability rate = batch_size / examples; the number of steps is given,
    or it is ceil(epochs * examples / batch_size): a partial last step is a whole release.

    The rule for epochs is exact: a float means the decimal that it prints as, so that 0.1 is
    1/10. Where a float could also stand for a number that makes the steps a whole number (as
    rate 0.3333333333333333 may stand for 1/3), it does: 1/3 for one epoch is 3 steps, not 4.

    Guarantees:
        Exact for whoever sees the noisy sum of every step, where one example's gradient may reach
        the clipping norm in each; an upper bound for who sees the last model alone. Batches that
        are drawn in any other way, as by shuffling, are not covered.

    Edge cases:
        Rate 0, no steps and no noise are allowed. Under replace-one only rate 1 is: the
        sensitivity is then twice the clipping norm. The number of epochs needs a positive rate.

    Args:
        noise_multiplier: Standard deviation of the noise over the clipping norm, in [0, inf].
        examples: Size of the training set, an integer >= 1.
        batch_size: Expected size of a batch, an integer from 1 to examples; needs examples.
        rate: Probability of an example to be in a batch, in [0, 1]; instead of batch_size.
        epochs: Length of the training in passes over the data, a finite number >= 0.
        steps: Length of the training in steps, an integer >= 0; instead of epochs.
        sampling: How batches are drawn: "poisson".
        adjacency: "add-remove", "zero-out", or at rate 1 "replace-one".

    Raises:
        ParameterError: If a parameter is outside its domain, or one of a pair of alternatives is
            missing or both are given.
        IncompatibleError: Under replace-one with a rate below 1.

    References:
        Abadi et al., "Deep Learning with Differential Privacy", CCS 2016, algorithm 1.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
        >>> print(plan.mechanism)
        Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.00426667) x 14063
        >>> print(plan.steps_rule)
        steps = ceil(epochs * examples / batch_size) = ceil(60 * 60000 / 256) = 14063: \
a partial last step is a whole release
    """

    noise_multiplier: float
    examples: int | None
    batch_size: int | None
    rate: float | None
    epochs: float | None
    steps: int | None
    sampling: Sampling
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        *,
        noise_multiplier: float,
        examples: float | None = None,
        batch_size: float | None = None,
        rate: float | None = None,
        epochs: float | None = None,
        steps: float | None = None,
        sampling: Sampling | str = Sampling.POISSON,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        fields = {
            "noise_multiplier": _validate.real("noise_multiplier", noise_multiplier),
            "examples": _optional_count("examples", examples),
            "batch_size": _optional_count("batch_size", batch_size),
            "rate": None if rate is None else _validate.real("rate", rate),
            "epochs": None if epochs is None else _validate.real("epochs", epochs),
            "steps": _optional_count("steps", steps),
            "sampling": _sampling(sampling),
            "adjacency": _validate.choice("adjacency", adjacency, Adjacency),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        _check_alternatives(self)
        _check_length(self)
        if self.sampling_rate < 1:
            refuse_replace_one(self.adjacency)

    @property
    def sampling_rate(self) -> float:
        """The probability of an example to be in a batch, correctly rounded."""
        if self.rate is not None:
            return self.rate
        return float(_batch_fraction(self))

    @property
    def total_steps(self) -> int:
        """The number of steps."""
        return _steps(self)[0]

    @property
    def steps_rule(self) -> str:
        """Where the number of steps comes from, as one line."""
        return _steps(self)[1]

    @property
    def mechanism(self) -> Mechanism:
        """The steps as one mechanism."""
        if self.sampling_rate < 1:
            noise = Gaussian(self.noise_multiplier)
            rate = _batch_fraction(self) if self.rate is None else self.rate
            return PoissonSubsampled(noise, rate, self.adjacency) ** self.total_steps
        sensitivity = 2 if self.adjacency is Adjacency.REPLACE_ONE else 1
        return Gaussian(self.noise_multiplier / sensitivity) ** self.total_steps

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the plan to apply, as sentences."""
        clipped = "Each example's gradient is clipped on its own to the clipping norm in L2"
        if self.adjacency is Adjacency.REPLACE_ONE:
            clipped += ", so that replacing one moves the sum by at most twice the clipping norm"
        return (
            self.adjacency.meaning,
            _sampling_assumption(self.sampling_rate),
            f"{clipped}.",
            "Fresh Gaussian noise is added to the sum of the clipped gradients in each step; its "
            f"standard deviation is {plain(self.noise_multiplier)} times the clipping norm.",
            "The noisy sum is divided by a fixed number, never by the size of the drawn batch.",
            f"The number of steps is fixed in advance: {self.steps_rule}.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the name and what an accountant needs to know."""
        return "DP-SGD", (
            f"{self.sampling} sampling",
            f"noise multiplier {self.noise_multiplier:g}",
            f"rate {self.sampling_rate:g}",
            f"{self.total_steps} steps",
            self.adjacency,
        )


def _optional_count(name: str, value: float | None) -> int | None:
    """Return a whole number, or None where none was given."""
    return None if value is None else _validate.count(name, value)


def _sampling(sampling: object) -> Sampling:
    """Return how batches are drawn, or raise."""
    try:
        return _validate.choice("sampling", sampling, Sampling)
    except ParameterError as error:
        allowed = f"{error.allowed}, whose epsilon does not cover batches drawn in any other way"
        raise ParameterError("sampling", sampling, allowed) from None


def _check_alternatives(plan: DPSGD) -> None:
    """Raise unless exactly one of each pair of alternatives was given, with what it needs."""
    for first, second in (("batch_size", "rate"), ("epochs", "steps")):
        pair = getattr(plan, first), getattr(plan, second)
        if pair.count(None) != 1:
            missing = pair == (None, None)
            name = f"{first} or {second}" if missing else f"only one of {first}, {second}"
            raise ParameterError(name, None if missing else pair, "given")
    if plan.batch_size is None:
        return
    if plan.examples is None:
        raise ParameterError("examples", None, "given where batch_size is")
    if plan.batch_size > plan.examples:
        allowed = f"at most the number of examples, {plan.examples}"
        raise ParameterError("batch_size", plan.batch_size, allowed)


def _check_length(plan: DPSGD) -> None:
    """Raise where the epochs come down to no number of steps, or to too many."""
    if plan.epochs is None:
        return
    if plan.rate == 0:
        allowed = f"{PARAMETERS['rate'].allowed}, and above 0 where epochs is given"
        raise ParameterError("rate", plan.rate, allowed)
    if plan.total_steps > MAX_COUNT:
        raise ParameterError("epochs", plan.epochs, "so few that there are at most 10^15 steps")


def _batch_fraction(plan: DPSGD) -> Fraction:
    """Return the sampling rate as an exact number, a given float as the decimal it prints as."""
    if plan.batch_size is not None and plan.examples is not None:
        return Fraction(plan.batch_size, plan.examples)
    return Fraction(repr(plan.rate))


def _steps(plan: DPSGD) -> tuple[int, str]:
    """Return the number of steps and the rule that it comes from."""
    if plan.epochs is None:
        steps = int(plan.steps or 0)
        return steps, f"steps = {steps}, as given"
    if plan.rate is None:
        formula = "epochs * examples / batch_size"
        numbers = f"{plain(plan.epochs)} * {plan.examples} / {plan.batch_size}"
    else:
        formula, numbers = "epochs / rate", f"{plain(plan.epochs)} / {plain(plan.rate)}"
    rate = _batch_fraction(plan)
    exact = Fraction(repr(plan.epochs)) / rate
    nearest = round(exact)
    if exact == nearest:
        return nearest, f"steps = {formula} = {numbers} = {nearest}"
    if _floats_allow(plan, rate, nearest):
        rule = f"steps = {formula} = {numbers} = {nearest}, to the last digit of what was given"
        return nearest, rule
    steps = math.ceil(exact)
    return steps, f"steps = ceil({formula}) = ceil({numbers}) = {steps}: {_PARTIAL_STEP}"


def _floats_allow(plan: DPSGD, rate: Fraction, steps: int) -> bool:
    """Return whether a given float may stand for the number that makes the steps whole."""
    epochs = plan.epochs
    if epochs is None or steps == 0:
        return False
    if plan.rate is not None and float(Fraction(repr(epochs)) / steps) == plan.rate:
        return True
    return not epochs.is_integer() and float(steps * rate) == epochs


def _sampling_assumption(rate: float) -> str:
    """Return what must hold of the batches."""
    if rate == 1:
        return "Every step uses every example once."
    return (
        f"Each step draws its batch by Poisson sampling: each example independently with "
        f"probability {rate:.6g}, afresh in each step, and the batches stay secret."
    )
