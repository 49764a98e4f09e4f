"""What an attacker could learn, for people: facts and a table in a panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.cli.panels import render
from hockeystick.cli.results.attack import Attack
from hockeystick.numerics import numerals as numerals

_FPR: Final = (
    "FPR, the false positive rate (alpha, the type I error): the share that is accused of "
    "those whose records were not used. Members are those whose records were."
)
_LEGEND: Final = (
    "TPR: true positive rate (power), the share of the members that are found. "
    "FNR: false negative rate (beta, the type II error), the share that is missed: 1 - TPR."
)


def panel(attacks: Sequence[Attack], plot: str | None, out: str | None = None) -> RenderableType:
    """Return the panel: facts of each plan, one table of all, and what they rest on."""
    one = len(attacks) == 1
    blocks: list[RenderableType] = []
    for index, attack in enumerate(attacks):
        if not one:
            blocks += [render.one_line(attack.label, "bold")]
        blocks += [_facts(attack, first=index == 0, alone=one), Text()]
    blocks += [_table(attacks), Text(), Text(_LEGEND, style="dim")]
    blocks += render.picture(plot) + render.picture(out, "numbers") + _assumptions(attacks)
    return render.framed(attacks[0].file.title if one else None, *blocks)


def _assumptions(attacks: Sequence[Attack]) -> list[RenderableType]:
    """Return what the answers rest on: first what all share, then what is each plan's own."""
    first, *others = (attack.assumptions for attack in attacks)
    shared = [text for text in first if all(text in other for other in others)]
    blocks = render.listed("All of this holds if" if others else render.HOLDS_IF, shared)
    for attack in attacks:
        own = [text for text in attack.assumptions if text not in shared]
        blocks += render.listed(f"What is said of {render.one_line(attack.label)} holds if", own)
    return blocks


def _facts(attack: Attack, *, first: bool, alone: bool) -> Table:
    """Return the readings of one plan, and the plan in words."""
    facts, file = render.facts_table(), attack.file
    style = "bold green" if attack.promises else "bold red"
    facts.add_row("reading", Text(f"{attack.reading}.", style=style))
    if first:
        facts.add_row("", Text(_FPR, style="dim"))
    facts.add_row("advantage", Text(f"at most {numerals.at_most(attack.advantage)}"))
    error = f"at least {numerals.at_least(attack.bayes_error)}  at prior 1/2"
    facts.add_row("Bayes error", Text(error))
    render.add_plan(facts, file)
    facts.add_row("adjacency", file.plan.adjacency or render.ANY_ADJACENCY)
    if alone:
        render.add_text(facts, "source", file.source)
    render.add_text(facts, "notes", file.notes)
    return facts


def _table(attacks: Sequence[Attack]) -> Table:
    """Return one row per false positive rate, one section per plan."""
    several = len(attacks) > 1
    table = render.bare_table()
    if several:
        table.add_column("plan")
    for heading in ("at FPR", "TPR at most", "FNR at least"):
        table.add_column(heading)
    for attack in attacks:
        label = render.one_line(attack.label)
        rows = zip(attack.rates, attack.most_found, attack.least_missed, strict=True)
        for index, (fpr, found, missed) in enumerate(rows):
            cells = (
                Text(numerals.plain(fpr)),
                Text(numerals.at_most(found), style="bold"),
                Text(numerals.at_least(missed)),
            )
            first = (Text() if index else label,) if several else ()
            table.add_row(*first, *cells, end_section=index == len(attack.rates) - 1)
    return table
