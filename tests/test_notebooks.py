"""The notebooks are stored plainly: without output, and the same whoever saved them last.

``make notebooks`` runs them.
"""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
PLAIN = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MACHINE = re.compile(r"/(home|root|Users|tmp|work)/")


def faults(notebook: dict[str, Any], number: str) -> set[str]:
    """Return what is wrong with a notebook of some number."""
    cells = notebook["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    text = "".join("".join(cell["source"]) for cell in cells)
    wrong = {
        "metadata": notebook["metadata"] != PLAIN or any(cell["metadata"] for cell in cells),
        "format": (notebook["nbformat"], notebook["nbformat_minor"]) != (4, 5),
        "output": any(cell["outputs"] for cell in code),
        "count": any(cell["execution_count"] is not None for cell in code),
        "ids": [cell["id"] for cell in cells] != _ids(number, len(cells)),
        "heading": not "".join(cells[0]["source"]).startswith(f"# {int(number)} "),
        "claims": "assert " not in text,
        "machine": MACHINE.search(text) is not None,
    }
    return {name for name, is_wrong in wrong.items() if is_wrong}


def _ids(number: str, count: int) -> list[str]:
    """Return the names of so many cells."""
    return [f"{number}-{index:02}" for index in range(1, count + 1)]


def read(path: Path) -> dict[str, Any]:
    """Return a notebook as it is stored."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def test_the_notebooks_are_numbered_from_one() -> None:
    assert [path.name[:3] for path in PATHS] == [f"{n:02}-" for n in range(1, len(PATHS) + 1)]
    assert len(PATHS) == 8


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_output_and_states_claims(path: Path) -> None:
    assert faults(read(path), path.name[:2]) == set()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_in_the_usual_layout(path: Path) -> None:
    usual = json.dumps(read(path), indent=1, ensure_ascii=False) + "\n"
    assert path.read_text(encoding="utf-8") == usual


def test_a_notebook_that_was_run_or_saved_elsewhere_is_noticed() -> None:
    good = read(PATHS[0])
    ran = next(n for n, cell in enumerate(good["cells"]) if cell["cell_type"] == "code")

    def spoiled(**fields: Any) -> set[str]:
        notebook = copy.deepcopy(good)
        notebook["cells"][ran] |= fields
        return faults(notebook, "01")

    assert spoiled() == set()
    assert spoiled(outputs=[{"output_type": "stream"}]) == {"output"}
    assert spoiled(execution_count=3) == {"count"}
    assert spoiled(id="8d1f") == {"ids"}
    assert spoiled(metadata={"tags": ["x"]}) == {"metadata"}
    assert spoiled(source=["open('/home/me/data.csv')"]) == {"machine"}
    assert faults(good | {"metadata": {}}, "01") == {"metadata"}
    assert faults(good, "02") == {"ids", "heading"}
