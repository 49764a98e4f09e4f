"""A Gaussian that takes an opposite one's place, against one at 0 that does: by quadrature."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss import SampledGaussianLoss
from hockeystick.privacy_loss.core.symmetrized import JoinedLoss
from hockeystick.privacy_loss.noise.displaced_gaussian import DisplacedGaussianLoss

CASES = [
    (Fraction(1, 5), 0.8),
    (Fraction(256, 60_000), 1.1),
    (Fraction(9, 10), 0.4),
    (Fraction(1, 10**6), 2.0),
    (0.3, 5.0),
    (0.97, 0.1),
]


def exact(rate: Fraction | float) -> mpf:
    return mp.mpf(rate.numerator) / rate.denominator if isinstance(rate, Fraction) else mp.mpf(rate)


def densities(rate: Fraction | float, noise: float, x: mpf) -> tuple[mpf, mpf]:
    """Return the densities of both mixtures at an output, by the definition."""
    q, mu = exact(rate), 1 / mp.mpf(repr(noise))
    opposite, near, far = (mp.npdf(x, at) for at in (-mu, mp.zero, mu))
    return (1 - q) * opposite + q * far, (1 - q) * opposite + q * near


def log_ratio(rate: Fraction | float, noise: float, x: float | mpf) -> mpf:
    """Return the loss at an output."""
    with mp.workdps(150):
        p, q = densities(rate, noise, mp.mpf(x))
        return mp.log(p) - mp.log(q)


def lowest(rate: Fraction | float, noise: float) -> float:
    """Return the output with the least loss: on its right the loss rises, on its left too."""
    reach = 2.0 / noise + 20.0
    grid = np.linspace(-reach, reach, 400)
    values = [float(log_ratio(rate, noise, x)) for x in grid]
    k = int(np.argmin(values))
    found = minimize_scalar(
        lambda x: float(log_ratio(rate, noise, x)),
        bounds=(grid[k - 1], grid[k + 1]),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(found.x)


def crossings(rate: Fraction | float, noise: float, level: float) -> list[mpf]:
    """Return the outputs at which the loss is at a level, on both sides of the least one."""
    middle, reach = lowest(rate, noise), 2.0 / noise + 24.0 + 4.0 * noise
    if level == math.inf or level < log_ratio(rate, noise, middle):
        return []
    ends = [middle + reach] if level >= 0.0 else [middle - reach, middle + reach]

    def above(x: float) -> float:
        return float(log_ratio(rate, noise, x) - level)

    return [mp.mpf(brentq(above, middle, end, xtol=1e-14, rtol=1e-15)) for end in ends]


def mass(rate: Fraction | float, noise: float, levels: tuple[float, float]) -> tuple[float, float]:
    """Return both masses where the loss is between two levels, from crossings alone."""
    q, mu = exact(rate), 1 / mp.mpf(repr(noise))
    points = sorted(x for level in levels for x in crossings(rate, noise, level))
    reach = mp.mpf(2.0 / noise + 25.0 + 4.0 * noise)
    found = [mp.zero, mp.zero]
    for start, end in pairwise((-reach, *points, reach)):
        if levels[0] < log_ratio(rate, noise, (start + end) / 2) < levels[1]:
            opposite, near, far = (mp.ncdf(end - at) - mp.ncdf(start - at) for at in (-mu, 0, mu))
            found[0] += (1 - q) * opposite + q * far
            found[1] += (1 - q) * opposite + q * near
    return float(found[0]), float(found[1])


@pytest.mark.parametrize(("rate", "noise"), CASES)
def test_its_masses_are_those_between_the_crossings_of_the_densities(
    rate: Fraction | float, noise: float
) -> None:
    loss = DisplacedGaussianLoss(rate, noise)
    least = loss.infimum
    assert loss.is_within_reach
    edges = np.array([2.0 * least, 0.9 * least, 0.2 * least, 0.0, 0.01, 0.3, 2.0, math.inf])
    found = loss.cells(edges)
    with mp.workdps(30):
        for k, pair in enumerate(pairwise(edges.tolist())):
            p, q = mass(rate, noise, pair)
            for log, one in ((found.log_p[k], p), (found.log_q[k], q)):
                slack = found.error[k] + 1e-11
                assert math.exp(log) == pytest.approx(one, rel=slack, abs=1e-25)
    whole = loss.cells(np.array([-math.inf, math.inf]))
    assert math.exp(whole.log_p[0]) == pytest.approx(1.0, abs=1e-13)
    assert math.exp(whole.log_q[0]) == pytest.approx(1.0, abs=1e-13)
    below = loss.cells(np.array([-math.inf, 3.0 * least, least]))
    assert (below.log_p == -math.inf).all()
    assert (below.error == 0.0).all()


def worst(rate: float, noise: float, epsilon: float) -> float:
    """Return the largest divergence over vectors of the unit disc, in one order, on a grid."""
    axis = np.linspace(-9.0, 9.0, 361)
    east, north = np.meshgrid(axis, axis)
    cell = (axis[1] - axis[0]) ** 2 / (2.0 * math.pi)

    def normal(vector: tuple[float, float]) -> np.ndarray:
        moved = (east - vector[0] / noise) ** 2 + (north - vector[1] / noise) ** 2
        made: np.ndarray = np.exp(-0.5 * moved) * cell
        return made

    found = 0.0
    for turn in np.linspace(0.0, math.pi, 7):
        for size in (0.0, 0.5, 1.0):
            other = normal((size * math.cos(turn), size * math.sin(turn)))
            p = (1.0 - rate) * other + rate * normal((1.0, 0.0))
            q = (1.0 - rate) * other + rate * normal((0.0, 0.0))
            found = max(found, float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()))
    return found


@pytest.mark.parametrize("epsilon", [-1.0, -0.3, -0.05, 0.05, 0.4, 1.5])
def test_the_joined_loss_has_the_profile_of_the_worst_vectors_of_a_disc(epsilon: float) -> None:
    rate, noise = 0.3, 0.9
    opposite, alike = DisplacedGaussianLoss(rate, noise), SampledGaussianLoss(rate, noise, True)
    loss = JoinedLoss(opposite, alike, opposite)
    found = loss.cells(np.array([epsilon, 0.0, math.inf] if epsilon < 0.0 else [epsilon, math.inf]))
    above = np.exp(found.log_p) - math.exp(epsilon) * np.exp(found.log_q)
    atom = loss.atoms()
    share = math.exp(atom.log_p[0]) * (1.0 - math.exp(epsilon)) if epsilon < 0.0 else 0.0
    assert above.sum() + share == pytest.approx(worst(rate, noise, epsilon), rel=1e-3)


def test_both_orders_of_the_joined_loss_are_one_pair() -> None:
    opposite, alike = DisplacedGaussianLoss(0.2, 0.7), SampledGaussianLoss(0.2, 0.7, True)
    one, other = JoinedLoss(opposite, alike), JoinedLoss(alike, opposite)
    edges = np.array([-3.0, -0.5, -0.01, 0.02, 0.3, 2.0])
    here, there = one.cells(edges), other.cells(-edges[::-1])
    assert np.exp(here.log_p) == pytest.approx(np.exp(there.log_q[::-1]), rel=1e-10)
    assert np.exp(here.log_q) == pytest.approx(np.exp(there.log_p[::-1]), rel=1e-10)
    assert one.atoms().log_p == pytest.approx(other.atoms().log_p, rel=1e-9)
    assert one.without_attained == one
    assert (one.attained, one.infimum, one.supremum) == (None, -math.inf, math.inf)


def test_numbers_out_of_reach_leave_the_bound_of_a_replacement() -> None:
    far = hs.FixedSizeSubsampled(hs.Gaussian(0.01), 1, 10, "zero-out", clipped=True)
    free = hs.FixedSizeSubsampled(hs.Gaussian(0.01), 1, 10, "zero-out")
    assert not DisplacedGaussianLoss(Fraction(1, 10), 0.02).is_within_reach
    found, known = hs.delta(far, 1.0), hs.delta(free, 1.0)
    assert (found.lower, found.upper) == (known.lower, known.upper)
