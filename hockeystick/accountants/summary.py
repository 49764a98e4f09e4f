"""A plan in one number: the mu of the Gaussian trade-off function below its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.mechanisms.base import checked
from hockeystick.numerics.numerals import plain
from hockeystick.results import Certified
from hockeystick.tradeoffs.operations.gaussian_fit import Fit, least_mu, regret

LEAST_RATE: Final = 1e-12
_RATE: Final = Domain(symbol="alpha_0", low=1e-15, high=0.5, high_open=True, typical=(1e-12, 1e-3))
_NAME: Final = "f-dp"


@final
@dataclass(frozen=True, slots=True)
class GaussianSummary:
    """The Gaussian trade-off function that says what a plan costs, and what it says too much.

    Args:
        mu: The least mu with ``G_mu <= f`` wherever both error rates are at least ``least_rate``.
        regret: How far f is above ``G_mu`` for the upper end of mu: the least kappa with
            ``f(alpha + kappa) - kappa <= G_mu(alpha)`` for all alpha.
        least_rate: The least error rate at which mu holds.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.accountants.gaussian_summary(hs.Laplace(2), least_rate=0.01))
        mu = 0.561765 (proven in [0.56176432..., 0.56176432...]; f-dp) at error rates >= 0.01
        regret = 0.0271905 (proven in [0.0271903..., 0.0271904...]; f-dp)
    """

    mu: Certified
    regret: Certified
    least_rate: float

    def as_dict(self) -> dict[str, Any]:
        """Return the summary ready for JSON."""
        return {
            "least_rate": self.least_rate,
            "mu": self.mu.as_dict(),
            "regret": self.regret.as_dict(),
        }

    def __str__(self) -> str:
        """Return two lines, the ends rounded outward."""
        return f"{self.mu} at error rates >= {plain(self.least_rate)}\n{self.regret}"


def gaussian_summary(plan: Mechanism, least_rate: float = LEAST_RATE) -> GaussianSummary:
    """Return the mu that sums a plan up, and the regret of doing so, as proven intervals.

    With f the plan's trade-off function,

        mu = sup { Phi^-1(1 - f(alpha)) - Phi^-1(alpha) : alpha >= least_rate <= f(alpha) },
        regret = inf { kappa >= 0 : f(alpha + kappa) - kappa <= G_mu(alpha) for all alpha }.

    Guarantees:
        ``lower <= truth <= upper`` with rounding included: G is convex, so that it is below f on
        an interval of rates where it is below a line under f at both ends. ``regret`` is that of
        the upper end of mu, the one to report. The plan is NOT mu-GDP: at smaller rates nothing
        follows but that it is (epsilon, delta_mu(epsilon) + e^epsilon least_rate)-DP for every
        epsilon >= 0. For what holds at all rates, ``hs.convert(plan, hs.GDP)``, a sampled plan pays
        the price of its largest losses.

    Edge cases:
        A Gaussian mechanism has its own mu and regret 0; a plan that releases nothing has 0 and 0.
        mu is inf where f falls below the diagonal before ``least_rate``, that is where
        ``delta(0) > 1 - 2 least_rate``, as it does without noise.

    Args:
        plan: A mechanism or plan; ``hs.FDP(f)`` for a trade-off function.
        least_rate: The least false positive and false negative rate that matters, from 1e-15 to
            below 1/2.

    Returns:
        A ``GaussianSummary``.

    Raises:
        ParameterError: If a parameter is outside its domain.
        UnsupportedError: If no privacy loss is known for a part of the plan.

    References:
        Gomez, Kulynych, Kaissis, du Pin Calmon, Hayes, Balle and Honkela, "Gaussian DP for
        reporting differential privacy guarantees in machine learning", SaTML 2026. Its package
        gdpnum 0.1.2 reads mu off a discretised loss, which proves neither end: for the plan below
        it says 0.5743 at rates from 1e-12 on, and less on a finer grid.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
        >>> summary = hs.accountants.gaussian_summary(plan)
        >>> print(f"{summary.mu:.5f} {summary.regret:.5f}")
        0.59770 0.00524
        >>> print(f"{hs.convert(plan, hs.GDP).mu:.1f}")
        107.8
    """
    rate = _validate.real("least_rate", least_rate, _RATE)
    known = checked("plan", plan)
    f = tradeoff(known)
    mu = least_mu(f, rate)
    return GaussianSummary(
        mu=_certified(known, "mu", mu),
        regret=_certified(known, "regret", regret(f, mu.upper)),
        least_rate=rate,
    )


def _certified(plan: Mechanism, quantity: Literal["mu", "regret"], found: Fit) -> Certified:
    """Return proven ends with what they rest on; the upper one is the estimate, as for a bound."""
    return Certified(
        found.lower,
        found.upper,
        found.upper,
        quantity=quantity,
        accountant=_NAME,
        adjacency=plan.adjacency,
        assumptions=assumptions_of(plan),
    )
