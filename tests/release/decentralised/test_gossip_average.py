"""Gossip averaging run: every message is the one that is accounted, and digits tell no more."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import GossipAveraging, Graph
from hockeystick.mechanisms.decentralised.gossip import observed_span
from hockeystick.release import gossip_average
from tests.privacy_loss.decentralised.test_gossip import CUBE, HUB, powers
from tests.release.bits import none_left, seeded

PLAN = GossipAveraging(0.5, HUB, 4, 2, [0])


def test_one_value_moves_each_message_by_its_entry_of_the_matrix() -> None:
    plan = GossipAveraging(0.5, CUBE, 4, 7, [0])
    low, high = (gossip_average(plan, [0.5] * 7 + [end], bits=seeded(3)) for end in (0, 1))
    for seen, before, power, round_ in zip(
        high.seen, low.seen, powers(CUBE, "metropolis", 4), range(4), strict=True
    ):
        assert sorted(seen) == [1, 2, 4]
        for sender, value in seen.items():
            assert value - before[sender] == Fraction(power[sender][7], 4**round_)


def test_noise_is_added_once_and_has_the_deviation_that_is_accounted() -> None:
    bits = seeded(8)
    drawn = [gossip_average(PLAN, [0.5] * 6, bits=bits).seen for _ in range(2000)]
    first = np.array([float(seen[0][1]) for seen in drawn])
    assert np.std(first) == pytest.approx(0.5, rel=5 / math.sqrt(4000))
    assert np.mean(first) == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(2000))
    # The hub's second message: weights 1/6 of all six, whose noise is independent.
    second = np.array([float(seen[1][1]) for seen in drawn])
    assert np.std(second) == pytest.approx(0.5 / math.sqrt(6), rel=5 / math.sqrt(4000))


def test_averages_come_together_where_the_sum_is() -> None:
    plan = GossipAveraging(0.5, HUB, 120, 2, [0])
    values = [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    found = gossip_average(plan, values, interval=(-1.0, 3.0), bits=seeded(4))
    assert np.ptp(found.averages) < 1e-4
    noise = gossip_average(
        GossipAveraging(0.5, HUB, 0, 2, [0]), values, interval=(-1.0, 3.0), bits=seeded(4)
    ).averages
    assert np.mean(found.averages) == pytest.approx(np.mean(noise), rel=1e-12)


def test_the_far_end_of_a_path_is_solved_for_from_what_was_seen() -> None:
    plan = GossipAveraging(0.5, Graph.path(4), 3, 3, [0])
    found = gossip_average(plan, [0.1, 0.2, 0.3, 0.9], bits=seeded(6))
    held = gossip_average(
        GossipAveraging(0.5, Graph.path(4), 0, 3, [0]), [0.1, 0.2, 0.3, 0.9], bits=seeded(6)
    ).averages
    rows = [power[1] for power in powers(plan.graph, "metropolis", 3)]
    sent = [seen[1] * 6**t for t, seen in enumerate(found.seen)]
    denominator = [Fraction(sum(row)) for row in rows]
    matrix = np.array(
        [[float(x / total) for x in row] for row, total in zip(rows, denominator, strict=True)]
    )
    right = np.array([float(value / 6**t) for t, value in enumerate(sent)])
    solved = np.linalg.solve(matrix[:, 1:], right - matrix[:, 0] * held[0])
    assert solved[2] == pytest.approx(held[3], rel=1e-9)


def test_steps_are_covered_by_the_noise_where_a_run_is_allowed() -> None:
    span = observed_span(HUB, "metropolis", 4, frozenset({0}))
    assert span is not None
    least, _ = span.squared_projection(2)
    # The best integer vector that the observers cannot tell apart is (d / 4)(-3, 1, 1, 1) or near.
    steps = 2**10 + 1
    best = min(
        (steps + a) ** 2 + b**2 + c**2 + (a + b + c) ** 2
        for a in range(-steps, -steps // 2)
        for b in (steps // 4, steps // 4 + 1)
        for c in (steps // 4, steps // 4 + 1)
    )
    away = sum(span.kernel_lengths()) / 2
    assert steps**2 * least <= best <= (steps * math.sqrt(least) + away) ** 2


def test_a_run_whose_last_digits_tell_more_is_refused() -> None:
    plan = GossipAveraging(0.5, Graph.random_out(60, 3, seed=1), 5, 1, [0])
    account = hs.Accountant()
    with pytest.raises(hs.errors.IncompatibleError, match="by their last digits"):
        gossip_average(plan, [0.5] * 60, charge=account, bits=none_left)
    assert hs.epsilon(account.plan, 1e-5).upper == 0.0


def test_on_a_grid_runs_are_allowed_as_far_as_the_noise_covers_the_steps() -> None:
    across = [(10 * i + j, 10 * i + j + 1) for i in range(10) for j in range(9)]
    down = [(10 * i + j, 10 * i + j + 10) for i in range(9) for j in range(10)]
    grid, found = Graph(100, across + down), []
    span = observed_span(grid, "metropolis", 5, frozenset({0}))
    assert span is not None
    away = sum(span.kernel_lengths()) / 2
    for party in range(1, 60, 7):
        least, most = span.squared_projection(party)
        covered = (least == most and least in (0, 1)) or away <= 2.0**-16 * math.sqrt(
            least
        ) * 2.0**42
        found.append(covered)
        plan = GossipAveraging(0.5, grid, 5, party, [0])
        if covered:
            gossip_average(plan, [0.5] * 100)
        else:
            with pytest.raises(hs.errors.IncompatibleError, match="by their last digits"):
                gossip_average(plan, [0.5] * 100, bits=none_left)
    assert True in found
    assert False in found


def test_where_a_projection_is_exact_in_floats_steps_are_still_to_be_covered() -> None:
    span = observed_span(HUB, "metropolis", 4, frozenset({0}))
    assert span is not None
    assert span.squared_projection(2) == (Fraction(1, 4), Fraction(1, 4))
    coarse = GossipAveraging(2.0**42, HUB, 4, 2, [0])
    with pytest.raises(hs.errors.IncompatibleError, match="by their last digits"):
        gossip_average(coarse, [0.5] * 6, bits=none_left)


@pytest.mark.parametrize(
    ("plan", "values", "name"),
    [
        (PLAN, [0.5] * 5, "values"),
        (PLAN, [math.nan] * 6, "values"),
        (hs.Gaussian(1.0), [0.5] * 6, "mechanism"),
        (GossipAveraging(math.inf, HUB, 4, 2, [0]), [0.5] * 6, "noise_multiplier"),
        (GossipAveraging(1.0, HUB, 10**6, 2, [0]), [0.5] * 6, "rounds"),
    ],
)
def test_bad_input_is_named(plan: Any, values: Any, name: str) -> None:
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        gossip_average(plan, values, bits=none_left)
