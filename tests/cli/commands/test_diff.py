import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.cli.results.difference import Difference
from hockeystick.io.plan_file import PlanFile

Run = Callable[..., Any]

TRAINING = "delta = {}\n[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = {}\n"


def certified(lower: float, upper: float) -> hs.Certified:
    answer = hs.epsilon(hs.Laplace(2), 0.1)
    assert isinstance(answer, hs.Certified)
    own = {"lower": lower, "upper": upper, "estimate": lower}
    return type(answer)(**{**{name: getattr(answer, name) for name in answer.__slots__}, **own})


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text(TRAINING.format("1e-5", 1))
    second.write_text(TRAINING.format("1e-5", 2))
    return str(first), str(second)


def test_what_differs_and_which_costs_less_is_told(run: Run, files: tuple[str, str]) -> None:
    told = json.loads(run("diff", *files, "--json").out)
    assert told["changed"] == {"noise_multiplier": [1.0, 2.0]}
    ours = [hs.epsilon(hs.DPSGD(noise_multiplier=z, rate=0.01, steps=100), 1e-5) for z in (1, 2)]
    assert [one["answer"]["upper"] for one in told["plans"]] == [one.upper for one in ours]
    low, high = told["second_less_first"]
    assert low <= ours[1].estimate - ours[0].estimate <= high < 0
    assert told["second_costs"] == "less"
    status, out, err = run("diff", *files)
    assert (status, err) == (0, "")
    words = " ".join(out.replace("│", " ").split())
    assert "noise_multiplier: 1.0 -> 2.0" in words
    assert "costs less: proven" in words
    assert json.loads(run("diff", *reversed(files), "--json").out)["second_costs"] == "more"
    assert json.loads(run("diff", files[0], files[0], "--json").out)["second_costs"] == "the same"


def test_both_are_asked_at_the_same_delta(run: Run, files: tuple[str, str]) -> None:
    Path(files[1]).write_text(TRAINING.format("1e-6", 2))
    status, out, err = run("diff", *files)
    assert (status, out) == (2, "")
    assert "b.toml at 1e-06; give --delta" in err
    assert run("diff", *files, "--delta", "1e-7").status == 0
    assert "delta must be given" in run("diff", "Laplace(1)", "Laplace(2)").err


@pytest.mark.parametrize(
    ("first", "second", "sign"),
    [
        ((1, 2), (1.5, 3), "undecided"),
        ((1, 2), (2, 3), "undecided"),
        ((1, 2), (2.5, 3), "more"),
        ((2.5, math.inf), (1, 2), "less"),
        ((1, math.inf), (math.inf, math.inf), "undecided"),
        ((1, 1), (1, 1), "the same"),
        ((1, 2), (1, 2), "undecided"),
    ],
)
def test_the_sign_is_what_the_ends_prove(
    first: tuple[float, float], second: tuple[float, float], sign: str
) -> None:
    files = PlanFile(plan=hs.Laplace(2)), PlanFile(plan=hs.Laplace(3))
    found = Difference(("A", "B"), files, 0.1, (certified(*first), certified(*second)))
    low, high = found.ends
    assert found.sign == sign
    assert low <= high
    assert (high < 0, low > 0) == (sign == "less", sign == "more")
