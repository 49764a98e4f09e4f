"""Piecewise linear trade-off functions: discrete outputs, (epsilon, delta), perfect privacy.

A corner is (alpha, beta) with ``power = 1 - beta`` and ``rest = 1 - alpha``, each of the four to
full relative precision, in both tails. The exact corners are within a relative
``slack`` of these. Since power is concave in alpha and monotone, and beta is monotone in the rest,
reading the polygon at a rate moved by twice the slack, outward, covers that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.numerics import ULP, decimal
from hockeystick.tradeoffs.base import Ends, SymmetricTradeOff, TradeOff, complement
from hockeystick.tradeoffs.functions.closed_forms import Outcomes, masses_of
from hockeystick.tradeoffs.profiles.profile import Array, PerfectPrivacy, Profile, ProfileValues

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


# Below the least normal number, where relative errors mean nothing.
_TINY: Final = 1e-307
# Slopes are cut at this, above every e^epsilon that is asked for.
STEEPEST: Final = 1e308
_LARGEST_EXPONENT: Final = 709.0
_MOST_KNOTS: Final = 200
_Point = tuple[Fraction, Fraction]


@final
@dataclass(frozen=True)
class Corners(Profile):
    """The corners by increasing alpha, from (0, 1) to (1, 0), as a profile of (Q, P).

    ``delta(eps) = max over corners of power - e^eps alpha``; the best corner is where the sides
    become flatter than e^eps.

    Args:
        alphas: The false positive rates, from 0 to 1.
        powers: The true positive rates, from 0 to 1.
        rests: One less the false positive rates.
        betas: One less the true positive rates.
        ratios: Minus the slope of each side; inf where vertical.
        slack: The relative error of each of these numbers.
    """

    alphas: tuple[float, ...]
    powers: tuple[float, ...]
    rests: tuple[float, ...]
    betas: tuple[float, ...]
    ratios: tuple[float, ...]
    slack: float

    @classmethod
    def of(cls, points: Sequence[_Point], slack: float) -> Corners:
        """Return the corners at exact points, from (0, 1) to (1, 0)."""
        masses = masses_of(points)
        return cls(
            tuple(float(alpha) for alpha, _ in points),
            tuple(float(1 - beta) for _, beta in points),
            tuple(float(1 - alpha) for alpha, _ in points),
            tuple(float(beta) for _, beta in points),
            tuple(float(min(q / p, Fraction(STEEPEST))) if p else math.inf for p, q in masses),
            slack,
        )

    def inverse(self) -> Corners:
        """Return the corners of the inverse function."""
        turned = (self.betas[::-1], self.rests[::-1], self.powers[::-1], self.alphas[::-1])
        return Corners(*turned, tuple(_over(ratio) for ratio in self.ratios[::-1]), self.slack)

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        """Alphas and powers, and backward rests and betas: rising, and not upright at 0."""
        last = len(self.alphas) - self.ratios.count(0.0)
        pair = (np.array(self.alphas[self._start :]), np.array(self.powers[self._start :]))
        return *pair, np.array(self.rests[last - 1 :: -1]), np.array(self.betas[last - 1 :: -1])

    @property
    def _start(self) -> int:
        return self.ratios.count(math.inf)

    def power(self, alpha: Array) -> Ends:
        """Return the true positive rate at a false positive rate."""
        alphas, powers, _, _ = self._arrays
        ends = self._ends(alphas, powers, alpha)
        return Ends(ends.lower, np.minimum(ends.upper, 1.0))

    def type_ii(self, rest: Array) -> Ends:
        """Return the false negative rate at one less the false positive rate."""
        _, _, rests, betas = self._arrays
        return self._ends(rests, betas, rest)

    def _ends(self, x: Array, y: Array, at: Array) -> Ends:
        """Return the interpolated polygon, the rate moved outward by twice the slack."""
        off = 2.0 * self.slack + 4.0 * ULP
        tiny = np.where(at > 0.0, _TINY, 0.0)
        low = _through(x, y, np.maximum(at * (1.0 - off) - tiny, 0.0), lowest=True)
        high = _through(x, y, np.minimum(at * (1.0 + off) + tiny, 1.0), lowest=False)
        return Ends(
            np.maximum(low * (1.0 - 4.0 * off) - tiny, 0.0), high * (1.0 + 4.0 * off) + tiny
        )

    @property
    def _margin(self) -> float:
        """The relative error of a side's ratio against e^epsilon."""
        return 4.0 * self.slack + 32.0 * ULP

    @property
    def smooth(self) -> bool:
        return False

    @property
    def breakpoints(self) -> Array:
        inside = [one for one in self.ratios if 1.0 < one < STEEPEST]
        return np.asarray(np.log(np.array(inside if len(inside) <= _MOST_KNOTS else [])))

    @property
    def infinity_mass_lower(self) -> float:
        return self.powers[self._start] * max(1.0 - 4.0 * self._margin, 0.0)

    @property
    def supremum(self) -> float:
        steepest = max((one for one in self.ratios if one < math.inf), default=0.0)
        if steepest >= STEEPEST / 10.0:
            return math.inf
        loss = math.log(max(steepest, 1.0))
        return loss and loss * (1.0 + 4.0 * ULP) + 2.0 * self._margin

    def at(self, epsilon: Array) -> ProfileValues:
        alphas, powers, _, _ = self._arrays
        steps = -np.array(self.ratios[self._start :])
        x = np.exp(np.minimum(epsilon, _LARGEST_EXPONENT))
        margin = self._margin
        # A corner too far to the right costs less than the margin; one too early has no such bound.
        corner = np.searchsorted(steps, -x * (1.0 - margin), side="right")
        power, line = powers[corner], x * alphas[corner]
        estimate = np.maximum(power - line, 0.0)
        off = 2.0 * margin * (power + line)
        lower, upper = np.maximum(estimate - off, 0.0), np.minimum(estimate + off, 1.0)
        constant = corner == 0
        lower = np.where(
            (epsilon > _LARGEST_EXPONENT) | constant, powers[0] * (1.0 - margin), lower
        )
        upper = np.where(constant, min(powers[0] * (1.0 + margin), 1.0), upper)
        return ProfileValues(lower, np.clip(estimate, lower, upper), upper, -line)


def _through(x: Array, y: Array, at: Array, *, lowest: bool) -> Array:
    """Return the interpolated polygon, its lower or upper end where it is vertical."""
    end = np.searchsorted(x, at, side="left" if lowest else "right")
    end = np.clip(end, 1, len(x) - 1)
    width = x[end] - x[end - 1]
    upright = width <= 0.0
    share = np.clip((at - x[end - 1]) / np.where(upright, 1.0, width), 0.0, 1.0)
    share = np.where(upright, 0.0 if lowest else at >= x[end], share)
    return np.asarray(y[end - 1] + share * (y[end] - y[end - 1]))


def _over(ratio: float) -> float:
    if ratio == 0.0:
        return math.inf
    return 0.0 if ratio == math.inf else min(1.0 / ratio, STEEPEST)


def lower_envelope(points: Iterable[Any]) -> list[Any]:
    """Return the corners of the lower convex envelope of pairs (x, y), by rising x."""
    kept: list[Any] = []
    for point in sorted(points):
        if kept and point[0] == kept[-1][0]:
            continue
        while len(kept) > 1 and _is_above(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def _is_above(first: Any, middle: Any, last: Any) -> bool:
    """Return whether the middle one of three points is on or above the chord of the others."""
    (x0, y0), (x1, y1), (x2, y2) = first, middle, last
    return bool((y1 - y0) * (x2 - x0) >= (y2 - y0) * (x1 - x0))


def corners_of(points: Iterable[_Point]) -> list[_Point]:
    """Return the exact corners of the envelope of points, of (0, 1) and of (1, 0)."""
    start, end = (Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))
    kept = lower_envelope({*points, start, end})
    return kept if kept[0] == start else [start, *kept]


# The largest error of a sum of probabilities that is accepted.
_SUM: Final = 1e-12
_UNIT: Final = 2**1074


class _Polygon(TradeOff):
    __slots__ = ()

    corners: Corners

    def _power(self, alpha: Array) -> Ends:
        return _tighter(self.corners.power(alpha), self._of_alpha(alpha))

    def _type_ii(self, alpha: Array) -> Ends:
        return _tighter(self._of_alpha(alpha), self.corners.power(alpha))

    def _of_alpha(self, alpha: Array) -> Ends:
        """Return f from 1 - alpha, whose rounding the margin of the corners covers."""
        return self.corners.type_ii(1.0 - alpha)

    def type_ii_of_complement(self, rest: Array) -> Ends:
        return self.corners.type_ii(rest)


@final
@dataclass(frozen=True, slots=True, init=False)
class PiecewiseLinearTradeOff(_Polygon):
    """The lower convex envelope of points (alpha, beta), of (0, 1) and of (1, 0).

    Guarantees:
        The envelope is exact; f and both profiles are so but for round-off of a few units in the
        last place, relative to f, to 1 - f and to the two rates of the best corner.

    Edge cases:
        No points give ``1 - alpha``; (0, b) with b < 1 gives f(0) = b, so that delta stays 1 - b at
        every epsilon.

    Args:
        alphas: False positive rates, each in [0, 1].
        betas: False negative rates, each in [0, 1], as many.
        rests: One less each alpha, where it is known to more digits: then rates above 1/2 are
            taken from here.
        powers: One less each beta, likewise.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, proposition 2.2: f is a
        trade-off function iff it is convex, continuous, falling and ``f <= 1 - alpha``.

    Example:
        >>> from hockeystick.tradeoffs.functions.piecewise import PiecewiseLinearTradeOff
        >>> f = PiecewiseLinearTradeOff([0.25], [0.25])
        >>> round(f(0.125), 12), round(f.power(0.25), 12)
        (0.625, 0.75)
    """

    corners: Corners
    # The two distributions, where the outcomes are few.
    outcomes: Outcomes | None = field(default=None, repr=False, compare=False)

    def __init__(
        self,
        alphas: ArrayLike,
        betas: ArrayLike,
        *,
        rests: ArrayLike | None = None,
        powers: ArrayLike | None = None,
    ) -> None:
        across = _exact("alphas", alphas, "rests", rests)
        down = _exact("betas", betas, "powers", powers)
        if len(across) != len(down):
            raise ParameterError("betas", betas, f"as many as alphas, which are {len(across)}")
        exact, found = corners_of(zip(across, down, strict=True)), None
        if rests is None and powers is None:
            printed = corners_of(zip(_decimals(alphas), _decimals(betas), strict=True))
            found = Outcomes.between(printed, exact)
        object.__setattr__(self, "corners", Corners.of(exact, ULP))
        object.__setattr__(self, "outcomes", found)

    @property
    def forward(self) -> Profile:
        return self.corners

    @property
    def backward(self) -> Profile:
        return self.corners.inverse()

    def inverse(self) -> PiecewiseLinearTradeOff:
        return polyline_tradeoff(self.corners.inverse(), self.outcomes and self.outcomes.inverse())


@final
@dataclass(frozen=True, slots=True, init=False)
class ApproxTradeOff(SymmetricTradeOff, _Polygon):
    """``f(alpha) = max{0, 1 - delta - e^eps alpha, e^-eps (1 - delta - alpha)}``.

    A mechanism is (epsilon, delta)-DP iff it is f-DP.

    Guarantees:
        Exact but for round-off.

    Edge cases:
        Epsilon inf and delta 1 give 0.

    Args:
        epsilon: A number >= 0, or inf.
        delta: A number in [0, 1].

    References:
        Wasserman and Zhou 2010; Dong, Roth and Su 2022, proposition 2.5.

    Example:
        >>> from hockeystick.tradeoffs.functions.piecewise import ApproxTradeOff
        >>> f = ApproxTradeOff(epsilon=1.0, delta=1e-5)
        >>> print(f"{f.power(0.01):.6f}")
        0.027193
    """

    guarantee: tuple[float, float]
    corners: Corners = field(compare=False)

    def __init__(self, epsilon: float, delta: float) -> None:
        guarantee = _validate.real("epsilon", epsilon), _validate.real("delta", delta)
        object.__setattr__(self, "guarantee", guarantee)
        object.__setattr__(self, "corners", _approximate(*guarantee))

    def __repr__(self) -> str:
        return "ApproxTradeOff(epsilon={!r}, delta={!r})".format(*self.guarantee)

    @property
    def forward(self) -> Profile:
        return self.corners


@final
@dataclass(frozen=True, slots=True)
class IdentityTradeOff(SymmetricTradeOff):
    """``Id(alpha) = 1 - alpha``, that of two equal distributions: perfect privacy.

    Neutral for the tensor product. The ends are equal, or neighbouring floats.

    Example:
        >>> from hockeystick.tradeoffs.functions.piecewise import IdentityTradeOff
        >>> IdentityTradeOff()(0.25)
        0.75
    """

    @property
    def forward(self) -> Profile:
        return PerfectPrivacy()

    def _power(self, alpha: Array) -> Ends:
        return Ends(alpha.copy(), alpha.copy())

    def _type_ii(self, alpha: Array) -> Ends:
        value = 1.0 - alpha
        # The exact rounding error (Knuth's two-sum).
        kept = value - 1.0
        lost = (1.0 - (value - kept)) - (alpha + kept)
        lower = np.where(lost < 0.0, np.nextafter(value, 0.0), value)
        return Ends(lower, np.where(lost > 0.0, np.nextafter(value, 1.0), value))


IDENTITY: Final = IdentityTradeOff()


def discrete_tradeoff(p: ArrayLike, q: ArrayLike) -> PiecewiseLinearTradeOff:
    """Return ``T(P, Q)`` of two distributions on the same finitely many outcomes.

    With the outcomes sorted by falling ``q/p`` the corners are ``(sum of p, 1 - sum of q)`` over
    the first k of them: the likelihood-ratio tests of Neyman and Pearson.

    Guarantees:
        Exact for the given numbers but for round-off, in both tails. Where the numbers do not add
        up to 1, the bounds hold for every pair of distributions within that relative distance (plus
        one unit in the last place) of them. Several runs are those of the decimals that the numbers
        print as, over their sum.

    Args:
        p: Probabilities under the first distribution, each >= 0, of sum 1 to within 1e-12.
        q: Probabilities under the second, as many.

    References:
        Neyman and Pearson 1933; Dong, Roth and Su 2022, section 2.1.

    Example:
        >>> from hockeystick.tradeoffs.functions.piecewise import discrete_tradeoff
        >>> f = discrete_tradeoff([0.25, 0.75], [0.75, 0.25])
        >>> print(f"{f(0.25):.6f} {f(0.5):.6f}")
        0.250000 0.166667
    """
    first, second = _probabilities("p", p), _probabilities("q", q)
    if len(first) != len(second):
        raise ParameterError("q", q, f"as many as p, which are {len(first)}")
    possible = (first > 0.0) | (second > 0.0)
    first, second = first[possible], second[possible]
    order, ratios = _by_ratio(first, second)
    alphas, rests, off = _sums(first[order])
    powers, betas, other_off = _sums(second[order])
    corners = Corners(alphas, powers, rests, betas, ratios, max(off, other_off) + 2.0 * ULP)
    return polyline_tradeoff(corners, Outcomes.of(first[order].tolist(), second[order].tolist()))


def _by_ratio(p: Array, q: Array) -> tuple[Any, tuple[float, ...]]:
    """Return the order of descending q/p, and the ratios in that order, without overflow."""
    p_part, p_power = np.frexp(p)
    q_part, q_power = np.frexp(q)
    part = q_part / np.where(p > 0.0, p_part, 1.0)
    half = part < 1.0
    part, power = np.where(half, 2.0 * part, part), q_power - p_power - half
    power = np.where(p == 0.0, 10_000, np.where(q == 0.0, -10_000, power))
    order = np.lexsort((-part, -power))
    with np.errstate(over="ignore", under="ignore"):
        ratio = np.minimum(np.ldexp(part, power), STEEPEST)
    ratio = np.where(p == 0.0, math.inf, np.where(q == 0.0, 0.0, ratio))
    return order, tuple(map(float, ratio[order]))


def _sums(weights: Array) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Return the shares of the first k weights and of the others, and the error of the sum."""
    parts = (n * (_UNIT // d) for n, d in map(float.as_integer_ratio, weights.tolist()))
    sums = [0, *accumulate(parts)]
    total = sums[-1]
    rests = tuple((total - one) / total for one in sums)
    return tuple(one / total for one in sums), rests, abs(total / _UNIT - 1.0)


def _probabilities(name: str, values: ArrayLike) -> Array:
    weights = _rates(name, values)
    total = math.fsum(weights)
    if not abs(total - 1.0) <= _SUM:
        raise ParameterError(name, values, f"of sum 1 (it is {total!r})")
    return weights


def _rates(name: str, values: ArrayLike) -> Array:
    allowed = "a list of numbers from 0 to 1"
    try:
        rates = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(name, values, allowed) from None
    if rates.ndim != 1 or not ((rates >= 0.0) & (rates <= 1.0)).all():
        raise ParameterError(name, values, allowed)
    return np.asarray(rates)


def _exact(name: str, values: ArrayLike, other: str, rests: ArrayLike | None) -> list[Fraction]:
    """Return rates as fractions, those above 1/2 from their complements where these are given."""
    rates = _rates(name, values)
    if rests is None:
        return [Fraction(rate) for rate in rates.tolist()]
    complements = _rates(other, rests)
    if complements.shape != rates.shape or (np.abs(1.0 - rates - complements) > ULP).any():
        raise ParameterError(other, rests, f"one less each of {name}, within rounding")
    pairs = zip(rates.tolist(), complements.tolist(), strict=True)
    return [Fraction(one) if one <= rest else 1 - Fraction(rest) for one, rest in pairs]


def _decimals(rates: ArrayLike) -> list[Fraction]:
    return [decimal(rate) for rate in np.array(rates, dtype=np.float64).tolist()]


def polyline_tradeoff(corners: Corners, outcomes: Outcomes | None) -> PiecewiseLinearTradeOff:
    """Return the polygon with given corners."""
    made = object.__new__(PiecewiseLinearTradeOff)
    object.__setattr__(made, "corners", corners)
    object.__setattr__(made, "outcomes", outcomes)
    return made


def _approximate(epsilon: float, delta: float) -> Corners:
    if epsilon == math.inf or delta == 1.0:
        return Corners((0.0, 0.0, 1.0), (0.0, 1.0, 1.0), (1.0, 1.0, 0.0), (1.0, 0.0, 0.0),
                       (math.inf, 0.0), 0.0)  # fmt: skip
    small = math.exp(-epsilon)
    inner, outer = (1.0 - delta) * small / (1.0 + small), (1.0 + delta * small) / (1.0 + small)
    steep = min(math.exp(epsilon), STEEPEST) if epsilon < 709.0 else STEEPEST
    return Corners(
        (0.0, 0.0, inner, 1.0 - delta, 1.0),
        (0.0, delta, outer, 1.0, 1.0),
        (1.0, 1.0, outer, delta, 0.0),
        (1.0, 1.0 - delta, inner, 0.0, 0.0),
        (math.inf, steep, small, 0.0),
        8.0 * ULP,
    )


def _tighter(near: Ends, far: Ends) -> Ends:
    """Return the tighter of the ends of a number and of one minus its complement."""
    lower, upper = complement(far)
    return Ends(np.maximum(np.maximum(near.lower, lower), 0.0), np.minimum(near.upper, upper))
