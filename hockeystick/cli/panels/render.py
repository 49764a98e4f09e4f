"""Answers for people: one panel per answer, one table per comparison."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Final

import click
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.accountants import GaussianSummary, Row, best_order, central_limit_mu
from hockeystick.accountants.comparison import Truth, quoted
from hockeystick.accountants.limits.gdp import GaussianLimit
from hockeystick.accountants.theorems.rdp import RDP
from hockeystick.answers import Decision, cautions, in_words, protected, steps_rules
from hockeystick.answers.cautions import caution_of_notes
from hockeystick.answers.widths import far_apart
from hockeystick.answers.wording import loader_notes
from hockeystick.cli.describe import Question
from hockeystick.cli.durations import seconds
from hockeystick.cli.flags import defaults
from hockeystick.cli.flags.deciding import Decided
from hockeystick.cli.panels.fitting import Framed
from hockeystick.cli.panels.fitting import bare_table as bare_table
from hockeystick.cli.panels.fitting import facts_table as facts_table
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import DPSGD, Composed, Mechanism
from hockeystick.numerics import numerals as numerals
from hockeystick.results import Approximate, Certified, is_wide

# In less, frames would leave no room for words.
_NARROWEST: Final = 20
# Where a terminal says that it has no width.
_USUAL: Final = 80
_WIDEST: Final = 100
WIDER: Final = 110
_WIDEST_TABLE: Final = 130
_WIDE: Final = 96
KIND_STYLES: Final = {"exact": "green", "bound": "yellow", "approximation": "red"}
HOLDS_IF: Final = "This holds if"
ANY_ADJACENCY: Final = "any: the one under which the plan's numbers hold"
# More parts are not told apart.
_PARTS_TOLD: Final = 20


def terminal(widest: int) -> Console:
    """Return the console of standard output, no wider and no narrower than what can be read."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    console.width = max(_NARROWEST, min(console.width or _USUAL, widest))
    return console


def print_answer(
    file: PlanFile,
    at: Question,
    answer: Certified | Approximate,
    summary: GaussianSummary | None = None,
    decided: Decided | None = None,
) -> None:
    """Print the panel of one answer."""
    print_plainly(panel(file, at, answer, summary, decided))


def print_comparison(file: PlanFile, at: Question, rows: Sequence[Row]) -> None:
    """Print the table of every accountant's answer."""
    wide = terminal(_WIDEST_TABLE).width >= _WIDE
    print_plainly(comparison(file, at, rows, wide=wide), _WIDEST_TABLE)


def print_plainly(renderable: RenderableType, widest: int = _WIDEST) -> None:
    """Print for whatever standard output is: in its own encoding, without trailing blanks.

    What was not given, and taken from elsewhere, is said below.
    """
    console = terminal(widest)
    with console.capture() as captured:
        console.print(renderable)
        for line in defaults.lines_once():
            console.print(one_line(line))
    text = "\n".join(line.rstrip() for line in captured.get().splitlines())
    click.echo(text.encode(console.encoding, "replace").decode(console.encoding), color=True)


def panel(
    file: PlanFile,
    at: Question,
    answer: Certified | Approximate,
    summary: GaussianSummary | None = None,
    decided: Decided | None = None,
) -> RenderableType:
    """Return the panel of one answer, and below it the mu that sums the plan up, if it is asked."""
    facts, at_what = facts_table(), {at.name: at.value}
    facts.add_row(answer.quantity, _headline(at, answer))
    if decided is not None:
        facts.add_row("budget", _decision(answer.quantity, decided))
        if not decided.meets and isinstance(file.plan, DPSGD):
            facts.add_row("to meet it", _least_noise(answer.quantity, decided))
    doubt = None if decided is None else caution_of_notes(file.plan, file.notes)
    for caution in (*([doubt] if doubt else []), *cautions(answer, file.plan, **at_what)):
        facts.add_row("caution", Text(caution.text, style="yellow"))
    facts.add_row("proven", _proven(answer))
    if isinstance(answer, Certified) and is_wide(answer):
        facts.add_row("", Text(far_apart(file.plan)))
    if answer.accountant == GaussianLimit.name:
        facts.add_row("mu", _limiting_mu(file))
    if answer.accountant == RDP.name and answer.quantity == "epsilon":
        facts.add_row("best order", f"{best_order(file.plan, at.value):.4g}")
    if summary is not None:
        _add_summary(facts, summary)
    add_subject(facts, file, answer.adjacency, ("accountant", answer.accountant))
    supposed = HOLDS_IF if isinstance(answer, Certified) else "Even an approximation supposes that"
    return framed(file.title, facts, *listed(supposed, of_parts(file.plan, answer.assumptions)))


def framed(title: str | None, *blocks: RenderableType) -> RenderableType:
    """Return a panel of blocks, one under the other."""
    return Framed(one_line(title or "hockeystick"), blocks)


def comparison(file: PlanFile, at: Question, rows: Sequence[Row], *, wide: bool) -> RenderableType:
    """Return the table of every accountant's answer, under a heading that says what is asked."""
    facts = facts_table()
    facts.add_row("question", f"{at.quantity} at {at.name} = {numerals.plain(at.value)}")
    add_plan(facts, file)
    add_text(facts, "notes", file.notes)
    heading = one_line(file.title or "hockeystick", "bold")
    if any(row.accountant == GaussianLimit.name and row.answer is not None for row in rows):
        facts.add_row("mu of gdp", _limiting_mu(file))
    return Group(heading, Text(), facts, Text(), _table(at, rows, wide), Text(), _legend())


def _table(at: Question, rows: Sequence[Row], wide: bool) -> Table:
    """Return one row per accountant, those without an answer last.

    A narrow row stacks in a cell what belongs together.
    """
    truth = Truth.of(rows)
    table = bare_table()
    table.add_column("accountant")
    if wide:
        table.add_column("kind")
    table.add_column(at.quantity)
    if wide:
        table.add_column("proven interval")
    table.add_column("next to truth")
    table.add_column("time", justify="right")
    for row in sorted(rows, key=lambda row: row.answer is None):
        table.add_row(*_cells(row, truth, wide), end_section=not wide)
    return table


def _cells(row: Row, truth: Truth, wide: bool) -> list[Text]:
    """Return the cells of one accountant's row."""
    first = [Text(row.accountant)]
    if wide or row.answer is not None:
        kind = row.kind if row.answer is not None else ""
        first.append(Text(kind, style=KIND_STYLES[row.kind]))
    second = [_number(row), _detail(row)]
    last = [_distance(row, truth), Text(seconds(row.seconds), style="dim")]
    if wide:
        return [*first, *second, *last]
    return [Text("\n").join(first), Text("\n").join(second), *last]


def _number(row: Row) -> Text:
    """Return the number that a reader would take from a row."""
    if row.answer is None:
        return Text("none", style="dim")
    round_off = numerals.at_most if isinstance(row.answer, Certified) else numerals.nearest
    return Text(round_off(quoted(row.answer)), style="bold")


def _detail(row: Row) -> Text:
    """Return the proven interval, or why there is none."""
    if isinstance(row.answer, Certified) and row.answer.lower < row.answer.upper == math.inf:
        return Text(f"at least {numerals.at_least(row.answer.lower)}\nno upper end follows here")
    if isinstance(row.answer, Certified):
        lower, upper = numerals.interval(row.answer.lower, row.answer.upper)
        return Text(f"from {lower}\nto   {upper}" if lower != upper else f"exactly {lower}")
    return Text(row.reason or "not proven", style="dim")


def _distance(row: Row, truth: Truth) -> Text:
    """Return the distance of a row from the proven interval, in a narrow column."""
    if row.answer is None:
        return Text("")
    value = quoted(row.answer)
    told = truth.beside(row.answer)
    for words in ("below", "to 4", "proven ends"):
        told = told.replace(f" {words}", f"\n{words}")
    if truth.is_above(value):
        return Text(told, style="bold red")
    alike = value <= truth.upper or truth.looks_equal(value)
    return Text(told, style="green" if alike else "yellow")


def _limiting_mu(file: PlanFile) -> Text:
    """Return the mu of the central limit theorem, which accountant "gdp" reads."""
    mu = numerals.nearest(central_limit_mu(file.plan).value)
    return Text(f"about {mu} (central limit theorem: no bound)")


# Which of the rows other libraries print.
_ELSEWHERE: Final = (
    "Opacus's RDPAccountant and TensorFlow Privacy compute rdp, on orders of their own, and so "
    "print it or a little more; Opacus's PRVAccountant usually prints some 0.01, its eps_error, "
    "more than prv."
)


def _legend() -> Text:
    """Return the meanings of the words in the table."""
    meanings = (
        ("exact", "proven, and as narrow as floating point or the tolerance allows"),
        ("bound", "proven, but loose"),
        ("approximation", "no guarantee"),
    )
    legend = Text(style="dim")
    for kind, meaning in meanings:
        legend.append(kind, KIND_STYLES[kind]).append(f": {meaning}. ")
    return legend.append(f"Ratios are to the proven upper end. {_ELSEWHERE}")


def _headline(at: Question, answer: Certified | Approximate) -> Text:
    """Return the number to quote, and what it was asked at."""
    asked = f"  at {at.name} = {numerals.plain(at.value)}"
    if isinstance(answer, Certified):
        style = "bold green" if answer.upper < math.inf else "bold red"
        return Text.assemble((numerals.headline(answer.lower, answer.upper), style), asked)
    number = numerals.nearest(answer.value)
    return Text.assemble((f"about {number}", "bold red"), asked)


def _decision(quantity: str, decided: Decided) -> Text:
    """Return whether the answer is within the budget."""
    budget = f"{quantity} at most {numerals.plain(decided.at_most)}"
    if decided.reservation:
        return Text.assemble(("meets", "bold yellow"), f" {budget}, but {decided.reservation}")
    return {
        Decision.MEETS: Text.assemble(("meets", "bold green"), f" {budget}"),
        Decision.MISSES: Text.assemble(("misses", "bold red"), f" {budget}"),
        Decision.UNDECIDED: Text.assemble(
            ("undecided", "bold red"), f": {budget} lies between the proven ends"
        ),
    }[decided.decision]


def _least_noise(quantity: str, decided: Decided) -> str:
    """Return how to find the noise with which training meets a budget."""
    target = f"--{quantity} {numerals.plain(decided.at_most)}"
    return (
        f"hockeystick solve with --parameter noise_multiplier {target} in place of --at-most "
        "finds the least noise"
    )


def _add_summary(facts: Table, summary: GaussianSummary) -> None:
    """Add the mu that sums the plan up, where it holds, and its regret."""
    where = f"  at error rates from {numerals.plain(summary.least_rate)} on"
    style = "bold green" if summary.mu.upper < math.inf else "bold red"
    facts.add_row("mu", Text.assemble((numerals.at_most(summary.mu.upper), style), where))
    facts.add_row("proven", _proven(summary.mu))
    facts.add_row("regret", Text(numerals.at_most(summary.regret.upper)))


def _proven(answer: Certified | Approximate) -> Text:
    """Return the proven ends, one under the other so that their digits line up."""
    if not isinstance(answer, Certified):
        return Text("nothing: this is an approximation, no guarantee", style="red")
    lower, upper = numerals.interval(answer.lower, answer.upper)
    if lower == upper:
        return Text(f"exactly {lower}")
    return Text(f"at least {lower}\nat most  {upper}")


def picture(path: str | None, label: str = "plot") -> list[RenderableType]:
    """Return where a picture is, or a file with the numbers, if there is one."""
    facts = facts_table()
    facts.add_row(label, one_line(path or ""))
    return [] if path is None else [Text(), facts]


def add_plan(facts: Table, file: PlanFile, *, solved_size: bool = False) -> None:
    """Add the plan in words, where its steps come from, and what a loader makes of its batches."""
    for index, line in enumerate(in_words(file.plan)):
        facts.add_row("and" if index else "plan", Text(line))
    for rule in steps_rules(file.plan):
        facts.add_row("steps", Text(rule.removeprefix("steps = ") + _passes(file.plan)))
    for note in loader_notes(file.plan, solved=solved_size):
        facts.add_row("loader", Text(note))


def _passes(plan: Mechanism) -> str:
    """Return how often training goes through the data, where its steps are given."""
    if not isinstance(plan, DPSGD) or plan.steps is None or plan.rate is None:
        return ""
    return f": {plan.steps * plan.rate:.3g} passes over the data"


def add_subject(
    facts: Table, file: PlanFile, adjacency: str | None, *rows: tuple[str, str]
) -> None:
    """Add the plan, its neighbours, more rows if any, and what the plan file says about it."""
    add_plan(facts, file)
    for label, text in (("adjacency", adjacency or ANY_ADJACENCY), *rows):
        facts.add_row(label, text)
    add_about(facts, file)


def add_about(facts: Table, file: PlanFile) -> None:
    """Add what the plan file says about the plan, if it does."""
    add_text(facts, "source", file.source)
    add_text(facts, "notes", file.notes)


def add_text(facts: Table, label: str, text: str | None) -> None:
    """Add a text of the plan file, if there is one."""
    if text:
        facts.add_row(label, one_line(text))


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


def listed(heading: str, sentences: Sequence[str]) -> list[RenderableType]:
    """Return sentences as a list under a heading; nothing where there are none."""
    found = Table.grid(padding=(0, 1))
    found.add_column(no_wrap=True, style="dim")
    found.add_column(overflow="fold")
    for sentence in sentences:
        found.add_row("-", Text(sentence))
    return [Text(f"\n{heading}", style="bold"), found] if sentences else []


def one_line(text: str, style: str = "") -> Text:
    """Return a text of a plan file on one line, without what could steer a terminal."""
    words = " ".join(text.split())
    return Text("".join(letter for letter in words if letter.isprintable()), style=style)
