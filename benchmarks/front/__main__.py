"""Write the newest analyses beside their peers, in one run.

``python -m benchmarks.front --peers PYTHON --out benchmarks/FRONT.md``: PYTHON is an interpreter
that has gdpnum, riskcal, jax-privacy and dp-accounting, which may want other releases of what this
package needs. Without it the peers' columns are left empty.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.front.rows import ROWS, Found, Row
from hockeystick.numerics.numerals import interval

_HEAD: Final = """# The newest analyses, beside the packages that have them

Written by `python -m benchmarks.front --peers PYTHON --out benchmarks/FRONT.md`: one run on two
shared cores, so that seconds are rough; each is the first time of asking in a process, with
machine code compiled before. *Ours* is a proven interval, floating-point error included, or a
number that is computed from the description alone; peers promise what their pages say.

{versions}

| subject | question | ours | width | s | peer | s | published |
| :-- | :-- | --: | --: | --: | --: | --: | :-- |
"""
_VERSIONS: Final = """
from importlib.metadata import version
names = "dp-accounting", "gdpnum", "jax-privacy", "riskcal"
print(", ".join(f"{name} {version(name)}" for name in names))
"""
_PACKAGES: Final = ("dp-accounting", "gdpnum", "jax-privacy", "riskcal")
_PEERS: Final = Path(__file__).with_name("peers.py")
# The longest that peers may take for all questions.
_PATIENCE: Final = 1800


def _asked(python: str, names: list[str]) -> dict[str, Any]:
    command = [python, str(_PEERS), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PATIENCE)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _ours(row: Row) -> tuple[Found, float]:
    began = time.perf_counter()
    return row.ours(), time.perf_counter() - began


def _shown(found: Found) -> tuple[str, str]:
    if isinstance(found, float):
        return f"{found:.6g}", ""
    low, high = interval(*found)
    return f"[{low}, {high}]", f"{found[1] - found[0]:.1e}"


def _named(peer: str) -> str:
    return next(name for name in _PACKAGES if peer.startswith(name.replace("-", "_")))


def _line(row: Row, said: dict[str, Any]) -> str:
    found, seconds = _ours(row)
    answer, width = _shown(found)
    peer = said.get(row.peer, {})
    value, took = peer.get("value"), peer.get("seconds")
    theirs = peer.get("said", "") if value is None else f"{_named(row.peer)} {value:.6g}"
    waited = "" if took is None else f"{took:.2g}"
    cells = (row.subject, row.question, answer, width, f"{seconds:.2g}", theirs, waited)
    return f"| {' | '.join(cells)} | {row.published} |\n"


def main() -> None:
    """Ask all and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the page; the terminal if not given")
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has the peers")
    chosen = parser.parse_args()
    said: dict[str, Any] = {}
    versions = "No peer was asked."
    if chosen.peers:
        said = _asked(chosen.peers, sorted({row.peer for row in ROWS if row.peer}))
        asking = [chosen.peers, "-c", _VERSIONS]
        versions = subprocess.run(asking, capture_output=True, text=True, check=True).stdout.strip()
    console = Console(stderr=True)
    lines = []
    for row in ROWS:
        console.print(f"{row.subject}: {row.question}")
        lines.append(_line(row, said))
    page = _HEAD.format(versions=versions) + "".join(lines)
    if chosen.out is None:
        sys.stdout.write(page)
    else:
        chosen.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
