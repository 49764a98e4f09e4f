"""Bugs planted in a copy of the repository, and the first test that fails with each.

    python -m benchmarks.mutants --quick                      # noticed where it was before?
    python -m benchmarks.mutants                              # there or anywhere else?
    python -m benchmarks.mutants --only groups --limit 600    # some of them, with more patience

``mutants.toml`` lists the bugs, and ``mutants.json`` what noticed each of them the last time. That
test is tried first, and those beside it; then those named after the changed module, those of the
folder that mirrors its own, the laws, and all others of the usual run. It ends with 1 if a bug that
was noticed before no longer is.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.planting import PACKAGE, Copy, changed

HERE: Final = Path(__file__).parent
LISTED: Final = HERE / "mutants.toml"
NOTICED: Final = HERE / "mutants.json"
USUAL: Final = "not slow and not extras"
# What pytest ends with: all passed, some failed, and nothing there to be run.
PASSED, FAILED, NO_SUCH_TEST, NO_TESTS = 0, 1, 4, 5


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: what it replaces of which definition."""

    room: str
    name: str
    of: str
    old: str
    new: str

    def place(self, root: Path) -> Path:
        """Return the file that it changes."""
        return changed(self.of, self.old, self.new, root)[0]


@dataclass(frozen=True, slots=True)
class Found:
    """The test that noticed a bug, if one did, after how long, and what was run in full before."""

    test: str | None
    seconds: float
    passed: tuple[str, ...] = ()


def search(copy: Copy, mutant: Mutant, known: str | None, given: argparse.Namespace) -> Found:
    """Return the first test that fails with a bug."""
    began, passed = time.monotonic(), []
    stages = list(_stages(copy.root, mutant.place(copy.root), known))
    stages = stages[: 2 if known else 0] if given.quick else stages
    with copy.planted(mutant.of, mutant.old, mutant.new) as environment:
        for name, chosen in stages:
            try:
                failed = first_failure(copy, environment, chosen, given.limit)
            except subprocess.TimeoutExpired:
                continue
            if failed:
                return Found(failed, round(time.monotonic() - began, 1))
            passed.append(name)
    return Found(None, round(time.monotonic() - began, 1), tuple(passed))


def _stages(root: Path, path: Path, known: str | None) -> Iterator[tuple[str, list[str]]]:
    """Yield tests by name, those first that are most likely to notice a change of a file."""
    stem, tests = path.stem.strip("_"), root / "tests"
    if known:
        known = _where(root, known)
        yield "the same test", [known]
        yield "its file", [known.partition("::")[0]]
    named = sorted(str(one.relative_to(root)) for one in tests.rglob(f"test_*{stem}*.py"))
    yield "tests of its name", [str(path.relative_to(root)), *named]
    inner = path.relative_to(root / PACKAGE).parent.parts
    mirrored = tests.joinpath(*(part.strip("_") for part in inner))
    while mirrored != tests and not mirrored.is_dir():
        mirrored = mirrored.parent
    if mirrored != tests:
        yield "its folder", [str(mirrored.relative_to(root))]
    yield "laws", ["tests/laws"]
    yield "all", [PACKAGE, "tests"]


def _where(root: Path, known: str) -> str:
    """Return a test where it is now: in the one file that defines it, if it is not in its own."""
    file, _, test = known.partition("::")
    head = f"def {test.partition('[')[0]}("
    files = [
        path for path in (root / "tests").rglob("test_*.py") if head in path.read_text("utf-8")
    ]
    found = [str(path.relative_to(root)) for path in files]
    return known if file in found or len(found) != 1 else f"{found[0]}::{test}"


def first_failure(
    copy: Copy, environment: dict[str, str], chosen: Sequence[str], limit: float
) -> str | None:
    """Return the first of some tests that fails, or None."""
    failed = failures(copy, environment, [*chosen, "-x"], limit)
    return failed[0] if failed else None


def failures(
    copy: Copy, environment: dict[str, str], chosen: Sequence[str], limit: float | None
) -> list[str]:
    """Return which of some tests fail."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "pytest", "-q", "-m", USUAL, "-o", f"cache_dir={cache}"]
        process = subprocess.Popen(
            [*command, *chosen],
            cwd=copy.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=limit)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if process.returncode == FAILED:
            listed = json.loads((Path(cache) / "v/cache/lastfailed").read_text(encoding="utf-8"))
            return list(listed)
    if process.returncode not in (PASSED, NO_SUCH_TEST, NO_TESTS):
        raise RuntimeError(f"the tests did not run:\n{said}")
    return []


def main() -> int:
    """Look for a test that notices each bug, say which did, and keep that for the next time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a text of the rooms or names of some bugs")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each set of tests")
    parser.add_argument("--quick", action="store_true", help="only where it was noticed before")
    given = parser.parse_args()
    # A shell that runs this in the background ignores Ctrl-C, and tests that press it would fail.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    listed = tomllib.loads(LISTED.read_text(encoding="utf-8"))["mutant"]
    mutants = [Mutant(**fields) for fields in listed]
    before = json.loads(NOTICED.read_text(encoding="utf-8")) if NOTICED.exists() else {}
    found: dict[str, Found] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        for mutant in mutants:
            if given.only in mutant.room or given.only in mutant.name:
                known = before.get(mutant.name, {}).get("test")
                found[mutant.name] = search(copy, mutant, known, given)
                say(_row(mutant, found[mutant.name]))
        tests = sorted({one.test for one in found.values() if one.test})
        wrong = failures(copy, copy.environment(), tests, None) if tests else []
    for test in wrong:
        say(f"fails without a bug, too: {test}")
    alive = {name for name, one in found.items() if one.test is None or one.test in wrong}
    lost = {name for name in alive if before.get(name, {}).get("test")}
    say(f"{len(found) - len(alive)} of {len(found)} are noticed")
    if lost:
        say(f"noticed before, and no longer: {'; '.join(sorted(lost))}")
    if not (lost or wrong):
        kept = before | {
            name: asdict(one)
            for name, one in found.items()
            if one.test is None or one.test != before.get(name, {}).get("test")
        }
        _keep({mutant.name: kept[mutant.name] for mutant in mutants if mutant.name in kept})
    return 1 if lost or wrong else 0


def _keep(records: dict[str, dict[str, Any]]) -> None:
    """Write down what noticed each bug."""
    NOTICED.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def say(words: str) -> None:
    """Print a line as it is."""
    Console().print(words, highlight=False, markup=False, soft_wrap=True)


def _row(mutant: Mutant, found: Found) -> str:
    """Return a row of a table."""
    said = found.test or f"nothing; passed: {', '.join(found.passed)}"
    return f"| {mutant.room} | {mutant.name} | {said} | {found.seconds:.0f} s |"


if __name__ == "__main__":
    raise SystemExit(main())
