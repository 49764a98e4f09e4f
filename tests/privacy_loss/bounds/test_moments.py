"""The cumulants of losses and their enclosures, against stored ones by quadrature."""

from typing import Final, TypeAlias

import pytest

from hockeystick.privacy_loss import (
    GaussianLoss,
    NoiselessLoss,
    PrivacyLoss,
    RandomizedResponsePairLoss,
    SampledGaussianLoss,
)
from hockeystick.privacy_loss.bounds.cumulants import FourCumulants
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss

Truth: TypeAlias = tuple[list[float], float]

LOSSES: Final[tuple[PrivacyLoss, ...]] = (
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
SIDES: Final = ("under_p", "under_q")

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)
each_side = pytest.mark.parametrize("side", SIDES)


# The first four cumulants and the third absolute central moment of each loss, under P and under Q
# where that is no mirror image: by mpmath's quadrature over the output in 30 digits.
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
"""


def truth(loss: PrivacyLoss, side: str) -> Truth:
    """Return the first four cumulants and the third absolute central moment."""
    own, other = STORED.split("\n")[1:-1][2 * LOSSES.index(loss) :][:2]
    sign = -1 if side == "under_q" and other == "=" else 1
    row = own if side == "under_p" or other == "=" else other
    mean, variance, third, fourth, absolute = map(float, row.split())
    return [sign * mean, variance, sign * third, fourth], absolute


@each_loss
@each_side
def test_the_cumulants_are_those_of_quadrature_without_cancellation(
    loss: PrivacyLoss, side: str
) -> None:
    found: FourCumulants = getattr(loss.cumulants(), side)
    mean, variance, third, fourth = truth(loss, side)[0]
    assert found.mean == pytest.approx(float(mean), rel=1e-12)
    assert found.variance == pytest.approx(float(variance), rel=1e-12)
    # Relative to a power of the deviation, which is their natural size.
    square = float(variance)
    assert found.third == pytest.approx(float(third), rel=1e-11, abs=1e-12 * square**1.5)
    assert found.fourth == pytest.approx(float(fourth), rel=1e-11, abs=1e-12 * square**2)


@each_loss
@each_side
def test_the_enclosures_hold_the_truth_and_are_narrow(loss: PrivacyLoss, side: str) -> None:
    found = getattr(loss.moment_bounds(), side)
    (mean, variance, _, _), absolute = truth(loss, side)
    assert found.mean_lower <= mean <= found.mean_upper
    assert found.variance_lower <= variance <= found.variance_upper
    assert found.mean_upper - found.mean_lower <= 2e-3 * abs(mean)
    assert found.variance_upper - found.variance_lower <= 2e-3 * variance
    if isinstance(loss, GaussianLoss):
        assert found.third_upper == 0.0
    else:
        assert absolute <= found.third_upper <= 1.002 * absolute


@pytest.mark.parametrize("scale", [1.0 - 2e-16, 1.0 + 4e-16])
def test_the_enclosures_hold_for_the_neighbouring_readings_of_the_parameters(scale: float) -> None:
    nearby = SampledGaussianLoss(0.01 * scale, 1.0 / scale, removing=True).cumulants()
    bounds = SampledGaussianLoss(0.01, 1.0, removing=True).moment_bounds()
    assert nearby is not None
    assert bounds is not None
    near, found = nearby.under_p, bounds.under_p
    assert found.mean_lower <= near.mean <= found.mean_upper
    assert found.variance_lower <= near.variance <= found.variance_upper


@pytest.mark.parametrize("noise", [0.04, 0.05, 0.2, 900.0])
@pytest.mark.parametrize("rate", [1e-10, 1e-4, 0.5, 1 - 1e-6])
@pytest.mark.parametrize("removing", [True, False])
def test_the_enclosures_hold_the_cumulants_at_the_edge_of_reach(
    rate: float, noise: float, removing: bool
) -> None:
    loss = SampledGaussianLoss(rate, noise, removing)
    for side in SIDES:
        law, found = getattr(loss.cumulants(), side), getattr(loss.moment_bounds(), side)
        assert found.mean_lower <= law.mean <= found.mean_upper
        assert found.variance_lower <= law.variance <= found.variance_upper
        assert abs(law.third) <= found.third_upper


@pytest.mark.parametrize(
    "loss",
    [
        NoiselessLoss(0.1, removing=True),
        RandomizedResponsePairLoss(1.0, 1e-6),
        SampledGaussianLoss(1e-12, 1.0, removing=True),
        SampledGaussianLoss(0.1, 1e-3, removing=True),
        FixedSizeGaussianLoss(0.1, 1e-3),
    ],
    ids=str,
)
def test_what_is_not_known_or_out_of_reach_is_refused(loss: PrivacyLoss) -> None:
    assert loss.cumulants() is None
    assert loss.moment_bounds() is None


@pytest.mark.parametrize("epsilon", [1e-100, 1e-160, 700.0, 745.0])
def test_a_third_moment_below_every_float_is_not_taken_for_0(epsilon: float) -> None:
    assert RandomizedResponsePairLoss(epsilon).moment_bounds() is None
