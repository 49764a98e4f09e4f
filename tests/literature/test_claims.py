"""The claims: data and ways that fit each other, and the verdict of each."""

import inspect
import re
import tomllib
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
import hockeystick.release
from tests.claims import Claim, Found, Verdict, catalogue, check
from tests.claims.data import Asked
from tests.claims.found import FILE, SUBJECTS, ways
from tests.claims.verdicts import Relation, judge, rounds_to, share_of_multiples

CLAIMS = tuple(catalogue().claims.values())
PINNED = tomllib.loads(Path(__file__).with_name("pinned.toml").read_text("utf-8"))


def _asked(claim: Claim) -> list[Asked]:
    every = (claim.own, claim.certified, claim.without, claim.own_without)
    return [one for one in every if one is not None]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_is_whole(claim: Claim) -> None:
    assert re.fullmatch(r"[a-z0-9-]+(/[a-z0-9.-]+){1,3}", claim.id)
    assert claim.place
    assert claim.says
    for sentence in (claim.says, claim.because, claim.only_with, claim.see):
        assert sentence == " ".join(sentence.split())
        assert not sentence.endswith(".")
    for name in re.findall(r"(?:hs|hockeystick)\.([\w.]*\w)", claim.see):
        assert attrgetter(name)(hs) is not None
    for asked in _asked(claim):
        given = dict(asked.parameters)
        assert inspect.signature(ways()[asked.way]).bind(**given).kwargs == given


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_figure_is_computed_a_statement_proven_and_a_condition_changes_it(claim: Claim) -> None:
    if claim.relation in ("equals", "multiple-of"):
        assert claim.published
        judged = claim.own
    else:
        assert bool(claim.published) is (claim.own is None)
        judged = claim.certified
    assert judged is not None
    assert (claim.without is None) is (not claim.only_with)
    if claim.without is None:
        assert claim.own_without is None
    else:
        assert (claim.own_without, claim.without) != (None, judged)


def test_every_way_and_every_document_is_used_and_no_id_begins_another() -> None:
    used = {asked.way for claim in CLAIMS for asked in _asked(claim)}
    assert used == set(ways())
    assert {name.partition(".")[0] for name in used} == set(SUBJECTS)
    assert {claim.document for claim in CLAIMS} == set(catalogue().documents)
    ids = [claim.id for claim in CLAIMS]
    assert not [id_ for id_ in ids if any(other.startswith(f"{id_}/") for other in ids)]


def test_the_data_holds_no_verdict_and_no_way_a_printed_figure() -> None:
    words = ("verdict", "reproduces", "consistent", "invalid", "does not reproduce", "undecided")
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert not [line for line in lines if any(word in line for word in words)]
    printed = {claim.published for claim in CLAIMS if len(claim.published.strip("0.")) >= 3}
    codes = [FILE.with_name(f"{subject}.py").read_text("utf-8") for subject in SUBJECTS]
    for code in (*codes, FILE.read_text("utf-8").partition("[formula]")[2]):
        assert not printed & set(re.findall(r"\d+(?:\.\d+)?", code))


# What the words say in other words: a sign, a part, or how a number was rounded.
UNNAMED = frozenset({"side", "share", "decimals", "decimals_of_the_sum", "examples_ratio"})
# Their inputs are the rows of table 2, each of which names its own.
OF_A_TABLE = frozenset({"federated.mean_ratio_of_mu", "federated.mean_ratio_of_steps"})
WORDS = {"one": 1.0, "two": 2.0, "tenth": 0.1, "fifth": 0.2, "nothing": 0.0}


def _numbers(text: str) -> set[float]:
    told = text.replace(",", "")
    named = {float(one) for one in re.findall(r"(?<![\w.])-?\d*\.?\d+(?:e-?\d+)?", told)}
    percent = {1 + float(one) / 100 for one in re.findall(r"(\d+(?:\.\d+)?) %", told)}
    return named | percent | {number for word, number in WORDS.items() if word in told.split()}


def _flat(value: Any) -> list[float]:
    if isinstance(value, tuple):
        return [number for one in value for number in _flat(one)]
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return [float(value)] if numeric else []


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_names_its_parameters_and_no_way_is_given_its_figure(claim: Claim) -> None:
    named = _numbers(f"{claim.place} {claim.says} {claim.only_with} {claim.because}")
    products = {one * other for one in named for other in named}
    for asked in _asked(claim):
        for name, value in asked.parameters:
            if asked.way not in OF_A_TABLE and name not in UNNAMED:
                assert set(_flat(value)) <= named | products, (asked.way, name, value)
            if claim.relation in ("equals", "multiple-of"):
                assert value != claim.published
                assert float(claim.published) not in _flat(value)


def _exact(value: float) -> Found:
    return Found(value, value, "exact")


@pytest.mark.parametrize(
    ("value", "printed", "same"),
    [
        (2.7149999, "2.71", True),
        (2.7150001, "2.71", False),
        (2.7049, "2.71", False),
        (57.75, "57.8", True),
        (57.75, "57.7", True),
        (6.6969983, "6.70", True),
        (6.7051, "6.70", False),
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
    truth = Found(lower, upper, "proven")
    printed = "1" if own is None else ""
    assert judge(relation, printed, own=own, certified=truth, without=None) is verdict


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
        (11.0, "517.1", False, 1 / 110),
        (0.22, "5.8", False, 5 / 11),
        (0.55, "57.8", True, 3 / 11),
        (0.55, "57.7", True, 3 / 11),
        (0.55, "57.9", False, 3 / 11),
        (0.03, "5.8", True, 1.0),
    ],
)
def test_a_multiple_is_consistent_and_how_often_any_number_is(
    unit: float, printed: str, fits: bool, share: float
) -> None:
    found = judge("multiple-of", printed, own=_exact(unit), certified=None, without=None)
    assert found is (Verdict.CONSISTENT if fits else Verdict.DIFFERS)
    assert share_of_multiples(unit, printed) == pytest.approx(share)


def is_of(id_: str, prefix: str) -> bool:
    return id_ == prefix or id_.startswith(f"{prefix}/")


@pytest.mark.parametrize("id_", list(catalogue().claims))
def test_the_verdict_of_each_claim_is_as_it_was(id_: str) -> None:
    (one,) = check(id_)
    assert one.verdict == PINNED[max((name for name in PINNED if is_of(id_, name)), key=len)]
    assert one.words.startswith(one.verdict.value)
    if one.verdict in (Verdict.INVALID, Verdict.DIFFERS):
        assert one.claim.because
