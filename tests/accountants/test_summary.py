"""The mu that sums a plan up, and its regret: by definition, by laws, and as published."""

import math
from typing import Any

import pytest
from mpmath import mp

import hockeystick as hs
from hockeystick.accountants import gaussian_summary

MNIST = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
# The largest mu of a point of the curve, and the rate and the power of the point with the largest
# kappa, by scanning and golden section at 40 digits.
KNOWN: dict[str, tuple[hs.Mechanism, str, str, str]] = {
    "laplace": (
        hs.Laplace(2),
        "0.5617643232110188863544",
        "0.148002754860146512816",
        "0.2440152900601403254848",
    ),
    "sampled": (
        hs.PoissonSubsampled(hs.Gaussian(1), rate=0.01),
        "0.3125038553690493821276",
        "0.4980853753872598689636",
        "0.5019146246127401310364",
    ),
    "response": (
        hs.RandomizedResponse(1.0, 2),
        "1.232035385344900972856",
        "0.1342380011500320960375",
        "0.3648967192147966631078",
    ),
}


def quantile(p: Any) -> Any:
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


@pytest.mark.parametrize("name", KNOWN)
def test_both_numbers_are_the_maxima_over_the_points_of_the_curve(name: str) -> None:
    plan, *numbers = KNOWN[name]
    found = gaussian_summary(plan)
    with mp.workdps(40):
        mu, alpha, power = map(mp.mpf, numbers)
        shift = mp.mpf(found.mu.upper)
        # Down and left by kappa each, the point lies on the Gaussian's curve.
        kappa = mp.findroot(
            lambda kappa: mp.ncdf(quantile(alpha - kappa) + shift) - power - kappa,
            (0, alpha * (1 - mp.mpf(10) ** -15)),
            solver="anderson",
            tol=1e-36,
        )
        # What golden section leaves is far below the widths.
        assert found.mu.lower <= mu + 1e-16
        assert mu <= found.mu.upper + 1e-16
        assert found.regret.lower <= kappa + 1e-16
        assert kappa <= found.regret.upper + 1e-16
    assert found.mu.relative_width < 1e-7
    assert found.regret.relative_width < 1e-5


def test_the_tutorial_has_a_small_mu_where_strict_gdp_is_large() -> None:
    found = gaussian_summary(MNIST)
    assert found.mu.lower == pytest.approx(0.5976946636, abs=2e-9)
    assert found.mu.relative_width < 1e-7
    assert found.regret.lower == pytest.approx(0.005237074, abs=2e-9)
    assert found.regret.relative_width < 1e-5
    assert 107.0 < hs.convert(MNIST, hs.GDP).mu < 108.0
    assert found.mu.adjacency == "add-remove"
    assert found.mu.assumptions == hs.epsilon(MNIST, delta=1e-5).assumptions


def test_a_gaussian_mechanism_has_its_own_mu_and_no_regret() -> None:
    found = gaussian_summary(hs.Gaussian(2) ** 3)
    assert found.mu.lower <= math.sqrt(0.75) <= found.mu.upper
    assert found.mu.relative_width < 1e-13
    assert found.regret.upper == 0.0


@pytest.mark.parametrize(
    ("plan", "mu", "regret"),
    [
        (hs.Gaussian(math.inf), 0.0, 0.0),
        (hs.PureDP(0), 0.0, 0.0),
        (hs.Gaussian(0), math.inf, 0.0),
        (hs.PureDP(math.inf), math.inf, 0.0),
    ],
    ids=str,
)
def test_edges(plan: hs.Mechanism, mu: float, regret: float) -> None:
    found = gaussian_summary(plan)
    assert (found.mu.lower, found.mu.upper) == (mu, mu)
    assert (found.regret.lower, found.regret.upper) == (regret, regret)


def test_mu_is_infinite_where_no_rate_is_left_and_the_regret_is_the_fixed_point() -> None:
    plan = hs.Gaussian(0.25)
    assert hs.delta(plan, 0.0).lower > 1 - 2 * 0.03
    found = gaussian_summary(plan, least_rate=0.03)
    assert found.mu.lower == math.inf
    assert found.regret.lower <= (1 - hs.delta(plan, 0.0).upper) / 2 * (1 + 1e-12)
    assert gaussian_summary(plan, least_rate=0.02).mu.upper == pytest.approx(4.0, rel=1e-12)
