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


def _exact(value: float) -> Found:
    return Found(value, value, "exact")


@pytest.mark.parametrize(
    ("own", "without", "verdict"),
    [
        (0.8535, None, Verdict.REPRODUCES),
        (0.8535, 0.8494, Verdict.ONLY_WITH),
        (0.8535, 0.8544, Verdict.REPRODUCES),
        (0.8494, 0.8535, Verdict.DIFFERS),
    ],
)
def test_a_figure_is_held_against_its_own_method(
    own: float, without: float | None, verdict: Verdict
) -> None:
    other = None if without is None else _exact(without)
    found = judge("equals", "0.854", own=_exact(own), certified=None, without=other)
    assert found is verdict


@pytest.mark.parametrize(
    ("relation", "lower", "upper", "verdict"),
    [
        ("at-most", 0.5, 1.5, Verdict.UNDECIDED),
        ("at-most", 1.1, 1.5, Verdict.INVALID),
        ("at-least", 0.5, 1.5, Verdict.UNDECIDED),
        ("at-least", 0.5, 0.9, Verdict.INVALID),
        ("for-all", 1.0, 1.0 + 1e-7, Verdict.REPRODUCES),
        ("for-all", 0.5, 1.5, Verdict.UNDECIDED),
    ],
)
def test_a_statement_is_held_against_what_is_proven(
    relation: Relation, lower: float, upper: float, verdict: Verdict
) -> None:
    truth = Found(lower, upper, "proven")
    assert judge(relation, "1", own=None, certified=truth, without=None) is verdict


@pytest.mark.parametrize(
    ("certified", "without", "stated", "verdict"),
    [
        (0.9, (1.5, 2.0), None, Verdict.ONLY_WITH),
        (0.9, (0.5, 1.0), None, Verdict.REPRODUCES),
        (0.9, (0.5, 2.0), None, Verdict.UNDECIDED),
        (1.1, (1.5, 2.0), None, Verdict.INVALID),
        # Without the condition another bound may be stated.
        (0.9, (1.9, 1.9), 2.0, Verdict.REPRODUCES),
        (0.9, (1.9, 1.9), 1.8, Verdict.ONLY_WITH),
    ],
)
def test_a_condition_must_make_the_difference(
    certified: float, without: tuple[float, float], stated: float | None, verdict: Verdict
) -> None:
    found = judge(
        "at-most",
        "1",
        own=None,
        certified=_exact(certified),
        without=Found(*without, "proven"),
        own_without=None if stated is None else _exact(stated),
    )
    assert found is verdict


@pytest.mark.parametrize(
    ("unit", "printed", "fits", "share"),
    [
        (11.0, "517.0", True, 1 / 110),
        (0.22, "5.8", False, 5 / 11),
        (0.55, "57.8", True, 3 / 11),
        (0.55, "57.9", False, 3 / 11),
    ],
)
def test_a_multiple_is_consistent_and_how_often_any_number_is(
    unit: float, printed: str, fits: bool, share: float
) -> None:
    found = judge("multiple-of", printed, own=_exact(unit), certified=None, without=None)
    assert found is (Verdict.CONSISTENT if fits else Verdict.DIFFERS)
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
