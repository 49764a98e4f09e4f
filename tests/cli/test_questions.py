"""Questions about plans: where a plan and what is not given come from, and what JSON answers."""

import io
import math
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.calibration.solve.targets import Target
from hockeystick.conversions import convert
from hockeystick.io import load_plan
from hockeystick.notions import ApproxDP
from tests.cli.conftest import Run, Write, told

TRAINING = ("rate=0.1", "steps=100", "noise_multiplier=1")


def test_json_has_all_that_a_program_needs(run: Run) -> None:
    answer = told(run, "epsilon", *TRAINING, "--delta", "1e-5")
    assert answer["lower"] <= answer["estimate"] <= answer["upper"]
    assert (answer["kind"], answer["quantity"]) == ("certified", "epsilon")
    assert (answer["at"], answer["accountant"]) == ({"delta": 1e-5}, "contour")
    assert any("Poisson" in sentence for sentence in answer["assumptions"])
    plan = {"noise_multiplier": 1, "batch_size": None, "steps": 100}
    assert answer["description"].items() >= plan.items()
    answer = told(run, "epsilon", *TRAINING, "--delta", "1e-5", "--accountant", "gdp")
    assert (answer["kind"], "upper" in answer) == ("approximation", False)
    assert answer["mu"] == pytest.approx(0.1 * math.sqrt(100 * math.expm1(1)))


def test_comparison_has_a_row_for_each_accountant_and_marks_what_is_too_low(run: Run) -> None:
    answer = told(run, "compare", *TRAINING, "--delta", "1e-5")
    rows = {row["accountant"]: row for row in answer["accountants"]}
    assert set(rows) == set(ACCOUNTANTS) - {"auto"}
    assert (rows["closed-form"]["answer"], bool(rows["closed-form"]["reason"])) == (None, True)
    assert (rows["contour"]["kind"], rows["contour"]["ratio_to_proven_upper"]) == ("exact", 1)
    assert (rows["rdp"]["kind"], rows["rdp"]["ratio_to_proven_upper"] > 1) == ("bound", True)
    assert [rows[name]["below_the_truth"] for name in ("contour", "gdp")] == [False, True]
    assert answer["proven"]["upper"] == rows["contour"]["answer"]["upper"]


def test_the_headline_is_rounded_up_and_the_interval_outwards(run: Run) -> None:
    answer = told(run, "epsilon", *TRAINING, "--delta", "1e-5")
    _, out, _ = run("epsilon", *TRAINING, "--delta", "1e-5")
    lines = {words[0]: words for line in out.splitlines() if (words := line.split())}
    headline = float(lines["epsilon"][3])
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
    ("adjacency=zero-out", {"adjacency": "zero-out"}),
]
BY_SIZE = "examples = 1000\nbatch_size = 100\nepochs = 30\nnoise_multiplier = 1\n"
BY_RATE = "examples = 1000\nrate = 0.1\nsteps = 300\nnoise_multiplier = 1\n"


@pytest.mark.parametrize("table", [BY_SIZE, BY_RATE])
@pytest.mark.parametrize(("flags", "expected"), OVERRIDES)
def test_a_flag_overrides_the_file_and_drops_its_alternative(
    run: Run, write: Write, table: str, flags: str, expected: dict[str, object]
) -> None:
    plan = told(run, "epsilon", write(f"delta = 1e-5\n[dpsgd]\n{table}"), flags)["description"]
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


FILE = "title = 'Held'\ndelta = 1e-6\n[[release]]\nmechanism = 'Laplace'\nscale = 2\n"


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def holds(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return holds


def test_a_dash_is_a_plan_file_on_standard_input(
    run: Run, standard_input: Callable[[bytes], None]
) -> None:
    standard_input(FILE.encode())
    answer = told(run, "epsilon", "-")
    assert (answer["title"], answer["upper"]) == ("Held", hs.epsilon(hs.Laplace(2), 1e-6).upper)
    standard_input(b"")
    status, out, err = run("epsilon", "-")
    assert (status, out) == (2, "")
    assert err.startswith("hockeystick: standard input: the file needs a table")


def test_a_number_is_set_by_its_path_in_the_plan(run: Run, write: Write) -> None:
    content = (
        "delta = 1e-6\n[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = 1\n"
        + "[[release]]\nmechanism = 'Laplace'\nscale = 2\n"
        + "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 0.1\n"
        + "inner = {mechanism = 'Gaussian', noise_multiplier = 2}\n"
    )
    path = write(content)

    def having(*changes: str) -> Any:
        return told(run, "epsilon", path, *changes)["description"]["parts"]

    for change in ("parts[1].scale=30", "scale=30"):
        assert having(change)[1]["scale"] == 30
    assert having("parts[2].inner.noise-multiplier=9")[2]["inner"]["noise_multiplier"] == 9
    assert having("epochs=2", "parts[1].scale=3")[0]["epochs"] == 2
    for change, reason in (
        ("release[0].scale=1", "parameter must be a number that the plan gives"),
        ("scle=3", "(did you mean 'scale'?)"),
        ("scale=-1", "hockeystick: scale must be a number >= 0 or inf; got -1"),
        ("steps=-1", "hockeystick: steps must be an integer from 0"),
    ):
        status, out, err = run("epsilon", path, change)
        assert (status, out) == (2, "")
        assert reason in err


SIZES = ["examples=600", "batch_size=10", "epochs=3", "noise_multiplier=1.1"]


def test_an_answer_in_json_stands_for_its_plan(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(run("epsilon", *SIZES, "--delta", "1e-4", "--json").out)
    asked = run("epsilon", *SIZES, "--delta", "1e-4", "--short")
    assert asked == run("epsilon", str(path), "--short")
    assert run("epsilon", str(path), "--short", "noise_multiplier=2") != asked
    plan = str(tmp_path / "plan.toml")
    assert run("init", plan, str(path)).status == 0
    assert run("epsilon", plan, "--short") == asked
    assert run("check", str(path)).out.startswith(f"{path}: well-formed")
    wrong = run("epsilon", str(path), "examples=5").err
    assert wrong.startswith(f"hockeystick: {path}: dpsgd.batch_size must be at most")


def test_an_answer_says_whom_it_is_for_and_can_be_verified(run: Run) -> None:
    asked = ("epsilon", "Laplace(2)**3", "--delta", "1e-6", "--group", "3")
    answer = told(run, *asked, "--verify")
    assert answer["verification"]["status"] == "verified"
    assert answer["assumptions"][0].endswith("any 3 records together: nobody has more than 3.")
    assert "any 3 records together, of Laplace (scale 2) x 3" in run(*asked).out


def test_what_is_solved_for_a_group_just_meets_the_target_for_that_group(run: Run) -> None:
    target = ("--epsilon", "2", "--delta", "1e-6", "--group", "3")
    found = told(run, "solve", "Gaussian()", *target)
    asked = ("--delta", "1e-6", "--group", "3")
    of_it = told(run, "epsilon", f"Gaussian({found['value']!r})", *asked)
    assert 2 - 1e-6 <= of_it["lower"] <= of_it["upper"] <= 2
    assert found["group"] == 3
    pure = told(run, "solve", "Laplace() ** 2", "--epsilon", "1", "--delta", "0", "--group", "5")
    assert pure["value"] == pytest.approx(10, rel=1e-8)
    assert pure["value"] >= 10


CONVERTED = (
    "title = 'A plan'\ndelta = 1e-5\n[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = 1\n"
)


@pytest.mark.parametrize(
    ("source", "arguments", "result"),
    [
        ("PureDP(1)", "--to ZCDP", {"rho": 0.4621171572600098}),
        ("GDP(1)", "--to RenyiDP --orders 2,8", {"divergences": [[2.0, 1.0], [8.0, 4.0]]}),
        ("ZCDP(0.5)", "--to TCDP --orders inf", {"rho": 0.5, "omega": "inf"}),
        (" RenyiDP({2: 0.5, 8: 1.9}) ", "--to RenyiDP --orders 8", {"divergences": [[8.0, 1.9]]}),
    ],
)
def test_json_carries_the_result(
    run: Run, source: str, arguments: str, result: dict[str, Any]
) -> None:
    answer = told(run, "convert", source, *shlex.split(arguments))
    for name, value in result.items():
        assert answer["result"][name] == value
    assert answer["to"] == arguments.split()[1]
    assert answer["kind"] in ("exact", "bound")
    assert answer["theorem"]
    assert answer["version"] == hs.__version__
    status, out, err = run("convert", source, *shlex.split(arguments))
    assert (status, err) == (0, "")
    assert answer["kind"] in out


def test_a_plan_file_is_a_source_too_and_its_delta_serves(run: Run, write: Write) -> None:
    path = write(CONVERTED)
    answer = told(run, "convert", path, "--to", "ApproxDP")
    plan = hs.DPSGD(rate=0.01, steps=100, noise_multiplier=1)
    assert answer["result"] == {"epsilon": hs.epsilon(plan, 1e-5).upper, "delta": 1e-5}
    assert answer["title"] == "A plan"
    assert answer["adjacency"] == "add-remove"
    assert any("Poisson" in sentence for sentence in answer["assumptions"])
    at = told(run, "convert", path, "--to", "ApproxDP", "--epsilon", "1")
    assert at["result"]["delta"] == convert(plan, ApproxDP, epsilon=1).delta


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("GDP(0.5)", hs.GDP(0.5)),
        ("RenyiDP({8: 1})", hs.RenyiDP({8: 1})),
        ("Advantage(0.2)", hs.calibration.Advantage(0.2)),
        ("TruePositiveRate(0.2, fpr=0.01)", hs.calibration.TruePositiveRate(0.2, 0.01)),
    ],
)
def test_each_target_is_written_as_in_python(
    run: Run, write: Write, written: str, target: Target
) -> None:
    plan = write('[[release]]\nmechanism = "Gaussian"\nnoise_multiplier = 2\n')
    answer = told(run, "solve", plan, "--parameter", "noise_multiplier", "--target", written)
    found = hs.calibrate(hs.Gaussian(2), "noise_multiplier", target)
    assert (answer["value"], answer["target"]) == (found.value, str(target))


LENGTH = ("examples=60000", "batch_size=256")
LEFT_OUT = [
    ((*LENGTH, "epochs=6"), ("noise_multiplier", "least")),
    ((*LENGTH, "noise_multiplier=1"), ("epochs", "most")),
    (("rate=0.01", "noise_multiplier=1"), ("steps", "most")),
    (("Laplace() ** 10 @ Gaussian(4)",), ("scale", "least")),
    (("Laplace() @ Laplace(3)",), ("parts[0].scale", "least")),
    (("PoissonSubsampled(Gaussian(), rate=0.01) ** 99",), ("noise_multiplier", "least")),
    (("ZCDP()",), ("rho", "most")),
]


@pytest.mark.parametrize(("plan", "left_out"), LEFT_OUT, ids=[one[1][0] for one in LEFT_OUT])
def test_what_the_plan_leaves_out_is_solved_for(
    run: Run, plan: tuple[str, ...], left_out: tuple[str, str]
) -> None:
    found = told(run, "solve", *plan, "--epsilon", "3", "--delta", "1e-5")
    assert (found["parameter"], found["extreme"]) == left_out


def test_the_solved_plan_is_written_as_a_plan_file(run: Run, write: Write, tmp_path: Path) -> None:
    plan = write("title = 'Held'\ndelta = 1e-3\n[dpsgd]\nrate = 0.01\nsteps = 100\n")
    out = tmp_path / "solved.toml"
    asked = ("solve", plan, "--epsilon", "2", "--delta", "1e-5", "-o", str(out))
    answer = told(run, *asked)
    file = load_plan(out)
    assert (file.title, file.delta, answer["out"]) == ("Held", 1e-5, str(out))
    found = hs.calibrate(
        hs.DPSGD(rate=0.01, steps=100, noise_multiplier=1), "noise_multiplier", hs.ApproxDP(2, 1e-5)
    )
    assert (answer["value"], answer["status"]) == (found.value, "tight")
    assert answer["bracket"] == list(found.bracket)
    assert answer["achieved"]["upper"] == found.achieved.upper <= 2
    assert file.plan == hs.DPSGD(rate=0.01, steps=100, noise_multiplier=answer["value"])
    assert hs.epsilon(file.plan, 1e-5).upper <= 2


def test_short_is_the_value_that_is_proven_to_meet_the_target(run: Run) -> None:
    asked = "solve", "Laplace()**10 @ Gaussian(4)", "--epsilon", "2", "--delta", "1e-6"
    status, out, err = run(*asked, "--short")
    found = told(run, *asked)
    assert (status, out, err) == (0, f"{found['value']!r}\n", "")
