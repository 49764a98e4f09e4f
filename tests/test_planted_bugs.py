"""The bugs that benchmarks plant in copies of the package have a place in it as it is."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.planting import changed

ROOT = Path(__file__).parents[1]


def listed(name: str) -> list[dict[str, str]]:
    text = (ROOT / "benchmarks" / name).read_text(encoding="utf-8")
    found: list[dict[str, str]] = tomllib.loads(text)["mutant"]
    return found


FOR_THE_VERIFIER = listed("verify_mutants.toml")
FOR_TESTS = listed("mutants.toml")


@pytest.mark.parametrize(
    "bug", FOR_THE_VERIFIER + FOR_TESTS, ids=lambda bug: bug.get("term") or bug["name"]
)
def test_a_planted_bug_changes_one_place_of_a_file_that_is_still_python(
    bug: dict[str, str],
) -> None:
    path, text = changed(bug["of"], bug["old"], bug["new"])
    assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(path.read_text(encoding="utf-8")))


def test_planted_bugs_have_names_of_their_own_and_twenty_or_more_are_to_be_refuted() -> None:
    refuted = [bug for bug in FOR_THE_VERIFIER if bug["expected"] == "refuted"]
    assert len(refuted) >= 20
    assert len({bug["term"] for bug in FOR_THE_VERIFIER}) == len(FOR_THE_VERIFIER)


def test_ten_bugs_for_tests_to_notice_are_planted_in_each_of_six_rooms() -> None:
    assert list(Counter(bug["room"] for bug in FOR_TESTS).values()) == [10] * 6
    assert len({bug["name"] for bug in FOR_TESTS}) == 60
