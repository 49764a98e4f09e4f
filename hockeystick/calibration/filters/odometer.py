"""Privacy odometers: a running bound of what adaptive releases have cost, valid at all times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, Self, TypeAlias, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.calibration.filters.filter import ORDER
from hockeystick.calibration.filters.measures import (
    CANDIDATES,
    NOTHING,
    ApproxDPMeasure,
    Rule,
    delta_of,
    divergences_at,
    largest_losses,
    sum_over_parts,
)
from hockeystick.calibration.session.runs import EVALUATING, Costs, Recorder, Runs, unrolled
from hockeystick.errors import HockeystickError, IncompatibleError
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.numerics import float_above
from hockeystick.numerics.rounding import float_up

_DELTA: Final = Domain("delta", 0, 1, (1e-12, 1e-4), low_open=True, high_open=True)
_REMEMBERED: Final = 256
# The lambdas are 8 times powers of 2, and the shares of delta 1/(1 + j^2) over no less than the sum
# of these over all j, pi coth(pi) = 3.1533...
_CENTRE: Final = 8.0
_LINES_EACH_WAY: Final = 20
_SHARES: Final = 3.16
# Covers the few roundings of a line, and both readings of delta.
_OUTWARD: Final = 1.0 + 2.0**-45
_MEASURE: Final = ApproxDPMeasure((NOTHING,) * 3, NOTHING, Rule.CONCENTRATED)
# Places of the orders around the central one: sqrt(2) apart in order - 1. The shares of delta are
# 1/(1 + k^2) over no less than their sum, 2.884008...
_PLACES: Final = range(-6, 9)
_ROOTS: Final = (1.0, 2.0**0.5)
_ORDER_SHARES: Final = 2.8841
_NEWTON_STEPS: Final = 20
_CLOSE: Final = 1e-14
# What floats may lose of an exponent, relative to the sum of its terms, and of a sum; with room.
_LOST: Final = 2.0**-48
_REACHED: Final = 1.0 + 2.0**-45
Term: TypeAlias = tuple[float, float, float]


@final
class Odometer(Recorder):
    """A running epsilon of releases that are chosen as one goes, valid at all times at once.

    With the rhos of the releases so far, ``rho_t``, and a fixed family of ``lambda_j``,

        epsilon_t = min( sum of the largest losses, if all are finite,
                         min over j of (lambda_j + 1) rho_t + ln(1/delta_j) / lambda_j )

    where ``lambda_j = 8 * 2^j`` for j from -20 to 20 and ``delta_j = delta / (3.16 (1 + j^2))``,
    which add up to less than delta. With ``expected``, which is for sampled releases, the second
    is where ``sum_k w_k exp(c_k (epsilon_t - S_kt)) = 1/delta``, with the sums S_kt of the Renyi
    divergences of the releases at orders ``1 + c_k`` around the one that is best for that plan,
    and fixed weights w_k that add up to less than 1.

    Guarantees:
        For neighbours in both orders, with probability at least 1 - delta the loss
        ``L_t = ln(P/Q)`` of all that has been released is at most ``epsilon_t`` *for all t at
        once*, however mechanisms, their privacy parameters and the time to stop are chosen from
        earlier outputs: ``exp(lambda L_t - lambda (lambda + 1) rho_t)`` is a supermartingale from
        1, so that by Ville's inequality it ever reaches 1/delta_j with probability at most
        delta_j, and the delta_j add up. So is ``exp(c_k (L_t - S_kt))``, and with it the weighted
        sum, which increases with L_t and ever reaches 1/delta with probability at most delta. In
        particular, a program that always stops before ``epsilon_t`` exceeds a number fixed in
        advance is (that number, delta)-DP; where the number is known in advance,
        ``hs.calibration.Filter`` allows more. Rounded up.

        This is the odometer of Rogers et al. (2016) for each sign of the loss; they ask for
        ``|L_t|``, which exceeds ``epsilon_t`` with probability at most ``2 delta``.

    Edge cases:
        Nothing released costs 0. Releases that fail with a probability, (epsilon, delta)-DP with
        delta > 0, have no rho and are refused: a filter has a share for these.

    Args:
        delta: With what probability the bound may ever fail, in (0, 1).
        expected: A plan such as the releases will be, DP-SGD for example. It chooses the orders
            before anything runs, and binds nobody.

    Raises:
        IncompatibleError: If the expected plan has no finite divergence at any order.

    References:
        Rogers, Roth, Ullman and Vadhan, "Privacy Odometers and Filters", NIPS 2016 (definition);
        Whitehouse, Ramdas, Rogers and Wu, "Fully-Adaptive Composition in Differential Privacy",
        ICML 2023 (boundaries that a loss seldom crosses); Ville, "Etude critique de la notion de
        collectif", 1939 (the inequality).

    Example:
        >>> import hockeystick as hs
        >>> odometer = hs.calibration.Odometer(delta=1e-6)
        >>> print(f"{odometer.step(hs.Gaussian(noise_multiplier=2)):.4f}")
        2.9958
        >>> print(f"{odometer.step(hs.Laplace(scale=4), count=3):.4f}")
        3.7734
    """

    __slots__ = ("_cost", "_lines", "delta", "order")
    _NAMES = ("delta", "order")

    delta: float
    order: float | None

    def __init__(self, delta: float, *, expected: Mechanism | None = None) -> None:
        share, order = _validate.real("delta", delta, _DELTA), None
        if expected is not None:
            with EVALUATING:
                order = central_order(checked("expected", expected), share)
        self._begin(share, order)

    def _begin(self, delta: float, order: float | None) -> None:
        self.delta, self.order = delta, order
        self._lines: RhoLines | OrderLines = RhoLines() if order is None else OrderLines(order)
        self._cost = lru_cache(maxsize=_REMEMBERED)(self._lines.cost)
        super().__init__(Runs(self._lines.nothing))

    def step(self, mechanism: Mechanism, *, count: float = 1) -> float:
        """Record runs of a mechanism, and return the bound after them, an upper bound.

        Arguments are those of ``Filter.step``, as are errors; what may fail is one of them.
        """
        once, runs = unrolled(mechanism, count)
        with EVALUATING:
            cost = self._cost(once)
        with self._lock:
            self._runs.add(once, runs, _after(self._runs.spent, cost, runs))
            return self._lines.bound(self._runs.spent, self.delta)

    @property
    def epsilon(self) -> float:
        """The bound now, rounded up."""
        with self._lock:
            return self._lines.bound(self._runs.spent, self.delta)

    def __repr__(self) -> str:
        return f"<Odometer at delta {self.delta!r}: {len(self)} runs, epsilon {self.epsilon!r}>"

    @classmethod
    def _with_terms(cls, terms: Mapping[str, Any]) -> Self:
        made = cls.__new__(cls)
        order = _validate.real("order", terms["order"], ORDER) if "order" in terms else None
        made._begin(_validate.real("delta", terms["delta"], _DELTA), order)
        return made

    @property
    def _terms(self) -> dict[str, Any]:
        return {"delta": self.delta} | ({} if self.order is None else {"order": self.order})

    def _take_over(self, runs: Runs) -> None:
        for mechanism, count in runs.counts.items():
            self.step(mechanism, count=count)


def _after(spent: Costs, cost: Costs, count: int) -> Costs:
    pairs = zip(spent, cost, strict=True)
    return tuple(before + one * count if one else before for before, one in pairs)


@final
@dataclass(frozen=True, slots=True)
class RhoLines:
    """The least of ``(lambda_j + 1) rho + ln(1/delta_j) / lambda_j``, and the largest losses."""

    nothing: ClassVar[Costs] = (NOTHING,) * 4

    def cost(self, mechanism: Mechanism) -> Costs:
        """Return the sum of the largest losses, how many have none, rho and delta."""
        found = _MEASURE.cost(mechanism)
        _refuse_failure(mechanism, found[3])
        return found

    def bound(self, spent: Costs, delta: float) -> float:
        """Return what the loss ever exceeds with probability at most delta, rounded up."""
        losses, unbounded, rho, _ = spent
        pure = float_above(losses) if unbounded == 0 else math.inf
        places = range(-_LINES_EACH_WAY, _LINES_EACH_WAY + 1)
        return min(pure, *(_line(rho, delta, j) for j in places))


@final
@dataclass(frozen=True, slots=True)
class OrderLines:
    """A mixture over Renyi orders ``1 + c_k``, with ``c_k`` about ``(centre - 1) 2^(k/2)``.

    With weights ``w_k = 1 / (2.8841 (1 + k^2))`` for k from -6 to 8, which add up to less than 1,
    and the sums S_k of the divergences of each order, ``sum_k w_k exp(c_k (L - S_k))`` is a
    supermartingale that starts below 1: the bound is where it is 1/delta. An order at which some
    release has no finite divergence is left out, which only lowers the sum.
    """

    centre: float
    nothing: ClassVar[Costs] = (NOTHING,) * (2 + 2 * len(_PLACES))

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders, rising."""
        gap = self.centre - 1.0
        return tuple(1.0 + gap * 2.0 ** (k // 2) * _ROOTS[k % 2] for k in _PLACES)

    def cost(self, mechanism: Mechanism) -> Costs:
        """Return the largest losses, the divergences, and how many there are not of either."""
        _refuse_failure(mechanism, sum_over_parts(mechanism, delta_of))
        losses, unbounded = largest_losses(mechanism)
        known: dict[float, Fraction] = {}
        with nullcontext() if unbounded else suppress(HockeystickError):
            known = divergences_at(mechanism, self.orders)
        sums = (known.get(order, NOTHING) for order in self.orders)
        missing = (Fraction(order not in known) for order in self.orders)
        return losses, unbounded, *sums, *missing

    def bound(self, spent: Costs, delta: float) -> float:
        """Return where the mixture is 1/delta, or the sum of the largest losses."""
        pure = float_above(spent[0]) if spent[1] == 0 else math.inf
        sums, missing = spent[2 : 2 + len(_PLACES)], spent[2 + len(_PLACES) :]
        terms: list[Term] = []
        for k, order, total, none in zip(_PLACES, self.orders, sums, missing, strict=True):
            above = float_up(total)
            if none == 0 and above < math.inf:
                log = math.log(delta) - math.log(_ORDER_SHARES * (1 + k * k))
                terms.append((order - 1.0, above, log))
        return min(pure, _crossing(terms))


def _crossing(terms: list[Term]) -> float:
    """Return where ``sum exp(c (x - S) + log)`` over the terms ``(c, S, log)`` is 1, rounded up.

    The logarithm of the sum is convex and increasing, so that Newton's steps from above stay above.
    """
    if not terms:
        return math.inf
    found = min(total - log / c for c, total, log in terms)
    for _ in range(_NEWTON_STEPS):
        logs = [c * (found - total) + log for c, total, log in terms]
        top = max(logs)
        parts = [math.exp(one - top) for one in logs]
        size = math.fsum(parts)
        slope = math.fsum(part * c for part, (c, _, _) in zip(parts, terms, strict=True)) / size
        step = (top + math.log(size)) / slope
        found -= step
        if step <= _CLOSE * found:
            break
    more = _CLOSE
    while not _reached(terms, found):
        found *= 1.0 + more
        more *= 2.0
    return found


def _reached(terms: list[Term], x: float) -> bool:
    """Return whether the sum is provably at least 1."""
    least = (
        c * (x - total) + log - _LOST * (c * (x + total) - log + 1.0) for c, total, log in terms
    )
    return math.fsum(math.exp(min(one, 1.0)) for one in least) >= _REACHED


def central_order(plan: Mechanism, delta: float) -> float:
    """Return the order of the least single line of an expected plan."""
    totals = divergences_at(plan, CANDIDATES)
    return min(totals, key=lambda one: float(totals[one]) - math.log(delta) / (one - 1.0))


def _refuse_failure(mechanism: Mechanism, delta: Fraction) -> None:
    if delta > 0:
        raise IncompatibleError(
            f"a {mechanism} may fail, and an odometer has no share of delta for that; use a "
            "Filter of an ApproxDP budget"
        )


def _line(rho: Fraction, delta: float, j: int) -> float:
    slope = _CENTRE * 2.0**j
    log = math.log(_SHARES * (1.0 + j * j)) - math.log(delta)
    return ((slope + 1.0) * float_above(rho) + log / slope) * _OUTWARD
