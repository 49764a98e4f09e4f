"""Losses of federated rounds.

*The sum of several runs of a sampled Gaussian.* Whoever sees all outputs can add them up, so that
the sum never tells more, and a pair that some data attain in each run gives one that they attain in
all: a lower bound by data processing. The record of n runs at the rate p, noise multiplier z, is
drawn k ~ Binomial(n, p) times, and the sum divided by sqrt(n) is

    sum_k Pr[k] N(k / (z sqrt(n)), 1)    against N(0, 1),

or against its mirror image where the record is replaced. Where the noise is large, the losses of
the runs are all but linear in their outputs and the sum tells nearly as much as they do. Fewer
draws tell less (Kahane's inequality, as in ``sampling/poisson.py``): rare counts are moved down.

*Several runs that share a coin which an adversary sees.* With probability p, the same in both data
sets, the output is that of a composition of pairs, otherwise it tells nothing, and which it was is
seen. So the moment ``E_P[e^(c L)]`` is ``1 - p + p e^(K(c))``, K that of the composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, final

from hockeystick.mechanisms import RevealedRound
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import ULP, decimal
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, outward
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    CGFEstimate,
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import (
    Terms,
    cgf_upper,
    compose_unsplit,
    decimal_or_above,
    largest_loss,
    total,
)
from hockeystick.privacy_loss.core.mixtures import RandomizedResponsePairLoss, observed_mixture
from hockeystick.privacy_loss.guarantees import RunsBoundLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.noise.gaussian_mixture import mixture_loss
from hockeystick.privacy_loss.sampling.poisson import binomial_counts, moved_counts, opposite_loss
from hockeystick.privacy_loss.sampling.sampled import ReplacedGaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss
from hockeystick.privacy_loss.selection.sparse_vector import UnknownLoss

# More runs are not added up: what is left out tells more, but takes longer.
_MOST_RUNS: Final = 1000
# Counts rarer than this are moved down: each count takes its time.
_RAREST: Final = Fraction(1, 10**12)


def summed_runs(loss: PrivacyLoss, count: int) -> CellLoss | None:
    """Return the loss of the sum of the outputs of that many runs; None where it is not known."""
    if not isinstance(loss, SampledGaussianLoss | ReplacedGaussianLoss) or count < 2:
        return None
    runs = min(count, _MOST_RUNS)
    # The root is rounded up: more noise tells less.
    noise = square_root(runs * decimal(loss.noise_multiplier) ** 2)
    draws = moved_counts(binomial_counts(decimal(loss.rate), runs), up=False, rarest=_RAREST)
    try:
        if isinstance(loss, SampledGaussianLoss):
            found = mixture_loss(noise, draws, loss.removing)
        else:
            found = opposite_loss(noise, draws)
    except NoAnalysisError:
        return None
    return found if isinstance(found, CellLoss) else None


# A rate below this is rounded up to it, and nothing is said of what is attained.
_LEAST_RATE: Final = 1e-300


@final
@dataclass(frozen=True, slots=True)
class RevealedRoundLoss(RunsBoundLoss):
    """``K(c) <= ln(1 + p (e^(sum of K_i(c)) - 1))``; p is exactly this fraction.

    Attained is the loss of one of the runs, where the others are not looked at, or that of the sum
    of equal runs, behind the coin that is seen.
    """

    terms: Terms
    rate: Fraction
    attained: PrivacyLoss | None = field()

    @property
    def supremum(self) -> float:
        return largest_loss(self.terms)

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        squares = [(loss.dominating_mu_squared, count) for loss, count in self.terms]
        known = [square * count for square, count in squares if square is not None]
        return sum(known, Fraction(0)) if len(known) == len(squares) else None

    def bound(self, c: float) -> float:
        if c == 0.0:
            return 0.0
        cgf = cgf_upper(self.terms, c)
        rate = min(max(float(self.rate) * (1.0 + 2.0 * ULP), _LEAST_RATE), 1.0)
        if cgf == math.inf or rate == 1.0:
            return cgf
        if cgf <= LARGEST_EXPONENT:
            return math.log1p(rate * math.expm1(cgf)) * (1.0 + 32.0 * ULP)
        return cgf * (1.0 + 4.0 * ULP) + math.log(rate + math.exp(-cgf)) * (1.0 - 8.0 * ULP)

    def zcdp_line(self) -> ZCDPLine | None:
        lines = [(loss.zcdp_line(), count) for loss, count in self.terms]
        known = [(line, count) for line, count in lines if line]
        if len(known) < len(lines):
            return None
        rho = math.fsum(count * line.rho for line, count in known)
        return ZCDPLine(outward(rho), min(line.omega for line, _ in known))

    def estimate(self, c: float) -> CGFEstimate:
        """Return the bound and two derivatives: the runs' share of M is ``p e^K / M``."""
        cgf = total(self.terms, c)
        if cgf.value == math.inf:
            return cgf
        rate = float(self.rate)
        value = max(cgf.value + math.log(max(rate, _LEAST_RATE)), 0.0)
        if cgf.value <= LARGEST_EXPONENT:
            value = math.log1p(rate * math.expm1(cgf.value))
        share = math.exp(min(math.log(max(rate, _LEAST_RATE)) + cgf.value - value, 0.0))
        bend = share * (
            cgf.second_derivative + (1.0 - share) * cgf.first_derivative * cgf.first_derivative
        )
        return CGFEstimate(value, share * cgf.first_derivative, bend)


@dominating_pair.register
def _(mechanism: RevealedRound) -> DominatingPair:
    rate = mechanism.rate
    exact = decimal(rate)
    if exact == 0:
        return DominatingPair(None, None)
    removing, adding = compose_unsplit(mechanism.inner)
    return DominatingPair(_together(removing, exact), _together(adding, exact))


def _together(terms: Terms, rate: Fraction) -> PrivacyLoss | None:
    terms = _joined(terms)
    if not terms:
        return None
    if any(1 in loss.infinity_mass for loss, _ in terms):
        return RandomizedResponsePairLoss(0.0, decimal_or_above(rate))
    if any(
        isinstance(loss, RandomizedResponsePairLoss) and 0.0 < loss.failure for loss, _ in terms
    ):
        raise NoAnalysisError(
            "a guarantee that may fail has no Renyi divergences, by which rounds are bounded; use "
            "its pure part, and add the failures of all runs"
        )
    ((first, count), *more) = terms
    if not more and count == 1 and isinstance(first, CellLoss) and rate > _LEAST_RATE:
        return observed_mixture([(1 - rate, None), (rate, first)])
    # Any loss with divergences has a finite one at so small an order.
    if total(terms, 1e-9).value == math.inf:
        return UnknownLoss()
    return RevealedRoundLoss(terms, rate, _below(terms, rate))


def _joined(terms: Terms) -> Terms:
    """Return the losses with all Gaussians as one: ``1/z^2`` adds up, to far more than a float."""
    gaussians = [(loss, count) for loss, count in terms if isinstance(loss, GaussianLoss)]
    rest = tuple((loss, count) for loss, count in terms if not isinstance(loss, GaussianLoss))
    if sum(count for _, count in gaussians) < 2:
        return terms
    square = sum(
        (count / decimal(loss.noise_multiplier) ** 2 for loss, count in gaussians), Fraction(0)
    )
    return ((GaussianLoss(1 / square_root(square)), 1), *rest)


def _below(terms: Terms, rate: Fraction) -> PrivacyLoss | None:
    """Return the costliest of what some data attain: a single run, or the sum of equal ones."""
    if rate <= _LEAST_RATE:
        return None
    attained = [(one, count) for loss, count in terms if (one := loss.attained) is not None]
    known = [one for one, _ in attained if isinstance(one, CellLoss)]
    known += [added for one, count in attained if (added := summed_runs(one, count)) is not None]
    if not known:
        return None
    costliest = max(known, key=lambda loss: loss.cgf_estimate(1.0).value)
    return observed_mixture([(1 - rate, None), (rate, costliest)])
