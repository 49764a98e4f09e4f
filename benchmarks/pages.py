"""How pages are written: tables in Markdown, numbers as they are printed, and peers' answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table: the first column is text, the others are set to the right."""
    lines = [head, [":--", *("--:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


def rounded_up(value: float, digits: int) -> str:
    """Return a number that is printed as a bound, no smaller than it is."""
    return f"{Context(prec=digits, rounding=ROUND_CEILING).create_decimal(value):f}"


def asked_of(python: str, *words: str) -> Any:
    """Return the JSON that another interpreter, which has the peers, prints last."""
    done = subprocess.run(
        [python, *words], capture_output=True, text=True, check=True, timeout=1800
    )
    return json.loads(done.stdout.splitlines()[-1])


def write(page: str, out: Path | None) -> None:
    """Write a page into a file, or print it."""
    if out is None:
        sys.stdout.write(page)
    else:
        out.write_text(page, encoding="utf-8")
