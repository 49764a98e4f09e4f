"""Verdicts: how they are computed, and what each claim's is."""

import dataclasses

import pytest

from tests.claims import Found, Verdict, catalogue, check
from tests.claims.checking import _checked
from tests.claims.verdicts import Relation, judge, rounds_to, share_of_multiples
from tests.literature.pinned import PINNED


def _exact(value: float) -> Found:
    return Found(value, value, "exact")


def _proven(lower: float, upper: float) -> Found:
    return Found(lower, upper, "proven")


@pytest.mark.parametrize(
    ("value", "printed", "same"),
    [
        (2.705, "2.71", True),
        (2.7149999, "2.71", True),
        (2.7150001, "2.71", False),
        (2.7049, "2.71", False),
        (57.75, "57.8", True),
        (57.75, "57.7", True),
        (54.449, "54.5", False),
        (6.6969983, "6.70", True),
        (6.7051, "6.70", False),
        (34.02, "34", True),
        (34.51, "34", False),
        (float("inf"), "95", False),
        (0.00001, "1e-5", True),
    ],
)
def test_a_value_rounds_to_the_digits_printed(value: float, printed: str, same: bool) -> None:
    assert rounds_to(value, printed) is same


@pytest.mark.parametrize(
    ("own", "without", "verdict"),
    [
        (0.8535, None, Verdict.REPRODUCES),
        (0.8535, 0.8494, Verdict.ONLY_WITH),
        (0.8535, 0.8544, Verdict.REPRODUCES),
        (0.8494, None, Verdict.DIFFERS),
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
        ("at-most", 0.5, 1.0, Verdict.REPRODUCES),
        ("at-most", 0.5, 1.0 + 1e-12, Verdict.REPRODUCES),
        ("at-most", 0.5, 1.5, Verdict.UNDECIDED),
        ("at-most", 1.1, 1.5, Verdict.INVALID),
        ("at-least", 1.0, 1.5, Verdict.REPRODUCES),
        ("at-least", 0.5, 1.5, Verdict.UNDECIDED),
        ("at-least", 0.5, 0.9, Verdict.INVALID),
        ("for-all", 1.0, 1.0 + 1e-7, Verdict.REPRODUCES),
        ("for-all", 0.5, 1.5, Verdict.UNDECIDED),
        ("for-all", 1.1, 1.5, Verdict.INVALID),
        ("for-all", 0.5, 0.9, Verdict.INVALID),
    ],
)
@pytest.mark.parametrize("own", [None, _exact(1.0)])
def test_a_statement_is_held_against_what_is_proven(
    relation: Relation, lower: float, upper: float, verdict: Verdict, own: Found | None
) -> None:
    truth = _proven(lower, upper)
    printed = "1" if own is None else ""
    assert judge(relation, printed, own=own, certified=truth, without=None) is verdict


@pytest.mark.parametrize(
    ("certified", "without", "verdict"),
    [
        (_proven(0.5, 0.9), _proven(1.5, 2.0), Verdict.ONLY_WITH),
        (_proven(0.5, 0.9), _proven(0.5, 1.0), Verdict.REPRODUCES),
        (_proven(0.5, 0.9), _proven(0.5, 2.0), Verdict.UNDECIDED),
        (_proven(0.5, 1.1), _proven(1.5, 2.0), Verdict.UNDECIDED),
        (_proven(1.1, 1.2), _proven(1.5, 2.0), Verdict.INVALID),
    ],
)
def test_a_condition_must_make_the_difference(
    certified: Found, without: Found, verdict: Verdict
) -> None:
    found = judge("at-most", "1", own=None, certified=certified, without=without)
    assert found is verdict


def test_without_a_condition_another_bound_may_be_stated() -> None:
    told = {"own": _exact(1.0), "certified": _exact(0.9), "without": _exact(1.9)}
    assert judge("at-most", "", **told) is Verdict.ONLY_WITH
    assert judge("at-most", "", **told, own_without=_exact(2.0)) is Verdict.REPRODUCES
    assert judge("at-most", "", **told, own_without=_exact(1.8)) is Verdict.ONLY_WITH


@pytest.mark.parametrize(
    ("unit", "printed", "fits", "share"),
    [
        (11.0, "517.0", True, 1 / 110),
        (11.0, "517.1", False, 1 / 110),
        (0.22, "5.7", True, 5 / 11),
        (0.22, "5.8", False, 5 / 11),
        (0.55, "57.8", True, 3 / 11),
        (0.55, "57.7", True, 3 / 11),
        (0.55, "57.9", False, 3 / 11),
        (0.03, "5.8", True, 1.0),
        (0.4, "2.4", True, 1 / 4),
    ],
)
def test_a_multiple_is_consistent_and_how_often_any_number_is(
    unit: float, printed: str, fits: bool, share: float
) -> None:
    found = judge("multiple-of", printed, own=_exact(unit), certified=None, without=None)
    assert found is (Verdict.CONSISTENT if fits else Verdict.DIFFERS)
    assert share_of_multiples(unit, printed) == pytest.approx(share)


def test_a_bound_that_is_moved_past_the_truth_changes_its_verdict() -> None:
    claims = catalogue().claims
    statement = claims["privacy-preserving-ml/gaussian-mechanism"]
    assert _checked(statement).verdict is Verdict.ONLY_WITH
    assert _checked(dataclasses.replace(statement, published="3e-5")).verdict is Verdict.REPRODUCES
    assert _checked(dataclasses.replace(statement, published="4e-8")).verdict is Verdict.INVALID
    example = claims["privacy-preserving-ml/gaussian-error/example-statement"]
    assert _checked(example).verdict is Verdict.INVALID
    assert _checked(dataclasses.replace(example, published="0.13")).verdict is Verdict.REPRODUCES


@pytest.mark.parametrize("id_", list(catalogue().claims))
def test_the_verdict_of_each_claim_is_as_it_was(id_: str) -> None:
    (one,) = check(id_)
    assert one.verdict is PINNED[id_]
    assert one.words.startswith(one.verdict.value)
    if one.verdict in (Verdict.INVALID, Verdict.DIFFERS):
        assert one.claim.because


def test_every_claim_is_pinned_and_all_but_one_are_decided() -> None:
    assert list(PINNED) == list(catalogue().claims)
    open_ = [id_ for id_, verdict in PINNED.items() if verdict is Verdict.UNDECIDED]
    assert open_ == ["considerations/section-4.4/tight"]
