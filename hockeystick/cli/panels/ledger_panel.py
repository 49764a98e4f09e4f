"""Ledgers for people: what is left, what happened, what is wrong, what prices are now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.cli.panels import render
from hockeystick.ledger import LedgerCheck, LedgerStatus, Repricing
from hockeystick.numerics.numerals import plain
from hockeystick.reports.ledger_words import EntryTold, amount, downward, status_facts, upward

WIDEST: Final = 150
_SHOWN: Final = 12


def status_panel(status: LedgerStatus) -> RenderableType:
    """Return the panel of one dataset."""
    facts = render.facts_table()
    for label, text in status_facts(status):
        style = "bold green" if label == "remaining" else ""
        facts.add_row(label, render.one_line(text, style))
    return render.framed(status.dataset, facts)


def status_table(statuses: Sequence[LedgerStatus]) -> RenderableType:
    """Return one row for each dataset, and its head below."""
    table = _table("dataset", "budget", "spent", "remaining", "open", "entries")
    for one in statuses:
        cap = "" if one.within is None else f"\nwithin {one.within}"
        table.add_row(
            Text(f"{one.dataset}{cap}"),
            amount(one.budget, plain),
            amount(one.spent, upward),
            Text(amount(one.remaining, downward), "bold green"),
            f"{one.unresolved:,}",
            f"{one.entries:,}",
        )
    heads = [Text(f"{one.dataset}\n  {one.head}", "dim") for one in statuses]
    return Group(table, Text("\nheads, to be noted where nobody can change them", "bold"), *heads)


def history_table(entries: Sequence[EntryTold]) -> RenderableType:
    """Return one row for each entry."""
    table = _table("", "when (UTC)", "", "what counts", "price, then spent", "who, why")
    for one in entries:
        done = Text(one.done, "bold").append(f"\n{one.key}" if one.key else "", "not bold")
        who = Text("\n").join(map(render.one_line, filter(None, (one.by, one.note))))
        costs = Text("\n").join(map(Text, filter(None, (one.price, one.spent))))
        table.add_row(one.seq, one.at, done, render.one_line(one.what), costs, who)
    return table


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
