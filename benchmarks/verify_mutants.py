"""Bugs planted in a copy of the library, and what the verifier says of the answers with each.

``verify_mutants.toml`` lists the bugs. Each one in turn is put into a copy of the package, a
question is asked of the copy, and the verifier of the library as it is checks the answer. The
tables replace the section "Planted bugs" of ``VERIFY.md``:

    python -m benchmarks.verify_mutants

It ends with 1 if something else became of an answer than the list expects.
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import track

from benchmarks.planting import PACKAGE, ROOT, Copy, changed
from hockeystick.verifier import AnswerError, Check, verify

HERE: Final = Path(__file__).parent
LISTED: Final = HERE / "verify_mutants.toml"
REPORT: Final = HERE / "VERIFY.md"

# What a process with the copy runs: it prints the document of one answer.
ASK: Final = """
import json, sys
import hockeystick as hs
from hockeystick.answers import document
from hockeystick.mechanisms import schedules

def epsilon(plan, delta, **how):
    return document(hs.epsilon(plan, delta, **how), plan, delta=delta)

def delta(plan, epsilon, **how):
    return document(hs.delta(plan, epsilon, **how), plan, epsilon=epsilon)

def solve(plan, parameter, **budget):
    return document(hs.calibrate(plan, parameter, hs.ApproxDP(**budget)))

asked = {"epsilon": epsilon, "delta": delta, "solve": solve, "schedules": schedules}
rooms = hs.mechanisms, hs.tradeoffs, hs
names = {name: getattr(room, name) for room in rooms for name in room.__all__} | asked
print(json.dumps(eval(sys.argv[1], names), allow_nan=False))
"""

REFUTED: Final = "refuted"
ABSORBED: Final = "absorbed"
NO_ANSWER: Final = "no answer"
REFUSED: Final = "refused"
NOT_COVERED: Final = "not covered"
# So many seconds are given to a verdict.
LIMIT: Final = 60
# What is said of the answers from which each of these is expected.
SECTIONS: Final = {
    REFUTED: "The answer misses the truth, and the verifier refutes it:",
    NO_ANSWER: "The copy itself notices that the ends of its answer contradict each other, and "
    "gives none:",
    ABSORBED: "The answer holds all the same: other terms are large enough, or a later check "
    "widens the interval or hands the question to another accountant:",
    REFUSED: "The document contradicts itself, and is not read:",
    NOT_COVERED: "The answer misses the truth, and the verifier has nothing to say of the plan:",
}
INTRODUCTION: Final = """\
Each row is one bug, planted in a copy of the library: an error term left out, flipped or shrunk,
or a formula broken. The copy answers a question, and the verifier of the library as it is checks
the answer. Written by `python -m benchmarks.verify_mutants`; what is planted is in
`verify_mutants.toml`."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: the text of the package that it replaces, a question, and what to expect."""

    term: str
    of: str
    old: str
    new: str
    asked: str
    expected: str

    @property
    def file(self) -> str:
        """The file that it is in, below the package."""
        return changed(self.of, self.old, self.new)[0].relative_to(ROOT / PACKAGE).as_posix()


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one answer."""

    mutant: Mutant
    printed: str
    verdict: str
    ball: str

    @property
    def is_expected(self) -> bool:
        """Whether that was expected."""
        wanted = {ABSORBED: "verified"}.get(self.mutant.expected, self.mutant.expected)
        return self.verdict == wanted


def answered(copy: Copy, mutant: Mutant) -> subprocess.CompletedProcess[str]:
    """Return the process that printed the document of the answer with a bug, or an error."""
    command = [sys.executable, "-c", ASK, mutant.asked]
    with copy.planted(mutant.of, mutant.old, mutant.new) as environment:
        return subprocess.run(
            command, cwd=copy.root, env=environment, capture_output=True, text=True, check=False
        )


def judged(copy: Copy, mutant: Mutant) -> Row:
    """Return what the verifier says of an answer with a bug."""
    done = answered(copy, mutant)
    if done.returncode:
        error = done.stderr.strip().splitlines()[-1]
        return Row(mutant, "", NO_ANSWER, error.removeprefix("hockeystick.errors."))
    printed = _printed(json.loads(done.stdout))
    signal.alarm(LIMIT)
    try:
        verdict = verify(done.stdout)
    except AnswerError as error:
        return Row(mutant, printed, REFUSED, str(error))
    except TimeoutError as error:
        return Row(mutant, printed, "no verdict", str(error))
    finally:
        signal.alarm(0)
    ball = verdict.reason if verdict.status == NOT_COVERED else _told(verdict.checks)
    return Row(mutant, printed, verdict.status, ball)


def _late(*_: object) -> None:
    raise TimeoutError(f"none in {LIMIT} s")


def _told(checks: Sequence[Check]) -> str:
    chosen = [one for one in checks if not one.holds] or checks
    return "; ".join(f"{one.claim}: {one.ball}" for one in chosen)


def _printed(told: dict[str, Any]) -> str:
    if "value" in told:
        return f"{told['parameter']} = {told['value']}"
    return f"[{told['lower']}, {told['upper']}]"


def section(rows: Sequence[Row]) -> str:
    """Return all tables."""
    parts = [INTRODUCTION]
    for expected, sentence in SECTIONS.items():
        chosen = [row for row in rows if row.mutant.expected == expected]
        as_told = sum(row.is_expected for row in chosen)
        parts.append(f"{sentence} {as_told} of {len(chosen)}.\n\n{_table(chosen)}")
    return "\n\n".join(parts)


def _table(rows: Sequence[Row]) -> str:
    lines = [
        "| bug | in | asked | printed | truth, by the verifier | verdict |",
        "| :-- | :-- | :-- | :-- | :-- | :-- |",
    ]
    for row in rows:
        one = row.mutant
        verdict = row.verdict if row.is_expected else f"**{row.verdict}**"
        cells = (one.term, f"`{one.file}`", f"`{one.asked}`", row.printed, row.ball, verdict)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def write(text: str) -> None:
    """Put the section into the report, in place of the one that is there."""
    page = REPORT.read_text(encoding="utf-8") if REPORT.exists() else "# Answers verified\n"
    whole = f"## Planted bugs\n\n{text}\n"
    pattern = re.compile(r"^## Planted bugs\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    if pattern.search(page):
        page = pattern.sub(lambda found: whole + ("\n" if found.end() < len(page) else ""), page)
    else:
        page = f"{page.rstrip()}\n\n{whole}"
    REPORT.write_text(page, encoding="utf-8")


def main() -> int:
    """Plant each bug whose term holds a text, write the tables unless that leaves some out."""
    signal.signal(signal.SIGALRM, _late)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a text of the terms of some bugs")
    only = parser.parse_args().only
    listed = tomllib.loads(LISTED.read_text(encoding="utf-8"))["mutant"]
    mutants = [one for one in (Mutant(**fields) for fields in listed) if only in one.term]
    console = Console()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        for mutant in track(mutants, "planted bugs", console=console):
            rows.append(judged(copy, mutant))
            mark = "" if rows[-1].is_expected else "  <- unexpected"
            console.print(f"{mutant.term}: {rows[-1].verdict}{mark}", highlight=False, markup=False)
    if not only:
        write(section(rows))
    return 0 if all(row.is_expected for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
