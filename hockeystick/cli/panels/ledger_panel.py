"""Ledgers for people: what is left, what happened, what is wrong, what prices are now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.cli.panels import render
from hockeystick.ledger import LedgerCheck, LedgerStatus, Repricing
from hockeystick.ledger.amounts import amount, downward, upward
from hockeystick.ledger.terms import Terms
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import plain
from hockeystick.reports.ledger import (
    EntryTold,
    Room,
    has_delta_of_its_own,
    has_epsilon,
    in_epsilon,
    status_facts,
)

WIDEST: Final = 150
_SHOWN: Final = 12
_REMAINING: Final = (
    "remaining: what the next release may cost, at a delta of its own; the budget's is for all "
    "releases and the slack together"
)
_ASK: Final = "hockeystick ledger status --delta 1e-6 shows it"


def status_panel(
    status: LedgerStatus, delta: float | None = None, rooms: Sequence[Room] = ()
) -> RenderableType:
    """Return the panel of one dataset, in epsilon as well where a delta is known."""
    facts = render.facts_table()
    for label, text in status_facts(status, delta, rooms):
        style = "bold green" if label == "left" else ""
        facts.add_row(label, render.one_line(text, style))
    if delta is None and not has_epsilon(status.budget):
        facts.add_row("in epsilon", Text(_ASK, "dim"))
    return render.framed(status.dataset, facts)


def status_table(statuses: Sequence[LedgerStatus], delta: float | None = None) -> RenderableType:
    """Return one row for each dataset, and its head below."""
    found = [in_epsilon(one, delta) for one in statuses]
    shown = ["in epsilon"] if any(found) else []
    table = _table("dataset", "budget", "spent", *shown, "remaining", "open", "entries")
    for one, epsilon in zip(statuses, found, strict=True):
        cap = "" if one.within is None else f"\nwithin {one.within}"
        table.add_row(
            Text(f"{one.dataset}{cap}"),
            amount(one.budget, plain),
            amount(one.spent, upward),
            *(["" if epsilon is None else str(epsilon)] if shown else []),
            Text(amount(one.remaining, downward), "bold green"),
            f"{one.unresolved:,}",
            f"{one.entries:,}",
        )
    heads = [Text(f"{one.dataset}\n  {one.head}", "dim") for one in statuses]
    asks = delta is None and not all(has_epsilon(one.budget) for one in statuses)
    hint = [Text(f"\nin epsilon, of budgets without a delta: {_ASK}", "dim")] if asks else []
    if any(map(has_delta_of_its_own, statuses)):
        hint.append(Text(f"\n{_REMAINING}", "dim"))
    note = Text("\nheads, to be noted where nobody can change them", "bold")
    return Group(table, *hint, note, *heads)


def history_table(entries: Sequence[EntryTold], note: str) -> RenderableType:
    """Return one row for each entry, and a note below."""
    table = _table("", "when (UTC)", "", "what counts", "price, then spent", "who, why")
    for one in entries:
        done = Text(one.done, "bold").append(f"\n{one.key}" if one.key else "", "not bold")
        who = Text("\n").join(map(render.one_line, filter(None, (one.by, one.note))))
        spent = f"{one.spent}:\n{one.epsilon}" if one.epsilon else one.spent
        costs = Text("\n").join(map(Text, filter(None, (one.price, spent))))
        table.add_row(f"entry {one.seq}", one.at, done, render.one_line(one.what), costs, who)
    return Group(table, Text(f"\n{note}", "dim")) if note else table


def history_note(terms: Terms, delta: float | None) -> str:
    """Return what the epsilon in a history is, or how to ask for it; or nothing to add."""
    budget = terms.budget
    if has_epsilon(budget) and terms.order is None:
        return ""
    at = budget.delta if isinstance(budget, ApproxDP) else delta
    if at is None:
        return "in epsilon: hockeystick ledger history --delta 1e-6 shows it"
    told = "epsilon: of all that is spent by then, as a plan fixed in advance"
    return f"{told}, at delta {plain(at)}"


def check_table(checks: Sequence[LedgerCheck]) -> RenderableType:
    """Return what verifications found."""
    blocks: list[RenderableType] = []
    for one in checks:
        verdict = Text("sound", "bold green") if one.sound else Text("not sound", "bold red")
        blocks.append(Text.assemble(verdict, f"  {one.dataset}\n  {one.head}"))
        blocks += [render.one_line(f"  - {problem}") for problem in one.problems]
    return Group(*blocks)


def repricing_panel(dataset: str, done: Repricing) -> RenderableType:
    """Return the prices that change, and what is spent before and after."""
    facts = render.facts_table()
    changed = f"{len(done.changed):,} prices change"
    facts.add_row("recorded" if done.recorded else "only shown", changed)
    facts.add_row("spent", amount(done.spent, upward))
    facts.add_row("then", Text(amount(done.repriced, upward), "bold green"))
    if not done.changed:
        return render.framed(dataset, facts)
    table = _table("reservation", "old price", "new price")
    for one in done.changed[:_SHOWN]:
        table.add_row(one.key, amount(one.old, upward), amount(one.new, upward))
    rest = len(done.changed) - _SHOWN
    more = [Text(f"and {rest:,} more", "dim")] if rest > 0 else []
    return render.framed(dataset, facts, Text(), table, *more)


def _table(*headings: str) -> Table:
    """Return an empty table whose cells break where they have to."""
    table = render.bare_table()
    for heading in headings:
        table.add_column(heading)
    return table
