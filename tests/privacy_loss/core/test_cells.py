"""What losses with cells or atoms have in common, against mpmath and enumeration."""

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick.notions import FDP
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.rounding import float_down, float_up
from hockeystick.precision.lines import tilted_line
from hockeystick.privacy_loss import (
    CellLoss,
    DominatedLoss,
    GaussianLoss,
    LaplaceLoss,
    SinhNormalLoss,
)
from hockeystick.privacy_loss.core import atomic
from hockeystick.privacy_loss.core.base import Atoms, Masses
from hockeystick.privacy_loss.core.cell_loss import cells_of, log_e2, log_psi
from hockeystick.privacy_loss.core.mixtures import log_sum, observed_mixture
from hockeystick.privacy_loss.sampling.sampled import SampledLoss
from hockeystick.tradeoffs import PiecewiseLinearTradeOff, discrete_tradeoff
from tests.precision.twins import mgf_line, worst_share


def test_an_order_without_a_moment_is_not_bounded() -> None:
    found = SampledLoss(SinhNormalLoss(0.1, 40.0), 0.1, True).cgf_bounds(50.0)
    assert found.radius == math.inf
    assert math.isfinite(found.midpoint)


class Doubtful(CellLoss):
    """A Laplace loss whose masses are off by as much as they say."""

    __slots__ = ("error", "side")

    inner = LaplaceLoss(1.0)

    def __init__(self, error: float, side: float) -> None:
        self.error, self.side = error, side

    supremum = property(lambda self: self.inner.supremum)
    infimum = property(lambda self: self.inner.infimum)

    def atoms(self) -> Atoms:
        return self.inner.atoms()

    def cells(self, edges: Any) -> Masses:
        """Return masses moved by turns for side 0, against each other, or all to one side."""
        masses = self.inner.cells(edges)
        turns = self.error * (-1.0) ** np.arange(masses.error.size)
        moved = (self.side * self.error,) * 2 if self.side else (turns, -turns)
        return Masses(masses.log_p + moved[0], masses.log_q + moved[1], masses.error + self.error)


@pytest.mark.parametrize("side", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-6, 1e-3, 0.2])
@pytest.mark.parametrize("c", [0.3, 6.0, 200.0])
def test_what_is_not_known_of_the_masses_is_in_the_interval(
    side: float, error: float, c: float
) -> None:
    truth = LaplaceLoss(1.0).cgf_bounds(c)
    found = Doubtful(error, side).cgf_bounds(c)
    assert abs(found.midpoint - truth.midpoint) <= found.radius + truth.radius
    if error <= 1e-6:
        assert found.radius <= 1e-4 * found.midpoint


@pytest.mark.parametrize("growing", [64, 1000])
def test_the_cells_of_a_grid_are_next_to_each_other_and_end_at_0(growing: int) -> None:
    cells, ends = cells_of(SampledLoss(LaplaceLoss(0.5), 0.01, True), growing, 1e-9)
    assert np.array_equal(cells.low[1:], cells.high[:-1])
    assert 0.0 in cells.low
    assert cells.error.max() < 1e-3
    assert (ends.low_q, ends.high_p) == (-math.inf, -math.inf)


@pytest.mark.parametrize("c", [1e-6, 0.5, 30.0])
def test_psi_is_known_to_a_few_units_in_the_last_place(c: float) -> None:
    sizes = np.concatenate((np.geomspace(1e-12, 600.0, 120), [0.999999, 1.000001]))
    places = np.concatenate((-sizes, sizes))
    found, of_e2 = log_psi(places, c), log_e2(places)
    with mp.workdps(60):
        for x, psi, e2 in zip(places.tolist(), found.tolist(), of_e2.tolist(), strict=True):
            exact = mp.log(mp.expm1(c * mp.mpf(x)) + c * mp.expm1(-mp.mpf(x)))
            assert abs(mp.mpf(psi) - exact) <= 2.0**-52 * (
                16 + 4 * abs(exact) + 4 * (1 + c) * abs(x)
            )
            exact = mp.log(mp.expm1(mp.mpf(x)) - mp.mpf(x))
            assert abs(mp.mpf(e2) - exact) <= 2.0**-52 * (16 + 4 * abs(exact) + 4 * abs(x))


def test_a_number_beyond_the_floats_is_rounded_to_their_ends() -> None:
    beyond = Fraction(2) ** 1100
    assert float_up(beyond) == float("inf")
    assert float_down(beyond) == float_down(Fraction(1.7976931348623157e308))


# Two Gaussians, of mu = 1/2 and 2, and nothing at all.
MUS = (Fraction(1, 2), Fraction(2))
WEIGHTS = (Fraction(3, 10), Fraction(1, 5))
NO_INFINITY_MASS = Fraction(1, 2)
PARTS = [
    (NO_INFINITY_MASS, None),
    *((weight, GaussianLoss(1 / mu)) for weight, mu in zip(WEIGHTS, MUS, strict=True)),
]


def gaussians(as_floats: bool = False) -> CellLoss:
    kind: Callable[[Fraction], float | Fraction] = float if as_floats else Fraction
    found = observed_mixture([(kind(weight), loss) for weight, loss in PARTS])
    assert found is not None
    return found


def exact(value: Fraction) -> Any:
    return mp.mpf(value.numerator) / value.denominator


def mean(of_mu: Callable[[Any], Any], of_nothing: Any) -> Any:
    pairs = zip(WEIGHTS, MUS, strict=True)
    return exact(NO_INFINITY_MASS) * of_nothing + mp.fsum(
        exact(w) * of_mu(exact(mu)) for w, mu in pairs
    )


@pytest.mark.parametrize("c", [1e-3, 0.7, 3.0, 40.0, 300.0, 1e5])
@pytest.mark.parametrize("as_floats", [False, True])
def test_the_moment_is_the_mean_of_the_moments(c: float, as_floats: bool) -> None:
    with mp.workdps(40):
        truth = mp.log(mean(lambda mu: mp.exp(mp.mpf(c) * (c + 1) * mu * mu / 2), 1))
        found = gaussians(as_floats).cgf_bounds(c)
        assert abs(truth - found.midpoint) <= found.radius <= 1e-13 * truth
        assert gaussians(as_floats).cgf_estimate(c).value == pytest.approx(float(truth), rel=1e-14)


@pytest.mark.parametrize("as_floats", [False, True])
def test_masses_of_cells_are_means_within_their_errors(as_floats: bool) -> None:
    edges = np.array([-math.inf, -30.0, -2.0, -1e-7, 0.0, 1e-7, 1.0, 1.001, 9.0, 60.0, math.inf])
    found = gaussians(as_floats).cells(edges)
    with mp.workdps(60):
        for k, (a, b) in enumerate(pairwise(edges)):

            def between(mu: Any, side: int, a: Any = a, b: Any = b) -> Any:
                low, high = ((mp.mpf(x) - side * mu * mu / 2) / mu for x in (a, b))
                return mp.ncdf(-low) - mp.ncdf(-high) if a > 0 else mp.ncdf(high) - mp.ncdf(low)

            p = mp.log(mean(lambda mu: between(mu, 1), 0))
            q = mp.log(mean(lambda mu: between(mu, -1), 0))
            assert abs(p - found.log_p[k]) <= found.error[k]
            assert abs(q - found.log_q[k]) <= found.error[k]
    assert float(found.error.max()) < 1e-11


@pytest.mark.parametrize(
    "weights", [(0.5, 0.4), (1.5, -0.5), (1.0, 1e-310), (math.nan, 1.0), (0.5, 0.5 + 1e-13)]
)
def test_weights_are_positive_and_add_up_to_1(weights: tuple[float, float]) -> None:
    losses = (GaussianLoss(1.0), GaussianLoss(2.0))
    with pytest.raises(hs.errors.ParameterError, match="weight"):
        observed_mixture(zip(weights, losses, strict=True))


def test_what_no_data_reach_counts_as_nothing_below() -> None:
    known, below = GaussianLoss(3.0), GaussianLoss(4.0)
    loss = observed_mixture(
        [
            (0.5, known),
            (0.25, DominatedLoss(GaussianLoss(1.0), below)),
            (0.25, DominatedLoss(GaussianLoss(2.0), None)),
        ]
    )
    assert loss is not None
    assert loss.attained == observed_mixture([(0.5, known), (0.25, below), (0.25, None)])
    assert gaussians().attained == gaussians()


def test_infinite_errors_stay_infinite_and_hidden_ones_do_not_matter() -> None:
    logs = np.array([[-1.0, -1.0, -math.inf], [-5e19, -math.inf, -math.inf]])
    errors = np.array([[1e-15, 1e-15, 0.0], [1e4, math.inf, 0.0]])
    value, error = log_sum(logs, errors)
    assert value.tolist() == [-1.0, -1.0, -math.inf]
    assert error[0] < 1e-14
    assert error[1:].tolist() == [math.inf, 0.0]


Pair = tuple[Sequence[float], Sequence[float]]
PAIRS: Final[tuple[Pair, ...]] = (
    ([0.2, 0.2, 0.6, 0.0], [0.5, 0.2, 0.0, 0.3]),
    ([0.5, 0.5], [0.5, 0.5]),
    ([0.0, 1.0], [0.5, 0.5]),
    ([1.0, 0.0], [0.999, 0.001]),
    ([0.25, 0.75], [0.75, 0.25]),
    ([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]),
    ([0.5, 0.4999, 0.0001], [0.5, 0.5, 0.0]),
    ([0.3, 0.3, 0.4, 0.0], [0.3000001, 0.2999999, 0.39, 0.01]),
)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("count", [1, 3])
def test_delta_of_runs_is_what_enumeration_says(pair: Pair, count: int) -> None:
    plan = FDP(discrete_tradeoff(*pair)) ** count
    with mp.workdps(60):
        p, q = ([mp.mpf(repr(one)) for one in side] for side in pair)
        seen = list(product(range(len(p)), repeat=count))
        rows = [(mp.fprod(p[k] for k in one), mp.fprod(q[k] for k in one)) for one in seen]
        losses = sorted({float(abs(mp.log(a / b))) for a, b in rows if a and b})
        for epsilon in {0.0, 1.0, 20.0, *losses[:: max(len(losses) // 4, 1)], *losses[-1:]}:
            found, grown = hs.delta(plan, epsilon), mp.exp(epsilon)
            exact = max(
                mp.fsum(max(a - grown * b, 0) for a, b in way)
                for way in (rows, [(b, a) for a, b in rows])
            )
            assert found.lower <= exact <= found.upper
            assert found.upper - found.lower <= 1e-4 * exact + 1e-12


def test_corners_of_a_polygon_are_outcomes_too() -> None:
    f = PiecewiseLinearTradeOff([0.25], [0.25])
    assert f.outcomes == discrete_tradeoff([0.25, 0.75], [0.75, 0.25]).outcomes is not None


Array = NDArray[np.float64]
DIGITS = 30


def exactly(values: Array) -> list[Any]:
    return [mp.mpf(float(one)) for one in values]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("of_loss", "of_weight"), [(1e-7, 0.0), (0.0, 1e-7)])
@pytest.mark.parametrize("tilted", [False, True])
def test_the_claimed_error_covers_that_of_its_inputs(
    seed: int, of_loss: float, of_weight: float, tilted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every line is long.
    monkeypatch.setattr(atomic, "_SHORT", 2)
    monkeypatch.setattr(atomic, "_FEW_TERMS", 0)
    source = random.Random(seed)
    centre = 0.4 if seed < 4 or tilted else -4.0
    loss = np.array([source.gauss(centre, 1.5) for _ in range(8)])
    log_weight = np.array([source.uniform(-6.0, -2.0) for _ in range(8)])
    full, c, step, count = np.ones(8), 1.5, 17.0, 9
    line = atomic.tilted_line if tilted else atomic.mgf_line
    moved = loss + of_loss * np.where(loss > 0.0, 1.0, -1.0), log_weight + of_weight
    found = line(*moved, full * of_loss, full * of_weight, c, step, count)
    with mp.workdps(DIGITS):
        weight = [mp.exp(one) for one in exactly(log_weight)]
        exact = tilted_line if tilted else mgf_line
        worst = worst_share(found, exact(exactly(loss), weight, c, step, count))
    assert 0.005 < worst <= 1.0


@pytest.mark.parametrize("size", [64, 1024, 65_536])
def test_a_transform_errs_by_a_quarter_of_what_is_claimed_at_most(size: int) -> None:
    values = np.random.default_rng(size).exponential(size=size)
    exact = np.fft.rfft(values.astype(np.longdouble)).astype(np.complex128)
    allowed = 2.6 * 2.0**-52 * math.log2(size) * values.sum()
    assert np.abs(np.fft.rfft(values) - exact).max() <= allowed / 4.0
