"""The commands ``epsilon`` and ``delta``: what a plan costs."""

from __future__ import annotations

import math
from typing import Any, Final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.accountants import GaussianSummary, best_order, central_limit_mu
from hockeystick.accountants.base import TOLERANCE
from hockeystick.accountants.limits.gdp import GaussianLimit
from hockeystick.accountants.theorems.rdp import RDP
from hockeystick.answers import Decision, cautions, sources
from hockeystick.answers.cautions import caution_of_notes
from hockeystick.answers.widths import far_apart
from hockeystick.cli import as_json as programs
from hockeystick.cli import command, defaults, flags, layout, of_group, plans, questions
from hockeystick.cli.layout import Sheet
from hockeystick.cli.progress import waiting
from hockeystick.cli.questions import Decided, Question
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
@questions.at_most_flag("epsilon")
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
@questions.at_most_flag("delta")
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
    at = questions.question(given_name, given, file)
    ask: Any = hs.epsilon if given_name == "delta" else hs.delta
    budget = questions.budget_of("at_most", at.quantity, at_most)
    how = {
        "accountant": accountant,
        "digits": None if digits is None else parse(digits),
        "tolerance": TOLERANCE if tolerance is None else parse(tolerance),
    }
    with waiting(f"computing {ask.__name__}"):
        answer = ask(file.plan, **{at.name: at.value}, **how)
    questions.refuse_infinite(at, answer, held=asked_of.plan if given is None else None)
    decided = questions.decided(answer, file.plan, at, budget)
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
    defaults.tell()
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
