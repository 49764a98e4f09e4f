"""Whose change a description hides, and from whom: the one place that says what composes.

Adaptive composition bounds what one adversary learns of one difference from all releases together.
A sum over parts that are about different neighbours, different parties or different observers
bounds nothing that anybody asked for, so that parts which state such facts must state the same.
What a part leaves open, as noise in units of a sensitivity leaves open what the sensitivity was
taken for, holds with whatever the others state.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple, Protocol, TypeAlias

from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError

Names: TypeAlias = tuple[str, ...]
ONE_RECORD: Final = "one record"
ONE_CLIENT: Final = "all that one client or party holds"


class Fact(NamedTuple):
    """Something that all parts of a plan must agree in, about one of ``AGREEMENTS``."""

    about: str
    value: Hashable


class Agreement(NamedTuple):
    """What parts of a plan must do alike, and what to do where they do not, in words."""

    must: str
    instead: str


AGREEMENTS: Final = {
    "adjacency": Agreement("be described under one adjacency", "give them all the same"),
    "presence": Agreement(
        "agree whether somebody may be missing",
        "a report of one's own that is missing is seen to be, whatever its noise: describe all "
        "under replace-one, or under zero-out, where everybody reports",
    ),
    "unit": Agreement(
        "protect the same",
        "a sum of both bounds neither: account for each alone, or give the .mechanism of one "
        "whose neighbours you mean to be those of the others",
    ),
    "party": Agreement(
        "protect the same party",
        "describe all for one party, for each in turn: the largest answer holds for all of them; "
        "where one is about its own worst party, take its hs.convert(mechanism, hs.GDP)",
    ),
    "observers": Agreement(
        "be seen by the same parties", "give all of them those who put together what they see"
    ),
    "colluding": Agreement("be seen by as many who collude", "give all the largest number"),
    "distance": Agreement("be seen at the same distance", "give all the least"),
}
# Whoever may be missing sends no report, where everybody sends one.
_MAY_BE_MISSING: Final = Fact("presence", "somebody may be missing")
EVERYBODY_REPORTS: Final = Fact("presence", "everybody reports")


class Described(Protocol):
    """What is described for some neighbours, and perhaps for some party and observers."""

    @property
    def adjacency(self) -> Adjacency | None:
        """The neighbours, None where it holds for all of them."""
        ...

    @property
    def scope(self) -> tuple[Fact, ...]:
        """What else is stated."""
        ...


def unit_of(plan: Described) -> str:
    """Return what a plan protects one of, as far as it says: a client, or else a record."""
    return "client" if Fact("unit", ONE_CLIENT) in plan.scope else "record"


def facts_of(part: Described) -> tuple[Fact, ...]:
    """Return all that a part states, its adjacency included."""
    if part.adjacency is None:
        return part.scope
    named = (Fact("adjacency", part.adjacency), *part.scope)
    return (*named, _MAY_BE_MISSING) if part.adjacency is Adjacency.ADD_REMOVE else named


def refuse_disagreement(parts: Iterable[Described], whole: str) -> None:
    """Raise where two parts of the whole state different things of what they must agree in."""
    first: dict[Fact, Described] = {}
    for part in parts:
        for fact in facts_of(part):
            first.setdefault(fact, part)
    for about, agreement in AGREEMENTS.items():
        stated = {fact.value: part for fact, part in first.items() if fact.about == about}
        if len(stated) > 1:
            listed = "; ".join(f"{_shown(value)}: {part}" for value, part in stated.items())
            raise IncompatibleError(
                f"the parts of {whole} must {agreement.must}, but these are not alike ({listed}); "
                f"{agreement.instead}"
            )


def common_facts(parts: Iterable[Described]) -> tuple[Fact, ...]:
    """Return what parts that agree state together, their adjacency aside."""
    return tuple(dict.fromkeys(fact for part in parts for fact in part.scope))


def without_presence(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Return facts without what they say of who may be missing."""
    return tuple(fact for fact in facts if fact.about != EVERYBODY_REPORTS.about)


def states_more(part: Described, others: Iterable[Described]) -> bool:
    """Return whether a part states what none of the others does."""
    known = {fact for other in others for fact in facts_of(other)}
    return not known.issuperset(facts_of(part))


def _shown(value: Hashable) -> str:
    if isinstance(value, frozenset):
        return ", ".join(map(str, sorted(value))) or "no party"
    return str(value)
