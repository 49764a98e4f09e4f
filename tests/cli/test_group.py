"""The flag --group: what a plan costs several records together, by every command that has it."""

import json
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import pytest

Run = Callable[..., Any]


def told(run: Run, *arguments: str) -> Any:
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_a_group_moves_the_query_as_far_as_its_records_together(run: Run) -> None:
    laplace = told(run, "delta", "Laplace(2)", "--epsilon", "1", "--group", "3")
    assert laplace["lower"] <= 1 - math.exp((1 - 3 / 2) / 2) <= laplace["upper"]
    gaussian, mu = told(run, "delta", "Gaussian(4)", "--epsilon", "1", "--group", "3"), 0.75
    phi = NormalDist().cdf
    truth = phi(mu / 2 - 1 / mu) - math.e * phi(-mu / 2 - 1 / mu)
    assert gaussian["lower"] - 1e-12 <= truth <= gaussian["upper"] + 1e-12


def test_an_answer_says_whom_it_is_for_and_can_be_verified(run: Run) -> None:
    asked = ("epsilon", "Laplace(2)**3", "--delta", "1e-6", "--group", "3")
    answer = told(run, *asked, "--verify")
    assert answer["verification"]["status"] == "verified"
    assert answer["assumptions"][0].endswith("any 3 records together: nobody has more than 3.")
    assert "any 3 records together, of Laplace (scale 2) x 3" in run(*asked).out


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (("Laplace(2)", "--group", "0"), "group must be an integer from 1 to 10^15; got 0"),
        (("Laplace(2)", "--group", "two"), "group must be an integer"),
        (("Laplace(2)", "examples_per_user=3"), "examples_per_user: this must be"),
        (("Exponential(1)", "--group", "2"), "no mechanism is known"),
        # Records that take turns are not on the same samples.
        (
            ("CyclicPoisson(1, coefficients=[1], rounds=4, cycle=2, rate=0.1)", "--group", "2"),
            "no mechanism is known",
        ),
        (
            (
                "DPSGD(noise_multiplier=1,rate=.1,steps=3,examples_per_user=2) @ Gaussian(3)",
                "--group",
                "2",
            ),
            "Give --group or examples_per_user, not both; the plan has 2",
        ),
        (
            ("DPSGD(noise_multiplier=1,rate=.1,steps=3,examples_per_user=2)", "--group", "2"),
            "Give --group or examples_per_user, not both; the plan has 2",
        ),
    ],
)
def test_wrong_groups_are_one_clear_line(run: Run, plan: tuple[str, ...], said: str) -> None:
    status, out, err = run("epsilon", *plan, "--delta", "1e-6")
    assert (status, out) == (2, "")
    assert said in err


def test_what_is_solved_for_a_group_meets_the_target_for_that_group_and_hardly_anything_less(
    run: Run,
) -> None:
    target = ("--epsilon", "2", "--delta", "1e-6", "--group", "3")
    spent = ("--spent", "Gaussian(20)")
    for before, run_before in ((), ""), (spent, " @ Gaussian(20)"):
        found = told(run, "solve", "Gaussian()", *target, *before)
        asked = ("--delta", "1e-6", "--group", "3")
        of_it = told(run, "epsilon", f"Gaussian({found['value']!r}){run_before}", *asked)
        assert 2 - 1e-6 <= of_it["lower"] <= of_it["upper"] <= 2
        assert found["plan"]["size"] == 3
    pure = told(run, "solve", "Laplace() ** 2", "--epsilon", "1", "--delta", "0", "--group", "5")
    assert pure["value"] == pytest.approx(10, rel=1e-8)
    assert pure["value"] >= 10
