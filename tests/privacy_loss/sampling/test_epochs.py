"""Shuffled epochs and random allocation: against integrals, enumerations and attacks."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import hockeystick as hs
from hockeystick.accountants.base import Interval
from hockeystick.accountants.prv import PRV
from hockeystick.errors import ParameterError
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision import doubling as twin
from hockeystick.privacy_loss import AllocationLoss, LargestBatchLoss, dominating_pair
from hockeystick.privacy_loss.bounds.shifted_interpolation import (
    _thinned,
    exact_law,
    squares_of_batches,
)
from hockeystick.privacy_loss.sampling.shuffled import Shifts, _curve, _edges, _masses

REMOVED, ADDED, LESS, REPLACED = Shifts(2, 1), Shifts(1, 2), Shifts(1, 0), Shifts(2, 0)
BACK = Shifts(0, 2)
# (noise multiplier, steps, shifts)
CASES = [
    (0.5, 1000, REMOVED),
    (1.0, 100, REMOVED),
    (1.0, 100, REPLACED),
    (2.0, 10, LESS),
    (3.0, 5, ADDED),
    (0.1, 20, REMOVED),
    (50.0, 4, REPLACED),
    (1.0, 30, BACK),
]
each_case = pytest.mark.parametrize(("noise", "steps", "shifts"), CASES)


def log_f(z: Any, noise: float, steps: int, shift: int) -> Any:
    """Return ``ln F`` of the largest sum by mpmath."""
    mu = shift / mp.mpf(repr(noise))
    return log_phi(mp.mpf(z) - mu) + (steps - 1) * log_phi(mp.mpf(z))


def log_phi(at: Any) -> Any:
    """Return ``ln Phi`` by mpmath, on the side where it has its digits."""
    return mp.log(mp.ncdf(at)) if at < 0 else mp.log1p(-mp.ncdf(-at))


@each_case
def test_masses_of_the_largest_sum_are_within_their_errors(
    noise: float, steps: int, shifts: Shifts
) -> None:
    edges, _ = _edges(steps, *(shift / noise for shift in shifts))
    for shift in shifts:
        log_p, error = _masses(_curve(edges, steps, shift / noise))
        chosen = np.unique(np.linspace(0, log_p.size - 1, 20).astype(int))
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


EPSILONS = (0.1, 0.7, 2.0)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of the Gaussian mechanism in closed form."""
    first, second = ndtr(mu / 2 - epsilon / mu), ndtr(-mu / 2 - epsilon / mu)
    return float(first - math.exp(epsilon) * second)


def densities(examples: int, size: int, dropped: bool, noise: float, value: float) -> Any:
    """Return the density of all batches' sums over all places of one example; others contribute -1.

    The sums are less what they would be with others alone. The steps are one or two.
    """
    z = np.linspace(-9.0 * noise, 9.0 * noise + 2.0, 400)
    steps = examples // size if dropped else -(-examples // size)
    grid = np.meshgrid(*[z] * steps, indexing="ij")
    total: Any = 0.0
    for place in range(examples):
        batch = place // size
        means = [value + 1.0 if t == batch else 0.0 for t in range(steps)]
        total = total + math.prod(
            norm.pdf(at, mean, noise) for at, mean in zip(grid, means, strict=True)
        )
    return total / examples * (z[1] - z[0]) ** steps


@pytest.mark.parametrize(
    ("examples", "size", "dropped"), [(3, 2, False), (3, 2, True), (4, 3, False), (5, 2, True)]
)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_what_concrete_data_lose_is_between_the_ends(
    examples: int, size: int, dropped: bool, adjacency: str
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
    other = 0.0 if adjacency == "zero-out" else -1.0
    first, second = (densities(examples, size, dropped, 1.5, value) for value in (1.0, other))
    for epsilon in EPSILONS:
        answer = hs.delta(plan, epsilon)
        lost = max(
            float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
            for p, q in ((first, second), (second, first))
        )
        assert answer.lower <= lost * (1 + 1e-6)
        assert lost <= answer.upper * (1 + 1e-6)


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


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(("size", "whole", "rest"), [(4, 1, 1), (3, 2, 1), (2, 2, 1), (3, 1, 2)])
def test_a_group_that_is_seen_in_its_batches_loses_no_more_than_is_accounted(
    size: int, whole: int, rest: int, dropped: bool
) -> None:
    group, steps = 3, whole + (not dropped)
    epoch = hs.Shuffled(
        hs.Gaussian(2.0), steps, last_batch="dropped" if dropped else "smaller"
    ).for_group(group)
    placed = list(permutations(range(whole * size + rest), group))
    for epsilon in EPSILONS:
        lost = 0.0
        for places in placed:
            counts = np.bincount([place // size for place in places], minlength=whole + 1)
            square = int((counts[:steps] ** 2).sum())
            lost += gaussian_delta(math.sqrt(square) / 2.0, epsilon) if square else 0.0
        upper = hs.delta(epoch, epsilon).upper
        assert lost / len(placed) <= upper * (1 + 1e-9)


def test_one_step_is_no_smaller_last_batch() -> None:
    with pytest.raises(ParameterError, match="last_batch must be 'whole' or 'dropped'"):
        hs.Shuffled(hs.Gaussian(1.0), 1, last_batch="smaller")


# (group, batches, examples of a batch)
SMALL = [(2, 2, 1), (2, 3, 2), (3, 2, 2), (3, 3, 1), (3, 3, 2), (4, 2, 3), (4, 3, 2), (5, 2, 3)]


def squares_of(cells: Any) -> int:
    """The sum of squares of how many records are in each batch."""
    return sum(count * count for count in Counter(cells).values())


def independent(group: int, batches: int) -> dict[int, Fraction]:
    """The law of the sum of squares, of all ways to put each record into any batch."""
    found = Counter(squares_of(cells) for cells in itertools.product(range(batches), repeat=group))
    return {square: Fraction(count, batches**group) for square, count in found.items()}


def shuffled(group: int, batches: int, size: int) -> dict[int, Fraction]:
    """The law of the sum of squares, of all places of the group in a shuffled epoch."""
    places = range(batches * size)
    found = Counter(
        squares_of([place // size for place in taken])
        for taken in itertools.permutations(places, group)
    )
    total = sum(found.values())
    return {square: Fraction(count, total) for square, count in found.items()}


def above(law: dict[int, Fraction], square: int) -> Fraction:
    return sum((chance for one, chance in law.items() if one > square), Fraction(0))


def exact_delta(mu: Any, epsilon: float) -> Any:
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def seen_delta(
    law: dict[int, Fraction], distance: int, noise: float, epsilon: float, epochs: int
) -> Any:
    """Delta to whoever sees all batches of all epochs, each epoch's allocation by itself."""
    total = mp.zero
    for squares in itertools.product(law, repeat=epochs):
        chance = math.prod((law[one] for one in squares), start=Fraction(1))
        mu = mp.sqrt(sum(squares)) * distance / mp.mpf(repr(noise))
        total += mp.mpf(chance.numerator) / chance.denominator * exact_delta(mu, epsilon)
    return total


@pytest.mark.parametrize(("group", "batches"), [(1, 5), (2, 4), (3, 3), (4, 5), (5, 2), (6, 4)])
def test_the_law_of_independent_records_is_that_of_all_allocations(
    group: int, batches: int
) -> None:
    assert dict(exact_law(group, batches)) == independent(group, batches)


@pytest.mark.parametrize(("group", "batches", "size"), SMALL)
def test_records_of_batches_of_one_size_meet_less_often(
    group: int, batches: int, size: int
) -> None:
    theirs, ours = shuffled(group, batches, size), independent(group, batches)
    tails = [(above(theirs, square), above(ours, square)) for square in ours]
    assert all(one <= other for one, other in tails)
    assert any(one < other for one, other in tails)


@pytest.mark.parametrize(("adjacency", "distance"), [("zero-out", 1), ("replace-one", 2)])
@pytest.mark.parametrize(("group", "batches", "size"), SMALL)
@pytest.mark.parametrize("epochs", [1, 2])
def test_delta_is_that_of_all_allocations_and_covers_every_size_of_batches(
    group: int, batches: int, size: int, adjacency: str, distance: int, epochs: int
) -> None:
    plan = hs.Shuffled(hs.Gaussian(2.5), batches, adjacency).for_group(group) ** epochs
    with mp.workdps(30):
        for epsilon in (0.3, 2.0):
            found = hs.delta(plan, epsilon)
            ours = seen_delta(independent(group, batches), distance, 2.5, epsilon, epochs)
            theirs = seen_delta(shuffled(group, batches, size), distance, 2.5, epsilon, epochs)
            assert theirs < ours <= found.upper
            assert found.upper <= ours * (1.0 + 1e-4)
            assert found.lower <= theirs


def test_the_printed_root_is_below_what_examples_that_are_clipped_one_by_one_lose() -> None:
    # Ten epochs of 100 batches, sigma = 4, groups of 4, to whoever sees the batches.
    printed = hs.epsilon(hs.GDP(math.sqrt(4 * 10) / 4.0), 1e-5)
    ours = hs.epsilon(hs.Shuffled(hs.Gaussian(4.0), 100).for_group(4) ** 10, 1e-5)
    assert printed.upper == pytest.approx(7.5113, abs=1e-4)
    assert ours.upper == pytest.approx(7.6845, abs=1e-3)
    truth = seen_ten_epochs(7.52)
    assert truth > 1e-5
    assert hs.delta(hs.GDP(math.sqrt(4 * 10) / 4.0), 7.52).upper < 1e-5
    # Of two batches, whoever sees no allocation but adds up both sums learns more than it says.
    hidden = hs.epsilon(hs.Shuffled(hs.Gaussian(4.0), 2).for_group(4), 1e-5)
    assert hidden.lower > hs.epsilon(hs.GDP(math.sqrt(4) / 4.0), 1e-5).upper + 0.9


def seen_ten_epochs(epsilon: float) -> Any:
    """Delta of ten epochs of 100 batches, sigma = 4, groups of 4, all batches seen."""
    law = {0: Fraction(1)}
    for _ in range(10):
        after: dict[int, Fraction] = {}
        for (one, chance), (square, more) in itertools.product(law.items(), exact_law(4, 100)):
            after[one + square] = after.get(one + square, Fraction(0)) + chance * more
        law = after
    with mp.workdps(30):
        return seen_delta(law, 1, 4.0, epsilon, 1)


@pytest.mark.parametrize(
    ("group", "batches"), [(40, 3), (30, 30), (25, 10**6), (20, 10**15), (12, 5)]
)
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


def test_what_is_unlikely_is_counted_with_what_is_larger() -> None:
    tiny = Fraction(1, 10**260)
    law = ((4, 1 - 2 * tiny), (6, tiny), (16, tiny))
    assert _thinned(law) == ((4, 1 - Fraction(1, 10**250)), (16, Fraction(1, 10**250)))


def allocation(noise: float, steps: int, times: int = 1) -> hs.Mechanism:
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
