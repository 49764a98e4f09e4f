"""The table of all systems: every system is in it, no cell is empty, nothing finished is lost."""

import ast
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.systems.programs import FOLDER, program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


def systems() -> dict[str, str]:
    """Return what each program calls its system, without importing it."""
    found = {}
    for path in FOLDER.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SYSTEM":
                found[path.stem] = ast.literal_eval(node.value)
    return found


def saved() -> list[dict[str, Any]]:
    """Return the rows that are shown."""
    rows: list[dict[str, Any]] = json.loads((FOLDER / "table.json").read_text(encoding="utf-8"))
    return rows


def test_every_system_is_shown_with_every_column() -> None:
    rows = saved()
    assert {one["program"]: one["system"] for one in rows} == systems()
    assert all(cell for one in rows for cell in one.values())
    for one in rows:
        assert re.search(r"\d\.\d{3}", one["result"]), one
        assert re.fullmatch(r"\(\d+\.\d{3}, [\d.e-]+\)|no privacy", one["cost"]), one
        assert one["check"] == f"{one['seeds']} runs"
    assert Counter(one["cost"] for one in rows)["no privacy"] <= 1


@pytest.mark.parametrize("name", sorted(set(systems()) - {"flower_digits"}))
def test_every_setting_of_a_system_is_shown_once(name: str) -> None:
    expected = list(program("table").private(program(name).settings()))
    assert sorted(one["setting"] for one in saved() if one["program"] == name) == sorted(expected)


def fake(runs: list[int], fails: int = -1) -> Any:
    """Return a system of two settings, and of one without privacy; a run of one seed is wrong."""
    outcome = program("digits")

    def run(epsilon: float, seed: int) -> Any:
        runs.append(seed)
        plain = epsilon == float("inf")
        result = {"accuracy": 0.9 + seed / 100 if plain else seed / 10}
        return outcome.Outcome("s", result, "plan", epsilon, 1e-5, {"steps": seed != fails})

    def settings() -> Any:
        return {
            "small": outcome.Setting(lambda seed: run(1.0, seed), beside="open"),
            "large": outcome.Setting(lambda seed: run(2.0, seed), beside="open"),
            "open": outcome.Setting(lambda seed: run(float("inf"), seed), beside="open"),
        }

    return SimpleNamespace(__name__="fake", SYSTEM="A system", settings=settings)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return the script, with one system, and a file of its own."""
    script = program("table")
    monkeypatch.setattr(script, "programs", lambda: ["fake"])
    monkeypatch.setattr(script, "FOLDER", tmp_path / "examples" / "systems")
    monkeypatch.setattr(script, "SAVED", tmp_path / "table.json")
    return script


def ran(script: Any, monkeypatch: pytest.MonkeyPatch, module: Any, *given: str) -> None:
    monkeypatch.setattr(script, "import_module", lambda name: module)
    monkeypatch.setattr("sys.argv", ["table.py", *given])
    script.main()


def test_a_run_that_is_not_as_accounted_fails_the_command_and_is_named(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as stopped:
        ran(table, monkeypatch, fake([], fails=1), "--seeds", "3")
    assert stopped.value.code == 1
    checks = [one["check"] for one in json.loads(table.SAVED.read_text(encoding="utf-8"))]
    assert checks == ["**not as accounted**: steps"] * 2


@pytest.mark.parametrize(
    ("epsilons", "shown"), [((1.0, 0.5), "(1.000, 1e-05)"), ((0.1221, 0.1), "(0.123, 1e-05)")]
)
def test_the_cost_is_the_largest_of_the_runs_rounded_up(
    epsilons: tuple[float, ...], shown: str
) -> None:
    outcome = program("digits")
    assert outcome.cost([outcome.Outcome("", {}, "", one, 1e-5) for one in epsilons]) == shown
