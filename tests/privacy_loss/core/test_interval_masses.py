"""What losses with cells have for nothing: K, against quadrature over the output by mpmath."""

import math
from typing import Any

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss import CellLoss, LaplaceLoss, SinhNormalLoss
from hockeystick.privacy_loss.core.base import Atoms, Masses
from hockeystick.privacy_loss.core.interval_masses import cells_of
from hockeystick.privacy_loss.core.log_sums import log_e2, log_psi
from hockeystick.privacy_loss.sampling.sampled import SampledLoss


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
        """Return those of the Laplace loss."""
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
            exact = mp.log(mp.expm1(c * mpf(x)) + c * mp.expm1(-mpf(x)))
            assert abs(mpf(psi) - exact) <= 2.0**-52 * (16 + 4 * abs(exact) + 4 * (1 + c) * abs(x))
            exact = mp.log(mp.expm1(mpf(x)) - mpf(x))
            assert abs(mpf(e2) - exact) <= 2.0**-52 * (16 + 4 * abs(exact) + 4 * abs(x))
