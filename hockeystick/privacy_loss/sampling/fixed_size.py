"""The pair of losses of a mechanism on a sample of a fixed size, without replacement.

What zeroing one of n vectors costs, each of norm at most 1, with Gaussian noise on the sum of a
sample of m: let R be m-1 of the others and j one more, all at random. With probability q = m/n the
sample is R with the vector g in question, else R with the vector x of j. Given R and j, that is

    P = (1-q) N(x) + q N(g)    against    Q = (1-q) N(x) + q N(0),

moved by the sum of R, and a hockey-stick divergence, being jointly convex, is at most that of the
worst x and g. In densities over N(0), ``L(a) = exp(<a, Z> - |a|^2/2)`` in units of the noise,

    delta(eps) = E[((1-q) (1 - e^eps) L(x) + q L(g) - e^eps q)_+],    Z ~ N(0, I).

By Kahane's inequality, as in ``poisson.py``, it rises with ``<u, v>`` where the coefficients of
L(u) and of L(v) have the same sign, and falls where they have not; both squares have: it rises with
``|x|`` and ``|g|``. For ``eps > 0`` the signs of x and g differ, and ``x = -g`` of norm 1 is worst:
``(1-q) N(-1) + q N(1)`` against ``(1-q) N(-1) + q N(0)``. Of Q against P, with the coefficients
``(1-q) (1 - e^eps)``, q of 1 and ``-e^eps q`` of L(g), x and g have the same sign, and ``x = g`` is
worst: ``(1-q) N(1) + q N(0)`` against N(1), a sampled Gaussian. Negative eps ask for the other
order at -eps, so that the profile is that of the first pair above 0 and of the second, exchanged,
below: as a supremum of profiles it is convex, hence one of a pair. Data whose other vectors are all
-g, or all g, attain one of the halves each.
"""

from __future__ import annotations

from fractions import Fraction

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import (
    Composed,
    FixedSizeSubsampled,
    Gaussian,
    Mechanism,
    Plan,
    Repeated,
)
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.registry import (
    DominatingPair,
    NoAnalysisError,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.symmetrized import JoinedLoss, exchanged_pair
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss
from hockeystick.privacy_loss.noise.displaced_gaussian import DisplacedGaussianLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss


@dominating_pair.register
def _(mechanism: FixedSizeSubsampled) -> DominatingPair:
    pair = _of_one_run(mechanism.inner, "sampling of a fixed size")
    zeroed = mechanism.adjacency is Adjacency.ZERO_OUT
    whole = mechanism.rate == 1
    if pair.removing is None or (whole and mechanism.adjacency is Adjacency.REPLACE_ONE):
        return pair
    if whole and not zeroed and not isinstance(mechanism.inner, Gaussian):
        raise NoAnalysisError(
            "without one of its examples a sample of all has none to take the place of the missing "
            f"one, and of {mechanism.inner} it is only known what a replacement costs"
        )
    if pair.removing != pair.adding:
        raise NoAnalysisError(
            f"samples of a fixed size are analysed for what costs the same in both directions of a "
            f"replacement, not for {mechanism.inner}"
        )
    if zeroed or whole:
        return _zeroed(pair.removing, mechanism)
    removing, adding = (sampled_loss(pair.removing, mechanism.rate, way) for way in (True, False))
    if mechanism.adjacency is Adjacency.ADD_REMOVE:
        return DominatingPair(removing, adding)
    return exchanged_pair(removing, removing.attained, adding.attained)


def _of_one_run(inner: Mechanism, what: str) -> DominatingPair:
    """Return the losses of an inner mechanism that runs once, or raise."""
    if isinstance(inner, Composed | Repeated | Plan):
        raise NoAnalysisError(
            f"{what} is analysed for a single run inside, not for {inner}; repeat or compose the "
            "sampled mechanism instead"
        )
    return dominating_pair(inner)


def _zeroed(replaced: PrivacyLoss, mechanism: FixedSizeSubsampled) -> DominatingPair:
    """Return the losses of samples of a fixed size where an example is zeroed.

    None costs more than a replacement. Among examples that contribute nothing, one that is zeroed
    moves a Gaussian's sum by half as much. The same holds of an example that is missing in a sample
    of all.
    """
    rate, half = mechanism.rate, None
    if isinstance(replaced, GaussianLoss):
        half = GaussianLoss(2 * decimal(replaced.noise_multiplier))
    if mechanism.clipped and half is not None:
        exact = clipped_pair(rate, half.noise_multiplier)
        if exact is not None:
            return exact
    if rate == 1:
        alone = DominatedLoss(_distribution(replaced, mechanism.inner), half)
        return DominatingPair(alone, alone)
    attained = (half and sampled_loss(half, rate, way) for way in (True, False))
    return exchanged_pair(sampled_loss(replaced, rate, True), *attained)


def clipped_pair(rate: Fraction, noise_multiplier: float | Fraction) -> DominatingPair | None:
    """Return the losses where one of the vectors of a sample is zeroed, all of norm at most 1.

    At rate 1 it is in the sample of all; None where the numbers are out of the reach of floats.
    """
    if rate == 1:
        return DominatingPair(*(GaussianLoss(noise_multiplier),) * 2)
    opposite = DisplacedGaussianLoss(rate, noise_multiplier)
    alike = SampledGaussianLoss(rate, noise_multiplier, True)
    if not opposite.is_within_reach:
        return None
    return DominatingPair(JoinedLoss(opposite, alike, opposite), JoinedLoss(alike, opposite, alike))


def _distribution(replaced: PrivacyLoss, inner: Mechanism) -> CellLoss:
    """Return the loss if it is one that another one may be said to be dominated by, or raise."""
    fails = isinstance(replaced, RandomizedResponsePairLoss) and replaced.failure > 0.0
    if isinstance(replaced, CellLoss) and not fails:
        return replaced
    raise NoAnalysisError(
        f"of {inner} no distribution of losses is known that is finite, to bound what zeroing an "
        "example costs; under replace-one the whole sample is accounted, and costs no less"
    )
