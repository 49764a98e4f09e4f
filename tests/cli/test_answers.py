import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants.auto import ACCOUNTANTS

Run = Callable[..., tuple[int, str, str]]
Write = Callable[[str | bytes], str]

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
PUBLISHED = {
    "abadi-2016-mnist",
    "banded-cyclic-poisson",
    "banded-square-root",
    "de-2022-cifar10",
    "fed-alpha-cdp",
    "fed-cdp",
    "fed-sdp",
    "federated-clustering",
    "gopa-random-graph",
    "imagenet-scale",
    "last-iterate",
    "local-reports",
    "mnist-tutorial",
    "noisy-iterations",
    "opacus-cifar10",
    "prifedsync-mnist",
    "prifedsync-mnist-sampled",
    "private-pca",
    "quantile-clipping",
    "shuffled-reports",
    "token-ring",
}
# What is proven of several samples of a fixed size, and of shuffled reports of any randomizer.
WIDE = {"prifedsync-mnist": 0.25, "prifedsync-mnist-sampled": 0.25, "shuffled-reports": 0.15}
# An answer about an example is shown by several tests.
WORKED_OUT = cache(hs.epsilon), cache(hs.compare)
TRAINING = ("rate=0.1", "steps=100", "noise_multiplier=1")


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def told(run: Run, *arguments: str) -> dict[str, Any]:
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out, parse_constant=refuse)
    assert isinstance(answer, dict)
    return answer


def test_every_published_plan_has_a_file() -> None:
    assert {path.stem for path in EXAMPLES} == PUBLISHED


@pytest.fixture
def worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for question in WORKED_OUT:
        monkeypatch.setattr(hs, question.__name__, question)


def test_json_has_all_that_a_program_needs(run: Run) -> None:
    answer = told(run, "epsilon", *TRAINING, "--delta", "1e-5")
    assert answer["lower"] <= answer["estimate"] <= answer["upper"]
    assert answer["kind"] == "certified"
    assert answer["quantity"] == "epsilon"
    assert answer["at"] == {"delta": 1e-5}
    assert answer["accountant"] == "contour"
    assert answer["adjacency"] == "add-remove"
    assert any("Poisson" in sentence for sentence in answer["assumptions"])
    assert answer["plan"]["noise_multiplier"] == 1
    assert answer["plan"]["batch_size"] is None
    assert answer["plan"]["total_steps"] == 100
    assert answer["plan"]["steps_rule"] == "steps = 100, as planned"
    assert isinstance(answer["version"], str)


def test_json_of_an_approximation_has_no_bounds(run: Run) -> None:
    answer = told(run, "epsilon", *TRAINING, "--delta", "1e-5", "--accountant", "gdp")
    assert answer["kind"] == "approximation"
    assert "upper" not in answer
    assert answer["value"] > 0
    assert answer["mu"] == pytest.approx(0.1 * math.sqrt(100 * math.expm1(1)))


def test_delta_answers_what_epsilon_was_asked(run: Run) -> None:
    epsilon = told(run, "epsilon", *TRAINING, "--delta", "1e-5")["estimate"]
    delta = told(run, "delta", *TRAINING, "--epsilon", repr(epsilon))
    assert delta["quantity"] == "delta"
    assert delta["estimate"] == pytest.approx(1e-5, rel=1e-9)


def test_comparison_has_a_row_for_each_accountant_and_marks_what_is_too_low(run: Run) -> None:
    answer = told(run, "compare", *TRAINING, "--delta", "1e-5")
    rows = {row["accountant"]: row for row in answer["accountants"]}
    assert set(rows) == set(ACCOUNTANTS) - {"auto"}
    assert rows["closed-form"]["answer"] is None
    assert rows["closed-form"]["reason"]
    assert rows["contour"]["kind"] == "exact"
    assert rows["contour"]["ratio_to_proven_upper"] == 1
    assert not rows["contour"]["below_the_truth"]
    assert rows["rdp"]["kind"] == "bound"
    assert rows["rdp"]["ratio_to_proven_upper"] > 1
    assert rows["gdp"]["kind"] == "approximation"
    assert rows["gdp"]["below_the_truth"]
    assert answer["proven"]["upper"] == rows["contour"]["answer"]["upper"]


def test_the_headline_is_rounded_up_and_the_interval_outwards(run: Run) -> None:
    answer = told(run, "epsilon", *TRAINING, "--delta", "1e-5")
    _, out, _ = run("epsilon", *TRAINING, "--delta", "1e-5")
    lines = {words[0]: words for line in out.splitlines() if (words := line.split())}
    headline = float(lines["epsilon"][1])
    at_least, at_most = (float(lines["proven"][place]) for place in (2, 4))
    assert at_least <= answer["lower"] <= answer["upper"] <= at_most <= headline
    assert headline - answer["upper"] < 1e-5
    assert math.isclose(at_least, at_most, rel_tol=1e-9)


OVERRIDES = [
    ("noise_multiplier=2", {"noise_multiplier": 2}),
    ("rate=0.5", {"rate": 0.5, "batch_size": None}),
    ("batch_size=90", {"batch_size": 90, "rate": None}),
    ("steps=70", {"steps": 70, "epochs": None}),
    ("epochs=7.5", {"epochs": 7.5, "steps": None}),
    ("examples=1_100", {"examples": 1100}),
    ("adjacency=zero-out", {"adjacency": "zero-out"}),
]
BY_SIZE = "examples = 1000\nbatch_size = 100\nepochs = 30\nnoise_multiplier = 1\n"
BY_RATE = "examples = 1000\nrate = 0.1\nsteps = 300\nnoise_multiplier = 1\n"


@pytest.mark.parametrize("table", [BY_SIZE, BY_RATE])
@pytest.mark.parametrize(("flags", "expected"), OVERRIDES)
def test_a_flag_overrides_the_file_and_drops_its_alternative(
    run: Run, write: Write, table: str, flags: str, expected: dict[str, object]
) -> None:
    plan = told(run, "epsilon", write(f"delta = 1e-5\n[dpsgd]\n{table}"), flags)["plan"]
    assert {name: plan[name] for name in expected} == expected


def test_a_flag_overrides_the_files_question(run: Run, write: Write) -> None:
    path = write(f"delta = 1e-5\nepsilon = 2\n[dpsgd]\n{BY_SIZE}")
    assert told(run, "epsilon", path)["at"] == {"delta": 1e-5}
    assert told(run, "epsilon", path, "--delta", "1e-6")["at"] == {"delta": 1e-6}
    assert told(run, "delta", path)["at"] == {"epsilon": 2}
    assert told(run, "compare", path, "--epsilon", "3")["at"] == {"epsilon": 3}
    status, _, err = run("compare", path)
    assert status == 2
    assert "both given" in err
