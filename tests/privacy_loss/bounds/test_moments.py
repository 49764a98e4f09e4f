"""The cumulants of losses and their enclosures, against stored ones by quadrature and sums."""

from fractions import Fraction
from typing import Final

import pytest

from hockeystick.privacy_loss import (
    BoundedRangeLoss,
    CellLoss,
    DiscreteGaussianLoss,
    FixedSizeGaussianLoss,
    GaussianLoss,
    GaussianMixtureLoss,
    LaplaceLoss,
    NoiselessLoss,
    PrivacyLoss,
    RandomizedResponseLoss,
    RandomizedResponsePairLoss,
    SampledGaussianLoss,
    SampledLoss,
    SinhNormalLoss,
    SkellamLoss,
)
from hockeystick.privacy_loss.bounds.moments import tail_moment
from hockeystick.privacy_loss.sampling.sampled import SampledAtomsLoss

MIXED: Final = ((Fraction(1, 2), Fraction(2)), (Fraction(9, 10), Fraction(1, 10)))
LAPLACE: Final = LaplaceLoss(0.7)
MIXTURE: Final = GaussianMixtureLoss(*MIXED, True)
SINH_NORMAL: Final = SinhNormalLoss(0.5, 20.0)
# With rules of their own, and from atoms and cells.
BY_RULES: Final[tuple[PrivacyLoss, ...]] = (
    SampledGaussianLoss(0.01, 1.0, removing=True),
    SampledGaussianLoss(1e-6, 1.0, removing=False),
    SampledGaussianLoss(0.3, 0.4, removing=True),
    SampledGaussianLoss(0.99, 8.0, removing=False),
    FixedSizeGaussianLoss(0.01, 1.0),
    FixedSizeGaussianLoss(1e-6, 0.5),
    FixedSizeGaussianLoss(0.6, 4.0),
    RandomizedResponsePairLoss(0.1),
    RandomizedResponsePairLoss(3.0),
    GaussianLoss(0.7),
)
BY_CELLS: Final[tuple[CellLoss, ...]] = (
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
LOSSES: Final[tuple[PrivacyLoss, ...]] = (*BY_RULES, *BY_CELLS)
SIDES: Final = ("under_p", "under_q")
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)
each_side = pytest.mark.parametrize("side", SIDES)


# Four cumulants, the third absolute central and the sixth moment of each loss, under P and under Q
# where that is no mirror image: by quadrature over the densities, or sums, in 30 digits.
STORED: Final = """
8.38122076508318e-5 0.000171630506247414 1.25317964498e-5 2.1832594681e-6 1.29181108901451e-5
-8.18897691406258e-5 0.000160086647696336 1.06483852594e-5 1.62580743916e-6 1.10120205579163e-5
8.59136270749805e-13 1.71826789807522e-12 -1.39301913073e-17 3.27498685844e-22 1.43020459864849e-17
-8.59138592475648e-13 1.71828182843028e-12 -1.3930518816e-17 3.27518627196e-22 1.43023758505531e-17
0.552601952176894 2.64401055729424 9.43281561242 32.1224939667 10.2891936281242
-0.210250476323913 0.145310928969453 0.29459996852 0.816215061128 0.297995582556433
0.00765584717728385 0.0153093025096972 -7.21068154935e-6 -1.41058123599e-7 0.00302252739417401
-0.00765703726145549 0.0153164430537667 -7.07079698676e-6 -1.38715741821e-7 0.00302464634479161
0.000140009718682043 0.000280326526151448 1.84671120323e-6 3.73536079868e-6 2.35542470308666e-5
=
5.29237267147487e-11 1.0584906714506e-10 9.72309987057e-15 1.9859064842e-14 3.00153058340982e-13
=
0.0121143583600011 0.0242518229300313 0.000138561962088 0.000276371061861 0.00641824928259201
=
0.004995837495788 0.00997504160771568 -9.96673737717e-5 -0.000198007066145 0.00099999377078654
=
2.7154447609346 1.62635975031284 -8.83258012676 42.6786747866 8.87647648939776
=
1.0204081632653061 2.0408163265306122 0 0 4.65238810954863
=
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


def truth(loss: PrivacyLoss, side: str) -> tuple[list[float], list[float]]:
    """Return four cumulants, and the third absolute central and perhaps the sixth moment."""
    own, other = STORED.split("\n")[1:-1][2 * LOSSES.index(loss) :][:2]
    sign = -1 if side == "under_q" and other == "=" else 1
    row = own if side == "under_p" or other == "=" else other
    mean, variance, third, fourth, *moments = map(float, row.split())
    return [sign * mean, variance, sign * third, fourth], moments


@each_loss
@each_side
def test_the_cumulants_are_those_over_the_output(loss: PrivacyLoss, side: str) -> None:
    found = getattr(loss.cumulants(), side)
    mean, variance, third, fourth = truth(loss, side)[0]
    near, unit = (1e-12, 1e-12) if loss in BY_RULES else (2e-6, 1e-6)
    assert found.mean == pytest.approx(mean, rel=near)
    assert found.variance == pytest.approx(variance, rel=near)
    # Relative to a power of the deviation, which is their natural size.
    assert found.third == pytest.approx(third, rel=10 * unit, abs=unit * variance**1.5)
    assert found.fourth == pytest.approx(fourth, rel=10 * unit, abs=unit * variance**2)


@each_loss
@each_side
def test_the_enclosures_hold_the_truth_and_are_narrow(loss: PrivacyLoss, side: str) -> None:
    found = getattr(loss.moment_bounds(), side)
    (mean, variance, _, _), (absolute, *_) = truth(loss, side)
    # The oracle's panels for cells do not end at the mean, where the third power has a corner.
    slack, corner, wide = (0.0, 0.0, 1.002) if loss in BY_RULES else (2.0**-45, 1e-6, 1.003)
    assert found.mean_lower - slack * abs(mean) <= mean <= found.mean_upper + slack * abs(mean)
    assert found.variance_lower <= variance * (1 + slack)
    assert variance * (1 - slack) <= found.variance_upper
    assert found.mean_upper - found.mean_lower <= 2e-3 * abs(mean)
    assert found.variance_upper - found.variance_lower <= 2e-3 * variance
    if isinstance(loss, GaussianLoss):
        assert found.third_upper == 0.0
    else:
        assert absolute * (1 - corner) <= found.third_upper <= wide * absolute


@pytest.mark.parametrize("loss", BY_CELLS, ids=str)
@each_side
def test_the_sixth_moment_is_below_its_bound(loss: CellLoss, side: str) -> None:
    assert truth(loss, side)[1][1] <= loss.sixth_moment_upper * (1 + 1e-7)


# Of N(2, 4) beyond 0, 5 and 20: the mass, and the mean of (x + offset)^power there, times the mass.
@pytest.mark.parametrize(
    ("mass", "power", "offset", "exact"),
    [
        (0.84134474606854295, 1, 0.0, 2.1666309411753726),
        (0.84134474606854295, 3, 0.0, 32.730329262652815),
        (0.84134474606854295, 2, 2.0, 19.730543615600579),
        (0.066807201268858066, 1, 0.0, 0.39264959386949959),
        (0.066807201268858066, 3, 0.0, 14.312484433197281),
        (0.066807201268858066, 2, 2.0, 4.1855311300267793),
        (1.1285884059538406e-19, 1, 0.0, 2.2816723955245511e-18),
        (1.1285884059538406e-19, 3, 0.0, 9.3290301377792219e-16),
        (1.1285884059538406e-19, 2, 2.0, 5.5711999384586038e-17),
    ],
)
def test_what_lies_beyond_a_point_is_within_its_bound(
    mass: float, power: int, offset: float, exact: float
) -> None:
    assert exact <= tail_moment(mass, GaussianLoss(0.5).sixth_moment_upper, power, offset)


@pytest.mark.parametrize(
    "loss",
    [
        NoiselessLoss(0.1, removing=True),
        RandomizedResponsePairLoss(1.0, 1e-6),
        SampledGaussianLoss(1e-12, 1.0, removing=True),
        SampledGaussianLoss(0.1, 1e-3, removing=True),
        FixedSizeGaussianLoss(0.1, 1e-3),
        LaplaceLoss(1e-60),
    ],
    ids=str,
)
def test_what_is_not_known_or_out_of_reach_has_no_enclosures(loss: PrivacyLoss) -> None:
    assert loss.moment_bounds() is None


@pytest.mark.parametrize("epsilon", [1e-100, 1e-160, 700.0, 745.0])
def test_a_third_moment_below_every_float_is_not_taken_for_0(epsilon: float) -> None:
    assert RandomizedResponsePairLoss(epsilon).moment_bounds() is None
