"""Protocols of parties: every message as it is accounted, noise that covers, and who saw what."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import hockeystick as hs
from hockeystick.mechanisms import GOPA, GossipAveraging, Graph, NoisyIterations, TokenWalk
from hockeystick.mechanisms.decentralised.gossip import observed_span
from hockeystick.privacy_loss import dominating_pair
from hockeystick.release import gopa_round, gossip_average, noisy_iterations, token_walk
from hockeystick.release.decentralised import projected_steps
from tests.privacy_loss.decentralised.test_decentralised import CUBE, HUB, powers
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


PATH = Graph.path(4)
TOLD = [
    (gossip_average, GossipAveraging(0.5, Graph.random_out(60, 3, seed=1), 5, 1, [0]), {},
     "exact messages may tell"),
    # A projection that is exact in floats, 1/4, of steps that are still to be covered.
    (gossip_average, GossipAveraging(2.0**42, HUB, 4, 2, [0]), {}, "exact messages may tell"),
    (gopa_round, GOPA(1e5, 1e-9, PATH), {}, "tells more of these 4 parties"),
    (gopa_round, GOPA(1.0, 1.0, PATH, [0]), {"dropouts": [1, 2, 3]}, "nobody who is honest"),
]  # fmt: skip


@pytest.mark.parametrize(("release", "plan", "given", "told"), TOLD)
def test_what_would_tell_more_than_is_accounted_is_refused_and_not_charged(
    release: Any, plan: Any, given: Any, told: str
) -> None:
    account, values = hs.Accountant(), [0.5] * plan.graph.parties
    with pytest.raises(hs.errors.IncompatibleError, match=told):
        release(plan, values, charge=account, bits=none_left, **given)
    assert len(account) == 0


def test_one_party_moves_what_it_publishes_by_the_whole_width_and_nothing_else() -> None:
    plan = GOPA(0.5, 4.0, Graph.cycle(7), colluders=[2])
    low, high = (
        gopa_round(plan, [0.3] * 4 + [value] + [0.6] * 2, bits=seeded(5)) for value in (-9.0, 1.0)
    )
    moved = np.subtract(high.published, low.published)
    assert moved.tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert high.mean - low.mean == pytest.approx(1 / 7, rel=1e-9)


def test_the_noise_has_the_covariance_that_is_accounted() -> None:
    plan = GOPA(0.5, 2.0, PATH)
    bits = seeded(11)
    drawn = np.array([gopa_round(plan, [0.5] * 4, bits=bits).published for _ in range(4000)])
    laplacian = np.array([[1, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1]])
    expected = 0.25 * np.eye(4) + 4.0 * laplacian
    spread = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / 4000)
    assert (np.abs(np.cov(drawn.T) - expected) < 5 * spread).all()
    assert (np.abs(drawn.mean(axis=0) - 0.5) < 5 * np.sqrt(np.diag(expected) / 4000)).all()


def test_pairwise_noise_cancels_to_the_last_step() -> None:
    values = [0.125, 0.5, 0.75, 1.0]
    found = gopa_round(GOPA(0.0, 50.0, PATH), values)
    assert found.mean == np.mean(values)
    assert np.ptp(found.published) > 1.0


def test_who_drops_out_is_left_out_where_neighbours_roll_back() -> None:
    plan = GOPA(0.0, 50.0, Graph.complete(5), colluders=[4])
    values = [0.125, 0.5, 0.75, 1.0, 0.0]
    account = hs.Accountant()
    found = gopa_round(plan, values, dropouts=[1, 3], charge=account)
    assert found.mean == np.mean([0.125, 0.75, 0.0])
    assert found.parties == (0, 2, 4)
    assert found.mechanism == GOPA(0.0, 50.0, Graph.complete(5), colluders=[1, 3, 4])
    assert account.plan == found.mechanism
    kept = gopa_round(plan, values, dropouts=[1, 3], rollback=False)
    assert kept.mechanism == plan
    assert kept.mean != found.mean


STEPS: dict[str, Any] = {"step_size": 0.25, "smoothness": 1.0}
BALL: dict[str, Any] = {"lipschitz": 1.0, "radius": 1e6}
POINTS = st.lists(st.floats(-1, 1), min_size=3, max_size=3)


def linear(sign: float, place: int) -> Any:
    """Return gradients of length 1, of which the one at a place points elsewhere."""
    return lambda w, t: np.full(1, sign if t == place else 0.0)


def logistic(row: NDArray[np.float64], model: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the gradient of ln(1 + exp(-row w))."""
    return np.asarray(-row / (1.0 + math.exp(float(row @ model))))


@pytest.mark.parametrize("place", [0, 3, 7])
def test_one_record_moves_the_last_model_as_far_as_is_accounted(place: int) -> None:
    plan = NoisyIterations(3.0, 8, place + 1, **STEPS)
    low, high = (
        noisy_iterations(plan, [0.0], linear(sign, place), bits=seeded(2), **BALL)
        for sign in (-1.0, 1.0)
    )
    moved = float(low[0] - high[0])
    assert moved == pytest.approx(2 * 0.25, rel=1e-7)
    # All noise of the run covers it where losses are linear: that is the account's lower end.
    deviation = 3.0 * 0.25 * math.sqrt(8)
    loss: Any = dominating_pair(plan).removing
    attained = loss.attained
    assert moved / deviation == pytest.approx(attained.mu, rel=1e-6)
    assert attained.mu <= getattr(loss, "dominating", loss).mu


@given(POINTS, POINTS, st.floats(0, 4), st.floats(1, 4))
def test_rounded_steps_move_models_apart_by_no_more_than_is_covered(
    first: list[float], second: list[float], size: float, radius: float
) -> None:
    plan = NoisyIterations(0.0, 100, step_size=1.0, smoothness=1.0)
    rule = projected_steps(plan, 3, 100, 1.0, radius)
    row = np.array([0.6, 0.0, 0.8])
    states = [np.array(point) * size for point in (first, second)]
    after = []
    for state in states:
        model = state * min(1.0, radius / max(float(np.linalg.norm(state)), 1e-9))
        after.append(rule.stepped(model, logistic(row, model), none_left))
    apart = float(np.linalg.norm(states[0] - states[1]))
    allowed = 2 * (2 * 2.0**-30 + 2 * 2.0**rule.exponent + 1e-13)
    assert float(np.linalg.norm(after[0] - after[1])) <= apart + allowed


def test_the_noise_exceeds_the_mechanisms_by_what_rounding_adds() -> None:
    plan = NoisyIterations(2.0, 1000, **STEPS)
    rule = projected_steps(plan, 50, 1000, 1.0, 10.0)
    own = 2.0 * 0.25 / 2.0**rule.exponent
    off = 8 * 2.0**rule.exponent + 0.25 * 2.0**-30
    assert own * (1 + 1000 * off / 0.25) <= rule.scale <= own * (1 + 2.0**-10)
    assert rule.scale <= 2.0**44


def test_models_stay_in_the_ball() -> None:
    plan = NoisyIterations(50.0, 5, **STEPS)
    found = noisy_iterations(plan, [0.0] * 3, lambda w, t: w * 0, lipschitz=1, radius=0.5)
    assert np.linalg.norm(found) <= 0.5 * (1 + 1e-15)


@pytest.mark.parametrize(
    "wrong",
    [
        *([math.nan], [1.1], [0.1, 0.1], [math.inf], 0.5, None, ["a"], [10**400]),
        *([[0.1], [0.1, 0.2]], [0.1 + 1j]),
    ],
)
def test_a_gradient_that_costs_more_ends_the_run(wrong: Any) -> None:
    account, plan = hs.Accountant(), NoisyIterations(2.0, 9, **STEPS)
    with pytest.raises(hs.errors.ParameterError, match=r"^gradient must be"):
        noisy_iterations(
            plan, [0.0], lambda w, t: wrong if t == 4 else [0.5], charge=account, **BALL
        )
    assert account.plan == plan


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"lipschitz": 1e-200}, "lipschitz must be"),
        ({"radius": 1e-200}, "radius must be"),
        ({"mechanism": NoisyIterations(2.0, 9, step_size=1e300, smoothness=1e-300)}, "step_size"),
        ({"mechanism": NoisyIterations(2.0, 9, step_size=1e-300, smoothness=1)}, "step_size"),
        ({"radius": 1e12}, "rounding in 9 steps of 1 numbers would add"),
        ({"mechanism": NoisyIterations(math.inf, 9, **STEPS)}, "noise_multiplier must be"),
    ],
)
def test_steps_that_floats_do_not_hold_are_refused(settings: dict[str, Any], error: str) -> None:
    account = hs.Accountant()
    given = {"mechanism": NoisyIterations(2.0, 9, **STEPS), "start": [0.0], **BALL, **settings}
    mechanism, start = given.pop("mechanism"), given.pop("start")
    with pytest.raises((hs.errors.ParameterError, hs.errors.IncompatibleError), match=f"^{error}"):
        noisy_iterations(mechanism, start, linear(1.0, 0), charge=account, bits=none_left, **given)
    assert hs.epsilon(account.plan, 1e-5).upper == 0.0


def walked(walk: TokenWalk, **settings: Any) -> Any:
    """Return a walk of gradients that say whose they are."""
    given = {"steps": 300, "visits": 10, "bits": seeded(1), **BALL, **settings}
    return token_walk(walk, [0.0], lambda w, u: np.full(1, u / walk.parties), **given)


def test_a_party_contributes_as_often_as_is_charged() -> None:
    account, walk = hs.Accountant(), TokenWalk(0.0, 20, **STEPS)
    run = walked(walk, charge=account)
    assert account.plan == walk**10
    counts = np.bincount(run.path[run.contributed], minlength=20)
    assert counts.max() == 10
    assert (counts == np.minimum(np.bincount(run.path, minlength=20), 10)).all()
    expected = -0.25 * np.where(run.contributed, run.path / 20, 0.0)
    moved = np.diff([*run.models[:, 0], run.last[0]])
    assert moved == pytest.approx(expected, abs=1e-6)


def test_on_the_complete_graph_each_next_party_is_equally_likely() -> None:
    run = walked(TokenWalk(0.0, 5, **STEPS), steps=4000, bits=seeded(9))
    assert stats.chisquare(np.bincount(run.path, minlength=5)).pvalue > 1e-4
    follow = np.bincount(run.path[:-1] * 5 + run.path[1:], minlength=25)
    assert stats.chisquare(follow).pvalue > 1e-4


def test_on_the_ring_the_model_goes_round() -> None:
    run = walked(TokenWalk(0.0, 6, "ring", distance=2, **STEPS), steps=15)
    assert run.path.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2]
    assert run.seen_by([2]).tolist() == [2, 8, 14]
    assert run.seen_by([0, 1]).tolist() == [0, 1, 6, 7, 12, 13]
