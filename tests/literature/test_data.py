"""The data file: documents, claims, ways and parameters that fit each other."""

import inspect
import re
import tomllib
from importlib.resources import files
from operator import attrgetter
from typing import Any

import pytest

import hockeystick as hs
import hockeystick.release
from tests.claims import Claim, catalogue
from tests.claims.data import Asked, read
from tests.claims.registry import SUBJECTS, ways

CLAIMS = tuple(catalogue().claims.values())
each_document = pytest.mark.parametrize("document", sorted(catalogue().documents))


def _data() -> str:
    return (files("tests.claims") / "claims.toml").read_text(encoding="utf-8")


def _of(document: str) -> list[Claim]:
    return [claim for claim in CLAIMS if claim.document == document]


def _asked(claim: Claim) -> list[Asked]:
    every = (claim.own, claim.certified, claim.without, claim.own_without)
    return [one for one in every if one is not None]


@each_document
def test_each_way_exists_and_takes_the_parameters_it_is_given(document: str) -> None:
    for claim in _of(document):
        for asked in _asked(claim):
            given = dict(asked.parameters)
            bound = inspect.signature(ways()[asked.way]).bind(**given)
            assert bound.kwargs == given


@each_document
def test_the_id_of_a_claim_says_where_it_is(document: str) -> None:
    for claim in _of(document):
        assert re.fullmatch(r"[a-z0-9-]+(/[a-z0-9.-]+){1,3}", claim.id)
        assert claim.place


@each_document
def test_a_sentence_is_one_line_without_a_period(document: str) -> None:
    for claim in _of(document):
        for sentence in (claim.says, claim.because, claim.only_with, claim.see):
            assert sentence == " ".join(sentence.split())
            assert not sentence.endswith(".")
        assert claim.says


@each_document
def test_a_figure_is_computed_and_a_statement_is_proven(document: str) -> None:
    for claim in _of(document):
        if claim.relation in ("equals", "multiple-of"):
            assert claim.published
            assert claim.own is not None
        else:
            assert claim.certified is not None
            assert bool(claim.published) is (claim.own is None)
        assert (claim.without is None) is (not claim.only_with)
        assert claim.without is not None or claim.own_without is None


@each_document
def test_a_condition_changes_what_is_asked(document: str) -> None:
    for claim in _of(document):
        if claim.without is not None:
            judged = claim.own if claim.relation == "equals" else claim.certified
            assert (claim.own_without, claim.without) != (None, judged)


def test_every_way_is_used_and_every_subject_has_one() -> None:
    used = {asked.way for claim in CLAIMS for asked in _asked(claim)}
    assert used == set(ways())
    assert {name.partition(".")[0] for name in used} == set(SUBJECTS)


@pytest.mark.parametrize("name", sorted(ways()))
def test_a_way_takes_keywords_only_and_says_what_it_returns(name: str) -> None:
    way = ways()[name]
    kinds = {one.kind for one in inspect.signature(way).parameters.values()}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
    assert (way.__doc__ or "").startswith("Return ")


def test_every_document_has_claims() -> None:
    assert {claim.document for claim in CLAIMS} == set(catalogue().documents)


def test_the_data_holds_no_verdict() -> None:
    words = ("verdict", "reproduces", "consistent", "invalid", "does not reproduce", "undecided")
    lines = [line for line in _data().splitlines() if not line.startswith("#")]
    assert not [line for line in lines if any(word in line for word in words)]


def test_no_printed_figure_is_in_the_code_of_a_way() -> None:
    printed = {claim.published for claim in CLAIMS if len(claim.published.strip("0.")) >= 3}
    for subject in SUBJECTS:
        code = (files("tests.claims") / f"{subject}.py").read_text(encoding="utf-8")
        assert not printed & set(re.findall(r"\d+(?:\.\d+)?", code))


@each_document
def test_what_is_to_be_seen_exists(document: str) -> None:
    for claim in _of(document):
        for name in re.findall(r"(?:hs|hockeystick)\.([\w.]*\w)", claim.see):
            assert attrgetter(name)(hs) is not None


def test_no_id_is_what_another_begins_with() -> None:
    ids = [claim.id for claim in CLAIMS]
    assert not [id_ for id_ in ids if any(other.startswith(f"{id_}/") for other in ids)]


def _file(*claims: dict[str, Any]) -> dict[str, Any]:
    document = {"key": "d", "title": "t", "authors": "a", "published": "p"}
    return {"document": [document], "claim": list(claims)}


def _table(**other: Any) -> dict[str, Any]:
    own = {"way": "federated.steps", "rounds": 2}
    told = {"id": "d/x", "place": "p", "says": "s", "relation": "equals", "own": own}
    return {**told, **other}


def test_rows_go_before_what_they_share() -> None:
    rows = [
        {"id": "a", "place": "q", "published": "8", "parameters": {"local_steps": 4}},
        {"id": "b", "place": "r", "published": "6", "says": "else", "parameters": {"rounds": 9}},
    ]
    one, other = read(_file(_table(row=rows))).claims.values()
    assert (one.id, one.place, one.says, one.published) == ("d/x/a", "p, q", "s", "8")
    assert one.own == Asked("federated.steps", (("local_steps", 4), ("rounds", 2)))
    # What a way is given by name is not the row's to change.
    assert (other.says, other.own) == ("else", Asked("federated.steps", (("rounds", 2),)))


def test_a_way_can_ignore_a_row_s_parameter_and_lists_become_tuples() -> None:
    own = {"way": "w", "ignores": ["b"], "c": [1, [2]]}
    row = {"id": "a", "place": "q", "parameters": {"a": 1, "b": 2}}
    (one,) = read(_file(_table(own=own, row=[row]))).claims.values()
    assert one.own == Asked("w", (("a", 1), ("c", (1, (2,)))))


def test_two_claims_of_one_id_and_unknown_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="the same id"):
        read(_file(_table(), _table()))
    with pytest.raises(TypeError, match="verdict"):
        read(_file(_table(verdict="reproduces")))


def test_the_file_is_toml_and_cached() -> None:
    assert read(tomllib.loads(_data())) == catalogue()
    assert catalogue() is catalogue()


# What the words say in other words: a sign, a part, or how a number was rounded.
UNNAMED = frozenset({"side", "share", "decimals", "decimals_of_the_sum", "examples_ratio"})
# Their inputs are the rows of table 2, each of which names its own.
OF_A_TABLE = frozenset({"federated.mean_ratio_of_mu", "federated.mean_ratio_of_steps"})
WORDS = {"one": 1.0, "two": 2.0, "tenth": 0.1, "fifth": 0.2, "nothing": 0.0}


def _numbers(text: str) -> set[float]:
    """Return the numbers that a text names."""
    told = text.replace(",", "")
    named = {float(one) for one in re.findall(r"(?<![\w.])-?\d*\.?\d+(?:e-?\d+)?", told)}
    percent = {float(one) for one in re.findall(r"(\d+(?:\.\d+)?) %", told)}
    return (
        named
        | {1 + one / 100 for one in percent}
        | {number for word, number in WORDS.items() if word in told.split()}
    )


def _flat(value: Any) -> list[float]:
    if isinstance(value, tuple):
        return [number for one in value for number in _flat(one)]
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return [float(value)] if numeric else []


@each_document
def test_a_claim_names_its_parameters(document: str) -> None:
    for claim in _of(document):
        named = _numbers(f"{claim.place} {claim.says} {claim.only_with} {claim.because}")
        products = {one * other for one in named for other in named}
        for asked in _asked(claim):
            if asked.way not in OF_A_TABLE:
                for name, value in asked.parameters:
                    if name not in UNNAMED:
                        assert set(_flat(value)) <= named | products, (asked.way, name, value)
