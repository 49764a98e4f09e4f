"""Shuffled reports of few users, enumerated: with one randomizer, and with one for each user."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest

import hockeystick as hs

Law = Sequence[float]
EPSILONS = (0.0, 0.3, 1.0)


def response(local: float, categories: int, datum: int) -> Law:
    total = math.exp(local) + categories - 1
    return [(math.exp(local) if k == datum else 1.0) / total for k in range(categories)]


def reports(laws: Sequence[Law]) -> dict[tuple[int, ...], float]:
    """Return how likely each multiset of reports is."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for law in laws:
        longer: dict[tuple[int, ...], float] = defaultdict(float)
        for seen, chance in found.items():
            for report, likely in enumerate(law):
                if likely:
                    longer[tuple(sorted((*seen, report)))] += chance * likely
        found = longer
    return found


def divergence(first: Sequence[Law], second: Sequence[Law], epsilon: float) -> float:
    """Return the hockey-stick divergence of two lists of laws, shuffled."""
    p, q = reports(first), reports(second)
    return sum(max(p[one] - math.exp(epsilon) * q.get(one, 0.0), 0.0) for one in p)


def everyone(local: float, categories: int, users: int) -> Iterator[tuple[list[Law], list[Law]]]:
    """Yield the laws of all neighbouring data, up to the order of the others."""
    data = range(categories)
    for others in itertools.combinations_with_replacement(data, users - 1):
        rest = [response(local, categories, datum) for datum in others]
        for own, new in itertools.permutations(data, 2):
            yield (
                [response(local, categories, own), *rest],
                [response(local, categories, new), *rest],
            )


@pytest.mark.parametrize("users", [2, 3, 4, 5])
@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("local", [0.4, 1.0, 2.5])
def test_the_ends_hold_for_all_data_where_all_run_one_randomizer(
    local: float, categories: int, users: int
) -> None:
    concrete = hs.mechanisms.ShuffledReports(hs.RandomizedResponse(local, categories), users)
    anything = hs.mechanisms.ShuffledReports(hs.PureDP(local), users)
    for epsilon in EPSILONS:
        worst = max(divergence(*pair, epsilon) for pair in everyone(local, categories, users))
        answer, most = hs.delta(concrete, epsilon), hs.delta(anything, epsilon)
        assert isinstance(answer, hs.Certified)
        assert isinstance(most, hs.Certified)
        assert answer.lower <= worst * (1 + 1e-9) + 1e-15
        assert worst <= answer.upper * (1 + 1e-9) + 1e-15
        assert worst <= most.upper * (1 + 1e-9) + 1e-15


def constants(users: int) -> list[Law]:
    """Return users who each send a constant of their own, perfectly private each."""
    return [[float(k == 2 + other) for k in range(users + 1)] for other in range(users - 1)]


@pytest.mark.parametrize("users", [3, 4, 5])
def test_randomizers_that_differ_are_not_covered_and_the_assumptions_say_so(users: int) -> None:
    plan = hs.mechanisms.ShuffledReports(hs.RandomizedResponse(1.0, 2), users)
    bare = [0.0] * (users - 1)
    one, other = ([*response(1.0, 2, datum), *bare] for datum in (0, 1))
    for epsilon in (0.2, 0.5):
        seen = divergence([one, *constants(users)], [other, *constants(users)], epsilon)
        alone = hs.delta(hs.RandomizedResponse(1.0, 2), epsilon).upper
        assert seen == pytest.approx(alone, rel=1e-12)
        assert seen > hs.delta(plan, epsilon).upper
    assert sum("run this same randomizer" in text for text in plan.assumptions) == 1
