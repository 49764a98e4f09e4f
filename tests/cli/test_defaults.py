"""What is not given: where it comes from, in which order, and that the answer says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]

TRAINING = ("rate=0.1", "steps=10", "noise_multiplier=2")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the project's file, of whose folder a subfolder is where the command runs."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.hockeystick]\ndelta = 1e-6\nadjacency = 'zero-out'\n", encoding="utf-8")
    return path


def told(run: Run, *arguments: str) -> dict[str, Any]:
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert isinstance(answer, dict)
    return answer


def test_the_order_is_flag_then_file_then_environment_then_project(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"[tool.hockeystick] of {project}"
    answer = told(run, "epsilon", *TRAINING)
    assert (answer["at"], answer["adjacency"]) == ({"delta": 1e-6}, "zero-out")
    assert answer["defaults"] == [
        {"name": "adjacency", "value": "zero-out", "source": table},
        {"name": "delta", "value": 1e-6, "source": table},
    ]
    monkeypatch.setenv("HOCKEYSTICK_DELTA", "1e-7")
    monkeypatch.setenv("HOCKEYSTICK_ADJACENCY", "add-remove")
    answer = told(run, "epsilon", *TRAINING)
    assert (answer["at"], answer["adjacency"]) == ({"delta": 1e-7}, "add-remove")
    assert answer["defaults"][1]["source"] == "HOCKEYSTICK_DELTA in the environment"
    Path("plan.toml").write_text(
        "delta = 1e-8\n[dpsgd]\nrate = 0.1\nsteps = 10\nnoise_multiplier = 2\n"
        "adjacency = 'zero-out'\n",
        encoding="utf-8",
    )
    answer = told(run, "epsilon", "plan.toml")
    assert (answer["at"], answer["adjacency"]) == ({"delta": 1e-8}, "zero-out")
    assert "defaults" not in answer
    answer = told(run, "epsilon", "plan.toml", "--delta", "1e-9")
    assert (answer["at"], "defaults" in answer) == ({"delta": 1e-9}, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("detla = 1e-6", "its keys must be of delta, adjacency; got detla = 1e-06"),
        ("delta = 2", "delta must be a number from 0 to 1; got 2"),
        ("delta = true", "delta must be a number from 0 to 1; got True"),
        ("adjacency = 'same'\ndelta = 1e-5", "'zero-out'; got 'same'"),
        ("delta = ", "is no TOML"),
    ],
)
def test_a_key_or_value_that_cannot_be_is_one_line_with_its_file(
    run: Run, project: Path, text: str, said: str
) -> None:
    project.write_text(f"[tool.hockeystick]\n{text}\n", encoding="utf-8")
    status, out, err = run("epsilon", *TRAINING)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert str(project) in err
    assert said in err
    assert run("epsilon", "Laplace(2)", "--delta", "1e-6")[0] == 0, "the file is not needed"
