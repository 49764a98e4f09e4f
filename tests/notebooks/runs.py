"""The notebooks are run, and keep what they showed then.

``make notebooks`` runs them all and says which show something else now; with ``STORE=--store`` they
keep what they show. A warning is an error.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.documents import ROOT, steady

FOLDER: Final = ROOT / "notebooks"
_SECONDS: Final = 600
_STRICT: Final = "error::UserWarning,error::RuntimeWarning,error::FutureWarning"
_COLOURS: Final = 64
_IMAGE: Final = "image/png"
_KEPT: Final = ("text/plain", "text/html", _IMAGE)
# Errors of rounding, what secret randomness decides in training, and what dp-accounting answers.
_TINY: Final = re.compile(r"-?\d(?:\.\d+)?e-(?:1[2-9]|[2-9]\d)")
_FREE: Final = re.compile(
    r"^(?:dp-accounting|at theirs|batches of \d+ to \d+ images).*$|accuracy [\d.]+%", re.MULTILINE
)
# What a formatter of code may change.
_LAYOUT: Final = re.compile(r"[\s'\"(),]+")


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def written(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def code_of(notebook: dict[str, Any]) -> str:
    """Return a digest of the code, however it is laid out."""
    cells = ("".join(cell["source"]) for cell in _code_cells(notebook))
    return hashlib.sha256(_LAYOUT.sub("", "\0".join(cells)).encode()).hexdigest()[:16]


def seen_in(notebook: dict[str, Any]) -> list[list[str]]:
    """Return what each cell shows: texts without what differs from run to run, kinds of images."""
    return [
        [line for output in cell["outputs"] for line in _seen(output)]
        for cell in _code_cells(notebook)
    ]


def _seen(output: dict[str, Any]) -> list[str]:
    data = output.get("data", {"text/plain": output.get("text", "")})
    return [kind if kind == _IMAGE else _steady("".join(data[kind])) for kind in sorted(data)]


def _steady(text: str) -> str:
    """Return a text without what differs by processor, or by the release of a peer."""
    return steady(_FREE.sub("FREE", _TINY.sub("TINY", text)))


def _code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(path: Path) -> dict[str, Any]:
    """Return a notebook with what its cells show now, and the digest of their code.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell fails, or warns.
    """
    from nbclient import NotebookClient
    from nbformat.v4 import reads

    os.environ["PYTHONWARNINGS"] = _STRICT
    ran: Any = reads(path.read_text(encoding="utf-8"))
    folder = {"metadata": {"path": str(path.parent)}}
    told = ["--log-level=ERROR"]
    NotebookClient(ran, timeout=_SECONDS, resources=folder, extra_arguments=told).execute()
    notebook = read(path)
    for cell, done in zip(notebook["cells"], ran["cells"], strict=True):
        if cell["cell_type"] == "code":
            cell["outputs"] = _joined([_kept(one) for one in done["outputs"] if _shows(one)])
    notebook["metadata"]["hockeystick"] = {"code": code_of(notebook)}
    return notebook


def _shows(output: dict[str, Any]) -> bool:
    """Return whether there is something to see: a progress bar that is done shows nothing."""
    return "data" not in output or _IMAGE in output["data"] or bool(output["data"]["text/plain"])


def _kept(output: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of an output: neither counts nor what a program alone would read."""
    kind = output["output_type"]
    if kind == "stream":
        return {"name": output["name"], "output_type": kind, "text": _lines(output["text"])}
    data = {name: output["data"][name] for name in _KEPT if name in output["data"]}
    kept = {name: _small(text) if name == _IMAGE else _lines(text) for name, text in data.items()}
    counted = {"execution_count": None} if kind == "execute_result" else {}
    return {"data": kept, **counted, "metadata": {}, "output_type": kind}


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for one in outputs:
        if found and "name" in one and found[-1].get("name") == one["name"]:
            found[-1]["text"] = _lines("".join([*found[-1]["text"], *one["text"]]))
        else:
            found.append(one)
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _small(image: str) -> str:
    from PIL import Image

    content = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(image))) as seen:
        few = seen.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        few.save(content, "PNG", optimize=True)
    return base64.b64encode(content.getvalue()).decode() + "\n"


def differences(stored: dict[str, Any], ran: dict[str, Any]) -> list[str]:
    cells = zip(_code_cells(stored), seen_in(stored), seen_in(ran), strict=True)
    return [
        f"cell {cell['id']} shows\n{chr(10).join(now)}\nand is stored with\n{chr(10).join(then)}"
        for cell, then, now in cells
        if then != now
    ]


def _asked(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the notebooks.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="by default all of them")
    parser.add_argument("--store", action="store_true", help="have them keep what they show")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="so many at a time")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run notebooks; return 1 where one shows something else than it is stored with."""
    asked = _asked(arguments)
    paths = [one.resolve() for one in asked.notebooks] or sorted(FOLDER.glob("*.ipynb"))
    stale = False
    with ProcessPoolExecutor(max(1, asked.workers)) as pool:
        for path, ran in zip(paths, pool.map(run, paths), strict=True):
            found = [] if asked.store else differences(read(path), ran)
            if asked.store:
                path.write_text(written(ran), encoding="utf-8")
            stale = stale or bool(found)
            sys.stdout.write("\n".join([f"{path.name}: {'differs' if found else 'ran'}", *found]))
            sys.stdout.write("\n")
    if stale:
        sys.stdout.write("What is right is stored by: make notebooks STORE=--store\n")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
