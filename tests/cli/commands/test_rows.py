"""Flags with several values: one row for each combination."""

import json
from collections.abc import Callable

import hockeystick as hs

Run = Callable[..., tuple[int, str, str]]

NOISE = ("--rate", "0.1", "--steps", "1", "--noise-multiplier", "1, 2", "--delta")


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


def test_a_budget_is_met_where_every_row_meets_it(run: Run) -> None:
    asked = ("delta", "Laplace(2)", "--set", "scale=2,4,8", "--at-most")
    assert run(*asked, "0", "--epsilon", "0.5")[0] == 0
    status, out, _ = run(*asked, "0", "--epsilon", "0.3")
    assert status == 1
    assert out.count("meets") == 2
    assert out.count("misses") == 1


def test_short_prints_a_line_for_each_row(run: Run) -> None:
    assert run("delta", "Laplace(1)", "--set", "scale=1,2,4", "--epsilon", "1", "--short") == (
        0,
        "0\n0\n0\n",
        "",
    )
    several = run("epsilon", "Laplace(1) ** 2", "--group", "1,2", "--delta", "0", "--short")
    assert several == (0, "2\n4\n", "")
