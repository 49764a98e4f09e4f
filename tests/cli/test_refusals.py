"""What a program is told under ``--json`` where there is no answer."""

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.cli.refusal import refuse

Run = Callable[..., Any]
Write = Callable[[str | bytes], str]

TRAINING = "rate=0.01 steps=100 noise_multiplier=1"
REFUSED = [
    (f"epsilon {TRAINING} --delta nan", "ParameterError", {"parameter": "delta", "value": "nan"}),
    (f"epsilon {TRAINING} --delta abc", "ParameterError", {"value": "abc"}),
    (f"epsilon {TRAINING} --delta 1e-400", "ParameterError", {"value": "1E-400"}),
    (f"epsilon {TRAINING} --detla 1", "UsageError", {"parameter": "detla"}),
    (f"epsilon {TRAINING} --delta", "UsageError", {}),
    ("convert 'GDP(1)' --delta", "UsageError", {}),
    ("nonsense", "UsageError", {}),
    ("epsilon nowhere.toml", "PlanFileError", {}),
    ("epsilon 'Laplace(-2)'", "PlanFileError", {"parameter": "scale", "value": -2}),
    (f"epsilon {TRAINING} --delta 1e-5 --accountant basic", "UnsupportedError", {}),
    ("verify nowhere.json", "AnswerError", {}),
    (f"tradeoff {TRAINING} -o nowhere/a.svg", "OSError", {}),
    (
        "solve 'Laplace()' --epsilon 0.5 --delta 0 --spent 'PureDP(1)'",
        "InfeasibleError",
        {"best": "inf"},
    ),
]


@pytest.mark.parametrize(("arguments", "kind", "known"), REFUSED)
def test_a_refusal_is_one_object(
    run: Run, arguments: str, kind: str, known: dict[str, object]
) -> None:
    words = shlex.split(arguments)
    status, out, err = run(words[0], "--json", *words[1:])
    error = json.loads(out)["error"]
    expected = 1 if kind == "InfeasibleError" else 2
    assert (status, error["exit_status"], error["type"]) == (expected, expected, kind)
    assert err == f"hockeystick: {error['message']}\n"
    assert error.items() >= known.items()
    # Without --json, standard output stays empty.
    assert run(*words) == (expected, "", err)


def test_a_budget_that_does_not_suffice_and_an_interrupt_keep_their_statuses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    spent = hs.errors.BudgetExhausted(hs.GDP(2), hs.GDP(1), "nothing", "a step")
    assert refuse(spent, as_json=True) == 4
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], error["left"]) == ("BudgetExhausted", "nothing")
    assert refuse(KeyboardInterrupt()) == 130


def test_a_budget_that_is_missed_is_an_answer_with_status_1(run: Run) -> None:
    status, out, err = run(*f"epsilon {TRAINING} --delta 1e-5 --at-most 0.1 --json".split())
    assert (status, err) == (1, "")
    assert json.loads(out)["budget"]["decision"] == "misses"


SIZES = "examples=60000 epochs=1 noise_multiplier=1 --delta 1e-6"
