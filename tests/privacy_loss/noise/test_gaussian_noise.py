"""Masses of losses of Gaussian noise and of its mixtures, against error functions by mpmath."""

import math
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import GaussianLoss, GaussianMixtureLoss, SampledGaussianLoss
from hockeystick.privacy_loss.core.symmetrized import JoinedLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import exact_edges, log_masses
from hockeystick.privacy_loss.noise import gaussian_mixture
from hockeystick.privacy_loss.noise.gaussian import DisplacedGaussianLoss
from hockeystick.privacy_loss.noise.score_sums import _one, _unit, losses_of_sums, score_sums
from tests.precision.twins import log_mass

positions = st.one_of(st.floats(-40, 40), st.floats(-1, 1), st.floats(-300, 300))


@given(positions, st.floats(-9, 1.3))
def test_a_cell_has_its_mass_however_narrow_or_far_out(low: float, log_width: float) -> None:
    edges = np.array([low, low + 10.0**log_width])
    value, error = log_masses(exact_edges(edges))
    with mp.workdps(80):
        assert abs(value[0] - log_mass(*edges)) <= error[0]
    assert error[0] <= 1.2e-13 + 1e-15 * float(np.abs(edges).min()) ** 2


@pytest.mark.parametrize("edge", [-38.0, -2.0, 0.0, 1e-9, 5.0, 38.0])
def test_the_two_ends_are_the_tails(edge: float) -> None:
    value, error = log_masses(exact_edges(np.array([-math.inf, edge, math.inf])))
    with mp.workdps(60):
        assert abs(value[0] - log_mass(-mp.inf, edge)) <= error[0] < 2e-12
        assert abs(value[1] - log_mass(edge, mp.inf)) <= error[1] < 2e-12


@pytest.mark.parametrize("end", [1e9, -1e9, 1e200])
def test_what_is_beyond_all_reach_is_nothing(end: float) -> None:
    value, error = log_masses(exact_edges(np.sort(np.array([end, 2.0 * end]))))
    assert value[0] == -math.inf
    assert error[0] == 0.0


@pytest.mark.parametrize("noise_multiplier", [0.05, 0.7, 3.0, 1e4])
def test_the_cells_of_a_gaussian_loss_are_those_of_its_output(noise_multiplier: float) -> None:
    loss = GaussianLoss(noise_multiplier)
    with mp.workdps(60):
        mu = 1 / mp.mpf(repr(noise_multiplier))
        spread = float(mu * mu / 2 + 20 * mu)
        edges = np.linspace(-spread, spread, 301)
        masses = loss.cells(edges)
        for k in range(0, 300, 7):
            low, high = (mp.mpf(float(edge)) / mu for edge in edges[k : k + 2])
            own = log_mass(low - mu / 2, high - mu / 2)
            other = log_mass(low + mu / 2, high + mu / 2)
            assert abs(masses.log_p[k] - own) <= masses.error[k]
            assert abs(masses.log_q[k] - other) <= masses.error[k] < 1e-11


MIXTURES: list[tuple[Any, Any]] = [
    ((Fraction(1, 2), Fraction(2)), (Fraction(9, 10), Fraction(1, 10))),
    # The second component counts from an output of 8.8 on, the third from one of 16 on.
    (
        (Fraction(1), Fraction(4), Fraction(9)),
        (1 - Fraction(1, 10**30) - Fraction(1, 10**60), Fraction(1, 10**30), Fraction(1, 10**60)),
    ),
]
each_direction = pytest.mark.parametrize("removing", [True, False])


@each_direction
@pytest.mark.parametrize(("distances", "weights"), MIXTURES)
@pytest.mark.parametrize("edges", [(-12.0, 40.0, 2000), (-700.0, 700.0, 400), (3.0, 3.5, 5000)])
def test_leaving_components_out_moves_no_mass_by_more_than_its_error(
    distances: Any, weights: Any, removing: bool, edges: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = GaussianMixtureLoss(distances, weights, removing)
    found = loss.cells(np.linspace(*edges))
    monkeypatch.setattr(gaussian_mixture, "_NEGLIGIBLE", 1e9)
    whole = loss.cells(np.linspace(*edges))
    for some, all_of_them in ((found.log_p, whole.log_p), (found.log_q, whole.log_q)):
        same = some == all_of_them
        apart = np.abs(np.where(same, 0.0, some - all_of_them))
        assert (apart <= found.error + whole.error).all()
        assert (same | np.isfinite(apart)).all()


# The largest divergence over vectors of the unit disc, in one order, on a grid of outputs.
@pytest.mark.parametrize(
    ("epsilon", "worst"),
    [
        (-1.0, 0.6371070875538701),
        (-0.3, 0.3071662084647795),
        (0.05, 0.12061132510809808),
        (0.4, 0.08635266930348734),
        (1.5, 0.023238644439027054),
    ],
)
def test_the_joined_loss_has_the_profile_of_the_worst_vectors_of_a_disc(
    epsilon: float, worst: float
) -> None:
    opposite, alike = DisplacedGaussianLoss(0.3, 0.9), SampledGaussianLoss(0.3, 0.9, True)
    loss = JoinedLoss(opposite, alike)
    found = loss.cells(np.array([epsilon, 0.0, math.inf] if epsilon < 0.0 else [epsilon, math.inf]))
    above = np.exp(found.log_p) - math.exp(epsilon) * np.exp(found.log_q)
    atom = loss.atoms()
    share = math.exp(atom.log_p[0]) * (1.0 - math.exp(epsilon)) if epsilon < 0.0 else 0.0
    assert above.sum() + share == pytest.approx(worst, rel=1e-3)


def test_the_score_of_a_step_has_the_masses_of_its_intervals() -> None:
    """Edges are found again, by solving for the outputs whose score is half way."""
    noise, rate, unit = 0.9, 0.2, 0.05
    for side, mean in ((1.0, 1.0), (-1.0, 0.0)):
        scores = _one(noise, rate, unit, side)
        middles = (np.arange(400) + 0.5) * unit
        ratio = ((1 - rate) * np.exp(middles) - (1 - rate)) / rate
        x = noise**2 * (np.log(ratio) + 0.5 / noise**2)
        below = norm.cdf((x - mean) / noise)
        known = np.diff(np.concatenate(([0.0], below)))[: scores.mass.size - 1]
        assert scores.first == 0
        assert scores.mass[:-1] == pytest.approx(known, rel=1e-7, abs=1e-15)
        assert scores.lost < 1e-50
        assert scores.mass.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("steps", "times"), [(4, 2), (5, 3)])
def test_sums_are_distributed_as_of_so_many_steps_of_either_kind(steps: int, times: int) -> None:
    sums, unit = score_sums(1.3, steps, times), _unit(1.3, steps, times / steps)
    assert sums is not None
    assert unit is not None
    single = [_one(1.3, times / steps, unit, side) for side in (1.0, -1.0)]
    size = max(one.first + one.mass.size for one in single)
    own, other = (np.pad(one.mass, (one.first, size - one.first - one.mass.size)) for one in single)
    for found, with_it in zip(sums, (times, 0), strict=True):
        known = reduce(np.convolve, [own] * with_it + [other] * (steps - with_it))
        there = known[found.first : found.first + found.mass.size]
        assert found.mass == pytest.approx(there, rel=1e-9, abs=1e-55)
        assert known.sum() - there.sum() <= found.lost + 1e-12


@pytest.mark.parametrize("removing", [True, False])
def test_each_outcome_is_rounded_to_the_safe_side(removing: bool) -> None:
    sums = score_sums(1.0, 20, 3)
    assert sums is not None
    loss, log_p, error = losses_of_sums(sums, removing)
    own, other = sums if removing else sums[::-1]
    p, q = np.exp(log_p), np.exp(log_p - loss)
    assert error < 1e-6
    assert p.sum() <= 1.0 + 1e-9
    assert q.sum() >= 1.0 - 1e-9
    kept = own.mass > 1e-60
    places = (own.first + np.arange(own.mass.size))[kept] - other.first
    inside = (places >= 0) & (places < other.mass.size)
    assert (q[inside] >= other.mass[places[inside]]).all()


def test_so_many_steps_that_scores_say_little_have_none() -> None:
    assert score_sums(1.0, 10**8, 2) is None
