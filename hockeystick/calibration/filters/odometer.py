"""Privacy odometers: a running bound of what adaptive releases have cost, valid at all times."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Self, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.calibration.filters.choice import ORDER
from hockeystick.calibration.filters.lines import Lines, OrderLines, RhoLines, central_order
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
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked

_DELTA: Final = Domain(
    symbol="delta", low=0, high=1, low_open=True, high_open=True, typical=(1e-12, 1e-4)
)
_REMEMBERED: Final = 256


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
        ``|L_t|``, which exceeds ``epsilon_t`` with probability at most
        ``delta (1 + exp(-epsilon)) <= 2 delta``, with the first epsilon that is exceeded: the
        probability of ``L_t < -epsilon_t`` is the mean of ``exp(L_t)`` there over the neighbour.

    Edge cases:
        Nothing released costs 0. Releases that fail with a probability, (epsilon, delta)-DP with
        delta > 0, have no rho and are refused: a filter has a share for these.

    Args:
        delta: With what probability the bound may ever fail, in (0, 1).
        expected: A plan such as the releases will be, DP-SGD for example. It chooses the orders
            before anything runs, and binds nobody.

    Raises:
        ParameterError: If delta is no such number, or what is expected no mechanism.
        IncompatibleError: If the expected plan has no finite divergence at any order.
        UnsupportedError: If nothing is known of a part of it.

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
        >>> step = hs.PoissonSubsampled(hs.Gaussian(noise_multiplier=1.1), rate=256 / 60_000)
        >>> training = hs.calibration.Odometer(delta=1e-5, expected=step**14_000)
        >>> print(f"{training.step(step, count=10_000):.3f}")
        2.659
    """

    __slots__ = ("_cost", "_lines", "delta", "order")

    delta: float
    order: float | None

    def __init__(self, delta: float, *, expected: Mechanism | None = None) -> None:
        share, order = _validate.real("delta", delta, _DELTA), None
        if expected is not None:
            with EVALUATING:
                order = central_order(checked("expected", expected), share)
        self._begin(share, order)

    def _begin(self, delta: float, order: float | None) -> None:
        """Start with nothing spent, with orders around this one."""
        self.delta, self.order = delta, order
        self._lines: Lines = RhoLines() if order is None else OrderLines(order)
        self._cost = lru_cache(maxsize=_REMEMBERED)(self._lines.cost)
        super().__init__(Runs(self._lines.nothing))

    def step(self, mechanism: Mechanism, *, count: float = 1) -> float:
        """Record runs of a mechanism, and return the bound after them.

        Args:
            mechanism: What runs.
            count: How many runs, an integer from 0 to 10^15.

        Returns:
            ``epsilon``, an upper bound.

        Raises:
            ParameterError: If it is no mechanism, or the count is no such integer.
            IncompatibleError: If no bound is known of it, it may fail, or it is described under
                another adjacency than what has run.
            UnsupportedError: If nothing is known of a part of it.
        """
        once, runs = unrolled(mechanism, count)
        cost = self._costs(once)
        with self._lock:
            self._runs.add(once, runs, _after(self._runs.spent, cost, runs))
            return self._lines.bound(self._runs.spent, self.delta)

    @property
    def epsilon(self) -> float:
        """The bound now, rounded up."""
        with self._lock:
            return self._lines.bound(self._runs.spent, self.delta)

    def __repr__(self) -> str:
        """Return the bound and at which delta it holds."""
        return f"<Odometer at delta {self.delta!r}: {len(self)} runs, epsilon {self.epsilon!r}>"

    def state_dict(self) -> dict[str, Any]:
        """Return delta and all steps, ready for JSON.

        Raises:
            ParameterError: If a mechanism holds a trade-off function that only a program knows.
        """
        steps = self._snapshot().state()
        order = {} if self.order is None else {"order": self.order}
        return {
            "kind": "Odometer",
            "version": VERSION,
            "delta": self.delta,
            **order,
            "steps": steps,
        }

    @classmethod
    def from_state_dict(cls, state: object) -> Self:
        """Return an odometer in a recorded state.

        Args:
            state: What ``state_dict`` returned.

        Raises:
            ParameterError: If it is no such state.
            IncompatibleError: If its mechanisms do not go together, or have no rho.
        """
        ordered = ("order",) if isinstance(state, Mapping) and "order" in state else ()
        found = versioned(state, "Odometer", ("delta", *ordered, "steps"))
        made = cls.__new__(cls)
        order = _validate.real("order", found["order"], ORDER) if ordered else None
        made._begin(_validate.real("delta", found["delta"], _DELTA), order)
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
        if (other.delta, other.order) != (self.delta, self.order):
            own = f"that of this odometer, {self.delta!r}, with its order"
            raise ParameterError("delta", other.delta, own)
        self._resume(other._runs)

    def _costs(self, mechanism: Mechanism) -> Costs:
        """Return the cost of one run, or raise."""
        with EVALUATING:
            return self._cost(mechanism)


def _after(spent: Costs, cost: Costs, count: int) -> Costs:
    """Return the amounts after several more runs."""
    pairs = zip(spent, cost, strict=True)
    return tuple(before + one * count if one else before for before, one in pairs)
