"""Large losses apart from small ones: windows, sums, and every bound, against mpmath."""

import math
import random
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from hockeystick.kernels import jumps as kernel
from hockeystick.kernels import near_outputs, sampled_gaussian
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import lines as twin
from hockeystick.precision.profiles import reciprocal
from tests.precision.twins import bulk_part

Array = NDArray[np.float64]
DIGITS = 30


WINDOWS = [
    (-64, 192, 0.1875, 0.0, 1.0),
    (-90, 180, 0.5, -7.7, 0.3),
    (100, 200, 0.125, 25.03, 0.012),
    (-20, 600, 1.0, 250.1, 0.6),
    (-40, 80, 0.3125, 118.0, 0.012),
    # Exactly thirty widths out, where the series takes over.
    (-60, 121, 0.5, 0.0, 1.0),
]


@pytest.mark.parametrize(("first", "count", "step", "edge", "width"), WINDOWS)
def test_windows_lie_within_their_errors(
    first: int, count: int, step: float, edge: float, width: float
) -> None:
    with mp.workdps(DIGITS):
        both = twin.windows(first, count, step, edge, width)
        for side, exact in zip((1.0, -1.0), both, strict=True):
            found, error = near_outputs.windows(first, count, step, edge, width, side)
            for j in range(count):
                assert abs(float(found[j]) - exact[j]) <= error[j]


class Nodes(NamedTuple):
    """A loss, its window and the nodes to sum over."""

    rate: float | Fraction
    noise: float
    edge: float
    width: float
    c: float
    first: int
    size: int
    step: float


NODES = [
    Nodes(Fraction(256, 60_000), 1.1, 4.9, 0.13, 9.0, -70, 220, 0.15625),
    Nodes(0.3, 0.1, 5.4, 0.05, 0.01, -120, 320, 0.09375),
    Nodes(1e-8, 0.1, 6.9, 0.3, 59.0, -10, 300, 2.0),
    Nodes(0.02, 1.0, 0.0, 0.5, 0.3, -60, 200, 0.15625),
    Nodes(1e-5, 3.0, -2.0, 1.0, 1.0, -40, 100, 0.25),
    Nodes(0.1, 0.25, 2.4, 1.5, 12.0, -20, 160, 0.375),
]
nodes = pytest.mark.parametrize("nodes", NODES, ids=str)


def terms_of(of: Nodes) -> tuple[Array, ...]:
    """Return the kernel's losses, log weights, errors of both (with the window's), and windows."""
    loss, log_weight, loss_error, weight_error = sampled_gaussian.nodes(
        float(of.rate), 1.0 / of.noise, True, of.first, of.size, of.step
    )
    (large, error), (small, other) = (
        near_outputs.windows(of.first, of.size, of.step, of.edge, of.width, side)
        for side in (1.0, -1.0)
    )
    return loss, log_weight, loss_error, weight_error + np.maximum(error, other), large, small


@nodes
def test_the_bulk_part_lies_within_its_round_off(nodes: Nodes) -> None:
    loss, log_weight, loss_error, weight_error, large, small = terms_of(nodes)
    value, error = kernel.bulk_part(
        loss, log_weight, loss_error, weight_error, large, small, nodes.c
    )
    with mp.workdps(DIGITS):
        x, weight = twin.sampled_gaussian_nodes(
            nodes.rate, reciprocal(nodes.noise), True, nodes.first, nodes.size, nodes.step
        )
        windows = twin.windows(nodes.first, nodes.size, nodes.step, nodes.edge, nodes.width)
        truth = bulk_part(x, weight, *windows, nodes.c)
        assert abs(value - truth) <= error


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("c", [0.05, 6.0])
@pytest.mark.parametrize(("of_loss", "of_weight"), [(1e-7, 0.0), (0.0, 1e-7)])
def test_the_error_of_the_bulk_part_covers_that_of_its_inputs(
    seed: int, c: float, of_loss: float, of_weight: float
) -> None:
    source = random.Random(seed)
    loss = np.array([source.gauss(0.4, 1.5) for _ in range(24)])
    log_weight = np.array([source.uniform(-6.0, -2.0) for _ in range(24)])
    large = np.array([kernel.log_normal_cdf(source.gauss(0.0, 2.0)) for _ in range(24)])
    small = np.log(-np.expm1(large))
    full = np.full(loss.size, 1.0)
    with mp.workdps(DIGITS):
        x, lost, kept = ([mp.mpf(float(one)) for one in values] for values in (loss, large, small))
        weight = [mp.exp(mp.mpf(float(one))) for one in log_weight]
        truth = bulk_part(x, weight, lost, kept, c)
    # Each off by all it may be, the way that moves every term up.
    gain = np.exp(small) * np.expm1(c * loss) - np.exp(large)
    moved = log_weight + of_weight * np.where(gain > 0.0, 1.0, -1.0)
    value, error = kernel.bulk_part(
        loss + of_loss, moved, full * of_loss, full * of_weight, large, small, c
    )
    share = float(abs(value - truth) / mp.mpf(error))
    assert 0.2 < share <= 1.0 + 1e-6


class Case(NamedTuple):
    """Parameters of a quadrature of J (side 1) or A (side -1)."""

    p: float
    mu: float
    w: float
    height: float
    edge: float
    width: float
    side: int

    @property
    def windows(self) -> tuple[float, float, float, float]:
        """The edges and widths of W and V, one of which is always about 1."""
        one = (self.edge, self.width)
        return (*one, math.inf, 1.0) if self.side > 0 else (-1e9, 1e6, *one)

    @property
    def arguments(self) -> tuple[float, float, float, float, float, float, float, float]:
        return (self.p, self.mu, self.w, self.height, *self.windows)

    @property
    def span(self) -> tuple[float, float]:
        pull = self.w * self.mu
        if self.side > 0:
            return -12.0, max(pull, self.edge) + 12.0
        return -12.0, max(min(pull, self.edge + self.width * self.width * pull) + 12.0, 1.0)

    def sum(self, first: int, count: int, step: float, heights: int = 1) -> list[Any]:
        """Return the sums over exact nodes at heights 0, height, and so on."""
        mu = mp.mpf(self.mu)
        loss, weight = twin.sampled_gaussian_nodes(self.p, mu, True, first, count, step)
        parts = twin.windows(first, count, step, self.edge, self.width)[self.side < 0]
        kept = [mass * mp.exp(part) for mass, part in zip(weight, parts, strict=True)]
        return twin.tilted_line(loss, kept, self.w - 1.0, self.height, heights)


Nine: TypeAlias = tuple[float, float, float, float, float, float, float, float, float]
# Of each sign of the height, and where the powers of r decide.
STEEP: list[Nine] = [
    (5e-4, 3.0, 7.7, 0.0, 0.83, 4.5, 1.8, math.inf, 1.0),
    (3e-3, 2.7, 2.7, -5.0, 0.95, 5.8, 0.44, math.inf, 1.0),
    (4e-4, 1.9, 1.25, 20.0, 1.35, 2.1, 0.58, math.inf, 1.0),
    (2e-4, 0.6, 10.5, 20.0, 0.9, -1e9, 1e6, -1.9, 0.47),
]


@pytest.mark.parametrize("given", STEEP, ids=str)
def test_the_bound_along_a_line_is_never_below_the_integral(given: Nine) -> None:
    p, mu, w, height, shift, edge, width, top, top_width = given
    low, high = -12.0, max(w * mu, edge) + 12.0
    u = np.linspace(low, high, 20_001)
    ratio = 1.0 - p + p * np.exp(mu * (u + 1j * shift) - 0.5 * mu * mu)
    logs = w * np.log(np.abs(ratio)) + height * np.angle(ratio) - 0.5 * u * u
    logs += log_ndtr((u - edge) / width) + log_ndtr((top - u) / top_width)
    truth = float(logsumexp(logs)) + math.log((u[1] - u[0]) / math.sqrt(2.0 * math.pi))
    truth += 0.5 * shift * shift * (1.0 + 1.0 / width**2 + (top < math.inf) / top_width**2)
    assert truth <= kernel.log_window_bound(*given, low, high)


# Most of each integral lies outside these ranges: above the first three, below the others. Their
# values on the real line and at the height, by quadrature.
OUTSIDE: list[tuple[Case, float, float, float, complex | None]] = [
    (Case(1e-3, 0.5, 1.01, 0.0, 4.0, 0.5, 1), -12.0, 0.6, 1.74015933411857178e-4, None),
    (
        *(Case(1e-3, 0.5, 2.0, 2.0, 5.0, 1.0, 1), -12.0, 1.1, 2.04533517216441801e-4),
        2.04530015217726031e-4 + 1.06099158844266939e-6j,
    ),
    (Case(0.3, 1.0, 3.0, 0.0, 9.0, 0.5, 1), -12.0, 3.5, 2.18589203793592892e-8, None),
    (Case(1e-3, 0.5, 1.01, 0.0, -4.0, 0.5, -1), -0.05, 12.0, 1.73163415436379648e-4, None),
    (Case(0.3, 2.0, 1.01, 0.0, -2.5, 0.5, -1), -0.05, 12.0, 0.00884857923726625782, None),
]


@pytest.mark.parametrize(("case", "low", "high", "size", "there"), OUTSIDE)
@pytest.mark.parametrize("log_tolerance", [-3.0, -14.0])
def test_the_bound_of_the_rule_counts_what_lies_outside_the_range(
    case: Case, low: float, high: float, size: float, there: complex | None, log_tolerance: float
) -> None:
    log_tolerance += math.log(size)
    step, log_error = kernel.widest_window_step(*case.arguments, low, high, log_tolerance)
    first = math.floor(-15.0 / step)
    with mp.workdps(20):
        found = case.sum(first, 1 - 2 * first, step, 2)
        for value, truth in zip(found, (size, there or size), strict=True):
            assert abs(value - truth) <= mp.exp(log_error)


LEFT_OUT = [
    (Case(1e-4, 2 / 3, 6.0, 0.0, 6.0, 0.18, 1), -6.0, 10.0),
    (Case(0.3, 10.0, 1.01, 0.0, 5.4, 0.1, 1), -4.0, 14.0),
    (Case(0.3, 10.0, 3.0, 0.0, 5.4, 0.5, -1), -4.0, 18.0),
    (Case(1e-8, 0.05, 60.0, 0.0, 2.0, 2.4, 1), -2.0, 4.0),
    (Case(0.02, 1.0, 1.01, 0.0, 3.0, 0.12, 1), -10.0, 8.0),
    (Case(0.02, 1.0, 1.01, 0.0, -7.0, 2.0, -1), -6.0, 8.0),
    (Case(0.1, 0.3, 10.0, 0.0, 0.0, 1.0, -1), -2.0, 4.0),
    (Case(0.01, 4.0, 8.0, 0.0, 3.0, 1.5, 1), -4.0, 34.0),
    (Case(1e-6, 1.0, 12.0, 0.0, -30.0, 3.0, -1), -2.0, 30.0),
]


@pytest.mark.parametrize("step", [0.5, 2.0])
@pytest.mark.parametrize(("case", "low", "high"), LEFT_OUT)
def test_the_nodes_left_out_add_up_to_no_more_than_claimed(
    case: Case, low: float, high: float, step: float
) -> None:
    # Just outside at both ends: what the bound has to cover is then at its largest.
    bound = kernel.log_nodes_left_out(
        *(case.p, case.mu, case.w, *case.windows[2:]), *(low + 1e-9, high - 1e-9, step)
    )
    more = math.ceil(6.0 / step)
    with mp.workdps(20):
        above = case.sum(round(high / step), more, step)[0].real
        below = case.sum(round(low / step) - more + 1, more, step)[0].real
        assert mp.log(above + below) <= bound


# The height, and the logarithms of the integrals there and at 1.5 times it, by quadrature; by how
# much the bound may exceed the first.
DECAYS = [
    (Case(1e-4, 2 / 3, 6.0, 0.0, 6.0, 0.18, 1), 12.0, (-20.1313674222853, -20.1314136192178), 1.3),
    (Case(0.3, 10.0, 1.01, 0.0, 5.4, 0.012, 1), 0.2, (-2.71100439835834, -5.21096069033826), 4.5),
    (Case(0.3, 0.05, 60.0, 0.0, 8.0, 2.4, 1), 25.0, (-5.36439438037061, -5.45475904067632), 4.0),
    (Case(0.02, 1.0, 1.01, 0.0, 3.0, 0.12, 1), 30.0, (-7.34988607656794, -7.96549879524437), 1.3),
    (Case(1e-5, 2.0, 20.0, 0.0, 5.0, 0.06, 1), 0.1, (529.721490700595, 529.696490700595), 3.0),
    (Case(0.1, 0.3, 30.0, 0.0, 10.0, 0.4, 1), 6.0, (-20.1823927550891, -20.3591102279853), 3.0),
]


@pytest.mark.parametrize(("case", "y", "sizes", "slack"), DECAYS)
def test_the_proven_decay_is_never_below_the_true_size(
    case: Case, y: float, sizes: tuple[float, float], slack: float
) -> None:
    bound = kernel.log_decay(*case[:3], y, *case.windows, *case.span)
    assert max(sizes) <= bound <= sizes[0] + slack
