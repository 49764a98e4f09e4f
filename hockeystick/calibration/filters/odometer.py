"""Privacy odometers: a running bound of what adaptive releases have cost, valid at all times."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Self, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.calibration.filters.approximate import ApproxDPMeasure, Rule
from hockeystick.calibration.filters.costs import NOTHING
from hockeystick.calibration.session.runs import (
    EVALUATING,
    VERSION,
    Costs,
    Recorder,
    Runs,
    runs_of,
    unrolled,
    versioned,
)
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics import float_above

_DELTA: Final = Domain(
    symbol="delta", low=0, high=1, low_open=True, high_open=True, typical=(1e-12, 1e-4)
)
_REMEMBERED: Final = 256
# The lines' lambdas are 8 times powers of 2, and the shares of delta 1/(1 + j^2) over no less than
# the sum of these over all j, pi coth(pi) = 3.1533...
_CENTRE: Final = 8.0
_LINES_EACH_WAY: Final = 20
_SHARES: Final = 3.16
# Covers the few roundings of a line, and both readings of delta.
_OUTWARD: Final = 1.0 + 2.0**-45
_MEASURE: Final = ApproxDPMeasure(NOTHING, NOTHING, NOTHING, NOTHING, Rule.CONCENTRATED)


@final
class Odometer(Recorder):
    """A running epsilon of releases that are chosen as one goes, valid at all times at once.

    With the rhos of the releases so far, ``rho_t``, and a fixed family of ``lambda_j``,

        epsilon_t = min( sum of the largest losses, if all are finite,
                         min over j of (lambda_j + 1) rho_t + ln(1/delta_j) / lambda_j )

    where ``lambda_j = 8 * 2^j`` for j from -20 to 20 and ``delta_j = delta / (3.16 (1 + j^2))``,
    which add up to less than delta.

    Guarantees:
        For neighbours in both orders, with probability at least 1 - delta the loss
        ``L_t = ln(P/Q)`` of all that has been released is at most ``epsilon_t`` *for all t at
        once*, however mechanisms, their privacy parameters and the time to stop are chosen from
        earlier outputs: ``exp(lambda L_t - lambda (lambda + 1) rho_t)`` is a supermartingale from
        1, so that by Ville's inequality it ever reaches 1/delta_j with probability at most
        delta_j, and the delta_j add up. In particular, a program that always stops before
        ``epsilon_t`` exceeds a number fixed in advance is (that number, delta)-DP; where the number
        is known in advance, ``hs.calibration.Filter`` allows more. Rounded up.

    Edge cases:
        Nothing released costs 0. Releases that fail with a probability, (epsilon, delta)-DP with
        delta > 0, have no rho and are refused: a filter has a share for these.

    Args:
        delta: With what probability the bound may ever fail, in (0, 1).

    Raises:
        ParameterError: If delta is no such number.

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
        3.8351
    """

    __slots__ = ("_cost", "delta")

    delta: float

    def __init__(self, delta: float) -> None:
        self.delta = _validate.real("delta", delta, _DELTA)
        self._cost = lru_cache(maxsize=_REMEMBERED)(_MEASURE.cost)
        super().__init__(Runs((NOTHING,) * 4))

    def step(self, mechanism: Mechanism, *, count: float = 1) -> float:
        """Record runs of a mechanism, and return the bound after them.

        Args:
            mechanism: What runs.
            count: How many runs, an integer from 0 to 10^15.

        Returns:
            ``epsilon``, an upper bound.

        Raises:
            ParameterError: If it is no mechanism, or the count is no such integer.
            IncompatibleError: If no rho is known of it, or it is described under another adjacency
                than what has run.
            UnsupportedError: If nothing is known of a part of it.
        """
        once, runs = unrolled(mechanism, count)
        cost = self._costs(once)
        with self._lock:
            self._runs.add(once, runs, _after(self._runs.spent, cost, runs))
            return _bound(self._runs.spent, self.delta)

    @property
    def epsilon(self) -> float:
        """The bound now, rounded up."""
        with self._lock:
            return _bound(self._runs.spent, self.delta)

    def __repr__(self) -> str:
        """Return the bound and at which delta it holds."""
        return f"<Odometer at delta {self.delta!r}: {len(self)} runs, epsilon {self.epsilon!r}>"

    def state_dict(self) -> dict[str, Any]:
        """Return delta and all steps, ready for JSON.

        Raises:
            ParameterError: If a mechanism holds a trade-off function that only a program knows.
        """
        steps = self._snapshot().state()
        return {"kind": "Odometer", "version": VERSION, "delta": self.delta, "steps": steps}

    @classmethod
    def from_state_dict(cls, state: object) -> Self:
        """Return an odometer in a recorded state.

        Args:
            state: What ``state_dict`` returned.

        Raises:
            ParameterError: If it is no such state.
            IncompatibleError: If its mechanisms do not go together, or have no rho.
        """
        found = versioned(state, "Odometer", ("delta", "steps"))
        made = cls(found["delta"])
        for mechanism, count in runs_of(found["steps"]).counts.items():
            made.step(mechanism, count=count)
        return made

    def load_state_dict(self, state: object) -> None:
        """Take over a recorded state of an odometer of the same delta, in place of one's own.

        Args:
            state: What ``state_dict`` returned.

        Raises:
            ParameterError: If it is no such state, or of another delta; nothing changes then.
            IncompatibleError: As for ``from_state_dict``.
        """
        other = Odometer.from_state_dict(state)
        if other.delta != self.delta:
            raise ParameterError("delta", other.delta, f"that of this odometer, {self.delta!r}")
        self._resume(other._runs)

    def _costs(self, mechanism: Mechanism) -> Costs:
        """Return the cost of one run, or raise."""
        with EVALUATING:
            cost = self._cost(mechanism)
        if cost[3] > 0:
            raise IncompatibleError(
                f"a {mechanism} may fail, and an odometer has no share of delta for that; use a "
                "Filter of an ApproxDP budget"
            )
        return cost


def _after(spent: Costs, cost: Costs, count: int) -> Costs:
    """Return the amounts after several more runs."""
    return tuple(before + one * count for before, one in zip(spent, cost, strict=True))


def _bound(spent: Costs, delta: float) -> float:
    """Return the least of the lines, and of the sum of the largest losses."""
    losses, unbounded, rho, _ = spent
    pure = float_above(losses) if unbounded == 0 else math.inf
    return min(pure, *(_line(rho, delta, j) for j in range(-_LINES_EACH_WAY, _LINES_EACH_WAY + 1)))


def _line(rho: Fraction, delta: float, j: int) -> float:
    """Return one line's bound, rounded up."""
    slope = _CENTRE * 2.0**j
    log = math.log(_SHARES * (1.0 + j * j)) - math.log(delta)
    return ((slope + 1.0) * float_above(rho) + log / slope) * _OUTWARD
