"""Poisson-sampled losses: against quadrature over the outputs of the mixtures, by mpmath."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    Atoms,
    CellLoss,
    GaussianLoss,
    LaplaceLoss,
    Masses,
    RandomizedResponsePairLoss,
    SampledGaussianLoss,
    SampledLoss,
)
from hockeystick.privacy_loss.core.uncertain_endpoints import no_atoms

RATES = [1e-6, 0.01, 0.5]
each_rate = pytest.mark.parametrize("rate", RATES)
each_direction = pytest.mark.parametrize("removing", [True, False])


@final
@dataclass(frozen=True, slots=True)
class Plain(CellLoss):
    """A Gaussian's loss of which only exact edges may be asked."""

    noise_multiplier: float

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infimum(self) -> float:
        return -math.inf

    def atoms(self) -> Atoms:
        return no_atoms()

    def cells(self, edges: Any) -> Masses:
        return GaussianLoss(self.noise_multiplier).cells(edges)


def noise(inner: CellLoss, x: Any, centre: int) -> Any:
    """Return the density of the noise around a centre."""
    if isinstance(inner, LaplaceLoss):
        b = mp.mpf(repr(inner.scale))
        return mp.exp(-abs(x - centre) / b) / (2 * b)
    assert isinstance(inner, GaussianLoss | Plain)
    s = mp.mpf(repr(inner.noise_multiplier))
    return mp.exp(-(((x - centre) / s) ** 2) / 2) / s / mp.sqrt(2 * mp.pi)


def mixture(inner: CellLoss, rate: float, x: Any) -> Any:
    """Return the density of the sampled release with the record in the data."""
    p = mp.mpf(repr(rate))
    return (1 - p) * noise(inner, x, 0) + p * noise(inner, x, 1)


def output(inner: CellLoss, rate: float, loss: Any) -> Any:
    """Return the output at which ``ln(mixture / without)`` is a value."""
    quotient = mp.log(1 + mp.expm1(loss) / mp.mpf(repr(rate)))
    if isinstance(inner, LaplaceLoss):
        return (quotient * mp.mpf(repr(inner.scale)) + 1) / 2
    assert isinstance(inner, GaussianLoss | Plain)
    return quotient * mp.mpf(repr(inner.noise_multiplier)) ** 2 + mp.mpf("0.5")


def log_integral(density: Any, cuts: list[Any]) -> Any:
    """Return the logarithm of an integral; mpmath's tolerance is absolute, so it is scaled."""
    scale = max(density(cuts[0]), density(cuts[-1]))
    return mp.log(scale) + mp.log(mp.quad(lambda x: density(x) / scale, cuts))


def truth(inner: CellLoss, rate: float, removing: bool, low: float, high: float) -> tuple[Any, Any]:
    """Return logarithms of the masses of a cell under P and Q by quadrature over the output."""
    side = 1 if removing else -1
    ends = sorted(output(inner, rate, side * mp.mpf(edge)) for edge in (low, high))
    cuts = [ends[0] + (ends[1] - ends[0]) * k / 4 for k in range(5)]
    with_record = log_integral(lambda x: mixture(inner, rate, x), cuts)
    without = log_integral(lambda x: noise(inner, x, 0), cuts)
    return (with_record, without) if removing else (without, with_record)


INNER = [GaussianLoss(1.0), GaussianLoss(4.0), LaplaceLoss(0.7), LaplaceLoss(20.0), Plain(1.5)]
each_inner = pytest.mark.parametrize("inner", INNER, ids=str)


def inside(inner: CellLoss, rate: float, removing: bool, count: int) -> Any:
    """Return edges in the range of a sampled loss, equal steps of the inner one apart."""
    reach = 0.999 * min(inner.supremum, 6.0)
    grid = np.linspace(-reach, reach, count)
    edges = np.log1p(rate * np.expm1(grid))
    return edges if removing else -edges[::-1]


@each_rate
@each_direction
@each_inner
def test_the_cells_are_those_of_the_mixtures(inner: CellLoss, rate: float, removing: bool) -> None:
    loss = SampledLoss(inner, rate, removing)
    edges = inside(inner, rate, removing, 6)
    masses = loss.cells(edges)
    with mp.workdps(40):
        for k in range(5):
            own, other = truth(inner, rate, removing, float(edges[k]), float(edges[k + 1]))
            assert abs(masses.log_p[k] - own) <= masses.error[k]
            assert abs(masses.log_q[k] - other) <= masses.error[k] < 3e-11


@each_rate
@each_direction
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 6.0])
def test_atoms_map_to_atoms(epsilon: float, rate: float, removing: bool) -> None:
    atoms = SampledLoss(RandomizedResponsePairLoss(epsilon), rate, removing).atoms()
    with mp.workdps(50):
        p, e = mp.mpf(repr(rate)), mp.mpf(repr(epsilon))
        high = 1 / (1 + mp.exp(-e))
        for index, (own, other) in enumerate(((1 - high, high), (high, 1 - high))):
            if removing:
                first, second = (1 - p) * other + p * own, other
            else:
                first, second = own, (1 - p) * own + p * other
            assert abs(atoms.log_p[index] - mp.log(first)) <= atoms.error[index] < 5e-14
            exact = mp.log(first / second)
            assert abs(atoms.loss[index] - exact) <= 8 * 2.0**-52 * abs(exact)


@each_rate
@each_direction
def test_an_unbounded_loss_has_one_end_when_sampled(rate: float, removing: bool) -> None:
    with mp.workdps(40):
        end = -mp.log1p(-mp.mpf(repr(rate)))
        for loss in (
            SampledLoss(Plain(1.0), rate, removing),
            SampledGaussianLoss(rate, 1.0, removing),
        ):
            bounded, free = loss.supremum, -loss.infimum
            if removing:
                bounded, free = free, bounded
            assert free == math.inf
            assert end <= bounded <= end * (1 + mp.mpf(2) ** -45)
            nothing = loss.cells(np.array([-3 * bounded, -bounded, bounded, 3 * bounded]))
            assert nothing.log_p[0 if removing else 2] == -math.inf
            assert nothing.error[0 if removing else 2] == 0.0


@pytest.mark.parametrize(
    ("inner", "rate", "removing", "epsilon", "value"),
    [
        (LaplaceLoss(1.0), 0.1, True, "0.05", "0.025401389825142776002300918845"),
        (GaussianLoss(1.0), 0.01, True, "1", "2.73200926154613113569168569554e-9"),
        (GaussianLoss(2.0), 0.1, True, "0.2", "2.88571111801261534128e-4"),
        (GaussianLoss(2.0), 0.1, False, "0.05", "1.54598599391907605115e-3"),
        (GaussianLoss(1.0), 0.01, False, "0.005", "9.63144335305304784057e-4"),
    ],
    ids=str,
)
def test_the_profile_is_that_of_the_formula_sheet(
    inner: CellLoss, rate: float, removing: bool, epsilon: str, value: str
) -> None:
    profile = SampledLoss(inner, rate, removing).closed_form_profile
    assert profile is not None
    with mp.workdps(40):
        digits = mp.mpf(value)
        assert abs(profile(mp.mpf(epsilon)) - digits) < mp.mpf(10) ** -19 * digits
