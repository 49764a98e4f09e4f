"""A decision is a comparison with a proven end; a caution says what an answer hides."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.answers import Decision, Units, cautions, decide, suggested_delta
from hockeystick.cli import main
from hockeystick.errors import ParameterError

TRAINING = hs.DPSGD(examples=50_000, batch_size=500, epochs=1, noise_multiplier=1.0)
FLAGS = ("--examples", "50000", "--batch-size", "500", "--epochs", "1", "--noise-multiplier", "1")
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


@pytest.mark.parametrize("budget", [-1.0, math.nan, "3"])
def test_a_budget_that_is_none_is_refused(budget: Any) -> None:
    with pytest.raises(ParameterError, match=r"^at_most must be "):
        decide(BETWEEN, budget)


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
    assert f"{word} epsilon at most" in told
    assert ("solve with --parameter noise_multiplier" in told) == (word == "misses")
    assert main((*asked, "--json")) == status
    assert json.loads(capsys.readouterr().out)["budget"]["decision"] == word


@pytest.mark.parametrize(
    ("asked", "budget", "but"),
    [
        (("epsilon", "--delta", ".4"), "3", "a delta of 0.4 promises little: it is not below"),
        (("epsilon", "--delta", "1"), "3", "a delta of 1 promises nothing"),
        (
            ("delta", "--epsilon", "0"),
            ".9",
            "a delta of 0.0506700 promises little: it is not below",
        ),
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
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    verdict = shown.partition("budget ")[2].partition(" caution")[0].partition(" proven")[0]
    main((command, *FLAGS, *at, "--at-most", budget, "--json"))
    told = json.loads(capsys.readouterr().out)["budget"]["reservation"]
    if but is None:
        assert told is None
        assert "promises" not in verdict
    else:
        assert told.startswith(but)
        assert verdict.endswith(f", but {told}")


def test_the_command_lets_no_approximation_decide(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("epsilon", *FLAGS, "--delta", "1e-6", "--at-most", "3", "--accountant", "gdp")
    assert main(asked) == 2
    assert "gdp only approximates it" in capsys.readouterr().err
