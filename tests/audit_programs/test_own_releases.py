"""Releases of this library are audited, all of them; planted bugs are refuted, and only these."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import audit, release
from tests.systems.programs import AUDIT, program

# What computes from reports and plans, describes what a release returned, or is abstract.
READ_OUTS = {
    *("Best", "Clipping", "GopaRound", "GossipRun", "GroupFairness", "LocalMean", "Normalisation"),
    *("CorrelatedSums", "PrincipalComponents", "RunningSums", "ThresholdQueries", "WalkRun"),
    *("gaussian_error", "gaussian_mean", "rappor_error", "rappor_filters", "rappor_frequencies"),
    *("rappor_once", "rappor_shares", "response_error", "response_frequencies", "unary_error"),
    *("unary_frequencies", "multivariate_laplace_length", "multivariate_laplace_log_density"),
    "multivariate_laplace_variance",
}
FEDERATED = {"ClientRounds", "ClientTraining", "draw_clients", "noisy_update", "sanitized"}
SURE = 1.0 - 1e-6
OWN, MISTAKES = program("own_releases", AUDIT), program("mistakes", AUDIT)
AUDITED, REPLAYED = program("audited", AUDIT), program("replayed_mistakes", AUDIT)
LONG = (OWN.numbers, OWN.comparisons, OWN.loops, OWN.federations)
QUICK = [family for family in OWN.EVERYTHING if family not in LONG]


def test_every_release_function_is_audited_or_a_read_out() -> None:
    run = {name for family in OWN.EVERYTHING for row in family() for name in row.runs}
    assert run >= set(release.__all__) - READ_OUTS
    assert run >= FEDERATED
    assert not run & READ_OUTS
    assert set(release.__all__) >= READ_OUTS


@pytest.mark.parametrize("family", QUICK, ids=lambda family: family.__name__)
def test_releases_are_consistent_with_their_plans(family: Any) -> None:
    for found in AUDITED.audits(family(), share=0.02, confidence=SURE):
        assert not found.refuted, str(found.verdict)
        assert found.verdict.epsilon.value <= AUDITED.certified(found.audited.plan)


@pytest.mark.extras
@pytest.mark.parametrize("family", LONG, ids=lambda family: family.__name__)
def test_numbers_loops_and_rounds_are_consistent_with_their_plans(family: Any) -> None:
    for module in ("torch", "opacus"):
        pytest.importorskip(module)
    OWN.quiet()
    for found in AUDITED.audits(family(), share=0.05, confidence=SURE):
        assert not found.refuted, str(found.verdict)


@pytest.mark.parametrize("bug", MISTAKES.planted(), ids=lambda one: one.name)
def test_a_planted_bug_is_refuted_and_the_same_release_without_it_is_not(bug: Any) -> None:
    ((_, found, without),) = MISTAKES.caught([bug], confidence=SURE)
    assert found.refuted
    assert not without.refuted
    assert without.trials == found.trials


@pytest.mark.parametrize("loop", REPLAYED.replayed(), ids=lambda one: one.name)
def test_a_replay_names_what_an_attack_would_hardly_see(loop: Any) -> None:
    assert loop.rule in REPLAYED.tested(loop, wrong=True, confidence=SURE).names
    assert REPLAYED.tested(loop, wrong=False, confidence=SURE).consistent


SAME = AUDITED.Audited("same", (), hs.Gaussian(1.0), lambda inside, trials: np.zeros(trials))


def test_looks_share_one_error_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def falsify(plan: Any, *scores: Any, confidence: float, delta: float) -> Any:
        asked.append(confidence)
        return real(plan, *scores, confidence=confidence, delta=delta)

    real = audit.falsify
    monkeypatch.setattr(audit, "falsify", falsify)
    found = AUDITED.until_refuted(SAME, 1600, confidence=0.9)
    assert (found.refuted, found.trials, len(asked)) == (False, 1600, 6)
    errors = [1.0 - one for one in asked]
    assert errors == pytest.approx([0.6 / (math.pi * look) ** 2 for look in range(1, 7)])


def test_rows_share_one_error_probability() -> None:
    found = list(AUDITED.audits([SAME] * 4, 0.01, confidence=0.9))
    assert [one.verdict.confidence for one in found] == pytest.approx([0.975] * 4)
