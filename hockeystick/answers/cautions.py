"""What an answer or a converted guarantee does not say by itself, and one should know."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick.accountants.ask import Answer, asked
from hockeystick.accountants.comparison import LEAST_RATE
from hockeystick.conversions.convert import convert
from hockeystick.errors import IncompatibleError, UnsupportedError
from hockeystick.mechanisms import (
    MatrixFactorization,
    Mechanism,
    PoissonSubsampled,
    TreeAggregation,
)
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics.numerals import at_most, plain
from hockeystick.results import Certified

# The fields of mechanisms that say how many are protected, and what one of these is called.
_UNITS: Final = {"examples": "examples", "total_clients": "clients", "users": "users"}
# Ponomareva et al. (2023), section 5.2: a larger epsilon is "weak to no formal" protection.
_WEAK: Final = 10.0
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
_NO_GUARANTEE: Final = (
    "an infinite epsilon is no guarantee: it also holds for a release that shows all data."
)
_WEAKLY: Final = "epsilon above 10: weak to no guarantee (Ponomareva et al. 2023)"


@final
@dataclass(frozen=True, slots=True)
class Caution:
    """What an answer does not say by itself.

    Args:
        about: "delta", "epsilon", "rho", "mu" or "divergences".
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
    """Return what whoever decides by an answer should know besides, by convention.

    A delta of at least one over the number of records allows a release that shows one of them in
    full, and one of a tenth of it is far from usual (Dwork and Roth 2014, section 2.3), which is a
    mild caution. An epsilon above 10 is "weak to no formal" protection (Ponomareva et al. 2023,
    section 5.2). Without the number of records in the plan, nothing is said of a delta below 1.

    Args:
        answer: What ``epsilon`` or ``delta`` returned.
        plan: What it is of.
        delta: Where epsilon was asked for; or
        epsilon: where delta was asked for: exactly one of the two.

    Returns:
        The cautions, the most serious first; none does not mean that an answer is good.

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
    weak = Caution("epsilon", _NO_GUARANTEE if epsilon == math.inf else _WEAKLY)
    grave = (caution_of_delta(delta, plan), weak if epsilon > _WEAK else None)
    return tuple(
        sorted(filter(None, (*grave, *cautions_of_plan(plan))), key=lambda one: one.is_mild)
    )


def cautions_of_plan(plan: Mechanism) -> tuple[Caution, ...]:
    """Return the cautions that do not depend on what was asked."""
    parts = (one for one in mechanisms_in(plan) if isinstance(one, PoissonSubsampled))
    one_sample = any(isinstance(one.inner, _STREAMS) for one in parts)
    return (Caution("epsilon", _ONE_SAMPLE),) if one_sample else ()


def units_of(plan: Mechanism) -> Units | None:
    """Return how many are protected by a plan, the most that a part says; None where none does.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=50_000, batch_size=500, epochs=1, noise_multiplier=1)
        >>> print(hs.answers.units_of(plan @ hs.Laplace(1)))
        50,000 examples
    """
    found = (
        Units(getattr(part, field.name), _UNITS[field.name])
        for part in mechanisms_in(plan)
        for field in dataclasses.fields(part)
        # Users who have several examples may be as many as there are examples.
        if field.name in _UNITS and isinstance(getattr(part, field.name), int)
    )
    return max(found, key=lambda one: one.count, default=None)


def reservation(delta: float, units: Units | None) -> str:
    """Return why meeting a budget at a delta says little; nothing where it does not."""
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


def caution_of_delta(delta: float, plan: Mechanism) -> Caution | None:
    """Return the caution where delta is not well below one over the number of records."""
    units = units_of(plan)
    if units is None:
        return Caution("delta", _NO_PROMISE) if delta == 1.0 else None
    if delta * units.count <= 0.1:
        return None
    is_mild = delta * units.count < 1.0
    what = f"high for {units}" if is_mild else f"not below 1 / {units.count:,}"
    sensible = f"use {plain(suggested_delta(units))} or less"
    return Caution("delta", f"delta {_short(delta)} is {what}; {sensible}", is_mild)


def _short(value: float) -> str:
    """Return a number as it was given, or rounded up if it has many digits."""
    return min(plain(value), at_most(value), key=len)


def mechanisms_in(plan: object) -> Iterator[Any]:
    """Yield a plan and the mechanisms that it is made of."""
    if isinstance(plan, tuple):
        for part in plan:
            yield from mechanisms_in(part)
    if isinstance(plan, Mechanism) and dataclasses.is_dataclass(plan):
        yield plan
        for field in dataclasses.fields(plan):
            yield from mechanisms_in(getattr(plan, field.name))


_WHY: Final = (
    "a rare loss counts as if it were sure, and sampling saves little. Ask for ApproxDP at a "
    "delta, RenyiDP at some orders or TCDP up to a small omega."
)
_OTHER_MU: Final = (
    "mu is proven for every release with losses as large; a smaller one may hold. The mu of "
    f"reports is another one, which holds at error rates from {plain(LEAST_RATE)} on: "
    "hs.accountants.gaussian_summary in Python."
)


def conversion_cautions(
    found: Notion, x: Mechanism, lower: tuple[float, ...] = ()
) -> tuple[Caution, ...]:
    """Return what whoever quotes a converted guarantee should know besides, by convention.

    One number for all orders, or for all error rates, is as large as the largest orders need, at
    which sampling saves little: DP-SGD of epsilon 2.4 at delta 1e-5 may have a rho of 5,800. It is
    said where the guarantee provably allows more than twice the plan's own divergence of order 2.
    The numbers in the texts are rounded up.

    Args:
        found: What ``convert`` made of x.
        x: A notion, a mechanism or a plan.
        lower: ``conversions.lower_ends`` of them, by which a size that is not exact is judged.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 1000
        >>> found = hs.convert(plan, hs.ZCDP)
        >>> lower = hs.conversions.lower_ends(plan, found)
        >>> (one,) = hs.answers.conversion_cautions(found, plan, lower)
        >>> print(one.text)  # doctest: +NORMALIZE_WHITESPACE +ELLIPSIS
        by rho, 826.447 is allowed at order 2, where the plan costs 0.128...: a rare loss counts as
        if it were sure, and sampling saves little. Ask for ApproxDP at a delta, RenyiDP at some
        orders or TCDP up to a small omega.
    """
    if isinstance(found, ApproxDP):
        return cautions_at(x, epsilon=found.epsilon, delta=found.delta)
    if isinstance(found, PureDP):
        return cautions_at(x, epsilon=found.epsilon, delta=0.0)
    of_size = None if isinstance(x, Notion) else _of_size(found, x, lower)
    return tuple(filter(None, (of_size, *cautions_of_plan(x))))


def _of_size(found: Notion, plan: Mechanism, lower: tuple[float, ...]) -> Caution | None:
    """Return the caution where a guarantee of many orders is far above the plan's at order 2."""
    is_exact = found.origin is not None and found.origin.kind == "exact"
    # What is proven to be needed: the number itself where it is exact.
    needed, order = None if is_exact else (lower or (0.0,))[-1], 2.0
    match found:
        case ZCDP() | TCDP():
            about, allowed = "rho", 2.0 * found.rho
            slope = found.rho if needed is None else needed
        case GDP() if found.origin is not None and needed is not None:
            about, allowed, slope = "mu", found.mu * found.mu, 0.5 * needed**2
        case RenyiDP() if found.divergences[-1][0] > order:
            order, allowed = found.divergences[-1]
            about, slope = "divergences", (allowed if needed is None else needed) / order
        case _:
            return None
    cost = _far_below(slope, plan)
    if cost is None:
        return Caution(about, _OTHER_MU) if about == "mu" else None
    said = f"by {about}, {at_most(allowed)} is allowed at order {plain(order)}"
    cost = f"{said}, where the plan costs {cost}{'' if order == 2.0 else ' at order 2'}"
    return Caution(about, f"{cost}: {_WHY}{f' {_OTHER_MU}' if about == 'mu' else ''}")


def _far_below(slope: float, plan: Mechanism) -> str | None:
    """Return the plan's divergence of order 2, where a line of that slope is twice as high."""
    if slope == 0.0:
        return None
    try:
        ((_, cost),) = convert(plan, RenyiDP, orders=2.0).divergences
    except (IncompatibleError, UnsupportedError):
        return None
    return at_most(cost) if slope * 2.0 > 2.0 * cost else None
