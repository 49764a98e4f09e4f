"""Noisy iterations and token walks: steps that contract, noise that covers, and who saw what."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick.mechanisms import NoisyIterations, TokenWalk
from hockeystick.privacy_loss import dominating_pair
from hockeystick.release import noisy_iterations, token_walk
from hockeystick.release.decentralised._projected import projected_steps
from tests.release.bits import none_left, seeded

STEPS: dict[str, Any] = {"step_size": 0.25, "smoothness": 1.0}
BALL: dict[str, Any] = {"lipschitz": 1.0, "radius": 1e6}


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


def test_the_noise_exceeds_the_mechanisms_by_what_rounding_adds() -> None:
    plan = NoisyIterations(2.0, 1000, **STEPS)
    rule = projected_steps(plan, 50, 1000, 1.0, 10.0)
    own = 2.0 * 0.25 / 2.0**rule.exponent
    off = 8 * 2.0**rule.exponent + 0.25 * 2.0**-30
    assert own * (1 + 1000 * off / 0.25) <= rule.scale <= own * (1 + 2.0**-10)
    assert rule.scale <= 2.0**44


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
