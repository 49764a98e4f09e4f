"""The claims: data and ways that fit each other, the verdict of each, and that it may be another.

A parameter of each statement is changed so that a true one becomes false, a false one true.
"""

import dataclasses
import inspect
import re
import tomllib
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
import hockeystick.release
from tests.claims import Checked, Claim, Found, Verdict, check, claims, documents
from tests.claims.checking import Asked, Relation, checked, is_of, judge, share_of_multiples
from tests.claims.found import FILE, SUBJECTS, ways

Change = dict[str, dict[str, Any]]

CLAIMS = claims()
HERE = Path(__file__).parent
PINNED = tomllib.loads((HERE / "pinned.toml").read_text("utf-8"))
CHANGES: dict[str, Change] = tomllib.loads((HERE / "wrong.toml").read_text("utf-8"))
FIGURES = ("equals", "multiple-of")
STATEMENTS = [id_ for id_, claim in CLAIMS.items() if claim.relation not in FIGURES]


def _asked(claim: Claim) -> list[Asked]:
    every = (claim.own, claim.certified, claim.without, claim.own_without)
    return [one for one in every if one is not None]


@pytest.mark.parametrize("id_", CLAIMS)
def test_a_claim_is_whole(id_: str) -> None:
    claim = CLAIMS[id_]
    assert re.fullmatch(r"[a-z0-9-]+(/[a-z0-9.-]+){1,3}", id_)
    assert claim.place
    assert claim.says
    for name in re.findall(r"(?:hs|hockeystick)\.([\w.]*\w)", claim.see):
        assert attrgetter(name)(hs) is not None
    for asked in _asked(claim):
        given = dict(asked.parameters)
        assert inspect.signature(ways()[asked.way]).bind(**given).kwargs == given
        assert claim.relation not in FIGURES or not any(
            value in (claim.published, float(claim.published)) for value in given.values()
        )
    figure = claim.relation in FIGURES
    judged = claim.own if figure else claim.certified
    assert bool(claim.published) is (figure or claim.own is None)
    assert judged is not None
    assert (claim.without is None) is (not claim.only_with)
    if claim.without is None:
        assert claim.own_without is None
    else:
        assert (claim.own_without, claim.without) != (None, judged)


def test_every_way_every_document_and_every_change_is_used() -> None:
    used = {asked.way for claim in CLAIMS.values() for asked in _asked(claim)}
    assert used == set(ways())
    assert {name.partition(".")[0] for name in used} == set(SUBJECTS)
    assert {claim.document for claim in CLAIMS.values()} == set(documents())
    assert not [id_ for id_ in CLAIMS if any(other.startswith(f"{id_}/") for other in CLAIMS)]
    assert all(_change(id_) for id_ in STATEMENTS)
    assert {prefix for prefix in CHANGES for id_ in STATEMENTS if is_of(id_, prefix)} == {*CHANGES}


def test_no_way_has_a_printed_figure() -> None:
    printed = {one.published for one in CLAIMS.values() if len(one.published.strip("0.")) >= 3}
    codes = [FILE.with_name(f"{subject}.py").read_text("utf-8") for subject in SUBJECTS]
    for code in (*codes, FILE.read_text("utf-8").partition("[formula]")[2]):
        assert not printed & set(re.findall(r"\d+(?:\.\d+)?", code))


JUDGED: list[tuple[Relation, str, dict[str, Any], Verdict]] = [
    # A figure is held against its own method.
    ("equals", "0.854", {"own": 0.8535}, Verdict.REPRODUCES),
    ("equals", "0.854", {"own": 0.8535, "without": 0.8494}, Verdict.ONLY_WITH),
    ("equals", "0.854", {"own": 0.8535, "without": 0.8544}, Verdict.REPRODUCES),
    ("equals", "0.854", {"own": 0.8494, "without": 0.8535}, Verdict.DIFFERS),
    ("multiple-of", "517.0", {"own": 11.0}, Verdict.CONSISTENT),
    ("multiple-of", "5.8", {"own": 0.22}, Verdict.DIFFERS),
    ("multiple-of", "57.8", {"own": 0.55}, Verdict.CONSISTENT),
    ("multiple-of", "57.9", {"own": 0.55}, Verdict.DIFFERS),
    # A statement is held against what is proven.
    ("at-most", "1", {"certified": (0.5, 1.5)}, Verdict.UNDECIDED),
    ("at-most", "1", {"certified": (1.1, 1.5)}, Verdict.INVALID),
    ("at-least", "1", {"certified": (0.5, 1.5)}, Verdict.UNDECIDED),
    ("at-least", "1", {"certified": (0.5, 0.9)}, Verdict.INVALID),
    ("for-all", "1", {"certified": (1.0, 1.0 + 1e-7)}, Verdict.REPRODUCES),
    ("for-all", "1", {"certified": (0.5, 1.5)}, Verdict.UNDECIDED),
    # A condition must make the difference; without it another bound may be stated.
    ("at-most", "1", {"certified": 0.9, "without": (1.5, 2.0)}, Verdict.ONLY_WITH),
    ("at-most", "1", {"certified": 0.9, "without": (0.5, 1.0)}, Verdict.REPRODUCES),
    ("at-most", "1", {"certified": 0.9, "without": (0.5, 2.0)}, Verdict.UNDECIDED),
    ("at-most", "1", {"certified": 1.1, "without": (1.5, 2.0)}, Verdict.INVALID),
    ("at-most", "1", {"certified": 0.9, "without": 1.9, "own_without": 2.0}, Verdict.REPRODUCES),
    ("at-most", "1", {"certified": 0.9, "without": 1.9, "own_without": 1.8}, Verdict.ONLY_WITH),
]


@pytest.mark.parametrize(("relation", "printed", "given", "verdict"), JUDGED)
def test_a_claim_is_judged_by_the_numbers_found(
    relation: Relation, printed: str, given: dict[str, Any], verdict: Verdict
) -> None:
    told = {
        name: Found(one[0], one[1], "proven")
        if isinstance(one, tuple)
        else Found(one, one, "exact")
        for name, one in given.items()
    }
    assert judge(relation, printed, **told) is verdict


@pytest.mark.parametrize(
    ("unit", "printed", "share"),
    [(11.0, "517.0", 1 / 110), (0.22, "5.8", 5 / 11), (0.55, "57.8", 3 / 11)],
)
def test_how_often_any_number_is_a_multiple(unit: float, printed: str, share: float) -> None:
    assert share_of_multiples(unit, printed) == pytest.approx(share)


@pytest.mark.parametrize("id_", CLAIMS)
def test_the_verdict_of_each_claim_is_as_it_was(id_: str) -> None:
    (one,) = check(id_)
    assert one.verdict == PINNED[max((name for name in PINNED if is_of(id_, name)), key=len)]
    assert one.words.startswith(one.verdict.value)
    if one.verdict in (Verdict.INVALID, Verdict.DIFFERS):
        assert one.claim.because


def _of(id_: str) -> Checked:
    (one,) = check(id_)
    return one


def _changed(claim: Claim, change: Change) -> Claim:
    fields: dict[str, Any] = {}
    for name, parameters in change.items():
        asked = getattr(claim, name)
        changed = {
            key: tuple(one) if isinstance(one, list) else one for key, one in parameters.items()
        }
        told = {**dict(asked.parameters), **changed}
        inspect.signature(ways()[asked.way]).bind(**told)
        fields[name] = Asked(asked.way, tuple(sorted(told.items())))
    return dataclasses.replace(claim, **fields)


@pytest.mark.parametrize("id_", STATEMENTS)
def test_a_changed_parameter_changes_the_verdict(id_: str) -> None:
    claim = CLAIMS[id_]
    before, after = _of(id_).verdict, checked(_changed(claim, _change(id_))).verdict
    if before in (Verdict.REPRODUCES, Verdict.ONLY_WITH):
        assert after is Verdict.INVALID
    else:
        assert before in (Verdict.INVALID, Verdict.UNDECIDED)
        assert after in (Verdict.REPRODUCES, Verdict.UNDECIDED)
        assert after is not before


def _change(id_: str) -> Change:
    (change,) = (change for prefix, change in CHANGES.items() if is_of(id_, prefix))
    return change
