"""The trade-off function of a plan, its products and powers."""

import numpy as np
import pytest

import hockeystick as hs


def test_gaussians_are_gaussian() -> None:
    f = hs.tradeoff(hs.Gaussian(2) ** 16)
    assert isinstance(f, hs.tradeoffs.GaussianTradeOff)
    assert f.mu == 2.0
    assert hs.tradeoffs.G(3) @ hs.tradeoffs.G(4) == hs.tradeoffs.G(5)
    assert hs.tradeoffs.G(0.3) ** 4 == hs.tradeoffs.G(0.6)
    assert hs.tradeoffs.G(2) ** 0 == hs.tradeoffs.G(0)


def test_noise_out_of_reach_of_any_line_has_valid_bounds() -> None:
    lower, upper = hs.tradeoff(hs.PoissonSubsampled(hs.Gaussian(1e9), 0.1) ** 5).bounds(0.3)
    assert 0.69 <= lower <= upper <= np.nextafter(0.7, 1)


COIN = hs.tradeoffs.discrete_tradeoff([0.2, 0.5, 0.3], [0.4, 0.45, 0.15])


@pytest.mark.parametrize(
    "f", [hs.tradeoffs.G(1.0).subsample(0.1), hs.tradeoffs.ApproxTradeOff(1.0, 1e-6), COIN], ids=str
)
def test_no_factor_at_all_is_the_identity(f: hs.tradeoffs.TradeOff) -> None:
    rates = np.array([1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12])
    lower, upper = (f**0).bounds(rates)
    assert (lower <= 1.0 - rates).all()
    assert (1.0 - rates <= upper).all()
