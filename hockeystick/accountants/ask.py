"""The questions: epsilon and delta, of a plan or of one ordered pair of neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Final, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from hockeystick import _validate
from hockeystick._validate import Domain, WordEnum
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.accountants.base import (
    LARGEST_EPSILON,
    TOLERANCE,
    Accountant,
    Interval,
    can_be_infinite,
    composition_of,
    worse,
)
from hockeystick.accountants.choice import Auto
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.mechanisms.base import checked
from hockeystick.mechanisms.structure import with_least_encoders
from hockeystick.numerics import ULP
from hockeystick.numerics.rounding import OUTWARD_8192
from hockeystick.privacy_loss import AnalyticLoss, Composition, Terms
from hockeystick.privacy_loss.core.composition import (
    Lines,
    cgf_upper,
    largest_loss,
    least_largest_loss,
)
from hockeystick.results import Approximate, Certified, Quantity

_Function = TypeVar("_Function", bound=Callable[..., Any])
Answer: TypeAlias = Certified | Approximate
Several: TypeAlias = Sequence[float] | NDArray[np.float64]
Proving: TypeAlias = Literal[
    "auto",
    "closed-form",
    "contour",
    "prv",
    "selection",
    "parts",
    "rdp",
    "zcdp",
    "moments",
    "advanced",
    "basic",
    "berry-esseen",
]


class _How(TypedDict, total=False):
    tolerance: float


class Precision(_How, total=False):
    """How precisely to answer, where it is said: as ``epsilon`` takes it."""

    digits: int | None


# An epsilon below this looks like a delta.
_TINY: Final = 1e-3
_ANY_EPSILON: Final = Domain(symbol="eps", low=-math.inf, high=math.inf, typical=(-20, 20))
# An answer below 2 to this is refused: its digits could be told, but not its exponent.
_SMALLEST_EXPONENT: Final = -3_400_000


def _warning_of_tiny(function: _Function) -> _Function:
    """Return a function that warns where the epsilon given by place looks like a delta."""

    @wraps(function)
    def warning(*given: Any, **named: Any) -> Any:
        at = given[1] if len(given) > 1 else None
        if isinstance(at, float) and 0.0 < at < _TINY:
            text = (
                f"delta at epsilon = {at:g} was asked; for the epsilon at this delta write "
                f"hockeystick.epsilon(plan, delta={at:g}); epsilon={at:g} by name does not warn"
            )
            warn(text, UserWarning, stacklevel=2)
        return function(*given, **named)

    return cast(_Function, warning)


@overload
def epsilon(
    plan: Mechanism, delta: float, *, accountant: Proving = ..., **how: Unpack[Precision]
) -> Certified: ...
@overload
def epsilon(
    plan: Mechanism, delta: float, *, accountant: str, **how: Unpack[Precision]
) -> Answer: ...
@overload
def epsilon(
    plan: Mechanism, delta: Several, *, accountant: Proving = ..., **how: Unpack[Precision]
) -> tuple[Certified, ...]: ...
@overload
def epsilon(
    plan: Mechanism, delta: Several, *, accountant: str, **how: Unpack[Precision]
) -> tuple[Answer, ...]: ...
def epsilon(
    plan: Mechanism,
    delta: float | Several,
    *,
    accountant: str = "auto",
    digits: int | None = None,
    tolerance: float = TOLERANCE,
) -> Answer | tuple[Answer, ...]:
    """Return the epsilon that a plan costs at a delta, as a proven interval.

    The plan is (epsilon, delta)-DP for the least epsilon >= 0 with
    ``E_P[(1 - exp(epsilon - L))_+] <= delta`` in both directions of its privacy loss L.

    Guarantees:
        ``lower <= truth <= upper`` with rounding included, for every accountant but "gdp" and
        "edgeworth", which return an ``Approximate``. ``float(answer)`` is the upper end.

    Edge cases:
        A plan that releases nothing costs 0; delta = 1 costs 0; delta = 0 costs the largest loss,
        which is infinite for Gaussian noise; noise 0 costs inf unless delta covers the chance that
        the record was sampled at all.

    Args:
        plan: A mechanism or plan.
        delta: In [0, 1]; or several, as a sequence or an array of one dimension: a thousand cost
            about as much as forty alone.
        accountant: "auto", "closed-form", "contour", "prv", "selection", "parts", "rdp", "zcdp",
            "moments", "advanced", "basic", "gdp", "edgeworth" or "berry-esseen".
        digits: Significant digits to compute in arbitrary precision, from 1 to 1000; the ends are
            then ``mpmath.mpf``, and parameters mean the decimals that they print as.
        tolerance: Relative width of the interval asked for, from 1e-10 to 0.1. It is what the
            lattice of "prv" is refined to, as far as memory allows; a narrower answer costs nothing
            where there is a closed form or a contour.

    Returns:
        ``Certified``, or ``Approximate`` for "gdp" and "edgeworth"; a tuple of them for several.

    Raises:
        UnsupportedError: If the accountant has no analysis for a part of the plan.

    Example:
        >>> import hockeystick as hs
        >>> step = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=256 / 60_000)
        >>> print(hs.epsilon(step**14_062, delta=1e-5, accountant="contour"))
        epsilon = 2.38160 at delta = 1e-05 (proven in [2.38159..., 2.38159...]; contour, add-remove)
        >>> [float(f"{answer:.3f}") for answer in hs.epsilon(step**14_062, delta=[1e-5, 1e-6])]
        [2.382, 2.697]
    """
    asked = accountant_of(accountant, tolerance)
    return _answer_or_answers(plan, "epsilon", delta, asked, digits)


@overload
def delta(
    plan: Mechanism, epsilon: float, *, accountant: Proving = ..., **how: Unpack[Precision]
) -> Certified: ...
@overload
def delta(
    plan: Mechanism, epsilon: float, *, accountant: str, **how: Unpack[Precision]
) -> Answer: ...
@overload
def delta(
    plan: Mechanism, epsilon: Several, *, accountant: Proving = ..., **how: Unpack[Precision]
) -> tuple[Certified, ...]: ...
@overload
def delta(
    plan: Mechanism, epsilon: Several, *, accountant: str, **how: Unpack[Precision]
) -> tuple[Answer, ...]: ...
@_warning_of_tiny
def delta(
    plan: Mechanism,
    epsilon: float | Several,
    *,
    accountant: str = "auto",
    digits: int | None = None,
    tolerance: float = TOLERANCE,
) -> Answer | tuple[Answer, ...]:
    """Return the delta that a plan costs at an epsilon, as a proven interval.

    ``delta = max over both directions of E_P[(1 - exp(epsilon - L))_+]``, the hockey-stick
    divergence.

    Guarantees:
        As for ``epsilon``. The interval is narrow relative to delta itself, down to 1e-300.

    Edge cases:
        epsilon = inf gives 0 unless a release without noise can show the record. An epsilon between
        0 and 0.001 that is given without its name warns, as it may be meant as a delta.

    Args:
        plan: A mechanism or plan.
        epsilon: In [0, inf]; or several, as for ``epsilon``.
        accountant: As for ``epsilon``.
        digits: As for ``epsilon``.
        tolerance: As for ``epsilon``.

    Returns:
        ``Certified``, or ``Approximate`` for "gdp" and "edgeworth"; a tuple of them for several.

    Raises:
        UnsupportedError: If the accountant has no analysis for a part of the plan.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.delta(hs.Gaussian(1), epsilon=1))
        delta = 0.126937 at epsilon = 1 (proven in [0.1269367..., 0.1269367...]; closed-form)
    """
    asked = accountant_of(accountant, tolerance)
    return _answer_or_answers(plan, "delta", epsilon, asked, digits)


class Direction(WordEnum):
    """Which of two neighbours the outputs are from; the other one is what they are held against.

    "remove": P is of the data with the record, Q of those without it; "add": the other way round.
    Under replace-one and zero-out adjacency they are the two orders of each pair of neighbours.
    """

    REMOVE = "remove"
    ADD = "add"

    @property
    def opposite(self) -> Direction:
        """The other direction."""
        return Direction.ADD if self is Direction.REMOVE else Direction.REMOVE

    def terms_of(self, composition: Composition) -> Terms:
        """Return the losses of a composition in this direction."""
        return composition.removing if self is Direction.REMOVE else composition.adding


@overload
def directed_delta(
    plan: Mechanism,
    epsilon: float,
    direction: str,
    *,
    accountant: Proving = ...,
    **how: Unpack[_How],
) -> Certified: ...
@overload
def directed_delta(
    plan: Mechanism, epsilon: float, direction: str, *, accountant: str, **how: Unpack[_How]
) -> Answer: ...
def directed_delta(
    plan: Mechanism,
    epsilon: float,
    direction: Direction | str,
    *,
    accountant: str = "auto",
    tolerance: float = TOLERANCE,
) -> Answer:
    """Return the hockey-stick divergence of one direction, at any real epsilon.

    ``H_{e^eps}(P||Q) = sup over sets S of P(S) - e^eps Q(S)``, the largest over all neighbours in
    this direction. Below 0 it is that of the other direction, by reflection:

        H_{e^eps}(P||Q) = 1 - e^eps + e^eps H_{e^-eps}(Q||P).

    Guarantees:
        As for ``hs.delta``, which is the larger one of both directions for ``epsilon >= 0``. At a
        negative epsilon the interval is as narrow as the other direction's, times ``e^epsilon``.

    Edge cases:
        epsilon = -inf gives 1; epsilon = inf the chance that a release without noise shows the
        direction; a plan that releases nothing has ``max(1 - e^epsilon, 0)``.

    Args:
        plan: A mechanism or plan.
        epsilon: In [-inf, inf].
        direction: "remove" or "add".
        accountant: As for ``hs.delta``.
        tolerance: As for ``hs.delta``.

    Returns:
        ``Certified``, or ``Approximate`` for "gdp" and "edgeworth".

    Raises:
        UnsupportedError: If the accountant has no analysis for a part of the plan.

    References:
        Zhu, Dong and Wang, AISTATS 2022, for the directions; the reflection is that of
        ``(p - a q)_+ = p - a q + a (q - p / a)_+``.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(2), rate=0.1)
        >>> for direction in ("remove", "add"):
        ...     for epsilon in (0.05, -0.05):
        ...         delta = hs.accountants.directed_delta(plan, epsilon, direction)
        ...         print(f"{direction} {epsilon}: {delta:.7f}")
        remove 0.05: 0.0069071
        remove -0.05: 0.0502412
        add 0.05: 0.0015460
        add -0.05: 0.0553408
    """
    asked = _validate.choice("direction", direction, Direction)
    at = _validate.real("epsilon", epsilon, _ANY_EPSILON)
    chosen = accountant_of(accountant, tolerance)
    if at >= 0.0:
        return answers_by(plan, "delta", (at,), chosen, direction=asked)[0]
    return _reflected(answers_by(plan, "delta", (-at,), chosen, direction=asked.opposite)[0], at)


@overload
def directed_epsilon(
    plan: Mechanism, delta: float, direction: str, *, accountant: Proving = ..., **how: Unpack[_How]
) -> Certified: ...
@overload
def directed_epsilon(
    plan: Mechanism, delta: float, direction: str, *, accountant: str, **how: Unpack[_How]
) -> Answer: ...
def directed_epsilon(
    plan: Mechanism,
    delta: float,
    direction: Direction | str,
    *,
    accountant: str = "auto",
    tolerance: float = TOLERANCE,
) -> Answer:
    """Return the least epsilon >= 0 of one direction at a delta.

    ``P(S) <= e^epsilon Q(S) + delta`` for all sets S and all neighbours in this direction.

    Guarantees and edge cases are those of ``hs.epsilon``, the larger one of both directions.

    Args:
        plan: A mechanism or plan.
        delta: In [0, 1].
        direction: "remove" or "add".
        accountant: As for ``hs.epsilon``.
        tolerance: As for ``hs.epsilon``.

    Returns:
        ``Certified``, or ``Approximate`` for "gdp" and "edgeworth".

    Raises:
        UnsupportedError: If the accountant has no analysis for a part of the plan.

    References:
        Zhu, Dong and Wang, AISTATS 2022.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 1000
        >>> for direction in ("remove", "add"):
        ...     print(f"{hs.accountants.directed_epsilon(plan, 1e-5, direction):.4f}")
        1.5154
        1.2378
    """
    asked = _validate.choice("direction", direction, Direction)
    at = _validate.real("delta", delta)
    chosen = accountant_of(accountant, tolerance)
    return answers_by(plan, "epsilon", (at,), chosen, direction=asked)[0]


def _reflected(other: Answer, epsilon: float) -> Answer:
    """Return ``1 - e^eps + e^eps delta`` at a negative epsilon, rounded outward."""
    odds, rest = math.exp(epsilon), -math.expm1(epsilon)
    slack = 8.0 * ULP if epsilon > -math.inf else 0.0

    def at(delta: float, side: float) -> float:
        return min(max((rest + odds * delta) * (1.0 + side * slack), 0.0), 1.0)

    said: Any = {"quantity": "delta", "accountant": other.accountant, "at": epsilon}
    said |= {"adjacency": other.adjacency, "assumptions": other.assumptions}
    if isinstance(other, Approximate):
        return Approximate(at(other.value, 0.0), **said)
    ends = (at(other.lower, -1.0), at(other.estimate, 0.0), at(other.upper, 1.0))
    return Certified(*ends, **said)


def asked(delta: float | None, epsilon: float | None) -> tuple[Quantity, float]:
    """Return what is asked for, and where, or raise unless exactly one of the two is given."""
    if (delta is None) == (epsilon is None):
        raise ParameterError("delta, epsilon", (delta, epsilon), "given one without the other")
    if epsilon is None:
        return "epsilon", _validate.real("delta", delta)
    return "delta", _validate.real("epsilon", epsilon)


def _answer_or_answers(
    plan: Mechanism,
    quantity: Quantity,
    given: float | Several,
    accountant: Accountant,
    digits: int | None,
) -> Answer | tuple[Answer, ...]:
    name = "delta" if quantity == "epsilon" else "epsilon"
    if digits is not None:
        digits = _validate.count("digits", digits, _validate.PARAMETERS["digits"])
    if not isinstance(given, (Sequence, np.ndarray)) or isinstance(given, str):
        value = _validate.real(name, given)
        return answers_by(plan, quantity, (value,), accountant, digits)[0]
    values = _validate.reals(name, given, _validate.PARAMETERS[name])
    return answers_by(plan, quantity, values, accountant, digits)


def answers_by(
    plan: Mechanism,
    quantity: Quantity,
    values: Sequence[float],
    accountant: Accountant,
    digits: int | None = None,
    direction: Direction | None = None,
) -> tuple[Answer, ...]:
    """Return the answers of one accountant, with what they rest on; of one direction where given.

    The worst branch of a plan counts. To a number of digits, the lower end is that of the plan
    with the least encoders.
    """
    known = checked("plan", plan)

    def of(one: Mechanism) -> list[Answer]:
        branches = composition_of(one, accountant.name).branches
        if direction is not None:
            alone = dict.fromkeys(map(direction.terms_of, branches))
            branches = tuple(Composition(terms, terms) for terms in alone)
        found = [_read_all(branch, quantity, values, accountant, digits) for branch in branches]
        said: dict[str, Any] = {"quantity": quantity, "adjacency": one.adjacency}
        said |= {"assumptions": assumptions_of(one)}
        each = zip(values, *found, strict=True)
        return [_answer(together, said | {"at": value}) for value, *together in each]

    answers, least = of(known), known if digits is None else with_least_encoders(known)
    if least is known:
        return tuple(answers)
    pairs: Any = zip(answers, of(least), strict=True)
    return tuple(replace(one, lower=other.lower) for one, other in pairs)


def _answer(found: Sequence[tuple[Accountant, Interval]], said: dict[str, Any]) -> Answer:
    used, _ = max(found, key=lambda one: one[1].upper)
    interval = worse([one for _, one in found])
    if used.kind == "approximation":
        return Approximate(interval.estimate, accountant=used.name, **said)
    return Certified(*interval.ordered(), accountant=used.name, **said)


def _read_all(
    composition: Composition,
    quantity: Quantity,
    values: Sequence[float],
    accountant: Accountant,
    digits: int | None,
) -> list[tuple[Accountant, Interval]]:
    most = 1.0 if quantity == "epsilon" else LARGEST_EPSILON
    inside = [value for value in values if 0.0 < value < most]
    together = len(inside) > 1 and digits is None
    known = accountant.many(composition, quantity, inside) if together else {}
    return [
        known.get(value) or _read(composition, quantity, value, accountant, digits)
        for value in values
    ]


def _read(
    composition: Composition,
    quantity: Quantity,
    value: float,
    accountant: Accountant,
    digits: int | None,
) -> tuple[Accountant, Interval]:
    """Return the accountant that answers and its interval, the ends of the scale included."""
    known = _at_the_ends(composition, quantity, value)
    if known is not None:
        return ClosedForm() if isinstance(accountant, Auto) else accountant, known

    if quantity == "delta" and value > LARGEST_EPSILON and not can_be_infinite(composition):
        # delta falls: what it is at most there, it is at most here.
        used, nearer = _read(composition, quantity, LARGEST_EPSILON, accountant, None)
        return used, Interval(0.0, 0.0, nearer.upper)

    quick = isinstance(accountant, Auto) and quantity == "epsilon" and digits is None
    if quick and has_no_epsilon(composition, value):
        return ClosedForm(), Interval.point(0.0)
    used, found = accountant.answer(composition, quantity, value, digits)
    return used, found if digits is None else _handed_over(used, found)


# A bound is worked out where its unproven estimate is at most this multiple of delta.
_HOPEFUL: Final = 1.01
# More different losses than this are not looked at one by one.
_MOST_LOSSES: Final = 8


def has_no_epsilon(composition: Composition, delta: float) -> bool:
    """Return whether epsilon is proven to be 0 at a delta; False where that is not known.

    delta at epsilon 0 is the total variation distance of the two products: at most the sum of the
    runs' own distances, by the triangle inequality, and at most ``sqrt(chi^2) / 2`` by that of
    Cauchy and Schwarz, with ``1 + chi^2 = exp(sum n_i K_i(1))``. The sum is small where runs are
    few, the root where they are many.
    """
    # The rounding also covers the decimal that a float prints as.
    least, lines = delta / (1.0 + OUTWARD_8192), composition.analytic
    return bool(lines) and all(_is_below(terms, least) for terms in lines)


def _is_below(terms: Lines, delta: float) -> bool:
    """Return whether a direction's total variation distance is proven to be at most delta."""
    if len(terms) > _MOST_LOSSES:
        return False
    square = apart = 0.0
    for loss, count in terms:
        square += count * loss.clt_mu_squared
        apart += count * loss.delta_estimate(0.0)
    if 0.5 * math.sqrt(square) <= _HOPEFUL * delta:
        exponent = cgf_upper(terms, 1.0)
        if exponent < 1.0 and 0.5 * math.sqrt(math.expm1(exponent)) * (1.0 + OUTWARD_8192) <= delta:
            return True
    if apart > _HOPEFUL * delta:
        return False
    return math.fsum(n * _upper(loss) for loss, n in terms) * (1.0 + OUTWARD_8192) <= delta


def _upper(loss: AnalyticLoss) -> float:
    profile = loss.proven_profile()
    return float(profile.at(np.zeros(1)).upper[0]) if profile else math.inf


def _handed_over(accountant: Accountant, interval: Interval) -> Interval:
    """Return an answer as ``mpmath.mpf``, or raise where its exponent alone would fill a page."""
    from mpmath import mp
    from mpmath.libmp import from_float

    parts = (from_float(end) if isinstance(end, float) else end._mpf_ for end in interval)
    handed = Interval(*map(mp.make_mpf, parts))
    estimate: Any = handed.estimate
    if 0 < estimate < math.inf and estimate.man_exp[1] < _SMALLEST_EXPONENT:
        raise accountant.refuse("the plan", "the answer is below 10^-1000000")
    return handed


def _at_the_ends(composition: Composition, quantity: Quantity, value: float) -> Interval | None:
    if quantity == "epsilon" and value >= 1.0:
        return Interval.point(0.0)
    if quantity == "epsilon" and value == 0.0:
        upper = max(0.0, *(largest_loss(terms) for terms in composition.directions))
        lower = max(least_largest_loss(terms) for terms in composition.directions)
        return Interval(lower, upper, upper).ordered()
    if quantity == "delta" and value == math.inf and not can_be_infinite(composition):
        return Interval.point(0.0)
    return None


def accountant_of(name: str, tolerance: float) -> Accountant:
    """Return the accountant of a name that goes for such a relative width, or raise."""
    if isinstance(name, list | tuple):
        allowed = "one name (several side by side: hockeystick.compare(plan, delta=1e-5))"
        raise ParameterError("accountant", name, allowed)
    asked = ACCOUNTANTS[_validate.name_in("accountant", name, ACCOUNTANTS)]
    return asked.within(_validate.real("tolerance", tolerance))
