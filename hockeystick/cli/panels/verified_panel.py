"""What the verifier says of the rows of a sweep, for people."""

from __future__ import annotations

from typing import Final

from rich.console import RenderableType
from rich.text import Text

from hockeystick.cli.panels import render, verdict_table
from hockeystick.cli.results.verified_rows import NO_ANSWER, NOT_DRAWN, RowVerdict, VerifiedRows

# So many rows of each status are named.
_NAMED: Final = 5


def panel(done: VerifiedRows) -> RenderableType:
    """Return the panel: how many rows are of each status, which, and the verdict on all."""
    facts = render.facts_table()
    facts.add_row("file", render.one_line(done.out, "bold"))
    facts.add_row("grid", render.one_line(done.grid))
    facts.add_row("rows", Text(f"{len(done.rows):,}"))
    for status in ("verified", "refuted", "not covered", NO_ANSWER, NOT_DRAWN):
        found = done.of(status)
        if found or status == "verified":
            facts.add_row(status, Text(f"{len(found):,}", verdict_table.STYLES.get(status, "")))
        for one in found[:_NAMED] if status not in ("verified", NOT_DRAWN) else ():
            facts.add_row("", render.one_line(_named(one)))
    said = Text.assemble((done.status, verdict_table.STYLES[done.status]))
    facts.add_row("verdict", Text.assemble(said, f": {_meaning(done)}"))
    facts.add_row("exit status", Text(str(done.exit_status)))
    return render.framed(done.title, facts)


def _meaning(done: VerifiedRows) -> str:
    """Return what the verdict on all says, in words and numbers."""
    many = f"{done.answers:,}" + (" answers drawn" if done.of(NOT_DRAWN) else " answers")
    if not done.answers:
        return "no row has an answer"
    if done.status == "refuted":
        return (
            f"{len(done.of('refuted')):,} of {many} do not hold: rely on none of these, unless the "
            "grid file is another one than was swept"
        )
    if done.status == "verified":
        return f"a second program finds that each of {many} holds"
    unsaid = len(done.of("not covered"))
    return f"{len(done.of('verified')):,} of {many} hold, and of {unsaid:,} nothing is said"


def _named(one: RowVerdict) -> str:
    """Return which row it is, and why it is not verified."""
    cell = ", ".join(f"{name} = {value}" for name, value in one.parameters.items())
    return f"row {one.row} ({cell}): {one.reason}"
