"""Claims as the data file has them, and what becomes of each: a verdict on the numbers found."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import Any, Final, Literal, NamedTuple, final

from hockeystick.numerics.multiprecision import working_digits
from tests.claims.found import FILE, Found, found, ways

Relation = Literal["equals", "multiple-of", "at-most", "at-least", "for-all"]
Parameter = float | str | tuple["Parameter", ...]


class Asked(NamedTuple):
    """A way's name and the parameters it is asked with, in the order of their names."""

    way: str
    parameters: tuple[tuple[str, Parameter], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One figure or statement of a document, and how it is checked. It holds no verdict.

    The relation is "equals" for a figure; "multiple-of" for one that is to be a whole multiple of
    ``own``, which one is not published; "at-most" or "at-least" for a bound; "for-all" for a
    formula that is to give the truth for all parameters, shown at some. ``because`` is why it is as
    the verdict says, ``see`` what in this library does it right; the data file says the rest.
    """

    id: str
    place: str
    says: str
    relation: Relation
    published: str = ""
    own: Asked | None = None
    certified: Asked | None = None
    without: Asked | None = None
    own_without: Asked | None = None
    only_with: str = ""
    because: str = ""
    see: str = ""

    @property
    def document(self) -> str:
        """The key of the document, with which the id begins."""
        return self.id.partition("/")[0]


@cache
def documents() -> dict[str, dict[str, str]]:
    """Return title, authors and year of the documents by their keys."""
    return {one["key"]: one for one in tomllib.loads(FILE.read_text("utf-8"))["document"]}


@cache
def claims() -> dict[str, Claim]:
    """Return the claims by id, in the order of the data file."""
    tables = tomllib.loads(FILE.read_text("utf-8"))["claim"]
    listed = [claim for table in tables for claim in _rows(table)]
    by_id = {claim.id: claim for claim in listed}
    assert len(by_id) == len(listed)
    return by_id


def _rows(table: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield the claim of each row: what it says goes before, or behind, what its table says."""
    for row in table.get("row", [{}]):
        fields = {name: value for name, value in {**table, **row}.items() if name != "row"}
        parameters = fields.pop("parameters", {})
        if row:
            fields["id"] = f"{table['id']}/{row['id']}"
            fields["place"] = f"{table['place']}, {row['place']}"
        for name in ("own", "certified", "without", "own_without"):
            if name in fields:
                fields[name] = _asked({**parameters, **fields[name]})
        yield Claim(**fields)


def _asked(told: Mapping[str, Any]) -> Asked:
    """Return a way with its parameters, but for those of the row that it says it ignores."""
    left_out = ("way", "ignores", *told.get("ignores", ()))
    given = ((name, _frozen(told[name])) for name in sorted(told) if name not in left_out)
    return Asked(told["way"], tuple(given))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


# Of a number itself: what its last digits may differ by where two routes lead to the same.
_ROUND_OFF: Final = 1e-9
# Of a number itself: how wide a proven interval may be that is to confirm a formula.
_WIDEST: Final = 1e-6
# The largest denominator of a unit in terms of a printed number's last digit.
_LARGEST: Final = 1000


@final
class Verdict(StrEnum):
    """What became of a claim.

    docs/claims.md says what each means. Of what is consistent ``share_of_multiples`` says how often
    an arbitrary number would be.
    """

    REPRODUCES = "reproduces"
    CONSISTENT = "consistent"
    ONLY_WITH = "reproduces only with"
    DIFFERS = "does not reproduce"
    INVALID = "statement invalid"
    UNDECIDED = "undecided"


def rounds_to(value: float, printed: str) -> bool:
    """Return whether a number rounds to the digits of a printed one; a half either way."""
    shown = Decimal(printed)
    half = Decimal(1).scaleb(_exponent(printed)) / 2
    gap = abs(Decimal(value) - shown)
    return bool(gap <= half + abs(shown) * Decimal(_ROUND_OFF) / 1000)


def _exponent(printed: str) -> int:
    exponent = Decimal(printed).as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def share_of_multiples(unit: float, printed: str) -> float:
    """Return the share of the numbers with as many decimals that are rounded multiples of a unit.

    With r units of the last digit to a multiple it is 1/r; where ``r = p/q`` and q is even, one
    multiple in q lies half way between two numbers, and both are counted.
    """
    last = Fraction(10) ** _exponent(printed)
    ratio = (Fraction(unit) / last).limit_denominator(_LARGEST)
    halves = 0 if ratio.denominator % 2 else Fraction(1, ratio.denominator)
    return min(1.0, float((1 + halves) / ratio))


def judge(
    relation: Relation,
    printed: str,
    own: Found | None = None,
    certified: Found | None = None,
    without: Found | None = None,
    own_without: Found | None = None,
) -> Verdict:
    """Return the verdict on a claim.

    A figure is held against the value by its document's own method or the multiples of that, a
    bound, printed or else computed as the document has it, against the proven value. ``without`` is
    the same as is judged, and ``own_without`` what is stated, without the condition.
    """
    if relation == "equals":
        assert own is not None
        return _figure(printed, own, without)
    if relation == "multiple-of":
        assert own is not None
        nearest = own.upper * round(float(printed) / own.upper)
        return Verdict.CONSISTENT if rounds_to(nearest, printed) else Verdict.DIFFERS
    assert certified is not None
    claimed = own or Found(float(printed), float(printed), "exact")
    verdict = _statement(relation, certified, claimed)
    if without is None or verdict is not Verdict.REPRODUCES:
        return verdict
    other = _statement(relation, without, own_without or claimed)
    return Verdict.ONLY_WITH if other is Verdict.INVALID else other


def _statement(relation: Relation, truth: Found, claimed: Found) -> Verdict:
    """Return the verdict on a statement without a condition.

    It is invalid where the truth is proven to be beyond the bound, and reproduces where it is
    proven not to be; a formula's value must agree with a truth that is known to many digits.
    """
    room = _ROUND_OFF * abs(claimed.upper)
    above = truth.lower > claimed.upper + room
    below = truth.upper < claimed.lower - _ROUND_OFF * abs(claimed.lower)
    if relation == "at-most":
        fails, holds = above, truth.upper <= claimed.upper + room
    elif relation == "at-least":
        fails, holds = below, truth.lower >= claimed.lower - room
    else:
        fails = above or below
        holds = truth.upper - truth.lower <= _WIDEST * abs(claimed.upper)
    if fails:
        return Verdict.INVALID
    return Verdict.REPRODUCES if holds else Verdict.UNDECIDED


def _figure(printed: str, own: Found, without: Found | None) -> Verdict:
    if not rounds_to(own.upper, printed):
        return Verdict.DIFFERS
    if without is None or rounds_to(without.upper, printed):
        return Verdict.REPRODUCES
    return Verdict.ONLY_WITH


@final
@dataclass(frozen=True, slots=True)
class Checked:
    """A claim and what became of it; ``without`` is what was judged without its condition."""

    claim: Claim
    own: Found | None
    certified: Found | None
    without: Found | None
    own_without: Found | None
    verdict: Verdict

    @property
    def words(self) -> str:
        """The verdict in words, with its condition or its reason."""
        because, words = self.claim.because, self.verdict.value
        if self.verdict is Verdict.INVALID:
            return f"{words} because {because}"
        if self.verdict is Verdict.ONLY_WITH:
            words += f" {self.claim.only_with}"
        if self.verdict is Verdict.CONSISTENT and self.own is not None:
            share = share_of_multiples(self.own.upper, self.claim.published)
            words += f", as {100 * share:.2g} % of all such numbers are"
        return f"{words}: {because}" if because else words


def check(*names: str) -> list[Checked]:
    """Return what becomes of some claims, each once, in the order of the data file.

    Names are keys of documents, ids of claims, or what ids begin with up to a "/"; all if none.
    """
    return [
        checked(claim)
        for id_, claim in claims().items()
        if not names or any(is_of(id_, name) for name in names)
    ]


def is_of(id_: str, name: str) -> bool:
    """Return whether a name is that of a claim, or of its document or table."""
    return id_ == name or id_.startswith(f"{name}/")


def checked(claim: Claim) -> Checked:
    """Return what becomes of one claim."""
    asked = (claim.own, claim.certified, claim.without, claim.own_without)
    own, certified, without, own_without = (one and ask(one) for one in asked)
    verdict = judge(claim.relation, claim.published, own, certified, without, own_without)
    return Checked(claim, own, certified, without, own_without, verdict)


@cache
def ask(asked: Asked) -> Found:
    """Return what a way finds; the same question is answered once."""
    with working_digits(30):
        return found(ways()[asked.way](**dict(asked.parameters)))
