"""Balls in bins with correlated noise: between integrals, adaptive attacks and other bounds."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.mechanisms import BallsInBins
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import dominating_pair
from hockeystick.privacy_loss.streams.balls_in_bins import _Products

each_direction = pytest.mark.parametrize("removing", [True, False], ids=["removing", "adding"])


def direction(removing: bool) -> str:
    """Return the word for a direction."""
    return "remove" if removing else "add"


def matrix(coefficients: Sequence[float], rounds: int) -> Any:
    """Return the lower triangular Toeplitz matrix."""
    padded = [*coefficients, *[0.0] * rounds]
    return np.array(
        [[padded[i - j] if i >= j else 0.0 for j in range(rounds)] for i in range(rounds)]
    )


def gram(coefficients: Sequence[float], rounds: int, bins: int) -> Any:
    """Return the inner products of the bins' means, by the matrix."""
    full = matrix(coefficients, rounds)
    means = np.array([full[:, r::bins].sum(axis=1) for r in range(bins)])
    return means @ means.T


def two_bins(products: Any, noise: float, epsilon: float, *, removing: bool) -> Any:
    """Return delta of two bins: an integral over one coordinate, the other one in closed form."""
    own, both, other = (
        mp.mpf(float(v)) / mp.mpf(noise) ** 2 for v in products[[0, 0, 1], [0, 1, 1]]
    )
    level = mp.exp(epsilon if removing else -epsilon)
    slope, left = both / mp.sqrt(own), mp.sqrt(other - both**2 / own)

    def inside(x: Any) -> Any:
        first = mp.exp(mp.sqrt(own) * x - own / 2)
        forward = mp.exp(slope * x - slope**2 / 2)
        strike = 2 * level - first
        if strike <= 0:
            return mp.npdf(x) * (forward - strike if removing else 0)
        d = mp.log(forward / strike) / left
        call = forward * mp.ncdf(d + left / 2) - strike * mp.ncdf(d - left / 2)
        return mp.npdf(x) * (call if removing else call - forward + strike)

    kink = (mp.log(2 * level) + own / 2) / mp.sqrt(own)
    points = sorted({mp.mpf(-16), mp.mpf(-4), mp.mpf(0), kink - 1, kink, kink + 1, mp.mpf(24)})
    total = mp.quad(inside, points) / 2
    return total if removing else total / level


@each_direction
@pytest.mark.parametrize("epsilon", [0.0, 0.7])
@pytest.mark.parametrize(
    ("coefficients", "rounds"), [((1.0,), 6), ((1.0, 0.5), 4), ((2.0, 1.5, 1.0), 5), ((1.0,), 5)]
)
def test_the_truth_of_two_bins_is_inside(
    coefficients: tuple[float, ...], rounds: int, epsilon: float, removing: bool
) -> None:
    plan = BallsInBins(2.5, coefficients, rounds, bins=2)
    found = hs.accountants.directed_delta(plan, epsilon, direction(removing))
    with mp.workdps(20):
        truth = two_bins(gram(coefficients, rounds, 2), 2.5, epsilon, removing=removing)
    assert found.lower <= float(truth) * (1 + 1e-9)
    assert float(truth) * (1 - 1e-9) <= found.upper
    if (coefficients, rounds) == ((1.0,), 6):
        assert found.upper <= 1.01 * found.lower


def by_chance(
    products: Any, noise: float, epsilon: float, *, removing: bool
) -> tuple[float, float]:
    """Return delta and its standard error, of a million outputs."""
    rng = np.random.default_rng(3)
    half = np.linalg.cholesky(products / noise**2 + 1e-12 * np.eye(len(products)))
    exponents = rng.standard_normal((1_000_000, len(products))) @ half.T
    ratio = np.exp(exponents - 0.5 * np.diag(products) / noise**2).mean(axis=1)
    terms = np.maximum(ratio - math.exp(epsilon) if removing else 1 - math.exp(epsilon) * ratio, 0)
    return float(terms.mean()), float(terms.std() / 1000.0)


@each_direction
@pytest.mark.parametrize(
    ("coefficients", "rounds", "bins"),
    [
        ((1.0, 0.5), 12, 6),
        ((1.0, 0.5), 11, 7),
        ((1.0, 0.9), 30, 5),
        ((1.0, 1.0, 1.0), 9, 9),
        ((1.0, 1.0, 1.0), 21, 7),
        ((1.0, 0.5, 0.375), 8, 3),
        (tuple(0.8**k for k in range(20)), 20, 4),
    ],
)
def test_the_truth_of_many_bins_is_inside(
    coefficients: tuple[float, ...], rounds: int, bins: int, removing: bool
) -> None:
    plan = BallsInBins(2.0, coefficients, rounds, bins)
    found = hs.accountants.directed_delta(plan, 0.4, direction(removing))
    truth, error = by_chance(gram(coefficients, rounds, bins), 2.0, 0.4, removing=removing)
    assert found.lower <= truth + 4 * error
    assert truth - 4 * error <= found.upper


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any),
    st.integers(1, 14),
    st.integers(1, 8),
)
def test_allocations_have_products_on_the_stated_side(
    coefficients: list[int], rounds: int, bins: int
) -> None:
    if not any(coefficients[:rounds]):
        return
    plan = BallsInBins(1.0, coefficients, rounds, bins)
    truth, products = gram(coefficients, rounds, bins), _Products(plan)
    steps, square, scale = products.above()
    assert truth.max() <= square * scale**2 * (1 + 1e-12)
    # Some spacing leaves so many bins at least in each class, all orthogonal.
    spacings = [d for d in range(1, bins + 1) if bins // d == steps]
    classes = [[range(r, bins, d) for r in range(d)] for d in spacings]
    assert steps == 1 or any(
        all(truth[i, j] == 0 for one in split for i in one for j in one if i != j)
        for split in classes
    )
    for steps, square, scale in products.below():
        block = np.kron(np.eye(steps), np.ones((bins // steps, bins // steps)))
        assert (square * scale**2 * block <= truth * (1 + 1e-12)).all()


# The game of four rounds and two bins, an output a grid's point.
GRID = np.arange(-5.4, 9.0, 0.4)
Z, TWO = 1.5, (1.0, 0.7)


def cost_of(move: Callable[..., Any], base: Callable[..., Any], *, removing: bool) -> float:
    """Return a hockey-stick divergence at 0.5 by a sum over all outputs."""
    y = np.meshgrid(GRID, GRID, GRID, GRID, indexing="ij", sparse=True)
    with_it = 0.5 * (density(y, move, base, 0) + density(y, move, base, 1))
    without = density(y, move, base, None)
    one, other = (with_it, without) if removing else (without, with_it)
    return float(np.maximum(one - math.exp(0.5) * other, 0).sum()) * 0.4**4


def density(y: Any, move: Any, base: Any, bin_: int | None) -> Any:
    """Return the density of all outputs where the example is in a bin."""
    full = matrix(TWO, 4)
    inputs = [base(j, y) + (move(j, y) if j % 2 == bin_ else 0.0) for j in range(4)]
    total: Any = 1.0
    for i in range(4):
        mean = sum(full[i, j] * inputs[j] for j in range(i + 1))
        total = total * np.exp(-0.5 * ((y[i] - mean) / Z) ** 2) / (Z * math.sqrt(2 * math.pi))
    return total


def always(j: int, y: Any) -> Any:
    """Return one unit in every round."""
    return 1.0


def back(j: int, y: Any) -> Any:
    """Return a unit to the side where the outputs before were."""
    return np.where(sum(y[:j]) > 0.0, 1.0, -1.0) if j else 1.0


def onto(j: int, y: Any) -> Any:
    """Return more the more of the example the outputs before show."""
    return np.clip(sum(y[:j]), -1.0, 1.0) if j else 1.0


def odd(j: int, y: Any) -> Any:
    """Return what tells the bins apart by the sign."""
    return -1.0 if j % 2 else 1.0


def nothing(j: int, y: Any) -> Any:
    """Return nothing."""
    return 0.0


def drift(j: int, y: Any) -> Any:
    """Return what others add where they look at what was released."""
    return 0.3 * np.tanh(y[j - 1]) if j else 0.0


@each_direction
@pytest.mark.parametrize("base", [nothing, drift])
@pytest.mark.parametrize("move", [always, back, onto, odd])
def test_no_adaptive_example_costs_more_than_the_pair(move: Any, base: Any, removing: bool) -> None:
    with mp.workdps(15):
        truth = float(two_bins(gram(TWO, 4, 2), Z, 0.5, removing=removing))
    found = cost_of(move, base, removing=removing)
    assert found <= truth * 1.004
    if move is always:
        assert found >= truth * 0.996


def test_one_diagonal_in_whole_epochs_is_random_allocation() -> None:
    plan = BallsInBins(2.0, (1.0,), rounds=300, bins=100)
    same = hs.mechanisms.RandomAllocation(hs.Gaussian(2.0 / math.sqrt(3.0)), 100)
    found, known = hs.delta(plan, 0.5), hs.delta(same, 0.5)
    assert isinstance(found, hs.Certified)
    assert float(found) == pytest.approx(float(known), rel=1e-9)
    assert found.relative_width < 0.01
    assert dominating_pair(BallsInBins(2.0, (1.0,), 10, 10)) == dominating_pair(
        hs.mechanisms.RandomAllocation(hs.Gaussian(2.0), 10)
    )


def test_bins_that_interfere_are_no_more_than_known_ones() -> None:
    plan = BallsInBins(4.0, (1.0, 0.5, 0.375), rounds=9, bins=3)
    encoder = hs.mechanisms.Encoder.toeplitz((1, 0.5, 0.375), 9, participations=3, separation=3)
    known = hs.delta(hs.mechanisms.MatrixFactorization(4.0, encoder), 0.5)
    found = hs.delta(plan, 0.5)
    assert isinstance(found, hs.Certified)
    assert found.upper == pytest.approx(float(known), rel=1e-9)
    assert 0.0 < found.lower < found.upper


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 7.0, 1e300])
def test_the_unit_of_the_matrix_does_not_matter(scale: float) -> None:
    coefficients = tuple(scale * c for c in (1.0, 0.5))
    found = hs.delta(BallsInBins(4.0 * scale, coefficients, rounds=20, bins=10), 0.5)
    same = hs.delta(BallsInBins(4.0, (1.0, 0.5), rounds=20, bins=10), 0.5)
    assert isinstance(found, hs.Certified)
    assert isinstance(same, hs.Certified)
    assert found.upper == pytest.approx(same.upper, rel=1e-6)
    assert found.lower == pytest.approx(same.lower, rel=1e-6)


@pytest.mark.parametrize(
    ("noise", "coefficients", "epsilon"),
    [(math.inf, (1.0, 0.5), 0.0), (2.0, (0.0, 0.0), 0.0), (0.0, (1.0,), math.inf)],
)
def test_nothing_or_everything_is_released(
    noise: float, coefficients: tuple[float, ...], epsilon: float
) -> None:
    assert float(hs.epsilon(BallsInBins(noise, coefficients, 20, bins=4), 1e-5)) == epsilon
