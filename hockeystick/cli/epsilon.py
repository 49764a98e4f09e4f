"""The commands ``epsilon`` and ``delta``: what a plan costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.accountants import GaussianSummary, Row, SamplingRow, best_order, central_limit_mu
from hockeystick.accountants.base import TOLERANCE
from hockeystick.accountants.comparison import Truth, quoted
from hockeystick.accountants.limits.gdp import GaussianLimit
from hockeystick.accountants.theorems.rdp import RDP
from hockeystick.answers import Decision, cautions, sources
from hockeystick.answers.cautions import caution_of_notes
from hockeystick.answers.widths import far_apart
from hockeystick.cli import as_json as programs
from hockeystick.cli import command, flags, layout, of_group, plans
from hockeystick.cli.flags import Decided, Question
from hockeystick.cli.layout import Sheet
from hockeystick.cli.progress import bar, seconds, waiting
from hockeystick.cli.verify import end_with, verdict_of
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile
from hockeystick.numerics import numerals as numerals
from hockeystick.results import Approximate, Certified, is_wide

_DIGITS: Final = "Compute so many digits in arbitrary precision."
_MU: Final = (
    "Also print the mu of the Gaussian trade-off function below the plan's, and its regret."
)


@click.command(cls=command.Command)
@plans.plan_words
@of_group.group_flag
@flags.question_flag("delta")
@flags.at_most_flag("epsilon")
@flags.accountant_flag()
@flags.tolerance_flag()
@click.option("--digits", metavar="N", help=_DIGITS)
@click.option("--mu", is_flag=True, help=_MU)
@flags.verify_flag
@flags.short_flag
@flags.json_flag
@flags.verbose_flag
def epsilon(words: tuple[str, ...], delta: str | None, **how: Any) -> None:
    """Print the epsilon that a plan costs at a delta."""
    _answer("delta", delta, words, **how)


@click.command(cls=command.Command)
@plans.plan_words
@of_group.group_flag
@flags.question_flag("epsilon")
@flags.at_most_flag("delta")
@flags.accountant_flag()
@flags.tolerance_flag()
@click.option("--digits", metavar="N", help=_DIGITS)
@flags.verify_flag
@flags.short_flag
@flags.json_flag
@flags.verbose_flag
def delta(words: tuple[str, ...], epsilon: str | None, **how: Any) -> None:
    """Print the delta that a plan costs at an epsilon."""
    _answer("epsilon", epsilon, words, **how)


def _answer(
    given_name: str,
    given: str | None,
    words: tuple[str, ...],
    *,
    group: str | None,
    accountant: str,
    digits: str | None,
    tolerance: str | None,
    at_most: str | None,
    verify: bool,
    short: bool,
    as_json: bool,
    mu: bool = False,
) -> None:
    """Print the answer to one question, and what the verifier says of it."""
    if verify:
        hs.answers.require_verifier()
    flags.refuse_beside_short(short, verify=verify, as_json=as_json, mu=mu)
    asked_of = plans.words_of(words)
    file = asked_of.file(group=group)
    at = flags.question(given_name, given, file)
    ask: Any = hs.epsilon if given_name == "delta" else hs.delta
    budget = flags.budget_of("at_most", at.quantity, at_most)
    how = {
        "accountant": accountant,
        "digits": None if digits is None else parse(digits),
        "tolerance": TOLERANCE if tolerance is None else parse(tolerance),
    }
    with waiting(f"computing {ask.__name__}"):
        answer = ask(file.plan, **{at.name: at.value}, **how)
    flags.refuse_infinite(at, answer, held=asked_of.plan if given is None else None)
    decided = flags.decided(answer, file.plan, at, budget)
    with waiting("computing mu"):
        summary = hs.accountants.gaussian_summary(file.plan) if mu else None
    verdict = verdict_of(answer, file.plan, **{at.name: at.value}) if verify else None
    if short:
        _print_short(file, at, answer)
    elif as_json:
        click.echo(programs.answer(file, at, answer, hs.__version__, verdict, summary, decided))
    else:
        _sheet(file, at, answer, summary, decided).show()
    end_with(verdict, as_json, otherwise=0 if decided is None else decided.exit_status)


def _print_short(file: PlanFile, at: Question, answer: Certified | Approximate) -> None:
    """Print the number to quote alone, and on standard error what is grave."""
    if isinstance(answer, Approximate):
        raise click.UsageError(
            f"--short prints what is proven, and {answer.accountant} proves nothing"
        )
    click.echo(numerals.at_most(answer.upper))
    flags.tell()
    for one in cautions(answer, file.plan, **{at.name: at.value}):
        if not one.is_mild:
            click.echo(f"hockeystick: caution: {one.text}", err=True)


def _sheet(
    file: PlanFile,
    at: Question,
    answer: Certified | Approximate,
    summary: GaussianSummary | None,
    decided: Decided | None,
) -> Sheet:
    """Return the answer for people."""
    sheet = Sheet(file.title)
    sheet.fact(answer.quantity, _headline(at, answer))
    if decided is not None:
        sheet.fact("budget", _decision(answer.quantity, decided))
    sheet.fact("proven", layout.ends(answer))
    if isinstance(answer, Certified) and is_wide(answer):
        sheet.more("", far_apart(file.plan))
    if answer.accountant == GaussianLimit.name:
        sheet.more("mu", f"about {numerals.nearest(central_limit_mu(file.plan).value)}")
    if answer.accountant == RDP.name and answer.quantity == "epsilon":
        sheet.more("best order", f"{best_order(file.plan, at.value):.4g}")
    if summary is not None:
        where = f"at error rates from {numerals.plain(summary.least_rate)} on"
        sheet.fact("mu", f"{numerals.at_most(summary.mu.upper)} {where}")
        sheet.more("proven", layout.ends(summary.mu))
        sheet.fact("regret", numerals.at_most(summary.regret.upper))
    sheet.plan(file)
    sheet.setting(answer.adjacency, answer.accountant)
    doubt = None if decided is None else caution_of_notes(file.plan, file.notes)
    found = cautions(answer, file.plan, **{at.name: at.value})
    sheet.cautions((*([doubt] if doubt else []), *found))
    sheet.holds_if(layout.of_parts(file.plan, answer.assumptions))
    if sheet.is_verbose:
        theorems = sources(file.plan, answer.accountant)
        sheet.bullets("Sources", [f"{one.of}: {one.text}" for one in theorems])
    return sheet


def _headline(at: Question, answer: Certified | Approximate) -> Text:
    """Return the number to quote, and what it was asked at."""
    asked = f" at {at.name} = {numerals.plain(at.value)}"
    if isinstance(answer, Certified):
        style = "bold green" if answer.upper < math.inf else "bold red"
        return Text.assemble((numerals.headline(answer.lower, answer.upper), style), asked)
    return Text.assemble((f"about {numerals.nearest(answer.value)}", "bold red"), asked)


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


_SAMPLINGS: Final = "Compare ways of drawing batches of the same size, noise and number."
_LEGEND: Final = (
    "exact: proven, and as narrow as floating point or the tolerance allows. bound: proven, but "
    "loose. approximation: no guarantee. Ratios are to the proven upper end."
)
_OF_SAMPLINGS: Final = (
    "Every row has the plan's noise, batch size and number of steps, and is proven for batches "
    "that are drawn as it says, and for no others. Compare under one adjacency: it says what is "
    "protected."
)


@click.command(cls=command.Command)
@plans.plan_words
@click.option("--samplings", is_flag=True, help=_SAMPLINGS)
@of_group.group_flag
@flags.question_flag("delta")
@flags.question_flag("epsilon")
@flags.json_flag
@flags.verbose_flag
def compare(
    words: tuple[str, ...],
    samplings: bool,
    group: str | None,
    delta: str | None,
    epsilon: str | None,
    as_json: bool,
) -> None:
    """Print what each accountant says of a plan."""
    file = plans.words_of(words).file(group=group)
    at = flags.one_question({"delta": delta, "epsilon": epsilon}, file)
    if samplings:
        _compare_samplings(file, at, as_json)
        return
    with waiting("asking each accountant"):
        rows = hs.compare(file.plan, **{at.name: at.value})
    flags.refuse_infinite(at, *(row.answer for row in rows))
    if as_json:
        click.echo(programs.comparison(file, at, rows, hs.__version__))
    else:
        _comparison(file, at, rows).show()


def _compare_samplings(file: PlanFile, at: Question, as_json: bool) -> None:
    """Print what each way of drawing batches would cost."""
    plan: Any = file.plan
    with bar("asking for each sampling") as tell:
        rows = hs.accountants.compare_samplings(plan, **{at.name: at.value}, progress=tell)
    if as_json:
        click.echo(programs.samplings(file, at, rows, hs.__version__))
    else:
        _sheet_of_samplings(file, at, rows).show()


def _asked(file: PlanFile, at: Question) -> Sheet:
    """Return what is asked of which plan."""
    sheet = Sheet(file.title)
    sheet.fact("question", f"{at.quantity} at {at.name} = {numerals.plain(at.value)}")
    sheet.plan(file)
    sheet.setting(file.plan.adjacency)
    return sheet


def _comparison(file: PlanFile, at: Question, rows: Sequence[Row]) -> Sheet:
    """Return one line for each accountant that has an answer; with -v, why others have none."""
    sheet, truth = _asked(file, at), Truth.of(rows)
    table = layout.table("accountant", "kind", f">{at.quantity}", "next to truth", ">time")
    for row in rows:
        if row.answer is not None:
            kind = Text(row.kind, style=layout.KIND_STYLES[row.kind])
            time = Text(seconds(row.seconds), style="dim")
            table.add_row(row.accountant, kind, _number(row), _distance(row, truth), time)
    sheet.block(table)
    if sheet.is_verbose:
        proven = [f"{one.accountant}: {one.answer}" for one in rows if one.answer is not None]
        sheet.bullets("In full", proven)
        reasons = [f"{one.accountant}: {one.reason}" for one in rows if one.answer is None]
        sheet.bullets("No answer", reasons)
        theorems = hs.answers.sources_of_all(file.plan, rows)
        sheet.bullets("Sources", [f"{one.of}: {one.text}" for one in theorems])
        sheet.block(Text(f"\n{_LEGEND}", style="dim"))
    return sheet


def _number(row: Row) -> Text:
    """Return the number that a reader would take from a row."""
    if row.answer is None:
        return Text("none", style="dim")
    round_off = numerals.at_most if isinstance(row.answer, Certified) else numerals.nearest
    return Text(round_off(quoted(row.answer)), style="bold")


def _distance(row: Row, truth: Truth) -> Text:
    """Return the distance of a row from the proven interval."""
    if row.answer is None:
        return Text()
    value = quoted(row.answer)
    alike = value <= truth.upper or truth.looks_equal(value)
    style = "bold red" if truth.is_above(value) else "green" if alike else "yellow"
    return Text(truth.beside(row.answer), style=style)


def _sheet_of_samplings(file: PlanFile, at: Question, rows: Sequence[SamplingRow]) -> Sheet:
    """Return one line for each adjacency and sampling that has an answer; with -v for each."""
    sheet = _asked(file, at)
    table = layout.table("adjacency", "sampling", f">{at.quantity}", "proven", ">time")
    for row in rows:
        time = Text(seconds(row.seconds), style="dim")
        if row.answer is not None:
            low, high = row.answer.lower, row.answer.upper
            number = Text(numerals.headline(low, high), style="bold")
            told = layout.between(low, high) if high < math.inf else "no upper end"
            table.add_row(row.adjacency, row.sampling, number, told, time)
    sheet.block(table)
    if sheet.is_verbose:
        reasons = [
            f"{row.sampling}, {row.adjacency}: {row.reason}" for row in rows if row.answer is None
        ]
        sheet.bullets("No answer", reasons)
        sheet.block(Text(f"\n{_OF_SAMPLINGS}", style="dim"))
    return sheet
