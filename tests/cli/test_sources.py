"""A plan may be a file, standard input, or written out, for every command that takes one."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs

Run = Callable[..., Any]
Write = Callable[[str | bytes], str]

TEXT = "Laplace(2)**3 @ Gaussian(4)"
PLAN = hs.Laplace(2) ** 3 @ hs.Gaussian(4)
FILE = "title = 'Held'\ndelta = 1e-6\n[[release]]\nmechanism = 'Laplace'\nscale = 2\n"


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def holds(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return holds


def told(run: Run, *arguments: str) -> Any:
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_a_dash_is_a_plan_file_on_standard_input(
    run: Run, standard_input: Callable[[bytes], None], tmp_path: Path
) -> None:
    standard_input(FILE.encode())
    answer = told(run, "epsilon", "-")
    assert (answer["title"], answer["upper"]) == ("Held", hs.epsilon(hs.Laplace(2), 1e-6).upper)
    standard_input(FILE.encode())
    page = tmp_path / "page.html"
    assert run("report", "-", "-o", str(page)).status == 0
    shown = re.sub("</?span[^>]*>", "", page.read_text("utf-8"))
    assert "hockeystick epsilon - --delta 1e-06" in shown
    standard_input(b"")
    status, out, err = run("epsilon", "-")
    assert (status, out) == (2, "")
    assert err.startswith("hockeystick: standard input: this file is empty")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Gaussian(sigma=5)", "unknown key Gaussian.sigma (did you mean 'noise_multiplier'?)"),
        ("Laplace(-2)", "'Laplace(-2)': Laplace.scale must be a number >= 0 or inf; got -2"),
        ("./Laplace(2)", "./Laplace(2): no such file"),
    ],
)
def test_what_is_no_plan_is_one_line(run: Run, text: str, reason: str) -> None:
    status, out, err = run("epsilon", text, "--delta", "1e-6")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert reason in err


def test_a_number_is_set_by_its_path_in_the_file_or_in_the_plan(run: Run, write: Write) -> None:
    content = (
        "delta = 1e-6\n[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = 1\n"
        + "[[release]]\nmechanism = 'Laplace'\nscale = 2\n"
        + "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 0.1\n"
        + "inner = {mechanism = 'Gaussian', noise_multiplier = 2}\n"
    )
    path = write(content)

    def having(*changes: str) -> Any:
        return told(run, "epsilon", path, *changes)["plan"]["parts"]

    for change in ("release[0].scale=30", "parts[1].scale=30", "scale=30"):
        assert having(change)[1]["scale"] == 30
    for change in ("release[1].inner.noise-multiplier=9", "parts[2].inner.noise_multiplier=9"):
        assert having(change)[2]["inner"]["noise_multiplier"] == 9
    assert having("dpsgd.epochs=2", "release[0].repeat=3")[0]["epochs"] == 2
    assert having("release[0].repeat=3")[1]["count"] == 3
    plan = told(
        run,
        "epsilon",
        "DPSGD(noise_multiplier=1, examples=1000, batch_size=10, steps=9)",
        "--delta",
        "0.1",
        "rate=0.5",
        "epochs=3",
    )["plan"]
    assert (plan["rate"], plan["batch_size"], plan["epochs"]) == (0.5, None, 3)
    for change, reason in (
        ("release[5].scale=1", "release[5].scale cannot be set: the file has no such place"),
        ("release[0].scal=3", "unknown key release[0].scal; allowed are scale"),
        ("scle=3", "scle: this must be a number that the plan gives: parts[0].noise_mult"),
        ("scle=3", "(did you mean 'scale'?)"),
        ("scale=x", "scale must be a number"),
        ("scale=-1", "hockeystick: scale must be a number >= 0 or inf; got -1"),
        ("release[0].scale=-1", "release[0].scale must be a number >= 0 or inf"),
        ("dpsgd.steps=-1", "hockeystick: steps must be an integer from 0"),
    ):
        status, out, err = run("epsilon", path, change)
        assert (status, out) == (2, "")
        assert reason in err
    again = ("epsilon", path, "scale=1", "scale=2")
    assert "scale is given twice; give it once" in run(*again).err
    written = ("epsilon", "Laplace(2)", "release[0].scale=3")
    assert "'Laplace(2)' is no plan file" in run(*written).err


TRAINING = ["examples=600", "batch_size=10", "epochs=3", "noise_multiplier=1.1"]
TABLES = {"delta": 1e-4, "dpsgd": {"rate": "1/60", "steps": 180, "noise_multiplier": 1.1}}


def test_an_answer_in_json_stands_for_its_plan(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(run("epsilon", *TRAINING, "--delta", "1e-4", "--json").out)
    asked = run("epsilon", *TRAINING, "--delta", "1e-4", "--short")
    assert asked == run("epsilon", str(path), "--short")
    assert run("epsilon", str(path), "--short", "noise_multiplier=2") != asked
    plan = str(tmp_path / "plan.toml")
    assert run("init", plan, str(path)).status == 0
    assert run("epsilon", plan, "--short") == asked
    assert run("check", str(path)).out.startswith(f"{path}: well-formed")
    wrong = run("epsilon", str(path), "examples=5").err
    assert wrong.startswith(f"hockeystick: {path}: dpsgd.batch_size must be at most")


def test_a_plan_in_json_has_the_tables_of_a_plan_file(run: Run, write: Write) -> None:
    plan = write(json.dumps({**TABLES, "title": None}))
    asked = run("epsilon", *TRAINING, "--delta", "1e-4", "--short")
    assert run("epsilon", plan, "--short") == asked
    description = hs.calibration.describe(hs.Laplace(2) ** 3)
    assert run("epsilon", write(json.dumps(description)), "--delta", "0", "--short").out == "1.5\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"dpsgd": {"rate": 1, "rate": 2}}', "'rate' is there twice"),
        ('{"dpsgd": {"rate": 1, "steps": 1}}', "dpsgd needs noise_multiplier"),
        ('{"release": [{"mechanism": "Laplace", "scale": 1e-400}]}', "within the range of a float"),
        ('{"type": "Laplac"}', "type must be a registered one"),
        ('{"rows": [{"parameters": {"release[0].scale": 3}}]}', "unknown key rows"),
        ('{"description": {}, "plan": {"mechanism": "OfGroup", "size": 2}}', "of, and --group 2"),
    ],
)
def test_json_that_stands_for_no_plan_is_refused_by_name(
    run: Run, write: Write, content: str, said: str
) -> None:
    path = write(content)
    status, _, err = run("epsilon", path, "--delta", "1e-5")
    assert (status, said in err, err.count("\n")) == (2, True, 1), err
    assert re.match(rf"hockeystick: {re.escape(path)}(:1)?: ", err)
