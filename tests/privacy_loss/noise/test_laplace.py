"""The loss of Laplace noise: against quadrature over the output, by mpmath."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import LaplaceLoss


def density(x: Any, centre: int, scale: float) -> Any:
    """Return the density of Laplace noise around a centre."""
    b = mp.mpf(repr(scale))
    return mp.exp(-abs(x - centre) / b) / (2 * b)


def test_a_cell_as_narrow_as_a_ten_millionth_keeps_its_digits() -> None:
    low = 0.3
    edges = np.array([low, low + 1e-7])
    masses = LaplaceLoss(1.0).cells(edges)
    with mp.workdps(40):
        ends = [mp.exp((mp.mpf(float(edge)) - 1) / 2) / 2 for edge in edges]
        assert abs(masses.log_p[0] - mp.log(ends[1] - ends[0])) <= masses.error[0] < 2e-14


@pytest.mark.parametrize("scale", [0.05, 1.0, 7.3])
def test_the_atoms_are_the_outputs_beyond_the_centres(scale: float) -> None:
    atoms = LaplaceLoss(scale).atoms()
    with mp.workdps(40):
        b = mp.mpf(repr(scale))
        for index, cut in ((0, [-90 * b, -10 * b, 0]), (1, [1, 1 + 10 * b, 1 + 90 * b])):
            truth = mp.log(mp.quad(lambda x: density(x, 1, scale), cut))
            assert abs(atoms.log_p[index] - truth) <= atoms.error[index]
            assert abs(atoms.loss[index] - (2 * index - 1) / b) <= 2**-52 / b


def test_the_divergences_are_those_of_the_formula_sheet() -> None:
    two, ten = LaplaceLoss(1.0).cgf_bounds(1.0), LaplaceLoss(2.0).cgf_bounds(9.0)
    assert two.midpoint == pytest.approx(0.6191236299985928233997885, rel=1e-14)
    assert ten.midpoint / 9.0 == pytest.approx(0.428690386467274833491612, rel=1e-14)


@pytest.mark.parametrize("scale", [0.01, 0.5, 4.0, 1e5])
@pytest.mark.parametrize("c", [0.01, 2.0, 70.0])
def test_the_line_holds_the_closed_form(scale: float, c: float) -> None:
    loss, step = LaplaceLoss(scale), 0.37 * scale
    values = loss.line(c, step, 60)
    with mp.workdps(60):
        for k, truth in enumerate(loss.reference_line(c, step, 60)):
            turned = (values.imag[k] - truth.imag) / (2 * mp.pi)
            away = abs(turned - mp.nint(turned)) * 2 * mp.pi
            assert mp.hypot(values.real[k] - truth.real, away) <= values.error[k]
            assert values.real[k] <= values.real[0] + 2 * values.error[0] + values.error[k]
    assert loss.decay(c).exponent(1e3) == 0.0


@pytest.mark.parametrize("scale", [5e-324, 1e-305, 1e200])
def test_scales_out_of_reach_still_have_sound_answers(scale: float) -> None:
    found = hs.epsilon(hs.Laplace(scale) ** 3, 1e-5, accountant="rdp")
    assert isinstance(found, hs.Certified)
    assert found.lower <= 3.0 / scale if scale > 1.0 else found.upper > 1e300
