"""The mu that sums a plan up, and its regret: by definition, by laws, and as published."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

import hockeystick as hs
from hockeystick.accountants import gaussian_summary
from hockeystick.errors import ParameterError

Rates = NDArray[np.float64]


def sampled_power(alpha: Rates) -> Rates:
    """Return the power of one sampled Gaussian of rate 0.01 and noise 1, in the worse order."""
    return 0.99 * alpha + 0.01 * ndtr(ndtri(alpha) + 1.0)


# A plan, the power at a rate up to where its slope is -1, and that rate.
KNOWN: tuple[tuple[hs.Mechanism, Callable[[Rates], Rates], float], ...] = (
    (hs.Laplace(2), lambda alpha: math.exp(0.5) * alpha, 0.5 * math.exp(-0.5)),
    (
        hs.PoissonSubsampled(hs.Gaussian(1), rate=0.01),
        sampled_power,
        0.5 - 0.005 * (ndtr(0.5) - ndtr(-0.5)),
    ),
    (hs.RandomizedResponse(1.0, 2), lambda alpha: math.e * alpha, 1.0 / (1.0 + math.e)),
)


@pytest.mark.parametrize(("plan", "power", "most"), KNOWN, ids=["laplace", "sampled", "response"])
def test_both_numbers_are_the_maxima_over_the_points_of_the_curve(
    plan: hs.Mechanism, power: Callable[[Rates], Rates], most: float
) -> None:
    found = gaussian_summary(plan)
    alpha = np.geomspace(1e-12, most, 20_001)
    at = np.minimum(power(alpha), alpha + (power(np.array([most])) - most))
    mu = float((ndtri(at) - ndtri(alpha)).max())
    low, high = np.zeros(alpha.size), alpha.copy()
    for _ in range(60):
        middle = 0.5 * (low + high)
        # Moved down and left by so much, a point is above the Gaussian's curve still.
        above = ndtr(ndtri(alpha - middle) + found.mu.upper) > at + middle
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    for one, largest, width in ((found.mu, mu, 1e-7), (found.regret, float(low.max()), 1e-5)):
        assert one.upper >= largest * (1 - 1e-12)
        assert one.lower <= largest * (1 + 1e-6)
        assert one.relative_width < width


@pytest.mark.parametrize(
    ("plan", "mu"),
    [
        (hs.Gaussian(2) ** 3, math.sqrt(0.75)),
        (hs.Gaussian(math.inf), 0.0),
        (hs.PureDP(0), 0.0),
        (hs.Gaussian(0), math.inf),
        (hs.PureDP(math.inf), math.inf),
    ],
    ids=str,
)
def test_a_gaussian_has_its_own_mu_and_no_regret(plan: hs.Mechanism, mu: float) -> None:
    found = gaussian_summary(plan)
    assert found.mu.lower <= mu <= found.mu.upper
    assert found.mu.lower == found.mu.upper or found.mu.relative_width < 1e-13
    assert found.regret.upper == 0.0


def test_mu_is_infinite_where_no_rate_is_left_and_the_regret_is_the_fixed_point() -> None:
    plan = hs.Gaussian(0.25)
    assert hs.delta(plan, 0.0).lower > 1 - 2 * 0.03
    found = gaussian_summary(plan, least_rate=0.03)
    assert found.mu.lower == math.inf
    assert found.regret.lower <= (1 - hs.delta(plan, 0.0).upper) / 2 * (1 + 1e-12)
    assert gaussian_summary(plan, least_rate=0.02).mu.upper == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize("rate", [0, -1e-3, 0.5, 1e-16, math.nan, "a", None])
def test_other_rates_are_refused(rate: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        gaussian_summary(hs.Gaussian(1), least_rate=rate)
    assert caught.value.name == "least_rate"
    assert caught.value.allowed == "a number >= 1e-15 and < 0.5"


def test_it_is_told_to_programs_and_cannot_be_checked_as_an_answer() -> None:
    found = gaussian_summary(hs.Laplace(2), least_rate=0.01)
    told = json.loads(json.dumps(found.as_dict()))
    assert told["least_rate"] == 0.01
    assert told["mu"]["quantity"] == "mu"
    assert told["regret"]["upper"] == found.regret.upper
    with pytest.raises(ParameterError, match="of an epsilon or a delta"):
        hs.answers.document(found.mu, hs.Laplace(2), delta=0.1)
