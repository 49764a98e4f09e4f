"""The table of all systems: every system is in it, no cell is empty, nothing finished is lost."""

import ast
import json
import re
from collections import Counter
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
    expected = list(program(name).settings())
    assert [one["setting"] for one in saved() if one["program"] == name] == expected


@pytest.mark.parametrize("name", ["gopa", "gossip", "noisy_iterations", "prifedsync"])
def test_a_run_is_as_accounted_and_within_its_row(name: str) -> None:
    setting, run = next(iter(program(name).settings().items()))
    (row,) = (one for one in saved() if (one["program"], one["setting"]) == (name, setting))
    found = run(0)
    assert all(found.checks.values())
    ends = re.findall(r"\[(\S+), (\S+)\]", f"{row['result']}; {row['plain']}")
    values = (*found.result.values(), *found.plain.values())
    for (least, largest), value in zip(ends, values, strict=True):
        assert float(least) - 5e-4 <= value <= float(largest) + 5e-4
    assert program("digits").cells([found])["cost"] == row["cost"]


@pytest.mark.parametrize(
    ("epsilons", "shown"), [((1.0, 0.5), "(1.000, 1e-05)"), ((0.1221, 0.1), "(0.123, 1e-05)")]
)
def test_the_cost_is_the_largest_of_the_runs_rounded_up(
    epsilons: tuple[float, ...], shown: str
) -> None:
    digits, figures = program("digits"), {"accuracy": 0.9}
    found = [digits.Outcome(figures, figures, one, 1e-5, {"steps": True}) for one in epsilons]
    assert digits.cells(found)["cost"] == shown
    found[0].checks["steps"] = False
    assert digits.cells(found)["check"] == "**not as accounted**: steps"
