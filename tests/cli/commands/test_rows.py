"""Flags with several values: one row for each combination."""

import json
from collections.abc import Callable

import pytest

import hockeystick as hs

Run = Callable[..., tuple[int, str, str]]

NOISE = ("--rate", "0.1", "--steps", "1", "--noise-multiplier", "1, 2", "--delta")
ONE_STEP = (*NOISE, "1e-5,1e-6,0")


def test_each_row_is_the_answer_of_its_own_values_the_last_of_which_changes_fastest(
    run: Run,
) -> None:
    status, out, err = run("epsilon", *NOISE, "1e-5,1e-6,1e-7", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["grid"] == {"noise_multiplier": [1, 2], "delta": [1e-5, 1e-6, 1e-7]}
    asked = [(noise, delta) for noise in (1, 2) for delta in (1e-5, 1e-6, 1e-7)]
    assert len(told["rows"]) == len(asked)
    for row, (noise, delta) in zip(told["rows"], asked, strict=True):
        assert row["parameters"] == {"noise_multiplier": noise, "delta": delta}
        plan = hs.DPSGD(rate=0.1, steps=1, noise_multiplier=noise)
        answer = hs.epsilon(plan, delta)
        assert (row["lower"], row["upper"]) == (answer.lower, answer.upper)
        # Each is a whole answer, for the verifier.
        assert hs.answers.load_answer(json.dumps(row).encode())


def test_a_row_without_an_answer_says_why_and_misses_every_budget(run: Run) -> None:
    status, out, err = run("epsilon", *ONE_STEP)
    assert (status, err) == (0, "")
    assert "no answer   rows 3, 6: delta must be above 0" in out
    assert run("epsilon", *ONE_STEP, "--at-most", "9")[0] == 1
    assert run("epsilon", *ONE_STEP, "--short")[0] == 2


def test_a_budget_is_met_where_every_row_meets_it(run: Run) -> None:
    asked = ("delta", "Laplace(2)", "--set", "scale=2,4,8", "--at-most")
    assert run(*asked, "0", "--epsilon", "0.5")[0] == 0
    status, out, _ = run(*asked, "0", "--epsilon", "0.3")
    assert status == 1
    assert out.count("meets") == 2
    assert out.count("misses") == 1


def test_a_row_that_meets_its_budget_at_a_large_delta_says_so(run: Run) -> None:
    flags = ("--examples=1000", "--batch-size=10", "--epochs=1", "--noise-multiplier=2")
    status, out, _ = run("epsilon", *flags, "--delta", ".4,1e-5", "--at-most", "9")
    assert status == 0
    first, second = (line for line in out.splitlines() if "meets" in line)
    assert "meets, but promises" in first
    assert "promises" not in second


def test_short_prints_a_line_for_each_row(run: Run) -> None:
    assert run("delta", "Laplace(1)", "--set", "scale=1,2,4", "--epsilon", "1", "--short") == (
        0,
        "0\n0\n0\n",
        "",
    )
    several = run("epsilon", "Laplace(1) ** 2", "--group", "1,2", "--delta", "0", "--short")
    assert several == (0, "2\n4\n", "")


@pytest.mark.parametrize("columns", [60, 110])
def test_rows_fit_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = run("epsilon", *ONE_STEP, "--at-most", "3")
    assert max(map(len, out.splitlines())) <= columns
    assert "Every row holds if" in out
    assert "rows 1 to 2: Fresh Gaussian noise" in out or columns == 60


def test_rows_that_are_judged_show_what_notes_doubt(run: Run) -> None:
    asked = ("epsilon", "examples/mnist-tutorial.toml", "--epochs", "1,2")
    said = [" ".join(run(*asked, *more)[1].split()) for more in ((), ("--at-most", "9"))]
    assert ["notes speak of shuffling" in one for one in said] == [False, True]


@pytest.mark.parametrize(
    ("batch_sizes", "said"),
    [
        ("500,4096,2048", ["row 2: a loader with", "row 3: a loader with"]),
        ("4001,4002,4003,4004,4005,4006,4007", ["row 1: a loader with", "for 6 other sizes"]),
    ],
)
def test_each_size_that_a_loader_would_round_is_told_unless_there_are_many(
    run: Run, batch_sizes: str, said: list[str]
) -> None:
    flags = ("--examples", "50000", "--steps", "1", "--noise-multiplier", "3", "--delta", "1e-6")
    _, out, _ = run("epsilon", *flags, "--batch-size", batch_sizes)
    words = " ".join(out.replace("│", " ").split())
    assert [one in words for one in said] == [True, True]
    assert words.count("a loader with batches of") == len(said) - ("other" in said[1])
