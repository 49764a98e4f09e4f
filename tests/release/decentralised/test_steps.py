"""Noisy iterations and token walks: steps that contract, noise that covers, and who saw what."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import hockeystick as hs
from hockeystick.mechanisms import NoisyIterations, TokenWalk
from hockeystick.privacy_loss import dominating_pair
from hockeystick.release import noisy_iterations, token_walk
from hockeystick.release.decentralised import projected_steps
from tests.release.bits import none_left, seeded

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
    attained = getattr(loss, "attained_case", loss)
    assert moved / deviation == pytest.approx(attained.mu, rel=1e-6)
    assert attained.mu <= getattr(loss, "dominating", loss).mu


def test_the_last_model_has_the_noise_of_all_steps() -> None:
    plan, bits = NoisyIterations(2.0, 9, **STEPS), seeded(7)
    drawn = [
        noisy_iterations(plan, [0.0] * 4, lambda w, t: np.zeros(4), bits=bits, **BALL)
        for _ in range(500)
    ]
    expected = 2.0 * 0.25 * 3
    assert np.std(drawn) == pytest.approx(expected, rel=5 / math.sqrt(4000))
    assert abs(np.mean(drawn)) < 5 * expected / math.sqrt(2000)


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
        model = rule.projected(state)
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
        ({"start": [math.nan]}, "start must be"),
        ({"start": [2e6]}, "start must be"),
        ({"start": []}, "start must be"),
        ({"start": "abc"}, "start must be"),
        ({"start": [[0.1], [0.1, 0.2]]}, "start must be"),
        ({"start": [10**400]}, "start must be"),
        ({"lipschitz": 1e-200}, "lipschitz must be"),
        ({"radius": 1e-200}, "radius must be"),
        ({"mechanism": NoisyIterations(2.0, 9, step_size=1e300, smoothness=1e-300)}, "step_size"),
        ({"mechanism": NoisyIterations(2.0, 9, step_size=1e-300, smoothness=1)}, "step_size"),
        ({"lipschitz": 0.0}, "lipschitz must be"),
        ({"radius": math.inf}, "radius must be"),
        ({"radius": 1e12}, "rounding in 9 steps of 1 numbers would add"),
        ({"mechanism": NoisyIterations(math.inf, 9, **STEPS)}, "noise_multiplier must be"),
        ({"mechanism": hs.Gaussian(1.0)}, "mechanism must be"),
    ],
)
def test_bad_input_is_named_and_not_charged(settings: dict[str, Any], error: str) -> None:
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


def test_an_observer_sees_a_contribution_beneath_the_noise_of_the_steps_between() -> None:
    # Ring of six, party 0's contribution in steps 0 and 6, as the next ones see it; no cap reached.
    walk, bits = TokenWalk(1.0, 6, "ring", distance=3, **STEPS), seeded(3)
    drawn = []
    for _ in range(2000):
        run = token_walk(
            walk, [0.0], lambda w, u: np.zeros(1), steps=4, visits=1, bits=bits, **BALL
        )
        drawn.append(run.models[3, 0])
    assert np.std(drawn) == pytest.approx(0.25 * math.sqrt(3), rel=5 / math.sqrt(4000))


@pytest.mark.parametrize(
    ("settings", "name"), [({"steps": -1}, "steps"), ({"visits": 0}, "visits")]
)
def test_a_walk_names_what_is_wrong(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        walked(TokenWalk(1.0, 5, **STEPS), **settings)
