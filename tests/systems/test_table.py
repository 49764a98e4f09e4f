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
    outcome = program("outcomes")

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
    """Run the script on a module."""
    monkeypatch.setattr(script, "import_module", lambda name: module)
    monkeypatch.setattr("sys.argv", ["table.py", *given])
    script.main()


def test_a_row_has_medians_beside_those_without_privacy(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(table, monkeypatch, fake([]), "--seeds", "3")
    rows = cells(table.PAGE.read_text(encoding="utf-8"))
    assert rows == [
        [
            f"[A system](fake.md): {setting}",
            "P, A",
            "`c`",
            "accuracy 0.100 [0.000, 0.200]",
            "accuracy 0.910 [0.900, 0.920]",
            f"({epsilon}.000, 1e-05)",
            "flips. True in all 3 runs: steps",
        ]
        for setting, epsilon in (("small", 1), ("large", 2))
    ]


def test_rows_of_one_system_are_written_anew_and_the_others_stay(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(table, monkeypatch, fake([]))
    before = table.PAGE.read_text(encoding="utf-8")
    others = [before.splitlines()[-1].replace("(fake.md)", f"({name}.md)") for name in "az"]
    old = [*before.splitlines()[:-2], others[1], "| [A system](fake.md): old | |", others[0]]
    table.PAGE.write_text("\n".join(old) + "\n", encoding="utf-8")
    monkeypatch.setattr(table, "programs", lambda: ["a", "fake", "z"])
    ran(table, monkeypatch, fake([]), "--only", "fake", "--page")
    lines = before.splitlines()
    expected = [*lines[:-2], others[0], *lines[-2:], others[1]]
    assert table.PAGE.read_text(encoding="utf-8").splitlines() == expected
    with pytest.raises(SystemExit, match="no page of 2 seeds"):
        ran(table, monkeypatch, fake([]), "--only", "fake", "--page", "--seeds", "2")


def test_a_run_that_is_not_as_accounted_fails_the_command_and_is_named(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as stopped:
        ran(table, monkeypatch, fake([], fails=1), "--seeds", "3")
    assert stopped.value.code == 1
    checks = [row[-1] for row in cells(table.PAGE.read_text(encoding="utf-8"))]
    assert checks == ["**not as accounted**: steps"] * 2


def test_after_an_interrupt_it_goes_on_from_the_rows_that_were_saved(
    table: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, given = list[int](), ("--seeds", "2", "--json", str(tmp_path / "rows.json"))
    module, settings = fake(runs), fake(runs).settings()

    def interrupted(seed: int) -> Any:
        raise KeyboardInterrupt

    broken = settings | {"large": program("outcomes").Setting(interrupted, beside="open")}
    module.settings = lambda: broken
    with pytest.raises(SystemExit) as stopped:
        ran(table, monkeypatch, module, *given)
    assert stopped.value.code == 130
    assert len(cells(capsys.readouterr().out)) == 1
    assert not table.PAGE.exists()
    runs.clear()
    ran(table, monkeypatch, fake(runs), *given)
    assert len(cells(table.PAGE.read_text(encoding="utf-8"))) == 2
    assert len(runs) == 4  # two of the setting that was left, two without privacy


def test_a_file_of_something_else_is_told(
    table: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "rows.json").write_text('[{"name": 1}]', encoding="utf-8")
    with pytest.raises(SystemExit, match="holds no rows of this program"):
        ran(table, monkeypatch, fake([]), "--json", str(tmp_path / "rows.json"))


def test_a_system_that_runs_has_its_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program("prifedsync")  # so that the script finds it
    monkeypatch.setattr("sys.argv", ["table.py", "--seeds", "1", "--only", "prifedsync"])
    program("table").main()
    rows = cells(capsys.readouterr().out)
    assert [row[0] for row in rows] == [
        f"[PriFedSync](prifedsync.md): {models} models" for models in ("personal", "global")
    ]
    assert all("True in all 1 runs: batches; rounds; views" in row[6] for row in rows)
