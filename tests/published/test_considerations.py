"""Claims on training with DP-SGD, by the plans that they speak of.

van Dijk and Nguyen, "Considerations on the Theory of Training Models with Differential Privacy",
2023. Its sigma is the standard deviation over 2C, which is what replacing one example moves a sum
by; a noise multiplier here is over C, and so twice that. What adversaries see who see the batches,
and what groups lose, is in ``test_shuffling``.
"""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import schedules
from hockeystick.numerics.multiprecision import mp

SIZES: dict[str, Any] = {"examples": 1000, "batch_size": 100, "epochs": 8}
MNIST: dict[str, Any] = {
    "examples": 60_000,
    "batch_size": 256,
    "epochs": 10,
    "noise_multiplier": 1.1,
}


def test_a_set_of_a_fixed_size_has_the_profile_of_the_chapter() -> None:
    # C_p(G_(1/sigma)): p delta_G(ln(1 + (e^eps - 1) / p)), with sigma the noise over 2 C.
    sigma = 1.5
    plan = hs.DPSGD(
        examples=1000,
        batch_size=100,
        steps=1,
        noise_multiplier=2 * sigma,
        sampling="fixed-size",
        adjacency="replace-one",
    )
    found = hs.delta(plan, 0.4)
    with mp.workdps(30):
        p, mu = mp.mpf(1) / 10, 1 / mp.mpf(sigma)
        inside = mp.log(1 + mp.expm1(mp.mpf("0.4")) / p)
        truth = p * (
            mp.ncdf(mu / 2 - inside / mu) - mp.exp(inside) * mp.ncdf(-mu / 2 - inside / mu)
        )
    # 0.4 is read as the float, and the truth above as the decimal.
    assert found.lower * (1 - 1e-12) <= truth <= found.upper * (1 + 1e-12)
    assert found.relative_width < 1e-9


@pytest.mark.parametrize("clipping", ["individual", "batch"])
def test_a_smaller_sigma_in_the_last_epoch(clipping: str) -> None:
    plan = hs.DPSGD(
        **SIZES,
        noise_multiplier=12.0,
        sampling="shuffle",
        adjacency="replace-one",
        clipping=clipping,
        schedule=schedules.Piecewise([(70, 1.0), (10, 0.25)]),
    )
    found = hs.epsilon(plan, 1e-5)
    # sigma = 6 for seven epochs and 1.5 for the last.
    seen = hs.epsilon(hs.GDP(math.sqrt(7 / 36 + 1 / 1.5**2)), 1e-5)
    assert found.lower <= seen.upper
    assert found.upper <= seen.upper * (1 + 1e-4)


def test_private_normalisation_is_composed_in() -> None:
    moments = hs.Gaussian(20.0), hs.Gaussian(20.0)
    plan, alone = hs.DPSGD(**MNIST, extra=moments), hs.DPSGD(**MNIST)
    both, product = hs.epsilon(plan, 1e-5), hs.epsilon(alone @ moments[0] @ moments[1], 1e-5)
    assert (both.lower, both.upper) == (product.lower, product.upper)
    assert both.lower > hs.epsilon(alone, 1e-5).upper


def test_features_by_private_components_are_composed_in() -> None:
    plan = hs.DPSGD(**MNIST, extra=hs.mechanisms.PrivateCovariance(20.0, columns=784))
    same = hs.DPSGD(**MNIST, extra=hs.Gaussian(20.0))
    assert hs.epsilon(plan, 1e-5).upper == pytest.approx(hs.epsilon(same, 1e-5).upper, rel=1e-9)


def test_sinh_normal_noise_has_about_the_privacy_of_the_gaussian_inside_and_not_sixteenfold() -> (
    None
):
    # rho = 0.1 is a Gaussian of variance 5; the theorem that is cited has 16 rho.
    sinh, gaussian = hs.mechanisms.SinhNormal(rho=0.1, width=40.0), hs.GDP(math.sqrt(0.2))
    found, truth = hs.epsilon(sinh**10, 1e-5), hs.epsilon(gaussian**10, 1e-5)
    assert truth.upper < found.upper < 1.2 * truth.upper
    cited = hs.epsilon(hs.TCDP(1.6, 5.0) ** 10, 1e-5)
    assert cited.upper > 5 * found.upper
    assert np.isfinite(found.upper)
