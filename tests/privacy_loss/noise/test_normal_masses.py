"""Masses of cells of Gaussian losses: against mpmath's error functions in 60 digits and more."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import GaussianLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import exact_edges
from hockeystick.privacy_loss.noise.normal_masses import log_masses

positions = st.one_of(st.floats(-40, 40), st.floats(-1, 1), st.floats(-300, 300))


def log_mass(low: Any, high: Any) -> Any:
    """Return ``ln(Phi(high) - Phi(low))`` by error functions of mpmath."""
    low, high = mp.mpf(low), mp.mpf(high)
    if high <= 0:
        low, high = -high, -low
    root = mp.sqrt(2)
    if low < 0:
        return mp.log((mp.erf(high / root) - mp.erf(low / root)) / 2)
    beyond = mp.erfc(high / root) if mp.isfinite(high) else mp.zero
    return mp.log((mp.erfc(low / root) - beyond) / 2)


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
