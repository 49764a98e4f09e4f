"""Groups in shuffled epochs: against all allocations, written down one by one."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.bounds.shared_batches import _thinned, exact_law, squares_of_batches

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
    """The probability of a larger sum of squares."""
    return sum((chance for one, chance in law.items() if one > square), Fraction(0))


def gaussian_delta(mu: Any, epsilon: float) -> Any:
    """Delta of a Gaussian by mpmath."""
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def seen_delta(
    law: dict[int, Fraction], distance: int, noise: float, epsilon: float, epochs: int
) -> Any:
    """Delta to whoever sees all batches of all epochs, each epoch's allocation by itself."""
    total = mp.zero
    for squares in itertools.product(law, repeat=epochs):
        chance = math.prod((law[one] for one in squares), start=Fraction(1))
        mu = mp.sqrt(sum(squares)) * distance / mp.mpf(repr(noise))
        total += mp.mpf(chance.numerator) / chance.denominator * gaussian_delta(mu, epsilon)
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


def test_ends_have_their_answers() -> None:
    assert float(hs.epsilon(hs.Shuffled(hs.Gaussian(math.inf), 10, group=3), 1e-5)) == 0.0
    assert hs.epsilon(hs.Shuffled(hs.Gaussian(0.0), 10, group=3), 1e-5).lower == math.inf
    alone = hs.delta(hs.Shuffled(hs.Gaussian(6.0), 1, group=3), 1.0)
    assert alone.lower <= hs.delta(hs.Gaussian(2.0), 1.0).upper
    assert alone.upper >= hs.delta(hs.Gaussian(2.0), 1.0).lower
    assert alone.relative_width < 1e-9
    tiny = hs.delta(hs.Shuffled(hs.Gaussian(3.0), 10**15, group=40), 1.0)
    assert 0.0 <= tiny.lower <= tiny.upper < 1.0
