"""The table of answers as a text file: a heading for each kind, a line for each question."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from benchmarks.frozen.answers import Frozen

FILE: Final = Path(__file__).parent / "table.txt"
_HEAD: Final = "# question, answer, milliseconds of the processor: `python -m benchmarks.frozen`\n"


def read(file: Path = FILE) -> dict[str, Frozen]:
    """Return the answers by their questions, in the order of the file."""
    found: dict[str, Frozen] = {}
    kind = ""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith("## "):
            kind = line.removeprefix("## ")
        elif line and not line.startswith("# "):
            question, answer, milliseconds = line.split("\t")
            found[question] = Frozen(kind, question, answer, float(milliseconds))
    return found


def write(answers: Iterable[Frozen], file: Path = FILE) -> None:
    """Write the answers, those of a kind together, in the order in which they come."""
    lines = [_HEAD]
    for kind, several in groupby(sorted(answers, key=attrgetter("kind")), attrgetter("kind")):
        lines.append(f"\n## {kind}\n")
        lines += [f"{one.question}\t{one.answer}\t{one.time:.3g}\n" for one in several]
    file.write_text("".join(lines), encoding="utf-8")
