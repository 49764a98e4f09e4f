"""The bugs that benchmarks plant in copies of the package have a place in it as it is."""

from __future__ import annotations

import ast
import tomllib
from itertools import takewhile
from pathlib import Path

import pytest

from benchmarks.mutants import listed
from benchmarks.planting import changed

ROOT = Path(__file__).parents[1]
FOR_THE_VERIFIER = tomllib.loads(
    (ROOT / "benchmarks" / "verify_mutants.toml").read_text(encoding="utf-8")
)["mutant"]
FOR_TESTS = listed()
BUGS = {one["term"]: (one["of"], one["old"], one["new"]) for one in FOR_THE_VERIFIER}
BUGS |= {one.name: (one.of, one.old, one.new) for one in FOR_TESTS}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_changes_one_place_of_a_file_that_is_still_python(name: str) -> None:
    path, text = changed(*BUGS[name])
    assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(path.read_text(encoding="utf-8")))


def test_planted_bugs_have_names_of_their_own_and_tests_that_are_there() -> None:
    assert len(BUGS) == len(FOR_THE_VERIFIER) + len(FOR_TESTS)
    assert sum(bug["expected"] == "refuted" for bug in FOR_THE_VERIFIER) >= 20
    slow = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").splitlines()
    for bug in FOR_TESTS:
        file, _, test = bug.test.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), bug
        assert file not in slow or f" {test}" not in _below(slow, file), f"{bug.test} is slow"


def _below(lines: list[str], file: str) -> list[str]:
    rest = lines[lines.index(file) + 1 :]
    return list(takewhile(lambda line: line.startswith(" "), rest))
