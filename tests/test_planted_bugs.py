"""The bugs that benchmarks/verify_mutants.py plants have a place in the package as it is."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LISTED = tomllib.loads((ROOT / "benchmarks/verify_mutants.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("bug", LISTED["mutant"], ids=lambda bug: bug["term"])
def test_a_planted_bug_changes_one_place_of_a_file_that_is_still_python(
    bug: dict[str, str],
) -> None:
    text = (ROOT / "hockeystick" / bug["file"]).read_text(encoding="utf-8")
    assert text.count(bug["old"]) == 1
    changed = ast.dump(ast.parse(text.replace(bug["old"], bug["new"])))
    assert changed != ast.dump(ast.parse(text))


def test_planted_bugs_have_names_of_their_own_and_twenty_or_more_are_to_be_refuted() -> None:
    refuted = [bug for bug in LISTED["mutant"] if bug["expected"] == "refuted"]
    assert len(refuted) >= 20
    assert len({bug["term"] for bug in LISTED["mutant"]}) == len(LISTED["mutant"])
