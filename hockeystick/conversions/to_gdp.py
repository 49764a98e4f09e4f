"""What implies Gaussian differential privacy: that f lies above some G_mu."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hockeystick.accountants import tradeoff
from hockeystick.conversions.by_losses import mu_square_of, reveals, root_up
from hockeystick.conversions.given import (
    FAILS,
    ITSELF,
    NO_NOISE,
    TAIL,
    Given,
    and_bounds,
    bound,
    exact,
    is_exact,
    proven,
    refused,
    simplest,
)
from hockeystick.conversions.theorems import evaluated, liu_mu
from hockeystick.conversions.to_approx import by_largest_loss, points_of
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.privacy_loss import (
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    RandomizedResponsePairLoss,
)
from hockeystick.tradeoffs import GaussianTradeOff, LaplaceTradeOff
from hockeystick.tradeoffs.functions.piecewise import ApproxTradeOff
from hockeystick.tradeoffs.functions.renyi import RenyiTradeOff
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiLine

_WASSERMAN = "Wasserman and Zhou 2010; Dong, Roth and Su 2022, proposition 2.5"
_DEFINITION = "Dong, Roth and Su 2022, definition 2.6"
_PROFILES = "the plan's privacy profiles, by the contour accountant"
_TWO = "data processing to two outcomes, of which the divergences are those of f"


def to_fdp(source: Mechanism, given: Given) -> FDP:
    """Return the trade-off function that a source allows."""
    match source:
        case PureDP():
            return exact(FDP(ApproxTradeOff(source.epsilon, 0.0)), _WASSERMAN)
        case ApproxDP():
            return exact(FDP(ApproxTradeOff(source.epsilon, source.delta)), _WASSERMAN)
        case GDP():
            return exact(FDP(GaussianTradeOff(source.mu)), _DEFINITION)
        case ZCDP():
            return bound(FDP(RenyiTradeOff(RenyiLine(source.rho))), _TWO)
        case TCDP():
            return bound(FDP(RenyiTradeOff(RenyiLine(source.rho, source.omega))), _TWO)
        case RenyiDP():
            return exact(FDP(RenyiTradeOff(points_of(source))), _TWO)
        case FDP():
            return exact(source, ITSELF)
        case _:
            return bound(FDP(tradeoff(source)), _PROFILES)


_LIU = "Liu et al. 2022: the kink of f_(epsilon,0) lies on G_mu, which is convex"
_LAPLACE = (
    "Dong, Roth and Su 2022, proposition A.6: f of Laplace noise falls farthest where both error "
    "rates are e^(-eps/2) / 2, as ln Phi is concave"
)
_POLYGON = "f is a polygon: G_mu, which is convex, is below it where it is below its vertices"
_OF_ONE_RUN = (_LIU, _LAPLACE, _POLYGON)
_GAUSSIAN = "Dong, Roth and Su 2022, theorem 2.7: mu = 1 / noise multiplier"
_DOMINATED = (
    "Liu et al. 2022 for bounded losses; a sample costs at most what the worst of its cases does, "
    "by joint convexity"
)
_SUM = "Dong, Roth and Su 2022, corollary 3.3: the squares of mu add up"
_BY_LOSS: Mapping[type[PrivacyLoss], str] = {
    GaussianLoss: _GAUSSIAN,
    LaplaceLoss: _LAPLACE,
    RandomizedResponsePairLoss: _LIU,
}
_CONCENTRATED = (
    "sqrt(2 rho)-GDP does not follow, since f of a randomized response with D_alpha <= rho alpha "
    "falls below it, and no larger mu is proven; convert to FDP for all that follows"
)
_NO_MU = "no mu is known to bound it: see its trade-off function"
_UNSEEN = "whether f >= G_mu everywhere cannot be seen at finitely many rates"


def to_gdp(source: Mechanism, given: Given) -> GDP:
    """Return the mu with which G_mu lies below all that a source allows."""
    source = simplest(source)
    match source:
        case PureDP():
            return exact(GDP(liu_mu(source.epsilon)), _LIU)
        case ApproxDP():
            raise refused(source, "GDP", FAILS)
        case GDP():
            return exact(source, ITSELF)
        case ZCDP():
            raise refused(source, "GDP", _CONCENTRATED)
        case TCDP() | RenyiDP():
            raise refused(source, "GDP", TAIL)
        case FDP(tradeoff=GaussianTradeOff(mu=mu)):
            return exact(GDP(mu), _DEFINITION)
        case FDP():
            if is_release(source):
                return _of_losses(source, given)
            return by_largest_loss(source, given, to_gdp, "GDP", _UNSEEN)
        case _:
            return _of_parts(source, given)


def _of_parts(source: Mechanism, given: Given) -> GDP:
    parts = runs_of(source)
    if parts == ((source, 1),):
        return _of_losses(source, given)
    steps = [(to_gdp(part, given), count) for part, count in parts]
    mu = evaluated(lambda m: m.sqrt(sum((n * m.mpf(one.mu) ** 2 for one, n in steps), m.zero)))
    theorem = and_bounds(_SUM, (one for one, _ in steps))
    return proven(GDP(mu), theorem, tight=all(_is_gaussian(one) for one, _ in steps))


def is_release(source: FDP) -> bool:
    """Return whether a trade-off function stands for a release whose losses are known."""
    return isinstance(source.tradeoff, LaplaceTradeOff) or isinstance(
        source.tradeoff.release, Mechanism
    )


def _of_losses(source: Mechanism, given: Given) -> GDP:
    """Return the mu that the losses of a mechanism imply, or else its largest loss."""
    known = mu_square_of(source)
    if known is not None and (mu := root_up(known.value)) < math.inf:
        return exact(GDP(mu), _reason(known.losses)) if known.exact else bound(GDP(mu), _DOMINATED)
    if reveals(source):
        raise refused(source, "GDP", NO_NOISE)
    return by_largest_loss(source, given, to_gdp, "GDP", _NO_MU)


def _reason(losses: frozenset[type[PrivacyLoss]]) -> str:
    """Return why no smaller mu holds of some losses: Gaussian ones, or single other ones."""
    by_name = sorted(losses, key=lambda one: one.__name__)
    return "; ".join(dict.fromkeys(_BY_LOSS.get(one, _POLYGON) for one in by_name))


def _is_gaussian(step: GDP) -> bool:
    """Return whether a part is a Gaussian mechanism, or may be one."""
    return is_exact(step) and step.origin is not None and step.origin.theorem not in _OF_ONE_RUN
