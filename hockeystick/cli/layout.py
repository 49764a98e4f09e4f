"""How an answer is laid out: a few facts, one a line, and with -v all that is known of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final

import click
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.answers import Caution, in_words, protected, steps_rules
from hockeystick.answers.wording import loader_notes
from hockeystick.cli import flags
from hockeystick.cli.flags import VERBOSE
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import DPSGD, Composed, Mechanism
from hockeystick.numerics import numerals as numerals
from hockeystick.results import Approximate, Certified

_LABEL_WIDTH: Final = 10
_WIDEST: Final = 100
_NARROWEST: Final = 20
# Where no terminal shows it, nothing is cut or wrapped.
_UNBOUNDED: Final = 100_000
KIND_STYLES: Final = {"exact": "green", "bound": "yellow", "approximation": "red"}
ANY_ADJACENCY: Final = "any"
# More parts are not told apart.
_PARTS_TOLD: Final = 20


class Sheet:
    """The facts of one answer, and what else is known of it.

    Args:
        title: What the answer is about, shown with -v.
    """

    def __init__(self, title: str | None = None) -> None:
        context = click.get_current_context(silent=True)
        self.is_verbose = context is not None and bool(context.meta.get(VERBOSE))
        self._blocks: list[RenderableType] = []
        if title:
            self.more_block(one_line(title, "bold"))

    def fact(self, label: str, text: str | Text) -> None:
        """Add a fact."""
        facts = self._blocks[-1] if self._blocks else None
        if not isinstance(facts, _Facts):
            facts = _Facts()
            self._blocks.append(facts)
        facts.add_row(label, one_line(text) if isinstance(text, str) else text)

    def more(self, label: str, text: str | Text | None) -> None:
        """Add a fact that only -v shows, unless it is empty."""
        if text and self.is_verbose:
            self.fact(label, text)

    def block(self, *blocks: RenderableType) -> None:
        """Add a table, or lines."""
        self._blocks += blocks

    def more_block(self, *blocks: RenderableType) -> None:
        """Add what only -v shows."""
        if self.is_verbose:
            self.block(*blocks)

    def cautions(self, found: Iterable[Caution]) -> None:
        """Add cautions: what is merely unusual with -v alone."""
        for one in found:
            if self.is_verbose or not one.is_mild:
                self.fact("caution", Text(one.text, style="yellow"))

    def plan(self, file: PlanFile, *, solved_size: bool = False) -> None:
        """Add the plan in one line; with -v its parts, its steps and what the file says of it."""
        words = in_words(file.plan)
        if not self.is_verbose:
            self.fact("plan", Text("; ".join(words), no_wrap=True, overflow="ellipsis"))
            return
        for index, line in enumerate(words):
            self.fact("and" if index else "plan", line)
        for rule in steps_rules(file.plan):
            self.fact("steps", rule.removeprefix("steps = ") + _passes(file.plan))
        for note in loader_notes(file.plan, solved=solved_size):
            self.fact("loader", note)
        self.more("source", file.source)
        self.more("notes", file.notes)

    def setting(self, adjacency: str | None, accountant: str | None = None) -> None:
        """Add the neighbours, and who answered."""
        by = "" if accountant is None else f"; accountant {accountant}"
        self.fact("adjacency", f"{adjacency or ANY_ADJACENCY}{by}")

    def holds_if(self, assumptions: Sequence[str], heading: str = "holds if") -> None:
        """Add under how many assumptions the answer holds; with -v, which."""
        if not assumptions:
            return
        if not self.is_verbose:
            many = len(assumptions)
            said = "1 assumption is" if many == 1 else f"{many} assumptions are"
            self.fact(heading, f"{said} met: -v lists them")
            return
        self.bullets(f"This {heading}" if heading.startswith("holds") else heading, assumptions)

    def bullets(self, heading: str, sentences: Sequence[str]) -> None:
        """Add sentences as a list under a heading."""
        found = Table.grid(padding=(0, 1))
        found.add_column(no_wrap=True, style="dim")
        found.add_column(overflow="fold")
        for sentence in sentences:
            found.add_row("-", one_line(sentence))
        self.block(Text(f"\n{heading}", style="bold"), found)

    def show(self) -> None:
        """Print it for whatever standard output is: in its own encoding, without trailing blanks.

        What was not given, and taken from elsewhere, is said below.
        """
        console = _terminal()
        with console.capture() as captured:
            for index, block in enumerate(self._blocks):
                if index and isinstance(block, Table) and block.show_header:
                    console.print()
                console.print(block)
            for line in flags.lines_once():
                console.print(one_line(line))
        text = "\n".join(line.rstrip() for line in captured.get().splitlines())
        click.echo(text.encode(console.encoding, "replace").decode(console.encoding), color=True)


class _Facts(Table):
    """Labels and what they stand for."""

    def __init__(self) -> None:
        super().__init__(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        self.add_column(style="dim", min_width=_LABEL_WIDTH, no_wrap=True)
        self.add_column(overflow="fold")


def _terminal() -> Console:
    """Return the console of standard output, no wider and no narrower than what can be read."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    console.width = max(_NARROWEST, min(console.width, _WIDEST))
    return console


def table(*headings: str) -> Table:
    """Return an empty table; a heading that begins with ">" is that of a column of numbers."""
    found = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold", pad_edge=False)
    for heading in headings:
        is_number = heading.startswith(">")
        name = heading.removeprefix(">")
        found.add_column(name, justify="right" if is_number else "left", overflow="fold")
    return found


def ends(answer: Certified | Approximate) -> Text:
    """Return the proven ends, or that there are none."""
    if not isinstance(answer, Certified):
        return Text("nothing: this is an approximation, no guarantee", style="red")
    return Text(between(answer.lower, answer.upper))


def between(low: float, high: float) -> str:
    """Return an interval in words, rounded outward."""
    lower, upper = numerals.interval(low, high)
    return f"exactly {lower}" if lower == upper else f"from {lower} to {upper}"


def of_parts(plan: Mechanism, sentences: Sequence[str]) -> Sequence[str]:
    """Return sentences about a plan, each with the parts that it is about, unless with all.

    The first that the parts agree in, whose data are protected, is about all of them.
    """
    parts = plan.parts if isinstance(plan, Composed) else ()
    if not 1 < len(parts) <= _PARTS_TOLD:
        return sentences
    stated = [set(part.assumptions) for part in parts]
    about = [
        [str(place) for place, own in enumerate(stated, 1) if sentence in own]
        for sentence in sentences
    ]
    return [
        sentence
        if len(places) in (0, len(parts)) or sentence == protected(plan)
        else f"Part {', '.join(places)}: {sentence}"
        for sentence, places in zip(sentences, about, strict=True)
    ]


def one_line(text: str, style: str = "") -> Text:
    """Return a text on one line, without what could steer a terminal."""
    words = " ".join(text.split())
    return Text("".join(letter for letter in words if letter.isprintable()), style=style)


def _passes(plan: Mechanism) -> str:
    """Return how often training goes through the data, where its steps are given."""
    if not isinstance(plan, DPSGD) or plan.steps is None or plan.rate is None:
        return ""
    return f": {plan.steps * plan.rate:.3g} passes over the data"
