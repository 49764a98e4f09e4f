import json
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs

Run = Callable[..., tuple[int, str, str]]

BUDGET = ("--examples", "6000", "--epsilon", "3", "--delta", "1e-5")
SMALL = (*BUDGET, "--epochs", "5,20", "--batch-size", "120,600")


def told(run: Run, *arguments: str) -> dict[str, Any]:
    status, out, err = run("plan", *arguments, "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert isinstance(answer, dict)
    return answer


def test_json_has_the_frontier_of_the_library(run: Run) -> None:
    answer = told(run, *SMALL)
    base = hs.DPSGD(noise_multiplier=1, examples=6000, batch_size=60, epochs=1)
    points = hs.calibration.frontier(
        base, hs.ApproxDP(3, 1e-5), epochs=[5, 20], batch_sizes=[120, 600]
    )
    assert answer["points"] == [
        {
            "epochs": one.epochs,
            "batch_size": one.batch_size,
            "steps": one.steps,
            "noise_multiplier": one.noise_multiplier,
            "noise_on_mean": one.noise_on_mean,
            "epsilon_upper": one.achieved,
            "reason": None,
        }
        for one in points
    ]
    assert all(point["epsilon_upper"] <= 3 for point in answer["points"])
    assert answer["budget"] == {"epsilon": 3.0, "delta": 1e-5}
    assert (answer["examples"], answer["sampling"], answer["adjacency"]) == (
        6000,
        "poisson",
        "add-remove",
    )
    assert any("clipped" in sentence for sentence in answer["assumptions"])
    assert answer["version"] == hs.__version__


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (BUDGET[2:], "Missing --examples: an integer from 1 to 10^15"),
        (BUDGET[:2] + BUDGET[4:], "Missing --epsilon: a number >= 0 or inf"),
        ((*BUDGET, "--epochs", "1,-3"), "epochs must be"),
        ((*BUDGET, "--batch-size", "1,x"), "batch_size must be"),
        ((*BUDGET, "--batch-size", "7000"), "batch_size must be"),
        ((*BUDGET, "--plot", "a.txt"), "plot must be a file name that ends in"),
        ((*BUDGET, "--sampling", "full-batch"), "batches of one size"),
        ((*BUDGET, "--sampling", "best"), "sampling must be one of"),
        (("--examples", "x", *BUDGET[2:]), "examples must be an integer"),
        (("--examples", "60", "--epsilon", "-1", "--delta", "0.1"), "epsilon must be"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    run: Run, arguments: tuple[str, ...], allowed: str
) -> None:
    status, out, err = run("plan", *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert allowed in err
