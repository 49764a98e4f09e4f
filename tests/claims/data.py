"""The documents and their claims, as the data file has them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast, final

from tests.claims.found import FILE
from tests.claims.verdicts import Relation

_ASKED: Final = ("own", "certified", "without", "own_without")

Parameter = float | str | tuple["Parameter", ...]


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """A way's name and the parameters it is asked with, in the order of their names."""

    way: str
    parameters: tuple[tuple[str, Parameter], ...]


@final
@dataclass(frozen=True, slots=True)
class Document:
    """A document whose figures are checked; its key begins the ids of its claims."""

    key: str
    title: str
    authors: str
    published: str


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
    document: str
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


@final
@dataclass(frozen=True, slots=True)
class Catalogue:
    """Documents by key and claims by id, in the order of the data file."""

    documents: Mapping[str, Document]
    claims: Mapping[str, Claim]


@cache
def catalogue() -> Catalogue:
    """Return the documents and claims of the data file."""
    return read(tomllib.loads(FILE.read_text(encoding="utf-8")))


def read(told: Mapping[str, Any]) -> Catalogue:
    """Return the catalogue that a parsed data file amounts to."""
    documents = {one["key"]: Document(**one) for one in told["document"]}
    claims = [claim for table in told["claim"] for claim in _claims(table)]
    by_id = {claim.id: claim for claim in claims}
    if len(by_id) < len(claims):
        raise ValueError("two claims have the same id")
    return Catalogue(documents, by_id)


def _claims(table: Mapping[str, Any]) -> list[Claim]:
    shared = {name: value for name, value in table.items() if name != "row"}
    return [_claim(shared, row) for row in table.get("row", [{}])]


def _claim(shared: Mapping[str, Any], row: Mapping[str, Any]) -> Claim:
    """Return the claim of one row: what it says goes before, or behind, what its table says."""
    parameters = row.get("parameters", {})
    fields: dict[str, Any] = {**shared, **{k: v for k, v in row.items() if k != "parameters"}}
    if row:
        fields["id"] = f"{shared['id']}/{row['id']}"
        fields["place"] = f"{shared['place']}, {row['place']}"
    for name in _ASKED:
        if name in fields:
            fields[name] = _asked({**parameters, **fields[name]})
    fields["document"] = fields["id"].partition("/")[0]
    return Claim(**fields)


def _asked(told: Mapping[str, Any]) -> Asked:
    """Return a way with its parameters, but for those of the row that it says it ignores."""
    left = {name: value for name, value in told.items() if name not in ("way", "ignores")}
    for name in cast("list[str]", told.get("ignores", [])):
        left.pop(name, None)
    frozen = ((name, _frozen(value)) for name, value in sorted(left.items()))
    return Asked(told["way"], tuple(frozen))


def _frozen(value: Any) -> Parameter:
    return tuple(map(_frozen, value)) if isinstance(value, list) else cast("Parameter", value)
