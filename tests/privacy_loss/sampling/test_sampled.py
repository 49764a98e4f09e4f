"""Poisson-sampled losses: against quadrature over the outputs of the mixtures, by mpmath."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    Atoms,
    CellLoss,
    DominatingPair,
    GaussianLoss,
    LaplaceLoss,
    Masses,
    NoAnalysisError,
    NoiselessLoss,
    RandomizedResponsePairLoss,
    SampledGaussianLoss,
    SampledLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.core.uncertain_endpoints import no_atoms
from hockeystick.privacy_loss.sampling.sampled_atoms import SampledAtomsLoss

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
@pytest.mark.parametrize("inner", [GaussianLoss(1.0), LaplaceLoss(0.7)], ids=str)
def test_a_narrow_cell_keeps_its_digits(inner: CellLoss, rate: float, removing: bool) -> None:
    low = 0.3 * rate
    edges = np.array([low, low * (1 + 1e-7)])
    masses = SampledLoss(inner, rate, removing).cells(edges)
    with mp.workdps(50):
        own, other = truth(inner, rate, removing, *(float(edge) for edge in edges))
        assert abs(masses.log_p[0] - own) <= masses.error[0]
        assert abs(masses.log_q[0] - other) <= masses.error[0] < 6e-14


@each_rate
@each_direction
@pytest.mark.parametrize("inner", [*INNER, RandomizedResponsePairLoss(1.0)], ids=str)
def test_cells_and_atoms_add_up_to_one(inner: CellLoss, rate: float, removing: bool) -> None:
    loss = SampledLoss(inner, rate, removing)
    edges = np.concatenate(([-np.inf], inside(inner, rate, removing, 5001), [np.inf]))
    masses, atoms = loss.cells(edges), loss.atoms()
    own = math.fsum(np.exp(masses.log_p)) + math.fsum(np.exp(atoms.log_p))
    other = math.fsum(np.exp(masses.log_q)) + math.fsum(np.exp(atoms.log_p - atoms.loss))
    assert own == pytest.approx(1.0, abs=1e-13)
    assert other == pytest.approx(1.0, abs=1e-13)


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


@each_rate
@each_direction
def test_the_sampled_gaussian_has_the_cells_of_the_general_rule(
    rate: float, removing: bool
) -> None:
    edges = inside(GaussianLoss(2.0), rate, removing, 301)
    own = SampledGaussianLoss(rate, 2.0, removing).cells(edges)
    general = SampledLoss(GaussianLoss(2.0), rate, removing).cells(edges)
    assert np.array_equal(own.log_p, general.log_p)
    assert np.array_equal(own.log_q, general.log_q)


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


@each_rate
@each_direction
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.5])
def test_the_profile_is_the_mean_over_the_output(share: float, rate: float, removing: bool) -> None:
    inner = LaplaceLoss(0.7)
    profile = SampledLoss(inner, rate, removing).closed_form_profile
    assert profile is not None
    with mp.workdps(40):
        epsilon = mp.mpf(share * rate)
        side = 1 if removing else -1
        b = mp.mpf("0.7")
        cuts = [mp.zero, mp.one]
        if 1 + mp.expm1(side * epsilon) / mp.mpf(repr(rate)) > 0:
            kink = output(inner, rate, side * epsilon)
            cuts = sorted({*cuts, min(max(kink, mp.zero), mp.one)})
        cuts = [-90 * b, -10 * b, *cuts, 1 + 10 * b, 1 + 90 * b]

        def excess(x: Any) -> Any:
            own, other = mixture(inner, rate, x), noise(inner, x, 0)
            own, other = (own, other) if removing else (other, own)
            return max(mp.zero, own - mp.exp(epsilon) * other)

        exact = mp.quad(excess, cuts)
        found = profile(epsilon)
        assert abs(found - exact) <= mp.mpf(10) ** -25
        assert profile(epsilon, -1) <= found <= profile(epsilon, 1)


@pytest.mark.parametrize(
    ("inner", "pair"),
    [
        (hs.Laplace(math.inf), DominatingPair(None, None)),
        (hs.PureDP(0), DominatingPair(None, None)),
        (hs.Laplace(0), DominatingPair(NoiselessLoss(0.25, True), NoiselessLoss(0.25, False))),
        (
            hs.PureDP(math.inf),
            DominatingPair(NoiselessLoss(0.25, True), NoiselessLoss(0.25, False)),
        ),
        (
            hs.GDP(0.5),
            DominatingPair(
                *(SampledGaussianLoss(0.25, Fraction(2), side) for side in (True, False))
            ),
        ),
        (
            hs.PoissonSubsampled(hs.Gaussian(2), 0.1),
            DominatingPair(
                *(SampledGaussianLoss(Fraction(1, 40), 2.0, side) for side in (True, False))
            ),
        ),
        (
            hs.Laplace(3),
            DominatingPair(*(SampledLoss(LaplaceLoss(3.0), 0.25, side) for side in (True, False))),
        ),
        (
            hs.PureDP(0.5),
            DominatingPair(
                *(
                    SampledAtomsLoss(RandomizedResponsePairLoss(0.5), 0.25, side)
                    for side in (True, False)
                )
            ),
        ),
    ],
    ids=str,
)
def test_a_sample_of_a_mechanism_has_this_pair(inner: hs.Mechanism, pair: DominatingPair) -> None:
    assert dominating_pair(hs.PoissonSubsampled(inner, 0.25)) == pair
    assert dominating_pair(hs.PoissonSubsampled(inner, 0)) == DominatingPair(None, None)
    assert dominating_pair(hs.PoissonSubsampled(inner, 1)) == dominating_pair(inner)


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (hs.Gaussian(1) ** 2, "analysed for a single run inside"),
        (hs.Gaussian(1) @ hs.Laplace(1), "analysed for a single run inside"),
        (hs.DPSGD(noise_multiplier=1, rate=0.1, steps=3), "analysed for a single run inside"),
        (hs.ZCDP(0.1), "only some bounds of its privacy loss are known"),
        (hs.RenyiDP({2.0: 0.1}), "only some bounds of its privacy loss are known"),
        (hs.ApproxDP(0.1, 1e-3), "a guarantee that may fail"),
    ],
    ids=str,
)
def test_what_has_no_single_pair_of_cells_is_refused(inner: hs.Mechanism, reason: str) -> None:
    with pytest.raises(NoAnalysisError, match=reason):
        dominating_pair(hs.PoissonSubsampled(inner, 0.25))
