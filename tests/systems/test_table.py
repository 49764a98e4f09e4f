"""The table of all systems: every system is in it, no cell is empty, nothing finished is lost."""

import ast
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.systems.programs import FOLDER, program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")

PAGE = FOLDER.parents[1] / "docs" / "systems" / "table.md"
SYSTEM = {"name": "A system", "paper": "P", "algorithm": "A", "command": "c", "check": "flips"}


def systems() -> dict[str, dict[str, str]]:
    """Return what each program says of itself, without importing it."""
    found = {}
    for path in FOLDER.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SYSTEM":
                found[path.stem] = ast.literal_eval(node.value)
    return found


def cells(text: str) -> list[list[str]]:
    """Return the cells of a table in Markdown, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_the_page_has_every_system_with_every_column() -> None:
    text, known = PAGE.read_text(encoding="utf-8"), systems()
    rows = cells(text)
    assert text.startswith(program("table").HEAD.format(seeds=5))
    assert len(rows) >= 30
    assert {len(row) for row in rows} == {7}
    assert all(cell for row in rows for cell in row)
    assert len({row[0] for row in rows}) == len(rows)
    assert {row[2] for row in rows} == {f"`{own['command']}`" for own in known.values()}
    assert len(known) >= 14
    for name, own in known.items():
        mine = [row for row in rows if row[2] == f"`{own['command']}`"]
        assert mine, name
        for row in mine:
            assert row[0].startswith(f"[{own['name']}](")
            assert row[1] == f"{own['paper']}, {own['algorithm']}"
            assert row[6].startswith(f"{own['check']}. True in all ")
            assert re.search(r"\d\.\d{3}", row[3]), row
            assert re.fullmatch(r"\(\d+\.\d{3}, [\d.e-]+\)|no privacy", row[5]), row
    assert Counter(row[5] == "no privacy" for row in rows)[True] <= 1


@pytest.mark.parametrize("name", sorted(set(systems()) - {"flower_digits"}))
def test_the_page_has_every_setting_of_a_system(name: str) -> None:
    table, own = program("table"), systems()[name]
    expected = {
        f"[{own['name']}]({name}.md): {one}" for one in table.private(program(name).settings())
    }
    rows = cells(PAGE.read_text(encoding="utf-8"))
    assert {row[0] for row in rows if f"({name}.md)" in row[0]} == expected


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

    return SimpleNamespace(__name__="fake", SYSTEM=SYSTEM, settings=settings)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return the script, with one system, and a page of its own."""
    script = program("table")
    monkeypatch.setattr(script, "programs", lambda: ["fake"])
    monkeypatch.setattr(script, "FOLDER", tmp_path / "examples" / "systems")
    monkeypatch.setattr(script, "PAGE", tmp_path / "table.md")
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
    checks = [row[-1] for row in cells(table.PAGE.read_text(encoding="utf-8"))]
    assert checks == ["**not as accounted**: steps"] * 2


@pytest.mark.parametrize(
    ("epsilons", "shown"), [((1.0, 0.5), "(1.000, 1e-05)"), ((0.1221, 0.1), "(0.123, 1e-05)")]
)
def test_the_cost_is_the_largest_of_the_runs_rounded_up(
    epsilons: tuple[float, ...], shown: str
) -> None:
    outcome = program("digits")
    assert outcome.cost([outcome.Outcome("", {}, "", one, 1e-5) for one in epsilons]) == shown
