"""Shuffled epochs and random allocation: against integrals, enumerations and attacks."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.base import Interval
from hockeystick.accountants.prv import PRV
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import AllocationLoss, LargestBatchLoss, dominating_pair
from hockeystick.privacy_loss.bounds.shifted_interpolation import (
    _thinned,
    exact_law,
    squares_of_batches,
)
from hockeystick.privacy_loss.sampling.random_allocation import allocated
from hockeystick.privacy_loss.sampling.shuffled import Shifts, _curve, _edges, _masses
from hockeystick.privacy_loss.training import _probability_alone

REMOVED, ADDED, LESS, REPLACED = Shifts(2, 1), Shifts(1, 2), Shifts(1, 0), Shifts(2, 0)
BACK = Shifts(0, 2)
# (noise multiplier, steps, shifts)
CASES = [
    (0.5, 1000, REMOVED),
    (2.0, 10, LESS),
    (3.0, 5, ADDED),
    (50.0, 4, REPLACED),
    (1.0, 30, BACK),
]


def log_f(z: Any, noise: float, steps: int, shift: int) -> Any:
    """Return ``ln F`` of the largest sum by mpmath."""
    mu = shift / mp.mpf(repr(noise))
    return log_phi(mp.mpf(z) - mu) + (steps - 1) * log_phi(mp.mpf(z))


def log_phi(at: Any) -> Any:
    """Return ``ln Phi`` by mpmath, on the side where it has its digits."""
    return mp.log(mp.ncdf(at)) if at < 0 else mp.log1p(-mp.ncdf(-at))


@pytest.mark.parametrize(("noise", "steps", "shifts"), CASES)
def test_masses_of_the_largest_sum_are_within_their_errors(
    noise: float, steps: int, shifts: Shifts
) -> None:
    edges, _ = _edges(steps, shifts.under_p / noise, shifts.under_q / noise, False)
    for shift in shifts:
        log_p, error = _masses(_curve(edges, steps, shift / noise, False))
        chosen = np.unique(np.linspace(0, log_p.size - 1, 7).astype(int))
        ends = np.concatenate(([-math.inf], edges, [math.inf]))
        with mp.workdps(350):
            cells = list(pairwise(ends))
            for k in chosen:
                low, high = (
                    (mp.ninf if x < 0 else mp.zero)
                    if math.isinf(x)
                    else log_f(x, noise, steps, shift)
                    for x in cells[k]
                )
                truth = high + mp.log(-mp.expm1(low - high))
                assert abs(truth - log_p[k]) <= error[k]
        assert float(np.median(error)) < 1e-10


def test_clipping_of_whole_batches_costs_what_replacing_an_example_does() -> None:
    removing, adding = dominating_pair(hs.Shuffled(hs.Gaussian(1.0), 10, "zero-out", "batch"))
    replaced = dominating_pair(hs.Shuffled(hs.Gaussian(1.0), 10, "replace-one"))
    assert removing == replaced.removing
    assert adding is not None
    assert isinstance(adding.attained, LargestBatchLoss)
    assert adding.attained.shifts == BACK
    assert dominating_pair(hs.Shuffled(hs.Gaussian(1.0), 10, "replace-one", "batch")) == replaced
    whole = dominating_pair(hs.Shuffled(hs.Gaussian(1.0), 1, "zero-out", "batch"))
    assert whole == dominating_pair(hs.Gaussian(0.5))


# Delta at 0.1 and 0.7 of an example of 1 against none or -1, where all others are -1, over all its
# places: the sums of one or two batches on a grid, noise 1.5.
@pytest.mark.parametrize(
    ("examples", "size", "dropped", "adjacency", "costs"),
    [
        (3, 2, False, "zero-out", (0.19433842, 0.05404214)),
        (3, 2, False, "replace-one", (0.38201990, 0.22862713)),
        (3, 2, True, "zero-out", (0.14592301, 0.04009418)),
        (3, 2, True, "replace-one", (0.30530220, 0.18018342)),
        (5, 2, True, "replace-one", (0.29356805, 0.15406594)),
    ],
)
def test_what_concrete_data_lose_is_between_the_ends(
    examples: int, size: int, dropped: bool, adjacency: str, costs: tuple[float, float]
) -> None:
    plan = hs.DPSGD(
        examples=examples,
        batch_size=size,
        epochs=1,
        noise_multiplier=1.5,
        sampling="shuffle",
        adjacency=adjacency,
        drop_last=dropped,
    )
    for epsilon, lost in zip((0.1, 0.7), costs, strict=True):
        answer = hs.delta(plan, epsilon)
        assert answer.lower <= lost * (1 + 1e-6)
        assert lost <= answer.upper


@pytest.mark.parametrize(("noise", "steps", "shift"), [(1.0, 97, 2.0), (3.0, 1, 1.0), (0.1, 20, 2)])
def test_the_curve_of_a_dropped_rest_is_that_of_mpmath(
    noise: float, steps: int, shift: float
) -> None:
    z = np.array([-9.0, -1.0, 0.5, 3.0, 12.0, 25.0])
    found = _curve(z, steps, shift / noise, True)
    for at, value, error in zip(z, found.log_f, found.error, strict=True):
        moved = mp.exp(log_phi(mp.mpf(at) - mp.mpf(shift / noise)))
        mixed = (steps * moved + mp.exp(log_phi(mp.mpf(at)))) / (steps + 1)
        exact = mp.log(mixed) + (steps - 1) * log_phi(mp.mpf(at))
        assert abs(exact - mp.mpf(value)) <= error
        assert error < 1e-8


def squares_of(cells: Any) -> int:
    """The sum of squares of how many records are in each batch."""
    return sum(count * count for count in Counter(cells).values())


def independent(group: int, batches: int) -> dict[int, Fraction]:
    """The law of the sum of squares, of all ways to put each record into any batch."""
    found = Counter(squares_of(cells) for cells in itertools.product(range(batches), repeat=group))
    return {square: Fraction(count, batches**group) for square, count in found.items()}


@pytest.mark.parametrize(("group", "batches"), [(1, 5), (2, 4), (3, 3), (4, 5), (5, 2), (6, 4)])
def test_the_law_of_independent_records_is_that_of_all_allocations(
    group: int, batches: int
) -> None:
    assert dict(exact_law(group, batches)) == independent(group, batches)


# Delta at 0.3 and 2, noise 2.5, of a group seen in shuffled batches of so many records each, and in
# batches drawn one by one: over all allocations of each epoch, in 30 digits.
@pytest.mark.parametrize(
    ("group", "batches", "adjacency", "epochs", "shuffled", "drawn"),
    [
        (2, 3, "zero-out", 1, (0.1399565085, 0.0008757980616), (0.1523177893, 0.001409468621)),
        (2, 3, "replace-one", 2, (0.5546071693, 0.231900976), (0.58189005, 0.2675182639)),
        (3, 3, "zero-out", 2, (0.2853716662, 0.01840562356), (0.3901884815, 0.07424961538)),
        (4, 2, "replace-one", 1, (0.7258238145, 0.475459212), (0.7532167194, 0.5233220387)),
    ],
)
def test_delta_is_that_of_all_allocations_and_covers_every_size_of_batches(
    group: int, batches: int, adjacency: str, epochs: int, shuffled: Any, drawn: Any
) -> None:
    plan = hs.Shuffled(hs.Gaussian(2.5), batches, adjacency).for_group(group) ** epochs
    for epsilon, theirs, ours in zip((0.3, 2.0), shuffled, drawn, strict=True):
        found = hs.delta(plan, epsilon)
        assert ours * (1 - 1e-9) <= found.upper <= ours * (1.0 + 1e-4)
        assert found.lower <= theirs * (1 + 1e-9)


def above(law: dict[int, Fraction], square: int) -> Fraction:
    return sum((chance for one, chance in law.items() if one > square), Fraction(0))


@pytest.mark.parametrize(("group", "batches"), [(40, 3), (20, 10**15), (12, 5)])
def test_a_long_law_is_rounded_up_a_little_and_has_no_weights_out_of_reach(
    group: int, batches: int
) -> None:
    exact, short = dict(exact_law(group, batches)), dict(squares_of_batches(group, batches))
    assert sum(exact.values()) == sum(short.values()) == 1
    assert len(short) <= 130
    assert min(short.values()) >= Fraction(1, 10**250)
    assert max(short) == group * group
    for square in exact:
        assert above(exact, square) <= above(short, square)
        # What is counted higher up is at most a sixteenth, and two, above.
        least = Fraction(1, 10**249)
        assert above(short, math.ceil(square * 17 / 16) + 2) <= above(exact, square) + least


@pytest.mark.parametrize(("batches", "lost"), [(1, 0.2679189847), (2, 0.1648366168)])
def test_a_group_whose_rest_is_dropped_loses_no_more_than_is_accounted(
    batches: int, lost: float
) -> None:
    epoch = hs.Shuffled(hs.Gaussian(2.0), batches, last_batch="dropped").for_group(3)
    assert lost <= hs.delta(epoch, 0.7).upper


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(("steps", "participations"), [(2, 1), (3, 2), (7, 1), (10, 3)])
def test_the_mean_of_a_likelihood_ratio_is_one(
    steps: int, participations: int, above: bool
) -> None:
    found, _ = allocated(1.0, steps, participations, above)
    assert float(found.mass @ found.at) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("examples", [1, 2, 3, 50])
def test_the_chance_of_being_alone_is_that_of_all_others(examples: int) -> None:
    found = _probability_alone(Fraction(1, 10), examples)
    truth = Fraction(9, 10) ** (examples - 1)
    assert truth <= found <= truth * (1 + Fraction(2) ** -48)


def test_what_is_unlikely_is_counted_with_what_is_larger() -> None:
    tiny = Fraction(1, 10**260)
    law = ((4, 1 - 2 * tiny), (6, tiny), (16, tiny))
    assert _thinned(law) == ((4, 1 - Fraction(1, 10**250)), (16, Fraction(1, 10**250)))


@cache
def delta(noise: float, steps: int, epsilon: float, removing: bool, runs: int = 1) -> Interval:
    return PRV().delta_of(((AllocationLoss(noise, steps, 1, removing), runs),), epsilon)


# By mpmath's quadrature over one output, the other one in closed form; the first is published.
TWO_STEPS = [
    (1.0, 1.0, True, "0.05920650108589265327872157"),
    (0.5, 3.0, True, "0.1120443705124970751053744"),
    (20.0, 0.02, True, "0.006369848429012904148587002"),
    (1.0, 1.0, False, "0.05019766236948823635282625"),
    (0.5, 3.0, False, "0.06667547896141728606561593"),
    (20.0, 0.02, False, "0.006369747939190023188727522"),
]


@pytest.mark.parametrize(("noise", "epsilon", "removing", "truth"), TWO_STEPS)
def test_two_steps_hold_the_integral_over_the_output(
    noise: float, epsilon: float, removing: bool, truth: str
) -> None:
    found = delta(noise, 2, epsilon, removing)
    assert found.lower <= mp.mpf(truth) <= found.upper
    assert found.relative_width < 4e-4


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
    masses = np.outer(p, q).ravel()
    values = (np.multiply if product else np.add).outer(x, y).ravel()
    # What each cell gives to its lower and upper end, its mean kept.
    cell = np.searchsorted(node, values, side="right") - 1
    share = (values - node[cell]) / np.diff(node)[cell]
    for found, part in zip(doubling.shares(*given), (1.0 - share, share), strict=True):
        truth = np.bincount(cell, masses * part, node.size - 1)
        assert found == pytest.approx(truth, rel=1e-11)


def test_the_printed_root_is_below_what_examples_that_are_clipped_one_by_one_lose() -> None:
    # Ten epochs of 100 batches, sigma = 4, groups of 4, to whoever sees the batches.
    printed = hs.epsilon(hs.GDP(math.sqrt(4 * 10) / 4.0), 1e-5)
    ours = hs.epsilon(hs.Shuffled(hs.Gaussian(4.0), 100).for_group(4) ** 10, 1e-5)
    assert printed.upper == pytest.approx(7.5113, abs=1e-4)
    assert ours.upper == pytest.approx(7.6845, abs=1e-3)
    # Over all allocations of all epochs, delta at 7.52 is 1.5428e-5.
    assert hs.delta(hs.Shuffled(hs.Gaussian(4.0), 100).for_group(4) ** 10, 7.52).upper >= 1.5428e-5
    assert hs.delta(hs.GDP(math.sqrt(4 * 10) / 4.0), 7.52).upper < 1e-5
    # Of two batches, whoever sees no allocation but adds up both sums learns more than it says.
    hidden = hs.epsilon(hs.Shuffled(hs.Gaussian(4.0), 2).for_group(4), 1e-5)
    assert hidden.lower > hs.epsilon(hs.GDP(math.sqrt(4) / 4.0), 1e-5).upper + 0.9
