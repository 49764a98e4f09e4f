"""Each error that is counted is needed: losses that are off by just as much as they say."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from hockeystick.accountants.prv.discretise import (
    TiltedMasses,
    cover,
    dominated_masses,
    dominating_masses,
)
from hockeystick.accountants.prv.lattice import Bulk, Lattice, _composed, compose, parts_for
from hockeystick.accountants.prv.sums import (
    PointMasses,
    SparseSpectrum,
    SplitMasses,
    combinations,
    convolved,
)
from hockeystick.kernels.series import Array
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    Atoms,
    CellLoss,
    GaussianLoss,
    Masses,
    RandomizedResponsePairLoss,
)
from tests.precision.twins import responses_delta


@dataclass(frozen=True)
class Listed(CellLoss):
    at: tuple[float, ...]
    log_p: tuple[float, ...]
    error: float = 0.0

    @property
    def infimum(self) -> float:
        return self.at[0]

    @property
    def supremum(self) -> float:
        return self.at[-1]

    def atoms(self) -> Atoms:
        return Atoms(np.array(self.at), np.array(self.log_p), np.full(len(self.at), self.error))

    def cells(self, edges: Array) -> Masses:
        nothing = np.full(edges.size - 1, -math.inf)
        return Masses(nothing, nothing, np.zeros(edges.size - 1))


@dataclass(frozen=True)
class Off(CellLoss):
    """Gaussian noise whose masses are off by all that they may be, P's and Q's to two sides."""

    inner: GaussianLoss
    error: float
    side: float
    infimum = -math.inf
    supremum = math.inf

    def atoms(self) -> Atoms:
        return self.inner.atoms()

    def cells(self, edges: Array) -> Masses:
        p, q, error = self.inner.cells(edges)
        off = self.side * self.error
        return Masses(p + off, q - off, error + self.error)


def test_evenly_spaced_sums_are_displaced_by_as_many_runs_as_there_are() -> None:
    runs, off = 9, 4e-13
    loss = Listed((0.0, 0.5 + off, 1.0), (-60.0, 0.0, -60.0))
    found = convolved(loss, runs, 1.0, most=3000)
    assert found is not None
    for share in (0.25, 0.5, 0.9):
        # All runs have the middle value, but for a chance that no float shows.
        epsilon = (0.5 + off * share) * runs
        assert found.upper(epsilon) >= math.log(-math.expm1(epsilon - (0.5 + off) * runs)) - 1e-9
        assert found.lower(epsilon) <= math.log(-math.expm1(epsilon - (0.5 + off) * runs)) + 1e-9


@pytest.mark.parametrize("runs", [1, 7])
def test_sums_of_atoms_count_what_is_too_light_to_keep(runs: int) -> None:
    light = -70.0
    loss = Listed((-1.0, 0.0, 3.0), (-1.0, math.log(-math.expm1(-1.0)), light))
    found = combinations([(loss, runs)], 1.0)
    assert found is not None
    assert found.size == runs + 1
    truth = math.log(runs) + light + math.log(-math.expm1(2.5 - 3.0))
    assert truth + runs * math.log1p(-math.exp(-1.0)) <= found.upper(2.5)
    assert found.omitted_mass >= runs * math.exp(light + 3.0)


def test_sums_of_atoms_hold_those_in_fifty_digits_to_the_last_place() -> None:
    draw = np.random.default_rng(7)
    with mp.workdps(50):
        for _ in range(10):
            own, runs = float(draw.uniform(0.01, 2.0)), int(draw.integers(1, 8))
            loss = RandomizedResponsePairLoss(own)
            found = combinations([(loss, runs)], float(draw.uniform(0.1, 3.0)))
            assert found is not None
            at = loss.atoms().loss
            # Next to the largest sum, the last place of a sum counts.
            top = sum([mp.mpf(at[-1])] * runs)
            share = float(draw.uniform(0.0, 0.9))
            for epsilon in (float(top) * (1 - 2.0**-51), float(top) * share):
                truth = responses_delta(own, runs, epsilon)
                log_truth = mp.log(truth) if truth else -mp.inf
                assert found.lower(epsilon) <= log_truth <= found.upper(epsilon)


def test_sums_of_masses_that_may_be_off_are_as_much_off() -> None:
    runs, error = 6, 1e-3
    chances = (math.log(0.25), math.log(0.75))
    loss = Listed((-1.0, 1.0), chances, error)
    truth = runs * chances[1] + math.log(-math.expm1(5.5 - 6.0))
    for found in (combinations([(loss, runs)], 1.0), convolved(loss, runs, 1.0, most=99)):
        assert found is not None
        assert found.upper(5.5) >= truth + runs * error
        assert found.lower(5.5) <= truth - runs * error


def test_sums_read_off_masses_count_their_round_off() -> None:
    c, step, off = 1.5, 0.01, 0.125
    at = 0.004 + step * np.arange(512)
    factor = np.exp(-c * at) * -np.expm1(-at)
    few = SparseSpectrum(512, 0, np.array([0]), np.array([1.0 + 0j]), off)
    for one in (few, PointMasses(np.zeros(512), off)):
        assert one.sum_from(0, 0.004, c, step)[1] >= float(np.linalg.norm(factor)) * off


def test_what_underflows_beside_a_huge_loss_is_not_taken_for_nothing() -> None:
    # A loss of 4000 with probability e^-10, tilted by 7: delta(1) is e^-10 (1 - e^-3999).
    masses = PointMasses(np.array([0.0, 1.0]), 0.0)
    found = Lattice(7.0, 4000.0, 0.0, masses, 27990.0, 0.0, 0.0, 0.0, 0.0, 2)
    assert found.upper(1.0) >= -10.0


@pytest.mark.parametrize("error", [8e-5, 1e-3])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_mean_that_is_off_is_moved_to_the_safe_side(side: float, error: float) -> None:
    inner, tilt, step, epsilon = GaussianLoss(1.3), 12.0, 0.004, 20.0

    def profile(one: TiltedMasses, at: float) -> float:
        points = one.offset + step * (one.first + np.arange(one.weight.size))
        masses = one.weight * np.exp(one.log_total - tilt * points)
        return float(masses @ np.maximum(-np.expm1(at - points), 0.0)) + one.infinity_mass

    truth = float(inner.delta(mp.mpf(epsilon)))
    loss = Off(inner, error, side)
    grid = cover(inner, 0.0, step, tilt, (-300.0, -600.0))
    up, low = dominating_masses(loss, grid, tilt), dominated_masses(loss, grid, tilt)
    assert profile(up, epsilon - up.displacement) * math.exp(error) >= truth
    assert profile(low, epsilon + low.displacement) * math.exp(-error) <= truth
    assert up.relative_error >= error


def test_the_errors_of_all_runs_are_added_up() -> None:
    rng, runs = np.random.default_rng(1), 30
    weight = rng.random(40) / 40.0
    weight /= weight.sum()
    one = TiltedMasses(0.0, -9, weight, 0.125, 1e-9, np.full(40, 1e-12), 1e-7, 1e-10)
    found = _composed([(one, runs)], 0.01, 1.0, -40.0, None)
    assert found is not None
    assert found.relative_error >= runs * 1e-9
    assert found.infinity_mass >= runs * 1e-7
    assert found.displacement >= runs * 1e-10
    assert found.mass_error >= runs * 40e-12
    assert found.log_total == pytest.approx(runs * 0.125)
    again = one.retilted(0.01, 1.0, 1.5)
    assert again.relative_error >= 1e-9
    assert float(again.absolute_errors.sum()) >= 39e-12


MASSES = TiltedMasses(0.0, -9, np.full(40, 0.025), 0.125, 0.0, np.zeros(0), 0.0, 0.0)


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.2])
def test_each_error_of_a_lattice_moves_both_ends_by_as_much(epsilon: float) -> None:
    found = _composed([(MASSES, 30)], 0.01, 1.0, -40.0, None)
    assert found is not None
    up, low, off = found.upper(epsilon), found.lower(epsilon), 1e-3
    scaled = replace(found, relative_error=found.relative_error + off)
    assert scaled.upper(epsilon) - up == pytest.approx(off, rel=1e-6)
    assert low - scaled.lower(epsilon) == pytest.approx(off, rel=1e-6)
    moved = replace(found, displacement=found.displacement + off)
    assert moved.upper(epsilon) >= found.upper(epsilon - off)
    assert moved.lower(epsilon) <= found.lower(epsilon + off)
    infinite = replace(found, infinity_mass=found.infinity_mass + off)
    assert infinite.upper(epsilon) >= np.logaddexp(up, math.log(off))
    # Tilted by 1, the outcomes contribute at most 1/4 of their mass.
    uncertain = replace(found, mass_error=found.mass_error + off)
    scale = found.log_total - epsilon
    assert math.exp(uncertain.upper(epsilon)) - math.exp(up) == pytest.approx(
        0.25 * off * math.exp(scale), rel=1e-6
    )
    assert math.exp(low) - math.exp(uncertain.lower(epsilon)) == pytest.approx(
        0.25 * off * math.exp(scale), rel=1e-6
    )


def test_each_error_of_the_bulk_is_in_its_bound_in_every_run() -> None:
    runs, off = 30, 1e-3

    def upper(small: TiltedMasses) -> float:
        return Bulk([SplitMasses(small, small, runs)], 0.01, 1.0, lambda *_: None).upper(3.0, 0.0)

    exact = upper(MASSES)
    assert upper(replace(MASSES, relative_error=off)) >= exact + 0.999 * runs * off
    # Each mass is larger by a share of itself.
    grown = replace(MASSES, absolute_errors=off * MASSES.weight)
    assert upper(grown) >= exact + 0.999 * runs * math.log1p(off)


def binomial(own: float, runs: int, epsilon: float) -> float:
    share = 1.0 / (1.0 + math.exp(-own))
    return math.fsum(
        math.comb(runs, k)
        * share**k
        * (1.0 - share) ** (runs - k)
        * max(-math.expm1(epsilon - own * (2 * k - runs)), 0.0)
        for k in range(runs + 1)
    )


@pytest.mark.parametrize("log_outside", [-0.5, -2.0, -6.0])
@pytest.mark.parametrize("tilt", [0.1, 0.5, 2.0])
def test_a_narrow_window_proves_less_and_nothing_wrong(tilt: float, log_outside: float) -> None:
    runs, own = 40, 0.4
    parts = parts_for([(RandomizedResponsePairLoss(own), runs)], tilt, 2.0 * own, (-60.0, -60.0))
    up = compose(parts, tilt, log_outside, dominating_masses)
    low = compose(parts, tilt, log_outside, dominated_masses)
    assert up is not None
    assert low is not None
    for epsilon in np.linspace(0.0, 15.0, 61).tolist():
        truth = math.log(binomial(own, runs, epsilon))
        assert low.lower(epsilon) <= truth <= up.upper(epsilon)


@pytest.mark.parametrize("log_least", [-2.0, -4.0])
def test_what_is_beyond_the_last_point_counts_as_infinite_in_every_run(log_least: float) -> None:
    loss, runs, tilt = GaussianLoss(1.0), 5, 0.5
    parts = parts_for([(loss, runs)], tilt, 0.02, (-60.0, log_least))
    found = compose(parts, tilt, -40.0, dominating_masses)
    assert found is not None
    whole = GaussianLoss(1.0 / math.sqrt(runs))
    for epsilon in np.linspace(0.0, 30.0, 31).tolist():
        assert found.upper(epsilon) >= mp.log(whole.delta(mp.mpf(epsilon)))
