"""Searches by Optuna: all charged first, the number of trials secret, the best trial released."""

from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError
from hockeystick.mechanisms import RandomStopping, tuning
from hockeystick.release.samplers import run_count
from tests.release.bits import none_left, seeded

pytest.importorskip("optuna")

import optuna

from hockeystick.adapters.optuna import optimize

RUN = hs.Gaussian(noise_multiplier=5)
TUNED = RandomStopping(RUN, tuning.TruncatedNegativeBinomial(eta=1, gamma=0.1))


def squared(trial: Any) -> float:
    """Return the square of a number that is suggested, and keep its cube."""
    x = trial.suggest_float("x", -1, 2)
    trial.set_user_attr("cube", x**3)
    return float(x * x)


def test_the_best_trial_is_returned_with_what_it_released() -> None:
    best = optimize(squared, RUN, trials=30)
    assert best is not None
    assert best.score == best.candidate["x"] ** 2 > 1.0
    assert best.output == {"cube": best.candidate["x"] ** 3}
    assert best.mechanism == RUN**30
    least = optimize(squared, RUN, trials=30, maximize=False)
    assert least is not None
    assert least.score < best.score


def test_all_is_charged_before_the_first_trial_and_stays_where_one_fails() -> None:
    account = hs.Accountant()

    def fails(_trial: Any) -> float:
        assert account.plan == RUN**3
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        optimize(fails, RUN, trials=3, charge=account)
    assert account.plan == RUN**3


@pytest.mark.parametrize("seed", range(5))
def test_as_many_trials_run_as_were_drawn(seed: int) -> None:
    ran: list[float] = []

    def kept(trial: Any) -> float:
        ran.append(squared(trial))
        return ran[-1]

    best = optimize(kept, TUNED, bits=seeded(seed))
    assert best is not None
    assert best.mechanism == TUNED
    assert best.score == max(ran)
    assert len(ran) == run_count(TUNED.distribution, bits=seeded(seed))


def test_samplers_that_look_back_are_for_a_fixed_number_of_trials() -> None:
    with pytest.raises(IncompatibleError, match="TPESampler chooses by the results"):
        optimize(squared, TUNED, sampler=optuna.samplers.TPESampler(), bits=none_left)
    assert optimize(squared, RUN, trials=2, sampler=optuna.samplers.TPESampler()) is not None
    assert optimize(squared, TUNED, sampler=optuna.samplers.RandomSampler()) is not None


def test_a_seed_does_not_tell_which_trial_was_the_best() -> None:
    seen: list[float] = []

    def kept(trial: Any) -> float:
        seen.append(squared(trial))
        return seen[-1]

    own = optuna.samplers.RandomSampler(seed=7)
    optimize(kept, RUN, trials=1, sampler=own)
    optimize(kept, TUNED, sampler=optuna.samplers.RandomSampler(seed=7), bits=seeded(1))
    assert seen[0] not in seen[1:]


@pytest.mark.parametrize("independent", [True, False])
def test_independent_trials_are_not_pruned_by_what_others_reported(independent: bool) -> None:
    pruned: list[bool] = []

    def falling(trial: Any) -> float:
        trial.report(-float(trial.number), step=1)
        pruned.append(trial.should_prune())
        return 0.0

    if independent:
        always = RandomStopping(RUN, tuning.Poisson(mean=100))
        optimize(falling, always, bits=seeded(1))
    else:
        optimize(falling, RUN, trials=100)
    assert any(pruned[10:]) is not independent


def test_where_a_filter_refuses_nothing_runs() -> None:
    budget = hs.calibration.Filter(hs.ApproxDP(epsilon=0.01, delta=1e-6))
    with pytest.raises(BudgetExhausted):
        optimize(lambda _: pytest.fail("it ran"), RUN, trials=2, charge=budget)


def drawn(entropy: int) -> int:
    """Return how many trials are drawn of a seed."""
    return run_count(TUNED.distribution, bits=seeded(entropy))


def test_a_trial_that_never_ran_is_never_the_best() -> None:
    def adding(trial: Any) -> float:
        trial.study.add_trial(optuna.trial.create_trial(value=1e9))
        return squared(trial)

    best = optimize(adding, TUNED, bits=seeded(3))
    assert best is not None
    assert best.score <= 4.0
