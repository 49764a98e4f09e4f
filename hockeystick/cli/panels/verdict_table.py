"""What the verifier says, for people: one table of claims, and the verdict."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.cli.panels.render import bare_table, facts_table, one_line, print_plainly
from hockeystick.numerics.numerals import at_most

if TYPE_CHECKING:
    from hockeystick.verifier import Verdict

_LONGEST: Final = 600
_PAGES: Final = (".html", ".htm")
STYLES: Final = {"verified": "bold green", "refuted": "bold red", "not covered": "bold yellow"}
_MEANINGS: Final = {
    "verified": "a second program finds that every claim holds",
    "refuted": "do not rely on this answer; please report it",
    "not covered": "the second program says nothing about this answer",
}


def print_answer(name: str, told: dict[str, Any], *, inside: bool) -> None:
    """Print what is about to be judged."""
    facts = facts_table()
    facts.add_row("file", one_line(name))
    plan = spelled(told.get("description"))
    facts.add_row("plan", one_line(textwrap.shorten(plan, _LONGEST, placeholder=" ...")))
    facts.add_row("answer inside" if inside else "answer", one_line(_claim(told)))
    if name.lower().endswith(_PAGES):
        facts.add_row("page", "its visible text is not looked at")
    print_plainly(facts)


def print_verdict(verdict: Verdict) -> None:
    """Print what became of each claim, and of the answer."""
    print_plainly(Group(Text(), _told(verdict)))


def spelled(description: Any) -> str:
    """Return a description as the call that it stands for, without the fields that are left out."""
    if isinstance(description, list):
        return f"[{', '.join(map(spelled, description))}]"
    if not isinstance(description, dict):
        return str(description)
    given = {name: part for name, part in description.items() if part is not None}
    kind = given.pop("type", "")
    return f"{kind}({', '.join(f'{name}={spelled(part)}' for name, part in given.items())})"


def _claim(told: dict[str, Any]) -> str:
    """Return in words what an answer claims, with the numbers as it has them."""
    if "parameter" in told:
        return f"{told['parameter']} = {told.get('value')} meets {told.get('target')}"
    asked = ", ".join(f"{name} = {value}" for name, value in told.get("at", {}).items())
    ends = f"proven from {told.get('lower')} to {told.get('upper')}"
    return f"{told.get('quantity')} at most {_at_most(told.get('upper'))} at {asked}, {ends}"


def _at_most(upper: Any) -> str:
    """Return an upper end in a few digits, or as it is where it is no number."""
    try:
        return at_most(float(upper))
    except (TypeError, ValueError):
        return str(upper)


def _told(verdict: Verdict) -> RenderableType:
    """Return the table of the claims above the verdict."""
    meaning = _MEANINGS[verdict.status]
    said = Text.assemble((verdict.status, STYLES[verdict.status]), f": {meaning}")
    facts = facts_table()
    facts.add_row("verdict", said)
    if verdict.reason:
        facts.add_row("reason", one_line(verdict.reason))
    return Group(_table(verdict), Text(), facts) if verdict.checks else facts


def _table(verdict: Verdict) -> Table:
    """Return one row for each claim."""
    table = bare_table()
    table.add_column("claim")
    table.add_column("ball")
    table.add_column("holds")
    for one in verdict.checks:
        holds = Text("yes", "green") if one.holds else Text("no", "bold red")
        table.add_row(one_line(one.claim), one_line(one.ball), holds)
    return table
