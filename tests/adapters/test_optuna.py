"""Searches by Optuna: all charged first, the number of trials secret, the best trial released."""

import logging
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.mechanisms import RandomStopping, tuning
from hockeystick.release.samplers import run_count
from tests.release.bits import none_left, seeded

pytest.importorskip("optuna")

import optuna

from hockeystick.adapters.optuna import optimize

RUN = hs.Gaussian(noise_multiplier=5)
TUNED = RandomStopping(RUN, tuning.TruncatedNegativeBinomial(eta=1, gamma=0.1))


def squared(trial: Any) -> float:
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


def test_nothing_is_logged_of_the_trials(capfd: pytest.CaptureFixture[str]) -> None:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.INFO)
    try:
        optimize(squared, TUNED)
        assert optuna.logging.get_verbosity() == logging.INFO
    finally:
        optuna.logging.set_verbosity(before)
    assert capfd.readouterr() == ("", "")


def test_samplers_that_look_back_are_for_a_fixed_number_of_trials() -> None:
    with pytest.raises(IncompatibleError, match="TPESampler chooses by the results"):
        optimize(squared, TUNED, sampler=optuna.samplers.TPESampler(), bits=none_left)
    assert optimize(squared, RUN, trials=2, sampler=optuna.samplers.TPESampler()) is not None
    assert optimize(squared, TUNED, sampler=optuna.samplers.RandomSampler()) is not None


def test_a_seed_does_not_tell_which_trial_was_the_best() -> None:
    """By randomized response, a hit at trial i says (i - 2) eps of misses before it."""
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
    """Of falling scores Optuna's pruner stops every one after the fifth."""
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


def test_pruned_trials_and_no_numbers_are_never_the_best() -> None:
    def odd(trial: Any) -> float:
        x = trial.suggest_int("x", 0, 10)
        if trial.number == 0:
            raise optuna.TrialPruned
        return float("nan") if trial.number == 1 else float(x - 100)

    best = optimize(odd, RUN, trials=5)
    assert best is not None
    assert best.score <= -90

    def none(_trial: Any) -> float:
        raise optuna.TrialPruned

    assert optimize(none, RUN, trials=2) is None


def test_where_there_is_no_trial_there_is_no_result() -> None:
    tuned = RandomStopping(RUN, tuning.Poisson(mean=1e-9))
    assert optimize(lambda _: pytest.fail("it ran"), tuned, bits=seeded(1)) is None


def test_where_a_filter_refuses_nothing_runs() -> None:
    budget = hs.calibration.Filter(hs.ApproxDP(epsilon=0.01, delta=1e-6))
    with pytest.raises(BudgetExhausted):
        optimize(lambda _: pytest.fail("it ran"), RUN, trials=2, charge=budget)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("objective", {"objective": 3}),
        ("mechanism", {"mechanism": "noise"}),
        ("mechanism", {"trials": None}),
        ("trials", {"trials": 0}),
        ("trials", {"trials": 2.5}),
        ("sampler", {"sampler": "tpe"}),
        ("maximize", {"maximize": "minimize"}),
        ("charge", {"charge": 5}),
    ],
)
def test_bad_arguments_are_named(name: str, changed: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"objective": squared, "mechanism": RUN, "trials": 2}
    with pytest.raises(ParameterError, match=name):
        optimize(**usual | changed)


def drawn(entropy: int) -> int:
    """Return how many trials are drawn of a seed."""
    return run_count(TUNED.distribution, bits=seeded(entropy))


@pytest.mark.parametrize("entropy", range(5))
def test_an_objective_that_stops_its_study_stops_no_other_trial(entropy: int) -> None:
    numbers = []

    def stopping(trial: Any) -> float:
        numbers.append(trial.number)
        trial.study.stop()
        return squared(trial)

    optimize(stopping, TUNED, bits=seeded(entropy))
    assert numbers == [0] * drawn(entropy)


def test_an_objective_chooses_nothing_of_the_next_trial() -> None:
    tried, entropy = [], next(one for one in range(99) if drawn(one) > 6)

    def choosing(trial: Any) -> float:
        score = squared(trial)
        tried.append(trial.params["x"])
        trial.study.enqueue_trial({"x": 0.5})
        assert len(trial.study.trials) == 2
        return score

    optimize(choosing, TUNED, bits=seeded(entropy))
    assert len(tried) == drawn(entropy) == len(set(tried))
    assert 0.5 not in tried


def test_a_trial_that_never_ran_is_never_the_best() -> None:
    def adding(trial: Any) -> float:
        trial.study.add_trial(optuna.trial.create_trial(value=1e9))
        return squared(trial)

    best = optimize(adding, TUNED, bits=seeded(3))
    assert best is not None
    assert best.score <= 4.0


@pytest.mark.parametrize("how", [{"mechanism": TUNED}, {"mechanism": RUN, "trials": 3}])
def test_a_score_beyond_all_floats_is_refused_without_being_shown(how: Any) -> None:
    with pytest.raises(ParameterError, match=r"^objective must be .*; got 'a int'$"):
        optimize(lambda trial: 10**400, **how, bits=seeded(3))
