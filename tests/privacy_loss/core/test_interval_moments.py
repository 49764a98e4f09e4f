"""Moments from atoms and cells, against quadrature over the output and sums by mpmath."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss import (
    BoundedRangeLoss,
    CellLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    GaussianMixtureLoss,
    LaplaceLoss,
    RandomizedResponseLoss,
    SinhNormalLoss,
    SkellamLoss,
)
from hockeystick.privacy_loss.bounds.sixth_moments import tail_moment
from hockeystick.privacy_loss.sampling.sampled import SampledLoss
from hockeystick.privacy_loss.sampling.sampled_atoms import SampledAtomsLoss

MIXED: Final = ((Fraction(1, 2), Fraction(2)), (Fraction(9, 10), Fraction(1, 10)))
SIDES: Final = ("under_p", "under_q")


def laplace(x: Any) -> tuple[Any, Any]:
    """Return the densities of Laplace noise of scale 0.7 around 1 and 0."""
    b = mpf("0.7")
    return mp.exp(-abs(x - 1) / b) / (2 * b), mp.exp(-abs(x) / b) / (2 * b)


def mixture(x: Any) -> tuple[Any, Any]:
    """Return the densities of a Gaussian mixture and of N(0, 1)."""
    own = mpf("0.9") * mp.npdf(x - mpf("0.5")) + mpf("0.1") * mp.npdf(x - 2)
    return own, mp.npdf(x)


def sinh_normal(x: Any) -> tuple[Any, Any]:
    """Return the densities of sinh-normal noise of rho 0.5 and width 20 around 1 and 0."""

    def density(z: Any) -> Any:
        return mp.npdf(20 * mp.sinh(z / 20)) * mp.cosh(z / 20)

    return density(x - 1), density(x)


def thinned(densities: Any, rate: str, removing: bool) -> Callable[[Any], tuple[Any, Any]]:
    """Return the densities on a sample, in the order of a direction."""
    p = mpf(rate)

    def both(x: Any) -> tuple[Any, Any]:
        own, other = densities(x)
        mixed = (1 - p) * other + p * own
        return (mixed, other) if removing else (other, mixed)

    return both


def range_density(loss: Any) -> tuple[Any, Any]:
    """Return the densities of the envelope of range 1.6 at a loss."""
    own = mp.exp(loss / 2) / (4 * mp.sinh(mpf("0.8"))) if abs(loss) < mpf("1.6") else mpf(0)
    return own, own * mp.exp(-loss)


def skellam(k: int) -> tuple[Any, Any]:
    """Return the masses of Skellam noise of variance 3 around 1 and 0."""
    return tuple(mp.exp(-3) * mp.besseli(abs(n), 3) for n in (k - 1, k))


def discrete_gaussian(k: int) -> tuple[Any, Any]:
    """Return the masses, not normalised, of discrete Gaussian noise of sigma 2 around 3 and 0."""
    return tuple(mp.exp(-mpf(n * n) / 8) for n in (k - 3, k))


def responses(k: int) -> tuple[Any, Any]:
    """Return the masses of 5-ary randomized response of epsilon 1.2, the last three together."""
    high = mp.exp(mpf("1.2"))
    masses = {0: (high, 1), 1: (1, high), 2: (3, 3)}.get(k, (0, 0))
    return mpf(masses[0]), mpf(masses[1])


LAPLACE: Final = LaplaceLoss(0.7)
MIXTURE: Final = GaussianMixtureLoss(*MIXED, True)
CONTINUOUS: Final[dict[CellLoss, tuple[Any, list[Any]]]] = {
    LAPLACE: (laplace, [-50, -20, -8, -3, 0, 0.25, 0.5, 0.75, 1, 4, 9, 21, 51]),
    SampledLoss(LAPLACE, 0.1, True): (
        thinned(laplace, "0.1", True),
        [-50, -20, -8, -3, 0, 0.25, 0.5, 0.75, 1, 4, 9, 21, 51],
    ),
    SampledLoss(LAPLACE, 1e-6, False): (
        thinned(laplace, "1e-6", False),
        [-50, -20, -8, -3, 0, 0.25, 0.5, 0.75, 1, 4, 9, 21, 51],
    ),
    MIXTURE: (mixture, list(range(-16, 19))),
    SampledLoss(MIXTURE, 0.2, True): (thinned(mixture, "0.2", True), list(range(-16, 19))),
    SinhNormalLoss(0.5, 20.0): (sinh_normal, list(range(-16, 18))),
    SampledLoss(SinhNormalLoss(0.5, 20.0), 0.01, False): (
        thinned(sinh_normal, "0.01", False),
        list(range(-16, 18)),
    ),
    BoundedRangeLoss(1.6): (range_density, [mpf(k) / 5 for k in range(-8, 9)]),
}
DISCRETE: Final[dict[CellLoss, Any]] = {
    SkellamLoss(3.0, 1): skellam,
    DiscreteGaussianLoss(2.0, 3): discrete_gaussian,
    RandomizedResponseLoss(1.2, 5): responses,
    SampledAtomsLoss(SkellamLoss(3.0, 1), 0.25, True): thinned(skellam, "0.25", True),
}
LOSSES: Final = (*CONTINUOUS, *DISCRETE)

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)
each_side = pytest.mark.parametrize("side", SIDES)


@cache
def listed(loss: CellLoss) -> list[tuple[Any, Any, Any]]:
    """Return losses with their weights under P and Q: outputs, or nodes of Gauss and Legendre."""
    if loss in DISCRETE:
        both = [DISCRETE[loss](k) for k in range(-70, 70)]
        whole = mp.fsum(own for own, _ in both)
        return [(mp.log(p / q), p / whole, q / whole) for p, q in both if p > 0 and q > 0]
    densities, cuts = CONTINUOUS[loss]
    # Nodes in double precision have errors of one unit in the last place, of which most cancel.
    x, w = np.polynomial.legendre.leggauss(60)
    found = []
    for low, high in pairwise(cuts):
        half = (mpf(high) - mpf(low)) / 2
        for node, weight in zip(x.tolist(), w.tolist(), strict=True):
            p, q = densities(mpf(low) + half * (1 + node))
            found.append((mp.log(p / q), half * weight * p, half * weight * q))
    return found


@cache
def truth(loss: CellLoss, side: str) -> tuple[list[Any], Any, Any]:
    """Return four cumulants, the third absolute central and the sixth moment."""
    with mp.workdps(30):
        weights = [(row[0], row[1 + SIDES.index(side)]) for row in listed(loss)]
        # Means are of second order in the loss: the sum of what is positive keeps its digits.
        sign = 1 if side == "under_p" else -1
        mean = sign * mp.fsum(w * (mp.expm1(-sign * x) + sign * x) for x, w in weights)
        second, third, fourth = (
            mp.fsum(w * (x - mean) ** k for x, w in weights) for k in (2, 3, 4)
        )
        absolute = mp.fsum(w * abs(x - mean) ** 3 for x, w in weights)
        sixth = mp.fsum(w * x**6 for x, w in weights)
        return [mean, second, third, fourth - 3 * second**2], absolute, sixth


@each_loss
@each_side
def test_the_cumulants_are_those_over_the_output(loss: CellLoss, side: str) -> None:
    found = getattr(loss.cumulants(), side)
    mean, variance, third, fourth = (float(one) for one in truth(loss, side)[0])
    assert found.mean == pytest.approx(mean, rel=2e-6)
    assert found.variance == pytest.approx(variance, rel=2e-6)
    assert found.third == pytest.approx(third, rel=1e-5, abs=1e-6 * variance**1.5)
    assert found.fourth == pytest.approx(fourth, rel=1e-5, abs=1e-6 * variance**2)


@each_loss
@each_side
def test_the_enclosures_hold_the_truth_and_are_narrow(loss: CellLoss, side: str) -> None:
    found = getattr(loss.moment_bounds(), side)
    (mean, variance, _, _), absolute, _ = truth(loss, side)
    slack = mpf(2) ** -45
    assert found.mean_lower <= mean + slack * abs(mean)
    assert mean - slack * abs(mean) <= found.mean_upper
    assert found.variance_lower <= variance * (1 + slack)
    assert variance * (1 - slack) <= found.variance_upper
    assert found.mean_upper - found.mean_lower <= 2e-3 * abs(mean)
    assert found.variance_upper - found.variance_lower <= 2e-3 * variance
    # The oracle's panels do not end at the mean, where the third power has a corner.
    assert absolute * (1 - mpf("1e-6")) <= found.third_upper <= 1.003 * absolute


@each_loss
@each_side
def test_the_sixth_moment_is_below_its_bound(loss: CellLoss, side: str) -> None:
    assert truth(loss, side)[2] <= loss.sixth_moment_upper


@pytest.mark.parametrize("power", [1, 2, 3])
@pytest.mark.parametrize("offset", [0.0, 2.0])
def test_what_lies_beyond_a_point_is_within_its_bound(power: int, offset: float) -> None:
    loss = GaussianLoss(0.5)
    with mp.workdps(30):
        for point in (0, 5, 20):

            def density(at: Any) -> Any:
                return mp.npdf((at - 2) / 2) / 2

            cuts = [mpf(point) + 4 * k for k in range(12)]
            mass = mp.quad(density, cuts)
            exact = mp.quad(lambda at: density(at) * (abs(at) + offset) ** power, cuts)
            assert exact <= tail_moment(float(mass), loss.sixth_moment_upper, power, offset)


def test_losses_too_large_for_floats_have_no_enclosures() -> None:
    assert LaplaceLoss(1e-60).moment_bounds() is None
