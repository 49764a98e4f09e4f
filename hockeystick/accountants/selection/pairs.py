"""Finite pairs of distributions that dominate a pair, or are dominated by it, by its profile.

A convex, nonincreasing function h of ``a = e^eps`` that is linear between some knots is the profile
of a finite pair (P, Q) with an outcome of likelihood ratio a at each knot, and two more of ratio 0
and infinity. The line between knots a < b is what the test "ratio at least b" has: with
``y = (h(a) - h(b)) / (b - a)`` and ``x = h(b) + b y`` it has probability x under P and y under Q.
Where h is at least the profile of a pair, that one is post-processing of (P, Q) (Blackwell; Dong,
Roth and Su 2022, theorem 2.10), and the other way round.

- From above: the profile is convex, so that it lies below its chords: h goes through proven upper
  ends, and through fewer of them where these are not convex.
- From below: between two knots the profile is above both lines that extend the chords next to
  them; h is the lower convex envelope of where these lines cross and of the lower ends.

Below a = 1 a profile is known by the one of (Q, P), ``h(a) = 1 - a + a h'(1/a)``; with
``b = 1/a`` the complements of x and y are found from h' as y and x are from h. So both tails keep
their relative precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics import ULP
from hockeystick.privacy_loss import (
    CellLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    PrivacyLoss,
    SampledLoss,
    SkellamLoss,
    Terms,
)
from hockeystick.tradeoffs import Profile


def swapped_terms(terms: Terms) -> Terms | None:
    """Return the losses of (Q, P) for those of (P, Q); None where one is not known."""
    turned = [(swapped(loss), count) for loss, count in terms]
    known = tuple((loss, count) for loss, count in turned if loss is not None)
    return known if len(known) == len(terms) else None


def swapped(loss: PrivacyLoss) -> PrivacyLoss | None:
    """Return the loss of (Q, P); None where it is not known."""
    if isinstance(loss, LaplaceLoss | DiscreteLaplaceLoss | DiscreteGaussianLoss | SkellamLoss):
        # Symmetric noise about two places: mirrored, (Q, P) is (P, Q).
        return loss
    if not isinstance(loss, SampledLoss):
        return loss.opposite
    # ((1-p) Q + p P, Q) becomes (Q, (1-p) Q + p P), which is of the inner pair (Q, P).
    inner = swapped(loss.inner)
    if not isinstance(inner, CellLoss):
        return None
    return replace(loss, inner=inner, removing=not loss.removing)


Array: TypeAlias = NDArray[np.float64]

# Lower ends are moved down by this share of themselves before their envelope is taken.
_DOWN: Final = 2.0**-42
# A pair whose tails next to ratio 1 are smaller than this is not resolved.
_SMALLEST_TAIL: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Knots:
    """Ascending losses, and ends of h there: of (P, Q) at those >= 0, else of (Q, P)."""

    loss: Array
    delta: Array

    @classmethod
    def above(cls, own: Profile, reverse: Profile, at: Array) -> Knots:
        """Return upper ends at some losses and their negatives."""
        high, low = (np.minimum.accumulate(one.at(at).upper) for one in (own, reverse))
        at_zero = min(high[0], low[0])
        delta = np.r_[low[:0:-1], at_zero, np.minimum(high[1:], at_zero)]
        delta[: at.size - 1] = np.minimum(delta[: at.size - 1], at_zero)
        return _hull(np.r_[-at[:0:-1], at], delta)

    @classmethod
    def below(cls, own: Profile, reverse: Profile, at: Array) -> Knots:
        """Return lower ends, between the losses too, of a profile that both are."""
        ends = [one.at(at) for one in (own, reverse)]
        beside = [float(one.upper[1]) for one in reversed(ends)]
        (high, high_delta), (low, low_delta) = (
            _points_below(at, one.lower * (1.0 - _DOWN), one.upper, other)
            for one, other in zip(ends, beside, strict=True)
        )
        loss = np.r_[-low[:0:-1], high]
        return _hull(loss, np.r_[low_delta[:0:-1], high_delta])


@dataclass(frozen=True, slots=True)
class FinitePair:
    """Outcomes in the order of their ratios p/q, ascending, and what is below and above each.

    ``below`` and ``above`` are of the outcomes before and from an index on, under P and under Q.
    ``noise`` bounds the relative error of all of them.
    """

    p: Array
    q: Array
    below: tuple[Array, Array]
    above: tuple[Array, Array]
    noise: float

    @classmethod
    def of(cls, knots: Knots) -> FinitePair | None:
        """Return the pair whose profile is linear between knots; None where it is not resolved."""
        loss, delta = knots.loss, knots.delta
        positive = int(np.searchsorted(loss, 0.0))
        if not 0 < positive < loss.size:
            return None
        x, y, rest_x, rest_y = _tests(loss, delta, positive)
        smallest = min(tail[positive - 1] for tail in (x, y, rest_x, rest_y))
        if not smallest > _SMALLEST_TAIL:
            return None
        low, high = loss[:positive], loss[positive:]
        low_p = np.diff(np.r_[0.0, rest_x[:positive]])
        high_q = -np.diff(np.r_[y[positive - 1 :], 0.0])
        p = np.r_[0.0, low_p, np.exp(high) * high_q, delta[-1]]
        q = np.r_[delta[0], np.exp(-low) * low_p, high_q, 0.0]
        kept = (p > 0.0) | (q > 0.0)
        noise = ULP * (4.0 * p.size + 256.0 + 64.0 / smallest)
        return _pair(np.maximum(p[kept], 0.0), np.maximum(q[kept], 0.0), noise)

    def split(self, scale: float, fineness: float) -> FinitePair:
        """Return the same with outcomes cut into equal pieces where they are large.

        A piece is at most ``fineness`` times the scale plus what is on either side of the outcome.
        """
        pieces = self._pieces(scale, fineness)
        p, q = (np.repeat(one / pieces, pieces) for one in (self.p, self.q))
        return _pair(p, q, self.noise + ULP * (4.0 * p.size + 16.0))

    def split_size(self, scale: float, fineness: float) -> int:
        """Return the number of pieces."""
        return int(self._pieces(scale, fineness).sum())

    def _pieces(self, scale: float, fineness: float) -> NDArray[np.int64]:
        least = [
            mass / (fineness * (scale + np.minimum(below[:-1], above[1:])))
            for mass, below, above in zip((self.p, self.q), self.below, self.above, strict=True)
        ]
        return np.maximum(np.ceil(np.maximum(*least)), 1.0).astype(np.int64)


def _pair(p: Array, q: Array, noise: float) -> FinitePair:
    """Return the pair with the sums of its outcomes from either end."""
    below = tuple(np.r_[0.0, np.cumsum(one)] for one in (p, q))
    above = tuple(np.r_[0.0, np.cumsum(one[::-1])][::-1] for one in (p, q))
    return FinitePair(p, q, (below[0], below[1]), (above[0], above[1]), noise)


def _line(loss: Array, delta: Array, k: int) -> float:
    """Return y of the line between knots k and k + 1, and for losses below 0 the rest of x."""
    a, b = loss[k], loss[k + 1]
    if a >= 0.0:
        return float((delta[k] - delta[k + 1]) / (np.exp(a) * np.expm1(b - a)))
    if b <= 0.0:
        return float((delta[k + 1] - delta[k]) / (np.exp(-b) * np.expm1(b - a)))
    left = -np.expm1(a) + np.exp(a) * delta[k]
    return float((left - delta[k + 1]) / (np.exp(a) * np.expm1(b - a)))


def _tests(loss: Array, delta: Array, positive: int) -> tuple[Array, Array, Array, Array]:
    """Return x and y of the lines between neighbouring knots, and what they leave of 1.

    ``positive`` is the index of the first loss that is not negative; the line before it crosses 0,
    or ends there. Only the pair of tails that is small is exact to a relative error.
    """
    lines = np.array([_line(loss, delta, k) for k in range(loss.size - 1)])
    y, rest_x = lines.copy(), lines.copy()
    grown = np.exp(np.abs(loss))
    x = np.empty_like(lines)
    rest_y = np.empty_like(lines)
    crossing = positive - 1
    if loss[positive] == 0.0:
        # The line ends at 0: what it leaves of P is known.
        rest_y[crossing] = delta[positive] + rest_x[crossing]
        y[crossing], x[crossing] = 1.0 - rest_y[crossing], 1.0 - rest_x[crossing]
    else:
        x[crossing] = delta[positive] + grown[positive] * y[crossing]
        rest_x[crossing], rest_y[crossing] = 1.0 - x[crossing], 1.0 - y[crossing]
    high, low = slice(positive, None), slice(0, crossing)
    x[high] = delta[positive + 1 :] + grown[positive + 1 :] * y[high]
    rest_x[high], rest_y[high] = 1.0 - x[high], 1.0 - y[high]
    rest_y[low] = delta[:crossing] + grown[:crossing] * rest_x[low]
    x[low], y[low] = 1.0 - rest_x[low], 1.0 - rest_y[low]
    return x, y, rest_x, rest_y


def _points_below(at: Array, lower: Array, upper: Array, beside: float) -> tuple[Array, Array]:
    """Return losses from 0 on, and lower ends of a profile there, also where lines cross.

    ``beside`` is an upper end of the reverse profile at the second of the losses.
    """
    grown = np.exp(at)
    step = grown[:-1] * np.expm1(np.diff(at))
    inverse = np.exp(-at[1])
    before = -np.expm1(-at[1]) + inverse * beside
    # Minus the slopes: at most this steep to the right of a knot, at least that to its left.
    steepest = (np.r_[before, upper[:-1]] - lower) / np.r_[-np.expm1(-at[1]), step]
    flattest = np.maximum(np.r_[(lower[1:-1] - upper[2:]) / step[1:], 0.0], 0.0)
    with np.errstate(all="ignore"):
        fall = lower[:-1] - lower[1:] - flattest * step
        away = fall / (steepest[:-1] - flattest)
        end = lower[-1] / steepest[-1]
    crosses = (fall > 0.0) & (away < step)
    between = lower[:-1] - steepest[:-1] * away
    loss = np.r_[at, at[:-1][crosses] + np.log1p(away[crosses] / grown[:-1][crosses])]
    delta = np.r_[lower, np.maximum(between[crosses], 0.0) * (1.0 - _DOWN)]
    if 0.0 < end < np.inf:
        loss, delta = np.r_[loss, at[-1] + np.log1p(end / grown[-1])], np.r_[delta, 0.0]
    elif lower[-1] > 0.0:
        delta = np.where(loss == at[-1], 0.0, delta)
    known, first = np.unique(np.sort(loss), return_index=True)
    return known, np.minimum.reduceat(delta[np.argsort(loss, kind="stable")], first)


def _hull(loss: Array, delta: Array) -> Knots:
    """Return the knots of the lower convex envelope: those after which lines get flatter."""
    kept: list[int] = []
    for index in range(loss.size):
        while len(kept) > 1 and not _is_convex(loss, delta, kept[-2], kept[-1], index):
            kept.pop()
        kept.append(index)
    return Knots(loss[kept], delta[kept])


def _is_convex(loss: Array, delta: Array, left: int, middle: int, right: int) -> bool:
    """Return whether the line to the right of a knot is flatter than the one to its left."""
    three = [left, middle, right]
    lines = [_line(loss[three], delta[three], k) for k in (0, 1)]
    if loss[middle] > 0.0:
        return lines[0] > lines[1]
    if loss[right] <= 0.0:
        return lines[0] < lines[1]
    # The line to the left has the rest of x, the one to the right y: both as y.
    left_y = 1.0 - (delta[left] + np.exp(-loss[left]) * lines[0])
    return bool(left_y > lines[1])
