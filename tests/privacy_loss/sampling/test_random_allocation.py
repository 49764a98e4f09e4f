"""The losses of random allocation: against quadrature, chance, and published bounds."""

import math
from functools import cache

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.prv import PRV
from hockeystick.numerics.multiprecision import mpf
from hockeystick.precision import doubling as twin
from hockeystick.privacy_loss import AllocationLoss, NoiselessLoss, dominating_pair


def allocation(noise: float, steps: int, times: int = 1) -> hs.Mechanism:
    """Return random allocation of Gaussian noise."""
    return hs.mechanisms.RandomAllocation(hs.Gaussian(noise), steps, times)


@cache
def delta(noise: float, steps: int, epsilon: float, removing: bool, runs: int = 1) -> Interval:
    """Return delta of one direction of so many epochs."""
    return PRV().delta_of(((AllocationLoss(noise, steps, 1, removing), runs),), epsilon)


# By mpmath's quadrature over one output, the other one in closed form; the first is published.
TWO_STEPS = [
    (1.0, 1.0, True, "0.05920650108589265327872157"),
    (0.5, 3.0, True, "0.1120443705124970751053744"),
    (2.0, 0.3, True, "0.04841658333064952419524283"),
    (20.0, 0.02, True, "0.006369848429012904148587002"),
    (1.0, 1.0, False, "0.05019766236948823635282625"),
    (0.5, 3.0, False, "0.06667547896141728606561593"),
    (2.0, 0.3, False, "0.0475208297345338180052923"),
    (20.0, 0.02, False, "0.006369747939190023188727522"),
]


@pytest.mark.parametrize(("noise", "epsilon", "removing", "truth"), TWO_STEPS)
def test_two_steps_hold_the_integral_over_the_output(
    noise: float, epsilon: float, removing: bool, truth: str
) -> None:
    found = delta(noise, 2, epsilon, removing)
    assert found.lower <= mpf(truth) <= found.upper
    assert found.relative_width < 4e-4


@pytest.mark.parametrize(
    ("order", "noise", "steps", "truth"),
    [
        (8, 1.0, 100, 0.0765100228050425814002984119781),
        (16, 2.0, 1000, 2.2727383164037893e-3),
        (2, 1.0, 1000, math.log1p(math.expm1(1.0) / 1000)),
        (2, 0.3, 7, math.log1p(math.expm1(1 / 0.09) / 7)),
    ],
)
def test_renyi_divergences_of_whole_orders_lie_between_the_ends(
    order: int, noise: float, steps: int, truth: float
) -> None:
    loss = AllocationLoss(noise, steps, 1, True)
    assert loss.attained is not None
    upper, lower = loss.cgf_bounds(order - 1.0), loss.attained.cgf_bounds(order - 1.0)
    assert lower.midpoint - lower.radius <= truth * (order - 1) <= upper.midpoint + upper.radius
    assert upper.midpoint + upper.radius < 1.003 * truth * (order - 1)


@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_the_kernels_agree_with_every_pair_one_by_one(product: bool, same: bool) -> None:
    from hockeystick.kernels import doubling

    rng = np.random.default_rng(5)
    x, p = np.sort(rng.lognormal(size=17)), rng.random(17)
    y, q = (x, p) if same else (np.sort(rng.lognormal(size=11)), rng.random(11))
    first, last = np.zeros(x.size, dtype=np.int64), np.full(x.size, y.size)
    ends = (x[0] * y[0], x[-1] * y[-1]) if product else (x[0] + y[0], x[-1] + y[-1])
    node = np.geomspace(ends[0] * 0.99, ends[1] * 1.01, 23)
    given = ((p, q), (x, y), first, last, node, same, product)
    masses, values = (p.tolist(), q.tolist()), (x.tolist(), y.tolist())
    expected = twin.spread(masses, values, node.tolist(), product)
    assert doubling.spread(*given) == pytest.approx(list(map(float, expected)), rel=1e-11)
    mass, mean = doubling.merge(*given)
    whole, means = twin.merge(masses, values, node.tolist(), product)
    assert mass == pytest.approx(list(map(float, whole)), rel=1e-13)
    assert mean == pytest.approx(list(map(float, means)), rel=1e-13)


def test_no_noise_shows_the_record() -> None:
    assert isinstance(dominating_pair(allocation(0, 5)).removing, NoiselessLoss)
    assert hs.epsilon(allocation(0, 5), 1e-5).upper == math.inf


@pytest.mark.parametrize(("noise", "steps", "times"), [(0.05, 20, 1), (0.05, 20, 3), (2e4, 20, 1)])
def test_out_of_reach_of_the_lattice_bounds_hold(noise: float, steps: int, times: int) -> None:
    found = hs.epsilon(allocation(noise, steps, times), 1e-5)
    worst = hs.epsilon(hs.Gaussian(noise / math.sqrt(times)), 1e-5)
    least = hs.epsilon(hs.Gaussian(noise * math.sqrt(steps) / times), 1e-5)
    assert isinstance(found, hs.Certified)
    assert isinstance(worst, hs.Certified)
    assert isinstance(least, hs.Certified)
    assert found.upper == pytest.approx(worst.upper, rel=1e-6)
    assert found.lower == pytest.approx(least.lower, rel=1e-6)


@pytest.mark.parametrize(
    ("noise", "steps", "times", "simulated"),
    [(0.8, 1000, 5, 0.808), (1.0, 1000, 10, 1.099), (2.0, 1000, 5, 0.160)],
)
def test_both_ends_are_within_two_hundredths_of_simulations(
    noise: float, steps: int, times: int, simulated: float
) -> None:
    # Feldman and Shenfeld 2026 (arXiv 2602.17284), at delta 1e-3.
    found = hs.epsilon(allocation(noise, steps, times), 1e-3)
    assert simulated * 0.98 <= found.lower <= found.upper <= simulated * 1.025
    assert found.upper <= found.lower * 1.012
