"""Searches by Optuna: all charged first, the number of trials secret, the best trial released."""

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.mechanisms import RandomStopping, tuning
from hockeystick.release.samplers import run_count
from tests.ledger.forks import die, killed, rho
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
    least = optimize(squared, RUN, trials=30, maximize=False)
    assert best is not None
    assert least is not None
    assert least.score < best.score == best.candidate["x"] ** 2
    assert best.output == {"cube": best.candidate["x"] ** 3}
    assert best.mechanism == RUN**30


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
    rare = RandomStopping(RUN, tuning.Poisson(mean=1e-9))
    assert optimize(lambda _: pytest.fail("it ran"), rare, bits=seeded(1)) is None


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("objective", {"objective": 3}),
        ("mechanism", {"mechanism": "noise"}),
        ("mechanism", {"trials": None}),
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


def test_what_an_objective_does_to_its_study_changes_no_other_trial() -> None:
    """It stops it, asks for a next trial, and adds one that never ran, of the best score."""
    tried, counts = [], [run_count(TUNED.distribution, bits=seeded(one)) for one in range(99)]
    entropy = next(one for one, count in enumerate(counts) if count > 6)

    def meddling(trial: Any) -> float:
        score = squared(trial)
        tried.append((trial.number, trial.params["x"], score))
        trial.study.stop()
        trial.study.enqueue_trial({"x": 0.5})
        trial.study.add_trial(optuna.trial.create_trial(value=1e9))
        assert len(trial.study.trials) == 3
        return score

    best = optimize(meddling, TUNED, bits=seeded(entropy))
    assert best is not None
    assert best.score == max(score for _, _, score in tried)
    assert [number for number, _, _ in tried] == [0] * counts[entropy]
    values = {x for _, x, _ in tried}
    assert len(values) == len(tried)
    assert 0.5 not in values


@pytest.mark.parametrize("how", [{"mechanism": TUNED}, {"mechanism": RUN, "trials": 3}])
def test_a_score_beyond_all_floats_is_refused_without_being_shown(how: Any) -> None:
    with pytest.raises(ParameterError, match=r"^objective must be .*; got 'a int'$"):
        optimize(lambda trial: 10**400, **how, bits=seeded(3))


# On a ledger: reserved before the first trial, under a key of their own.

ONCE = hs.Gaussian(noise_multiplier=4)  # rho 1/32


@pytest.fixture
def ledger(tmp_path: Path) -> hs.Ledger:
    return hs.Ledger(tmp_path / "ledger.db", "x", hs.ZCDP(rho=0.5))


def test_all_trials_are_reserved_first_and_those_that_began_are_committed(
    ledger: hs.Ledger,
) -> None:
    seen: list[tuple[float, int]] = []

    def stopping(trial: Any) -> float:
        seen.append((rho(ledger), ledger.status.unresolved))
        if trial.number == 2:
            trial.study.stop()
        return squared(trial)

    charge = ledger.charging(by="ana", note="depth")
    assert optimize(stopping, ONCE, trials=8, ledger=charge, key="search") is not None
    assert seen == [(0.25, 1)] * 3
    assert (rho(ledger), ledger.status.unresolved) == (3 / 32, 0)
    assert (ledger.history()[-1].by, ledger.history()[-1].mechanism) == ("ana", ONCE**3)


def test_of_a_random_number_of_trials_all_is_committed_whatever_ran(tmp_path: Path) -> None:
    budget = hs.RenyiDP({4.0: 5.0})
    ledger = hs.Ledger(tmp_path / "ledger.db", "x", budget)
    of_once = RandomStopping(ONCE, TUNED.distribution)
    for key in "abc":
        optimize(squared, of_once, ledger=ledger, key=key)
    reserves, commits = ledger.history()[1::2], ledger.history()[2::2]
    assert {entry.content for entry in (*reserves, *commits)} == {reserves[0].content}
    assert {entry.note for entry in commits} == {"1 of 1 ran"}
    assert {entry.mechanism for entry in commits} == {of_once}


def test_a_search_is_run_once_and_charged_to_one_of_both(ledger: hs.Ledger) -> None:
    with pytest.raises(ParameterError, match=r"^charge must be None where a ledger is given"):
        optimize(squared, ONCE, trials=8, ledger=ledger, key="s", charge=hs.Accountant())
    with pytest.raises(ParameterError, match=r"^key must be given"):
        optimize(squared, ONCE, trials=8, ledger=ledger)
    assert len(ledger.history()) == 1
    optimize(squared, ONCE, trials=8, ledger=ledger, key="search")
    with pytest.raises((ParameterError, IncompatibleError), match="search"):
        optimize(squared, ONCE, trials=8, ledger=ledger, key="search")
    for charged in ({"ledger": ledger, "key": "another"}, {"charge": ledger}):
        with pytest.raises(BudgetExhausted):
            optimize(lambda _: pytest.fail("it ran"), ONCE, trials=9, **charged)
    optimize(squared, ONCE, trials=8, charge=ledger)
    assert (rho(ledger), ledger.status.unresolved) == (0.5, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("ends", ["killed", "failed"])
def test_a_search_that_breaks_off_counts_in_full_and_its_key_is_spent(
    ledger: hs.Ledger, ends: str
) -> None:
    def breaking(trial: Any) -> float:
        if trial.number == 3:
            die() if ends == "killed" else [].pop()
        return squared(trial)

    def search() -> None:
        optimize(breaking, ONCE, trials=8, ledger=ledger, key="search")

    if ends == "killed":
        killed(search)
    else:
        with pytest.raises(IndexError):
            search()
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    with pytest.raises(ParameterError, match="the run for which 'search' was reserved"):
        optimize(squared, ONCE, trials=8, ledger=ledger, key="search")
