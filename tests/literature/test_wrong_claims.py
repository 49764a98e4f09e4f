"""Every checker is told something wrong, and must see it: no claim is exempt.

A figure is moved by some units of its last digit and by a fifth, both ways. The bound of a
statement is moved past the truth, both ways, and a parameter of the statement is changed so that
a true one becomes false, a false one true.
"""

import dataclasses
import inspect
import math
import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.claims import Checked, Claim, Found, Verdict, catalogue, check
from tests.claims.checking import checked
from tests.claims.data import Asked
from tests.claims.found import ways
from tests.claims.verdicts import judge
from tests.literature.test_claims import is_of

Change = dict[str, dict[str, Any]]

CLAIMS = catalogue().claims
CHANGES: dict[str, Change] = tomllib.loads(
    Path(__file__).with_name("wrong.toml").read_text("utf-8")
)
# Figures that the own method never comes to: a budget that it does spend.
REACHED: Change = {"own": {"epsilon": 0.05}}
FIGURES = [id_ for id_, claim in CLAIMS.items() if claim.relation == "equals"]
MULTIPLES = [id_ for id_, claim in CLAIMS.items() if claim.relation == "multiple-of"]
STATEMENTS = [id_ for id_ in CLAIMS if id_ not in (*FIGURES, *MULTIPLES)]


def _of(id_: str) -> Checked:
    (one,) = check(id_)
    return one


def _changed(claim: Claim, change: Change, **other: Any) -> Claim:
    """Return a claim of which some parameters are others; each must be one that the way takes."""
    fields: dict[str, Any] = {}
    for name, parameters in change.items():
        asked = getattr(claim, name)
        assert set(parameters) <= set(inspect.signature(ways()[asked.way]).parameters)
        changed = {
            key: tuple(one) if isinstance(one, list) else one for key, one in parameters.items()
        }
        told = {**dict(asked.parameters), **changed}
        fields[name] = Asked(asked.way, tuple(sorted(told.items())))
    return dataclasses.replace(claim, **fields, **other)


def _unit(printed: str) -> Decimal:
    exponent = Decimal(printed).as_tuple().exponent
    assert isinstance(exponent, int)
    return Decimal(1).scaleb(exponent)


def _around(printed: str) -> dict[str, list[str]]:
    unit, number = _unit(printed), Decimal(printed)
    fifth = (abs(number) / 5).quantize(unit)
    sides = {}
    for side, sign in (("below", -1), ("above", 1)):
        steps = [unit * k for k in (1, 2, 3)] + [fifth] * (fifth > 3 * unit)
        sides[side] = [f"{number + sign * step:f}" for step in steps]
    return sides


def test_every_claim_is_told_something_wrong() -> None:
    assert sorted((*FIGURES, *MULTIPLES, *STATEMENTS)) == sorted(CLAIMS)
    assert all(_change(id_) for id_ in STATEMENTS)
    used = {prefix for prefix in CHANGES for id_ in STATEMENTS if is_of(id_, prefix)}
    assert used == set(CHANGES)


@pytest.mark.parametrize("id_", FIGURES)
def test_a_wrong_figure_does_not_reproduce(id_: str) -> None:
    claim, own = CLAIMS[id_], _of(id_).own
    assert own is not None
    if not math.isfinite(own.upper):
        claim = _changed(claim, REACHED)
        own = checked(claim).own
        assert own is not None
    unit = _unit(claim.published)
    right = f"{Decimal(own.upper).quantize(unit):f}"
    found = checked(dataclasses.replace(claim, published=right)).verdict
    assert found in (Verdict.REPRODUCES, Verdict.ONLY_WITH)
    for side in _around(right).values():
        # A number that ends in a half may be rounded up or down: one neighbour may be right too.
        wrong = [one for one in side if abs(Decimal(one) - Decimal(own.upper)) > unit * 3 / 5]
        assert len(wrong) >= 2
        for printed in wrong:
            told = dataclasses.replace(claim, published=printed)
            assert checked(told).verdict is Verdict.DIFFERS


@pytest.mark.parametrize("id_", MULTIPLES)
def test_a_wrong_multiple_is_not_consistent(id_: str) -> None:
    claim, own = CLAIMS[id_], _of(id_).own
    assert own is not None
    for side in _around(claim.published).values():
        verdicts = []
        for printed in side:
            number, unit = Fraction(printed), Fraction(own.upper).limit_denominator(1000)
            rest = abs(number - unit * round(number / unit))
            fits = rest <= Fraction(_unit(printed)) / 2
            told = checked(dataclasses.replace(claim, published=printed)).verdict
            assert told is (Verdict.CONSISTENT if fits else Verdict.DIFFERS)
            verdicts.append(told)
        assert Verdict.DIFFERS in verdicts


@pytest.mark.parametrize("id_", STATEMENTS)
def test_a_bound_beyond_the_truth_changes_the_verdict(id_: str) -> None:
    one = _of(id_)
    truth, relation = one.certified, one.claim.relation
    assert truth is not None
    low, high = 0.8 * truth.lower, 1.25 * truth.upper
    below = _told(one, low) if low > 0.0 else None
    above = _told(one, high) if math.isfinite(high) else None
    middle = None
    if relation == "for-all":
        assert (below, above) == (Verdict.INVALID, Verdict.INVALID)
        middle = _told(one, (truth.lower + truth.upper) / 2)
        assert middle not in (None, Verdict.INVALID)
    else:
        wrong, right = (below, above) if relation == "at-most" else (above, below)
        assert wrong in (None, Verdict.INVALID)
        assert right not in (None, Verdict.INVALID, Verdict.UNDECIDED)
    beyond = one.without and math.isfinite(one.without.upper) and relation == "at-most"
    loose = _told(one, 1.25 * one.without.upper, both=True) if beyond and one.without else None
    assert loose in (None, Verdict.REPRODUCES)
    assert {below, middle, above, loose} - {None, one.verdict}


def _told(one: Checked, claimed: float, *, both: bool = False) -> Verdict:
    """Return the verdict where another bound is claimed, with the condition, or without it too."""
    bound = Found(claimed, claimed, "exact")
    other = bound if both else one.own_without
    return judge(
        one.claim.relation,
        "",
        own=bound,
        certified=one.certified,
        without=one.without,
        own_without=other,
    )


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
