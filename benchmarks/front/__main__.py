"""Write the newest analyses beside their peers, in one run.

``python -m benchmarks.front --peers PYTHON --out benchmarks/FRONT.md``: PYTHON is an interpreter
that has gdpnum, riskcal, jax-privacy and dp-accounting, which may want other releases of what this
package needs. Without it the peers' columns are left empty.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.front.rows import ROWS, Found, Row
from benchmarks.pages import asked_of, write
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
import json, sys
from importlib.metadata import version
print(json.dumps(", ".join(f"{name} {version(name)}" for name in sys.argv[1:])))
"""
_PACKAGES: Final = ("dp-accounting", "gdpnum", "jax-privacy", "riskcal")
_PEERS: Final = Path(__file__).with_name("peers.py")


def _shown(found: Found) -> tuple[str, str]:
    if isinstance(found, float):
        return f"{found:.6g}", ""
    low, high = interval(*found)
    return f"[{low}, {high}]", f"{found[1] - found[0]:.1e}"


def _named(peer: str) -> str:
    return next(name for name in _PACKAGES if peer.startswith(name.replace("-", "_")))


def _line(row: Row, said: dict[str, Any]) -> str:
    began = time.perf_counter()
    found, seconds = row.ours(), time.perf_counter() - began
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
        said = asked_of(chosen.peers, str(_PEERS), *sorted({row.peer for row in ROWS} - {""}))
        versions = asked_of(chosen.peers, "-c", _VERSIONS, *_PACKAGES)
    console = Console(stderr=True)
    lines = []
    for row in ROWS:
        console.print(f"{row.subject}: {row.question}")
        lines.append(_line(row, said))
    write(_HEAD.format(versions=versions) + "".join(lines), chosen.out)


if __name__ == "__main__":
    main()
