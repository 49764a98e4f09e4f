"""Bugs planted in a copy of the repository, and whether `make test` notices each.

    python -m benchmarks.mutants                   # does the test of each bug fail with it?
    python -m benchmarks.mutants --only ledger     # of some files or names alone
    python -m benchmarks.mutants --search          # if it does not, which other test does?

``planted/*.toml`` lists the bugs: wrong changes that some quick test must notice. ``of`` is a
function, class or constant by its qualified name, in whatever module; it has ``old`` once, an
expression or statement in any layout, and ``new`` takes its place. ``test`` is the quickest test
that notices. A search tries the tests named after the changed module, those of the folder that
mirrors its own, the laws, and all others. It ends with 1 if a bug is not noticed by its test.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.planting import PACKAGE, Copy, changed

LISTED: Final = Path(__file__).parent / "planted"
USUAL: Final = "not slow and not extras"
# What pytest ends with: all passed, some failed, and nothing there to be run.
PASSED, FAILED, NO_SUCH_TEST, NO_TESTS = 0, 1, 4, 5


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: what it replaces of which definition, and the test that notices it."""

    name: str
    of: str
    old: str
    new: str
    test: str


def listed(only: str = "") -> list[Mutant]:
    """Return the bugs whose file or name has a text."""
    return [
        Mutant(**fields)
        for path in sorted(LISTED.glob("*.toml"))
        for fields in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
        if only in path.stem or only in fields["name"]
    ]


def stages(root: Path, path: Path) -> Iterator[list[str]]:
    """Yield tests, those first that are most likely to notice a change of a file."""
    tests = root / "tests"
    named = sorted(map(str, tests.rglob(f"test_*{path.stem.strip('_')}*.py")))
    yield [str(path), *named]
    mirrored = tests.joinpath(*path.relative_to(root / PACKAGE).parent.parts)
    while not mirrored.is_dir():
        mirrored = mirrored.parent
    yield [str(mirrored)]
    yield ["tests/laws"]
    yield [PACKAGE, "tests", "--deselect", "tests/test_planted_bugs.py"]


def first_failure(
    copy: Copy, environment: dict[str, str], chosen: Sequence[str], limit: float
) -> str | None:
    """Return the first of some tests that fails, or None; also where they take too long."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", USUAL]
    process = subprocess.Popen(
        [*command, "--assert=plain", "--tb=no", *chosen],
        cwd=copy.root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode == FAILED:
        failed = [line for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return failed[0].partition(" ")[2].partition(" - ")[0]
    if process.returncode not in (PASSED, NO_SUCH_TEST, NO_TESTS):
        raise RuntimeError(f"the tests did not run:\n{said}")
    return None


def main() -> int:
    """Plant each bug and say whether its test notices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a text of the files or names of some bugs")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each set of tests")
    parser.add_argument("--search", action="store_true", help="look for others that notice")
    given = parser.parse_args()
    # A shell that runs this in the background ignores Ctrl-C, and tests that press it would fail.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    mutants, missed = listed(given.only), 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        for mutant in mutants:
            began, others = time.monotonic(), stages(copy.root, _place(mutant, copy.root))
            with copy.planted(mutant.of, mutant.old, mutant.new) as environment:
                sets = [[mutant.test], *(others if given.search else ())]
                tried = (first_failure(copy, environment, one, given.limit) for one in sets)
                found = next((one for one in tried if one), None)
            missed += found != mutant.test
            said = "noticed" if found == mutant.test else f"NOT by {mutant.test}, but: {found}"
            say(f"{time.monotonic() - began:4.0f} s  {mutant.name}: {said}")
        tests = sorted({one.test for one in mutants})
        wrong = first_failure(copy, copy.environment(), tests, 10 * given.limit) if tests else None
    if wrong:
        say(f"fails without a bug, too: {wrong}")
    say(f"{len(mutants) - missed} of {len(mutants)} are noticed")
    return 1 if missed or wrong else 0


def _place(mutant: Mutant, root: Path) -> Path:
    return changed(mutant.of, mutant.old, mutant.new, root)[0]


def say(words: str) -> None:
    """Print a line as it is."""
    Console().print(words, highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    raise SystemExit(main())
