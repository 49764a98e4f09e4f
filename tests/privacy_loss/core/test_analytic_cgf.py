"""Sums along long lines: the claimed errors against mpmath, term by term."""

import math
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import jumps
from hockeystick.precision import series as twin
from hockeystick.privacy_loss.core import analytic_cgf

Array = NDArray[np.float64]
DIGITS = 30


@pytest.fixture(autouse=True)
def every_line_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analytic_cgf, "_SHORT", 2)
    monkeypatch.setattr(analytic_cgf, "_FEW_TERMS", 0)


def some_nodes(seed: int, spread: float, size: int = 40) -> tuple[Array, Array]:
    source = random.Random(seed)
    loss = np.array([source.gauss(0.0, spread) for _ in range(size)])
    return loss, np.array([source.uniform(-60.0, 0.0) for _ in range(size)])


def exactly(values: Array) -> list[Any]:
    return [mp.mpf(float(one)) for one in values]


def shares(found: tuple[Array, Array, Array], truth: list[Any]) -> list[float]:
    """Return the true errors over the claimed ones."""
    return [
        float(abs(mp.mpc(float(re), float(im)) - exact) / mp.mpf(float(error)))
        for re, im, error, exact in zip(*found, truth, strict=True)
    ]


@pytest.mark.parametrize("spread", [1e-9, 1e-6, 1e-2, 0.4, 4.0])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [2, 3, 17, 33])
def test_the_claimed_error_of_a_line_bounds_the_true_one(
    spread: float, seed: int, count: int
) -> None:
    loss, log_weight = some_nodes(seed, spread)
    nothing = np.zeros(loss.size)
    source = random.Random(seed)
    c, step = 10 ** source.uniform(-2, 1.3), 10 ** source.uniform(-2, 2)
    found = analytic_cgf.mgf_line(loss, log_weight, nothing, nothing, c, step, count)
    with mp.workdps(DIGITS):
        weight = [mp.exp(one) for one in exactly(log_weight)]
        truth = twin.mgf_line(exactly(loss), weight, c, step, count)
        assert max(shares(found, truth)) <= 1.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("of_loss", "of_weight"), [(1e-7, 0.0), (0.0, 1e-7)])
@pytest.mark.parametrize("tilted", [False, True])
def test_the_claimed_error_covers_that_of_its_inputs(
    seed: int, of_loss: float, of_weight: float, tilted: bool
) -> None:
    source = random.Random(seed)
    centre = 0.4 if seed < 4 or tilted else -4.0
    loss = np.array([source.gauss(centre, 1.5) for _ in range(8)])
    log_weight = np.array([source.uniform(-6.0, -2.0) for _ in range(8)])
    full, c, step, count = np.ones(8), 1.5, 17.0, 9
    line = analytic_cgf.tilted_line if tilted else analytic_cgf.mgf_line
    moved = loss + of_loss * np.where(loss > 0.0, 1.0, -1.0), log_weight + of_weight
    found = line(*moved, full * of_loss, full * of_weight, c, step, count)
    with mp.workdps(DIGITS):
        weight = [mp.exp(one) for one in exactly(log_weight)]
        exact = jumps.tilted_line if tilted else twin.mgf_line
        worst = max(shares(found, exact(exactly(loss), weight, c, step, count)))
    assert 0.005 < worst <= 1.0


@pytest.mark.parametrize("size", [64, 1024, 65_536])
def test_a_transform_errs_by_a_quarter_of_what_is_claimed_at_most(size: int) -> None:
    values = np.random.default_rng(size).exponential(size=size)
    exact = np.fft.rfft(values.astype(np.longdouble)).astype(np.complex128)
    allowed = 2.6 * 2.0**-52 * math.log2(size) * values.sum()
    assert np.abs(np.fft.rfft(values) - exact).max() <= allowed / 4.0
