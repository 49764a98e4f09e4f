"""What a program is told under ``--json`` where there is no answer."""

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.cli.refusal import Refusal

Run = Callable[..., Any]
Write = Callable[[str | bytes], str]

TRAINING = "--rate 0.01 --steps 100 --noise-multiplier 1"
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
    (f"tradeoff {TRAINING} --plot nowhere/a.svg", "OSError", {}),
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


def test_a_budget_that_does_not_suffice_and_an_interrupt_keep_their_statuses() -> None:
    spent = Refusal.of(hs.errors.BudgetExhausted(hs.GDP(2), hs.GDP(1), "nothing", "a step"))
    assert (spent.kind, spent.status, spent.known["left"]) == ("BudgetExhausted", 4, "nothing")
    stopped = json.loads(Refusal.of(KeyboardInterrupt()).as_json)
    assert stopped["error"]["exit_status"] == 130


def test_a_budget_that_is_missed_is_an_answer_with_status_1(run: Run) -> None:
    status, out, err = run(*f"epsilon {TRAINING} --delta 1e-5 --at-most 0.1 --json".split())
    assert (status, err) == (1, "")
    assert json.loads(out)["budget"]["decision"] == "misses"


def test_json_may_be_a_name_behind_two_dashes(run: Run) -> None:
    assert run("epsilon", "--delta", "1e-5", "--", "--json").out == ""


def test_only_an_option_of_near_spelling_is_offered(run: Run) -> None:
    assert "Did you mean" not in run("check", "plan.toml", "--epsilon", "3")[2]


SIZES = "--examples 60000 --epochs 1 --noise-multiplier 1 --delta 1e-6"
WRITTEN_ELSEWHERE = [
    ("epsilon FLAGS --delta 1%", "got '1%'; write 0.01"),
    ("epsilon FLAGS --delta 1e-5 --at-most 4%", "got '4%'; epsilon is no percentage: write 4\n"),
    ("delta FLAGS --epsilon 4.5%", "got '4.5%'; epsilon is no percentage: write 4.5\n"),
    ("delta FLAGS --epsilon 1 --at-most 4%", "got '4%'; write 0.04\n"),
    (
        "solve --rate 0.1 --noise-multiplier 1 --steps 10,20",
        "got '10,20'; write one value: 10",
    ),
    ("epsilon FLAGS --delta 2x10^-6", "got '2x10^-6'; write 2e-6"),
    ("epsilon FLAGS --delta 1e\u22125", "; write 1e-5"),
    ("epsilon FLAGS --delta 1e-5 --at-most 2,5", "got '2,5'; write 2.5"),
    ("epsilon FLAGS --delta 1e-5 --max-epsilon 3", "Did you mean '--at-most'?"),
    ("epsilon FLAGS --examples 60,000 --delta 1e-5", "got '60,000' (write 60000)\n"),
    ("epsilon FLAGS --delta 1e-5 --at-most 1,500", "got '1,500'; write 1500, or 1.500"),
    ("epsilon FLAGS --delta 0,004", "got '0,004'; write 0.004\n"),
    ("delta --rate 12,000 --steps 9 --noise-multiplier 1", "to 1; got '12,000'\n"),
    ("delta --rate 250% --steps 9 --noise-multiplier 1", "to 1; got '250%'\n"),
    (
        "epsilon SIZES --batch-size 0.4%",
        "got '0.4%' (a share of the examples is a rate: write --rate 0.004 in its place)",
    ),
    (
        "epsilon SIZES --batch-size 0.004",
        "got 0.004 (a share of the examples is a rate: write --rate 0.004 in its place)",
    ),
    ("solve --rate 0.1 --noise-multiplier 1 --steps 1,234,567", "(write 1234567)\n"),
    ("epsilon FLAGS --examples 6%", "got '6%'\n"),
    (
        "verify a.json b.json",
        "argument (b.json); verify takes one file at a time: after the first, hockeystick verify "
        "b.json (see",
    ),
    ("diff a.toml", "Missing the second plan: diff compares two, as hockeystick diff a.toml other"),
    ("diff", "Missing argument 'A'"),
    ("diff a.toml b.toml c.toml", "argument (c.toml); diff compares two plans: each of the others"),
    ("check plan.toml --epsilon 3", "hockeystick epsilon PLAN --at-most E"),
    ("plan plan.toml", "hockeystick epsilon says what a plan costs, and hockeystick check what it"),
]


@pytest.mark.parametrize(("arguments", "said"), WRITTEN_ELSEWHERE)
def test_what_newcomers_write_is_told_how_to_write_it(run: Run, arguments: str, said: str) -> None:
    status, _, err = run(*arguments.replace("FLAGS", TRAINING).replace("SIZES", SIZES).split())
    assert (status, said in err) == (2, True), err
    assert "--noise-multiplier" in run("epsilon", "plan.toml", "--noise-multiplyer", "3")[2]


def test_one_budget_has_both_names_and_a_short_answer_its_cautions(run: Run) -> None:
    plan = ["--rate", "0.01", "--steps", "100", "--noise-multiplier", "1", "--delta", "1e-5"]
    for name in ("--at-most", "--budget-epsilon"):
        assert run("epsilon", *plan, name, "0.01")[0] == 1
    few = [
        "--examples",
        "100",
        "--batch-size",
        "1",
        "--steps",
        "100",
        "--noise-multiplier",
        "1",
        "--delta",
        "0.4",
    ]
    status, out, err = run("epsilon", *few, "--at-most", "3", "--short")
    assert (status, out) == (0, "0\n")
    assert err.startswith("hockeystick: caution: a delta of 0.4 is not below 1 / 100")
