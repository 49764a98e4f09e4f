"""The notebooks are stored as they ran, and the same whoever saved them last.

``make notebooks`` runs them, and compares what they show.
"""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import runs

PATHS = sorted(runs.FOLDER.glob("*.ipynb"))
PLAIN = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MACHINE = re.compile(r"/(home|root|Users|tmp|work)/|\b0x[0-9a-f]{6,}")
MOST_LETTERS = 100_000


def faults(notebook: dict[str, Any], number: str) -> set[str]:
    cells = notebook["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    text = "".join("".join(cell["source"]) for cell in cells)
    shown = [json.dumps(output) for cell in code for output in cell["outputs"]]
    plain = {name: one for name, one in notebook["metadata"].items() if name != "hockeystick"}
    wrong = {
        "metadata": plain != PLAIN or any(cell["metadata"] for cell in cells),
        "format": (notebook["nbformat"], notebook["nbformat_minor"]) != (4, 5),
        "stale": notebook["metadata"].get("hockeystick") != {"code": runs.code_of(notebook)},
        "silent": len(shown) < len(code) // 2,
        "large": any(len(one) > MOST_LETTERS for one in shown),
        "warning": any('"stderr"' in one or '"error"' in one for one in shown),
        "count": any(cell["execution_count"] is not None for cell in code),
        "ids": any(c["id"] != f"{number}-{n:02}" for n, c in enumerate(cells, 1)),
        "heading": not "".join(cells[0]["source"]).startswith(f"# {int(number)} "),
        "claims": "assert " not in text,
        "machine": MACHINE.search("".join([text, *shown])) is not None,
    }
    return {name for name, is_wrong in wrong.items() if is_wrong}


def test_the_notebooks_are_numbered_from_one() -> None:
    assert [path.name[:3] for path in PATHS] == [f"{n:02}-" for n in range(1, len(PATHS) + 1)]
    assert len(PATHS) == 8


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_as_its_code_ran_and_states_claims(path: Path) -> None:
    assert faults(runs.read(path), path.name[:2]) == set()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_in_the_usual_layout(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == runs.written(runs.read(path))


def test_a_notebook_that_was_changed_or_saved_elsewhere_is_noticed() -> None:
    good = runs.read(PATHS[0])
    ran = next(n for n, cell in enumerate(good["cells"]) if cell["cell_type"] == "code")

    def spoiled(**fields: Any) -> set[str]:
        notebook = copy.deepcopy(good)
        notebook["cells"][ran] |= fields
        return faults(notebook, "01")

    text = {"name": "stderr", "output_type": "stream", "text": ["a warning"]}
    assert spoiled() == set()
    assert spoiled(outputs=[text]) == {"warning"}
    assert spoiled(execution_count=3) == {"count"}
    assert spoiled(source=["open('/home/me/data.csv')"]) == {"machine", "stale"}
    assert faults(good | {"metadata": PLAIN}, "01") == {"stale"}
    assert faults(good, "02") == {"ids", "heading"}


def test_another_text_is_seen_and_another_last_digit_is_not() -> None:
    stored = runs.read(PATHS[0])

    def told(old: str, new: str) -> list[str]:
        ran = json.loads(json.dumps(stored).replace(old, new))
        return runs.differences(stored, ran)

    assert told("epsilon = 2.38169 (", "epsilon = 2.38169 (") == []
    assert told("2.38168972614132", "2.38168972614139") == []
    assert len(told("2.38168972614132", "2.38268972614132")) == 1
    assert len(told('"image/png"', '"image/svg"')) == 2
