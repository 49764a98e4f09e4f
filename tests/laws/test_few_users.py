"""Shuffled reports of few users who do not all run one randomizer, enumerated."""

import math
from collections import defaultdict
from collections.abc import Sequence

import pytest

import hockeystick as hs

Law = Sequence[float]


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
