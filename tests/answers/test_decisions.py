"""A decision is a comparison with a proven end; a caution says what an answer hides."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.answers import Decision, Units, cautions, decide, suggested_delta, units_of
from hockeystick.cli import main
from hockeystick.errors import ParameterError

TRAINING = hs.DPSGD(examples=50_000, batch_size=500, epochs=1, noise_multiplier=1.0)
FLAGS = ("examples=50000", "batch_size=500", "epochs=1", "noise_multiplier=1")
BETWEEN = hs.Certified(1.0, 1.5, 2.0, quantity="epsilon", accountant="rdp")


@pytest.mark.parametrize(
    ("budget", "decision"),
    [
        (2.0, Decision.MEETS),
        (math.nextafter(2.0, 0.0), Decision.UNDECIDED),
        (1.0, Decision.UNDECIDED),
        (math.nextafter(1.0, 0.0), Decision.MISSES),
        (math.inf, Decision.MEETS),
        (0, Decision.MISSES),
    ],
)
def test_only_a_proven_end_decides(budget: float, decision: Decision) -> None:
    assert decide(BETWEEN, budget) is decision


def test_an_approximation_decides_nothing() -> None:
    given: Any = hs.Approximate(1.0, quantity="epsilon", accountant="gdp")
    with pytest.raises(ParameterError, match="an approximation decides nothing"):
        decide(given, 3.0)
    with pytest.raises(ParameterError, match=r"^at_most must be "):
        decide(BETWEEN, math.nan)


@pytest.mark.parametrize(
    ("delta", "about"),
    [
        (2e-5, [("delta", False)]),
        (1.99e-5, [("delta", True)]),
        (2.1e-6, [("delta", True)]),
        (2e-6, []),
    ],
)
def test_a_delta_near_one_over_the_examples_is_cautioned_of(
    delta: float, about: list[tuple[str, bool]]
) -> None:
    found = cautions(hs.epsilon(TRAINING, delta), TRAINING, delta=delta)
    assert [(one.about, one.is_mild) for one in found] == about


@pytest.mark.parametrize(("upper", "said"), [(10.0, 0), (10.5, 1), (math.inf, 1)])
def test_an_epsilon_above_ten_is_cautioned_of(upper: float, said: int) -> None:
    answer = hs.Certified(1.0, 1.0, upper, quantity="epsilon", accountant="rdp")
    assert len(cautions(answer, hs.Gaussian(1.0), delta=1e-5)) == said


def test_what_is_protected_is_counted_wherever_it_is_said() -> None:
    users = hs.DPSGD(
        examples=50_001, batch_size=500, epochs=1, noise_multiplier=1.0, examples_per_user=2
    )
    assert units_of(users) == Units(50_001, "examples")
    assert units_of(hs.Laplace(1.0) @ TRAINING) == Units(50_000, "examples")
    assert units_of(hs.Gaussian(1.0) ** 3) is None


@pytest.mark.parametrize(
    ("examples", "delta"), [(1, 0.1), (10, 1e-2), (11, 1e-3), (60_000, 1e-6), (10**9, 1e-10)]
)
def test_a_suggested_delta_is_a_tenth_of_one_over_the_examples_or_less(
    examples: int, delta: float
) -> None:
    assert suggested_delta(Units(examples, "examples")) == delta


@pytest.mark.parametrize(("budget", "status", "word"), [("3", 0, "meets"), (".1", 1, "misses")])
def test_the_command_says_its_decision_by_its_exit_status(
    capsys: pytest.CaptureFixture[str], budget: str, status: int, word: str
) -> None:
    asked = ("epsilon", *FLAGS, "--delta", "1e-6", "--at-most", budget)
    assert main(asked) == status
    told = capsys.readouterr().out
    assert f"{word}: epsilon at most" in told
    assert main((*asked, "--json")) == status
    assert json.loads(capsys.readouterr().out)["budget"]["decision"] == word


@pytest.mark.parametrize(
    ("asked", "budget", "but"),
    [
        (("epsilon", "--delta", ".4"), "3", "a delta of 0.4 promises little: it is not below"),
        (("epsilon", "--delta", "1"), "3", "a delta of 1 promises nothing"),
        (("delta", "--epsilon", "0"), ".9", "a delta of 0.0506700 promises little"),
        (("epsilon", "--delta", "2e-6"), "3", None),
        (("epsilon", "--delta", ".4"), "0", "a delta of 0.4 promises little: it is not below"),
        (("delta", "--epsilon", "0"), ".05", None),
    ],
)
def test_a_budget_that_is_met_at_a_large_delta_says_so_in_its_verdict(
    capsys: pytest.CaptureFixture[str], asked: tuple[str, ...], budget: str, but: str | None
) -> None:
    command, *at = asked
    main((command, *FLAGS, *at, "--at-most", budget))
    shown = " ".join(capsys.readouterr().out.split())
    main((command, *FLAGS, *at, "--at-most", budget, "--json"))
    told = json.loads(capsys.readouterr().out)["budget"]["reservation"]
    assert (told or "").startswith(but or "")
    assert (f", but {told}" in shown) is (but is not None)


# What is done to numbers, and to intervals by mistake.
AS_A_NUMBER: list[Callable[[Any], object]] = [
    lambda answer: answer < 3,
    lambda answer: max(answer, answer),
    lambda answer: round(answer, 2),
    lambda answer: answer + 1,
    lambda answer: sum([answer]),
    math.floor,
]


def test_an_interval_is_not_taken_for_a_number() -> None:
    for done in AS_A_NUMBER:
        for answer in (BETWEEN, hs.Approximate(1.0, quantity="epsilon", accountant="gdp")):
            with pytest.raises(TypeError):
                done(answer)


def test_an_answer_is_formatted_and_logged_like_any_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    noise = hs.calibrate(hs.Gaussian(1), "noise_multiplier", hs.ApproxDP(1, 1e-5))
    for answer, number, up in ((BETWEEN, "2.00", "2.00"), (noise, "3.73", "3.74")):
        logging.warning("%.2f, %s", answer, answer)
        assert caplog.messages.pop() == f"{number}, {answer}"
        assert f"{answer:.2f}" == up
        assert json.dumps(float(answer)) == repr(float(answer))


def test_rounds_that_all_run_on_one_sample_are_told_from_rounds_that_draw_their_own() -> None:
    tree = hs.mechanisms.TreeAggregation(10, leaves=7)
    for plan in (hs.PoissonSubsampled(tree, 0.1), hs.PoissonSubsampled(tree, 0.1) @ hs.Laplace(9)):
        (found,) = hs.answers.cautions(hs.epsilon(plan, 1e-5), plan, delta=1e-5)
        assert found.text.startswith("all rounds run on one and the same sample")
    assert hs.answers.cautions(hs.epsilon(tree, 1e-5), tree, delta=1e-5) == ()
