"""Tensor products of trade-off functions: laws, known values, and the tails of a composition."""

from itertools import combinations

import numpy as np
import pytest

import hockeystick as hs

RATES = np.array([1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12])
COIN = hs.tradeoffs.discrete_tradeoff([0.2, 0.5, 0.3], [0.4, 0.45, 0.15])
FUNCTIONS = {
    "G_1": hs.tradeoffs.G(1.0),
    "C_p(G_1)": hs.tradeoffs.G(1.0).subsample(0.1),
    "of a plan": hs.tradeoff(hs.PoissonSubsampled(hs.Gaussian(1.0), 0.02) ** 400),
    "1-DP": hs.tradeoffs.ApproxTradeOff(1.0, 1e-6),
    "Laplace": hs.tradeoffs.LaplaceTradeOff(2.0),
    "an asymmetric coin": COIN,
}
# A single run of a sampled Gaussian takes minutes beside atoms: it meets other Gaussians only.
QUICK = [name for name in FUNCTIONS if name != "C_p(G_1)"]
PAIRS = (*combinations(QUICK, 2), ("C_p(G_1)", "of a plan"), ("C_p(G_1)", "G_1"))
each = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())


def assert_agree(f: hs.tradeoffs.TradeOff, g: hs.tradeoffs.TradeOff) -> None:
    """The proven ends of both overlap, for f and for its inverse."""
    for one, other in ((f, g), (f.inverse(), g.inverse())):
        for ends, others in (
            (one.bounds(RATES), other.bounds(RATES)),
            (one.power_bounds(RATES), other.power_bounds(RATES)),
        ):
            assert (ends[0] <= others[1]).all()
            assert (others[0] <= ends[1]).all()


@each
def test_one_factor_is_itself_and_the_identity_is_neutral(f: hs.tradeoffs.TradeOff) -> None:
    assert_agree(f**1, f)
    assert_agree(f @ hs.tradeoffs.IDENTITY, f)
    assert_agree(hs.tradeoffs.IDENTITY @ f, f)


@each
def test_no_factor_at_all_is_the_identity(f: hs.tradeoffs.TradeOff) -> None:
    assert_agree(f**0, hs.tradeoffs.IDENTITY)


@pytest.mark.parametrize(
    ("f", "g"),
    [pytest.param(*(FUNCTIONS[name] for name in pair), id=" and ".join(pair)) for pair in PAIRS],
)
def test_the_order_does_not_matter(f: hs.tradeoffs.TradeOff, g: hs.tradeoffs.TradeOff) -> None:
    assert_agree(f @ g, g @ f)


@pytest.mark.parametrize("f", [FUNCTIONS[name] for name in QUICK], ids=QUICK)
def test_brackets_do_not_matter(f: hs.tradeoffs.TradeOff) -> None:
    g, h = hs.tradeoffs.G(0.5), hs.tradeoffs.G(1.0).subsample(0.05)
    assert_agree((f @ g) @ h, f @ (g @ h))
    assert_agree(f @ f @ f, f**3)
    assert_agree((f**2) ** 3, f**6)


@each
def test_another_release_leaves_less(f: hs.tradeoffs.TradeOff) -> None:
    assert ((f @ hs.tradeoffs.G(0.5))(RATES) <= f.bounds(RATES)[1]).all()


def test_gaussians_are_exact() -> None:
    assert hs.tradeoffs.G(3) @ hs.tradeoffs.G(4) == hs.tradeoffs.G(5)
    assert hs.tradeoffs.G(0.3) ** 4 == hs.tradeoffs.G(0.6)
    assert hs.tradeoffs.G(2) ** 0 == hs.tradeoffs.G(0)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_a_discrete_product_holds_the_product_distribution(runs: int) -> None:
    p, q = np.ones(1), np.ones(1)
    for _ in range(runs):
        p, q = np.outer(p, [0.2, 0.5, 0.3]).ravel(), np.outer(q, [0.4, 0.45, 0.15]).ravel()
    assert_agree(COIN**runs, hs.tradeoffs.discrete_tradeoff(p, q))


@pytest.mark.parametrize(
    ("rate", "runs", "epsilon", "delta"),
    [
        (0.01, 1000, 1.0, 9.9054377995653515758e-3),
        (0.01, 1000, 2.0, 3.9311878558741735944e-5),
        (16 / 600, 3534, 8.0, 0.0183788206638339704),
        (16 / 600, 3534, 16.0, 2.29760306083325594e-7),
    ],
)
def test_powers_of_the_subsampled_gaussian_have_the_known_deltas(
    rate: float, runs: int, epsilon: float, delta: float
) -> None:
    found = (hs.tradeoffs.G(1.0).subsample(rate) ** runs).delta(epsilon)
    assert found.lower <= delta <= found.upper
    assert found.relative_width <= 1e-10


@pytest.mark.parametrize(
    "f",
    [
        hs.tradeoff(hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)),
        hs.tradeoff(hs.PoissonSubsampled(hs.Gaussian(1.5), 0.1) ** 50 @ hs.Gaussian(4.0)),
        hs.tradeoffs.G(1.0).subsample(0.01) ** 1000,
    ],
    ids=str,
)
def test_both_tails_of_a_composition_keep_nine_digits(f: hs.tradeoffs.TradeOff) -> None:
    for rate in (1e-12, 1e-6, 0.5, 1 - 1e-6, 1 - 1e-12):
        for lower, upper in (f.bounds(rate), f.power_bounds(rate)):
            assert 0.0 < lower <= upper <= lower * (1.0 + 1e-9)


def test_only_trade_off_functions_multiply() -> None:
    with pytest.raises(
        hs.errors.ParameterError, match="the right side of @ must be a trade-off function"
    ):
        hs.tradeoffs.G(1) @ hs.Gaussian(1)
    with pytest.raises(hs.errors.ParameterError, match="count must be an integer"):
        hs.tradeoffs.G(1) ** 0.5
