"""What became of published figures, as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.cli.panels.claims_words import cells, counted
from hockeystick.cli.panels.render import bare_table, facts_table, listed, print_plainly, terminal
from hockeystick.literature import Checked, Verdict, catalogue

_WIDEST: Final = 130
_WIDE: Final = 96
_STYLES: Final = {
    Verdict.REPRODUCES: "green",
    Verdict.CONSISTENT: "cyan",
    Verdict.ONLY_WITH: "yellow",
    Verdict.DIFFERS: "red",
    Verdict.INVALID: "bold red",
    Verdict.UNDECIDED: "dim",
}
_LEGEND: Final = (
    "The paper's value is as printed, own that by the document's own method, certified what is "
    "proven of the truth, rounding included. Where a bound is stated, own or the printed value is "
    "the bound. What is consistent is a multiple of own, fitted. Numbers have six digits; a ~ "
    "marks an approximation, of which nothing is proven. A mu of the bound is "
    "that of the Gaussian mechanism whose epsilon, at the delta named, is that of the steps' "
    "composition, which bounds the training. Of the verdicts, reproduces says that the own "
    "method gives what is printed, or that a statement is proven at the parameters named; "
    "consistent, that some value of a number that was not published does; reproduces only with, "
    "that it does under a condition that the document does not name; does not reproduce, that it "
    "gives something else; statement invalid, that what is proven contradicts it; undecided, that "
    "proven ends are too far apart to tell."
)


def print_claims(checked: Sequence[Checked]) -> None:
    """Print one table for each document."""
    wide = terminal(_WIDEST).width >= _WIDE
    print_plainly(claims(checked, wide=wide), _WIDEST)


def print_sources(checked: Sequence[Checked], version: str) -> None:
    """Print where the documents of claims were published, and how to cite what became of one."""
    keys = dict.fromkeys(one.claim.document for one in checked)
    documents = [catalogue().documents[key] for key in keys]
    sources = [f'{one.authors}, "{one.title}", {one.published}' for one in documents]
    first, ids = checked[0], [one.claim.id for one in checked]
    found = f'hockeystick {version}, claim "{first.claim.id}": {first.words}'
    others = "" if len(ids) == 1 else " (the other ids: hockeystick claims --json)"
    blocks = [*listed("Sources", sources), *listed("To cite a finding", [f"{found}{others}"])]
    print_plainly(Group(*blocks), _WIDEST)


def print_documents() -> None:
    """Print the documents and how many claims each has."""
    facts = facts_table()
    known = catalogue()
    for key, document in known.documents.items():
        own = sum(claim.document == key for claim in known.claims.values())
        facts.add_row(Text(key), Text(f"{document.title}\n{document.authors}; {own} claims"))
    print_plainly(facts, _WIDEST)


def claims(checked: Sequence[Checked], *, wide: bool) -> RenderableType:
    """Return one table for each document, under its title."""
    blocks: list[RenderableType] = []
    for key, group in groupby(checked, key=lambda one: one.claim.document):
        rows = list(group)
        document = catalogue().documents[key]
        blocks.append(Text(document.title, style="bold"))
        blocks.append(Text(f"{document.authors}; {document.published}", style="dim"))
        blocks += [Text(counted(rows), style="dim"), Text(), _table(rows, wide), Text()]
    return Group(*blocks, Text(_LEGEND, style="dim"))


def _table(rows: Sequence[Checked], wide: bool) -> Table:
    """Return one row per claim; a narrow one stacks in a cell what belongs together."""
    table = bare_table()
    table.add_column("claim")
    if wide:
        for column in ("paper", "own", "certified"):
            table.add_column(column)
    else:
        table.add_column("paper, own, certified")
    table.add_column("verdict")
    before = ""
    for row in rows:
        says = "" if row.claim.says == before else row.claim.says
        table.add_row(_claim(row, says), *_numbers(row, wide), _verdict(row))
        before = row.claim.says
    return table


def _claim(row: Checked, says: str) -> Text:
    """Return where the claim is, and, the first time, what it says."""
    told = Text(row.claim.place)
    return told.append(f"\n{says}", style="dim") if says else told


def _numbers(row: Checked, wide: bool) -> list[Text]:
    """Return the numbers of a claim, each in a cell or all in one."""
    told = cells(row)
    if wide:
        return list(map(Text, told))
    labels = ("paper", "own", "certified")
    return [Text("\n".join(map(" ".join, zip(labels, told, strict=True))))]


def _verdict(row: Checked) -> Text:
    """Return the verdict, and what to use instead where the claim does not hold."""
    told = Text(row.words, style=_STYLES[row.verdict])
    if row.claim.see and row.verdict is not Verdict.REPRODUCES:
        told.append(f"\nsee {row.claim.see}", style="dim")
    return told
