"""Moments from atoms and cells, against quadrature over the output and sums by mpmath."""

from fractions import Fraction
from typing import Any, Final

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
LAPLACE: Final = LaplaceLoss(0.7)
MIXTURE: Final = GaussianMixtureLoss(*MIXED, True)
SINH_NORMAL: Final = SinhNormalLoss(0.5, 20.0)
LOSSES: Final[tuple[CellLoss, ...]] = (
    LAPLACE,
    SampledLoss(LAPLACE, 0.1, True),
    SampledLoss(LAPLACE, 1e-6, False),
    MIXTURE,
    SampledLoss(MIXTURE, 0.2, True),
    SINH_NORMAL,
    SampledLoss(SINH_NORMAL, 0.01, False),
    BoundedRangeLoss(1.6),
    SkellamLoss(3.0, 1),
    DiscreteGaussianLoss(2.0, 3),
    RandomizedResponseLoss(1.2, 5),
    SampledAtomsLoss(SkellamLoss(3.0, 1), 0.25, True),
)
# Four cumulants, the third absolute central and the sixth moment of each loss, under P and under Q
# where that is no mirror image: by Gauss and Legendre over the densities, or sums, in 30 digits.
STORED: Final = """
0.668222465013208 1.09383081389583 -1.2281028 -0.50905011 1.7064773 5.7802437
=
0.0084253869810144 0.0178530947252832 0.0030113073 -4.0732414e-5 0.00377624 7.4050666e-5
-0.00792721800436344 0.0148683006233336 0.0029160957 0.00021220279 0.0033500249 5.6400114e-5
9.00482047870697e-13 1.80096274586956e-12 -4.0496146e-18 3.7834383e-24 4.5869341e-18 1.3019599e-34
-9.00482722806772e-13 1.80096679548601e-12 -4.0496183e-18 3.7834067e-24 4.5869414e-18 1.301964e-34
0.223269720885198 0.570262715594002 0.59353732 1.4157377 0.95638596 43.59379
-0.18455488680305 0.320498206618468 0.092012148 0.1345973 0.32622346 1.4173703
0.0126660536375419 0.0329524028945966 0.034644255 0.074451561 0.036015569 0.82102549
-0.0101035185946443 0.0166769608862205 0.0075022905 0.0080788748 0.0083530791 0.031230037
0.501672506811142 1.00587736049885 0.015232333 0.030848145 1.615959 28.792184
=
8.27928039431982e-5 0.000161692455733107 -1.1188966e-5 1.8408532e-6 1.1553109e-5 2.6929362e-7
-8.48266236283828e-5 0.000173907361166267 -1.336105e-5 2.5667694e-6 1.374818e-5 5.611955e-7
0.409505123269931 0.754285060935957 -0.35886645 -0.44411377 0.9200068 2.7201916
=
0.167922560614085 0.329542846392062 -0.036923845 -0.0651509 0.27574828 0.33866694
=
1.125 2.25 0 0 5.3872127 515.27283
=
0.380340961308448 0.705186245293048 -0.3119625 -0.42647351 0.8114965 1.7622396
=
0.0112569235953814 0.0236361643930178 0.0034440552 0.00028732863 0.0060277301 0.00039440192
-0.0107093954702194 0.0203523643442455 0.0031098378 0.00036985334 0.0050201995 0.00024294212
"""

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)
each_side = pytest.mark.parametrize("side", SIDES)


def truth(loss: CellLoss, side: str) -> tuple[list[float], float, float]:
    """Return four cumulants, the third absolute central and the sixth moment."""
    own, other = STORED.split("\n")[1:-1][2 * LOSSES.index(loss) :][:2]
    sign = -1 if side == "under_q" and other == "=" else 1
    row = own if side == "under_p" or other == "=" else other
    mean, variance, third, fourth, absolute, sixth = map(float, row.split())
    return [sign * mean, variance, sign * third, fourth], absolute, sixth


@each_loss
@each_side
def test_the_cumulants_are_those_over_the_output(loss: CellLoss, side: str) -> None:
    found = getattr(loss.cumulants(), side)
    mean, variance, third, fourth = truth(loss, side)[0]
    assert found.mean == pytest.approx(mean, rel=2e-6)
    assert found.variance == pytest.approx(variance, rel=2e-6)
    assert found.third == pytest.approx(third, rel=1e-5, abs=1e-6 * variance**1.5)
    assert found.fourth == pytest.approx(fourth, rel=1e-5, abs=1e-6 * variance**2)


@each_loss
@each_side
def test_the_enclosures_hold_the_truth_and_are_narrow(loss: CellLoss, side: str) -> None:
    found = getattr(loss.moment_bounds(), side)
    (mean, variance, _, _), absolute, _ = truth(loss, side)
    slack = 2.0**-45
    assert found.mean_lower <= mean + slack * abs(mean)
    assert mean - slack * abs(mean) <= found.mean_upper
    assert found.variance_lower <= variance * (1 + slack)
    assert variance * (1 - slack) <= found.variance_upper
    assert found.mean_upper - found.mean_lower <= 2e-3 * abs(mean)
    assert found.variance_upper - found.variance_lower <= 2e-3 * variance
    # The oracle's panels do not end at the mean, where the third power has a corner.
    assert absolute * (1 - 1e-6) <= found.third_upper <= 1.003 * absolute


@each_loss
@each_side
def test_the_sixth_moment_is_below_its_bound(loss: CellLoss, side: str) -> None:
    assert truth(loss, side)[2] <= loss.sixth_moment_upper * (1 + 1e-7)


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
