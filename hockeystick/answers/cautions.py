"""What an answer does not say by itself, and whoever decides should know."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick.accountants.ask import Answer, asked
from hockeystick.mechanisms import (
    DPSGD,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    MatrixFactorization,
    Mechanism,
    PoissonSubsampled,
    Repeated,
    Sampling,
    TreeAggregation,
    runs_of,
)
from hockeystick.numerics.numerals import at_most, plain
from hockeystick.results import Certified

# The fields of mechanisms that say how many are protected, and what one of these is called.
_UNITS: Final = {"examples": "examples", "total_clients": "clients", "users": "users"}
# Ponomareva et al. (2023), section 5.2: a larger epsilon is "weak to no formal" protection.
_WEAK: Final = 10.0
# A delta of more than this over the number of records is of its order.
_OF_ORDER: Final = 0.1
# Whose rounds are one release, sampled or not as a whole.
_STREAMS: Final = (MatrixFactorization, TreeAggregation)
_ONE_SAMPLE: Final = (
    "all rounds run on one and the same sample. Where each round draws its own, this is not the "
    "plan: CyclicPoisson and BallsInBins are, for encoders of bands."
)
_NO_PROMISE: Final = (
    "a delta of 1 promises nothing: a release that shows all data is (0, 1)-DP. Choose one far "
    "below one over the number of records."
)
_NEEDS_DELTA: Final = "at a delta of 0, this plan's epsilon is infinite: choose a delta above 0."
_SHUFFLED: Final = (
    "the plan's notes speak of shuffling, and the answer is that of Poisson sampling: of shuffled "
    "batches it proves nothing (hockeystick compare PLAN --samplings shows what others cost)."
)
_NO_NOISE: Final = "noise 0 hides nothing: epsilon is infinite, and there is no guarantee."
_NO_GUARANTEE: Final = (
    "an infinite epsilon is no guarantee: it also holds for a release that shows all data."
)
# Mechanisms that release what they add this noise to, and their fields that say how much.
_NOISES: Final = (Gaussian, DiscreteGaussian, Laplace, DiscreteLaplace)
_OF_NOISE: Final = ("noise_multiplier", "sigma", "scale")
_WEAKLY: Final = "epsilon above 10: weak to no guarantee (Ponomareva et al. 2023)"


@final
@dataclass(frozen=True, slots=True)
class Caution:
    """What an answer does not say by itself.

    Args:
        about: "delta", "epsilon", "rho", "mu", "divergences", "noise" or "sampling".
        text: One or two sentences for whoever decides.
        is_mild: Whether it is a matter of what is usual rather than of what is promised.
    """

    about: str
    text: str
    is_mild: bool = False


@final
@dataclass(frozen=True, slots=True)
class Units:
    """How many are protected, and what one of them is called, as in "50,000 examples"."""

    count: int
    name: str

    def __str__(self) -> str:
        return f"{self.count:,} {self.name}"


def cautions(
    answer: Answer, plan: Mechanism, *, delta: float | None = None, epsilon: float | None = None
) -> tuple[Caution, ...]:
    """Return what whoever decides by an answer should know besides.

    A delta of at least one over the number of records allows a release that shows one of them in
    full, whatever epsilon is, and one of that order is far from usual (Dwork and Roth 2014, section
    2.3): above a tenth of it, the caution is a mild one. An epsilon above 10 is "weak to no formal"
    protection (Ponomareva et al. 2023, section 5.2).

    Guarantees:
        None: these are conventions, not theorems. No caution does not mean that an answer is good.

    Edge cases:
        Where the plan does not say how many records there are, nothing is said of a delta below 1.

    Args:
        answer: What ``epsilon`` or ``delta`` returned.
        plan: What it is of.
        delta: Where epsilon was asked for; or
        epsilon: where delta was asked for: exactly one of the two.

    Returns:
        The cautions, the most serious first.

    Raises:
        ParameterError: If not exactly one of delta and epsilon is given.

    References:
        Ponomareva et al., "How to DP-fy ML", 2023; Dwork and Roth, "The Algorithmic Foundations of
        Differential Privacy", 2014.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=50_000, batch_size=500, epochs=1, noise_multiplier=1)
        >>> (found,) = hs.answers.cautions(hs.epsilon(plan, delta=0.4), plan, delta=0.4)
        >>> print(found.text)
        delta 0.4 is not below 1 / 50,000; use 1e-06 or less
    """
    quantity, at = asked(delta, epsilon)
    value = float(answer if isinstance(answer, Certified) else answer.value)
    at_delta, at_epsilon = (at, value) if quantity == "epsilon" else (value, at)
    return cautions_at(plan, epsilon=at_epsilon, delta=at_delta)


def cautions_at(plan: Mechanism, *, epsilon: float, delta: float) -> tuple[Caution, ...]:
    """Return the cautions where a plan is said to be (epsilon, delta)-DP."""
    found = (_of_delta(delta, plan), _of_epsilon(epsilon, plan, delta), *cautions_of_plan(plan))
    return tuple(sorted(filter(None, found), key=lambda one: one.is_mild))


def cautions_of_plan(plan: Mechanism) -> tuple[Caution, ...]:
    """Return the cautions that do not depend on what was asked."""
    found = []
    if any(
        isinstance(one, PoissonSubsampled) and isinstance(one.inner, _STREAMS)
        for one in mechanisms_in(plan)
    ):
        found.append(Caution("epsilon", _ONE_SAMPLE))
    runs = runs_of(plan)
    if never := _why_zero(plan):
        found.append(Caution("epsilon", never))
    elif runs and all(_is_noise_alone(part) for part, _ in runs):
        found.append(Caution("epsilon", "infinite noise: nothing is learned from the data."))
    return tuple(found)


def caution_of_question(plan: Mechanism, delta: float | None) -> Caution | None:
    """Return the caution on a question about a plan at a delta, before it is answered.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers.cautions import caution_of_question
        >>> caution_of_question(hs.Gaussian(2), 0.0).text
        "at a delta of 0, this plan's epsilon is infinite: choose a delta above 0."
    """
    # Without a delta, only what is so at all below 1 is told.
    at = math.nextafter(1.0, 0.0) if delta is None else delta
    exactly = _why_zero(plan) or _why_infinite(plan, at)
    if exactly:
        return Caution("epsilon", exactly)
    if delta == 0.0 and any(map(_needs_delta, _parts(plan))):
        return Caution("delta", _NEEDS_DELTA)
    return None if delta is None else _of_delta(delta, plan)


def caution_of_notes(plan: Mechanism, notes: str | None) -> Caution | None:
    """Return the caution where notes on a plan doubt that its batches are Poisson samples.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers.cautions import caution_of_notes
        >>> plan = hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1)
        >>> caution_of_notes(plan, "The loader shuffles.").about
        'sampling'
    """
    trainings = (one for one in mechanisms_in(plan) if isinstance(one, DPSGD))
    is_poisson = any(one.sampling is Sampling.POISSON for one in trainings)
    doubted = is_poisson and "shuffl" in (notes or "").lower()
    return Caution("sampling", _SHUFFLED) if doubted else None


def units_of(plan: Mechanism) -> Units | None:
    """Return how many are protected by a plan, the most that a part says; None where none does.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=50_000, batch_size=500, epochs=1, noise_multiplier=1)
        >>> print(hs.answers.units_of(plan @ hs.Laplace(1)))
        50,000 examples
    """
    return max(_units(plan), key=lambda one: one.count, default=None)


def reservation(delta: float, units: Units | None) -> str:
    """Return why meeting a budget at a delta says little; nothing where it does not.

    Example:
        >>> from hockeystick.answers.cautions import Units, reservation
        >>> reservation(0.4, Units(60_000, "examples"))
        'a delta of 0.4 promises little: it is not below 1 / 60,000'
    """
    if delta == 1.0:
        return "a delta of 1 promises nothing"
    if units is None or delta * units.count < 1.0:
        return ""
    return f"a delta of {_short(delta)} promises little: it is not below 1 / {units.count:,}"


def suggested_delta(units: Units) -> float:
    """Return the largest power of ten that is at most a tenth of one over the number of records.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.answers import Units, suggested_delta
        >>> suggested_delta(Units(60_000, "examples"))
        1e-06
    """
    return float(f"1e-{len(str(10 * units.count - 1))}")


def _of_delta(delta: float, plan: Mechanism) -> Caution | None:
    """Return the caution where delta is not well below one over the number of records."""
    units = units_of(plan)
    if units is None:
        return Caution("delta", _NO_PROMISE) if delta == 1.0 else None
    expected = delta * units.count
    if expected <= _OF_ORDER:
        return None
    sensible = plain(suggested_delta(units))
    if expected < 1.0:
        text = f"delta {_short(delta)} is high for {units}; use {sensible} or less"
        return Caution("delta", text, is_mild=True)
    text = f"delta {_short(delta)} is not below 1 / {units.count:,}; use {sensible} or less"
    return Caution("delta", text)


def _short(value: float) -> str:
    """Return a number as it was given, or rounded up if it has many digits."""
    return min(plain(value), at_most(value), key=len)


def _of_epsilon(epsilon: float, plan: Mechanism, delta: float) -> Caution | None:
    """Return the caution where epsilon promises hardly anything, or nothing."""
    if epsilon <= _WEAK:
        return None
    if epsilon == math.inf:
        return Caution("epsilon", _why_infinite(plan, delta) or _NO_GUARANTEE)
    return Caution("epsilon", _WEAKLY)


def mechanisms_in(plan: object) -> Iterator[Any]:
    """Yield a plan and the mechanisms that it is made of."""
    if isinstance(plan, tuple):
        for part in plan:
            yield from mechanisms_in(part)
    if isinstance(plan, Mechanism) and dataclasses.is_dataclass(plan):
        yield plan
        for field in dataclasses.fields(plan):
            yield from mechanisms_in(getattr(plan, field.name))


def _units(plan: Mechanism) -> Iterator[Units]:
    """Yield how many are protected, as the parts of a plan say it."""
    for part in mechanisms_in(plan):
        for name in (field.name for field in dataclasses.fields(part) if field.name in _UNITS):
            value = getattr(part, name)
            # Users who have several examples may be as many as there are examples.
            if isinstance(value, int):
                yield Units(value, _UNITS[name])


def _why_zero(plan: Mechanism) -> str:
    """Return why a plan's epsilon is 0 if nothing of it ever runs; nothing where something does."""
    parts = _parts(plan)
    if not all(map(_never_runs, parts)):
        return ""
    named = "steps" if all(isinstance(part, DPSGD) for part in parts) else "runs"
    return f"0 {named}: nothing is released."


def _why_infinite(plan: Mechanism, delta: float) -> str:
    """Return why a plan's epsilon at a delta is infinite if nothing hides a part; else nothing."""
    return _NO_NOISE if any(_shows(part, delta) for part in _parts(plan)) else ""


def _parts(plan: Mechanism) -> tuple[Mechanism, ...]:
    """Return the parts of a composition, or a plan by itself."""
    return plan.parts if isinstance(plan, Composed) else (plan,)


def _has_noise(part: Mechanism, amount: float) -> bool:
    """Return whether a mechanism adds noise of this amount, and nothing else hides its release."""
    return isinstance(part, _NOISES) and amount in (getattr(part, one, None) for one in _OF_NOISE)


def _is_noise_alone(part: Mechanism) -> bool:
    """Return whether infinite noise hides all that a mechanism releases."""
    if isinstance(part, DPSGD):
        return part.extra is None and part.noise_multiplier == math.inf
    return _has_noise(part, math.inf)


def _never_runs(part: Mechanism) -> bool:
    """Return whether a part is repeated no times, or has no steps."""
    if isinstance(part, DPSGD):
        return part.extra is None and part.total_steps == 0
    return isinstance(part, Repeated) and part.count == 0


def _needs_delta(part: Mechanism) -> bool:
    """Return whether a part surely releases something with Gaussian noise."""
    if isinstance(part, DPSGD):
        is_plain = part.schedule is None and part.batch_schedule is None
        releases = part.total_steps > 0 and part.sampling_rate > 0
        return is_plain and releases and part.noise_multiplier < math.inf
    noises = (one.noise_multiplier for one, n in runs_of(part) if n and isinstance(one, Gaussian))
    return any(noise < math.inf for noise in noises)


def _shows(part: Mechanism, delta: float) -> bool:
    """Return whether a part shows a record, with a probability above delta, without any noise."""
    if isinstance(part, DPSGD):
        is_plain = part.noise_multiplier == 0.0 and part.batch_schedule is None
        # Whatever the sampling, the first batch has a record with this probability.
        return is_plain and part.total_steps > 0 and part.sampling_rate > delta
    return any(n > 0 and _shows_once(one, delta) for one, n in runs_of(part))


def _shows_once(one: Mechanism, delta: float) -> bool:
    """Return whether one run shows a record, with a probability above delta."""
    if isinstance(one, PoissonSubsampled):
        return one.rate > delta and _has_noise(one.inner, 0.0)
    return delta < 1.0 and _has_noise(one, 0.0)
