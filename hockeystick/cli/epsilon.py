"""The commands ``epsilon``, ``delta`` and ``compare``: what a plan costs."""

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
from hockeystick.accountants.limits import GaussianLimit
from hockeystick.accountants.rdp import RDP
from hockeystick.answers import Decision, cautions, sources
from hockeystick.answers.cautions import caution_of_notes
from hockeystick.cli import command, options
from hockeystick.cli.options import Budget, Question
from hockeystick.cli.plans import plan_of
from hockeystick.cli.progress import progress, seconds
from hockeystick.cli.show import (
    KIND_STYLES,
    Sheet,
    between,
    heading,
    listed,
    print_json,
    table,
    verdict_fields,
)
from hockeystick.cli.verify import end_with, verdict_of
from hockeystick.io import PlanFile, parse
from hockeystick.numerics import numerals
from hockeystick.numerics.numerals import jsonable
from hockeystick.results import Approximate, Certified

_digits = click.option("--digits", metavar="N", help="Compute so many digits.")


@click.command(
    cls=command.Command,
    examples=(
        "hockeystick epsilon 'Laplace(2)**3 @ Gaussian(4)' --delta 1e-6",
        "hockeystick epsilon plan.toml epochs=30 --at-most 3",
        "hockeystick epsilon rate=0.004 steps=14000 noise_multiplier=1.1 --delta 1e-5",
    ),
)
@options.plan_words
@options.options("group", "delta", "at_most", "accountant", "tolerance")
@_digits
@click.option("--mu", is_flag=True, help="Also print the mu of a Gaussian that summarizes it.")
@options.options("verify", "short", "json", "verbose")
def epsilon(words: tuple[str, ...], delta: str | None, **how: Any) -> None:
    """Print the epsilon that a plan costs at a delta."""
    _answer("delta", delta, words, **how)


@click.command(
    cls=command.Command,
    examples=(
        "hockeystick delta 'Laplace(2)**3 @ Gaussian(4)' --epsilon 2",
        "hockeystick delta plan.toml --epsilon 3 --at-most 1e-5",
    ),
)
@options.plan_words
@options.options("group", "epsilon", "at_most", "accountant", "tolerance")
@_digits
@options.options("verify", "short", "json", "verbose")
def delta(words: tuple[str, ...], epsilon: str | None, **how: Any) -> None:
    """Print the delta that a plan costs at an epsilon."""
    _answer("epsilon", epsilon, words, **how)


def _answer(
    name: str,
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
    options.refuse_beside_short(short, verify, as_json, mu)
    file = plan_of(words, group)
    at = options.question(name, given, file)
    budget = options.budget_of(at_most, at.quantity)
    how: dict[str, Any] = {
        "accountant": accountant,
        "digits": None if digits is None else parse(digits),
        "tolerance": TOLERANCE if tolerance is None else parse(tolerance),
    }
    ask: Any = hs.epsilon if name == "delta" else hs.delta
    with progress(f"computing {at.quantity}"):
        answer = ask(file.plan, **at.asked, **how)
        options.refuse_infinite(at, answer)
        decided = options.decided(answer, file.plan, at, budget)
        summary = hs.accountants.gaussian_summary(file.plan) if mu else None
    verdict = verdict_of(answer, file.plan, **at.asked) if verify else None
    if short:
        _print_short(file, at, answer)
    elif as_json:
        told = _as_dict(file, at, answer, summary, decided)
        print_json(told | ({"verification": verdict_fields(verdict)} if verdict else {}))
    else:
        _sheet(file, at, answer, summary, decided).show()
    meets = decided is None or decided.decision is Decision.MEETS
    end_with(verdict, as_json, otherwise=0 if meets else options.MISSED)


def _print_short(file: PlanFile, at: Question, answer: Certified | Approximate) -> None:
    """Print the number to quote alone, and on standard error what is grave."""
    if isinstance(answer, Approximate):
        raise click.UsageError(f"--short prints what is proven; {answer.accountant} proves nothing")
    click.echo(numerals.at_most(answer.upper))
    grave = [one.text for one in cautions(answer, file.plan, **at.asked) if not one.is_mild]
    for line in [*options.default_lines(), *(f"caution: {text}" for text in grave)]:
        click.echo(f"hockeystick: {line}", err=True)


def _as_dict(
    file: PlanFile,
    at: Question,
    answer: Certified | Approximate,
    summary: GaussianSummary | None,
    decided: Budget | None,
) -> dict[str, Any]:
    """Return the answer ready for JSON; what is proven, as a document to check."""
    about = heading(file, quantity=at.quantity, at={at.name: jsonable(at.value)})
    besides: dict[str, Any] = {} if summary is None else {"gaussian": summary.as_dict()}
    doubt = None
    if decided is not None:
        besides["budget"] = {
            "at_most": jsonable(decided.at_most),
            "decision": decided.decision,
            "reservation": decided.reservation or None,
        }
        doubt = caution_of_notes(file.plan, file.notes)
    found = cautions(answer, file.plan, **at.asked)
    besides["cautions"] = listed((doubt, *found) if doubt else found)
    besides["sources"] = listed(sources(file.plan, answer.accountant))
    if answer.accountant == GaussianLimit.name:
        besides["mu"] = jsonable(central_limit_mu(file.plan).value)
    if answer.accountant == RDP.name and answer.quantity == "epsilon":
        besides["order"] = jsonable(best_order(file.plan, at.value))
    if isinstance(answer, Approximate):
        return {**about, **answer.as_dict(), **besides}
    checkable = hs.answers.document(answer, file.plan, **at.asked)
    return {"schema": hs.answers.SCHEMA, **about, **checkable, **besides}


_BUDGET_STYLES: Final = {
    Decision.MEETS: "bold green",
    Decision.MISSES: "bold red",
    Decision.UNDECIDED: "bold red",
}


def _sheet(
    file: PlanFile,
    at: Question,
    answer: Certified | Approximate,
    summary: GaussianSummary | None,
    decided: Budget | None,
) -> Sheet:
    """Return the answer for people."""
    sheet = Sheet(file.title)
    asked = f" at {at.name} = {numerals.plain(at.value)}"
    if isinstance(answer, Certified):
        number = numerals.headline(answer.lower, answer.upper)
        style = "bold green" if answer.upper < math.inf else "bold red"
        proven = Text(between(answer.lower, answer.upper))
    else:
        number, style = f"about {numerals.nearest(answer.value)}", "bold red"
        proven = Text("nothing: this is an approximation, no guarantee", style="red")
    sheet.fact(answer.quantity, Text.assemble((number, style), asked))
    if decided is not None:
        budget = f"{answer.quantity} at most {numerals.plain(decided.at_most)}"
        but = f", but {decided.reservation}" if decided.reservation else ""
        verdict = (str(decided.decision), _BUDGET_STYLES[decided.decision])
        sheet.fact("budget", Text.assemble(verdict, f": {budget}{but}"))
    sheet.fact("proven", proven)
    if summary is not None:
        where = f"at error rates from {numerals.plain(summary.least_rate)} on"
        regret = numerals.at_most(summary.regret.upper)
        sheet.fact("mu", f"{numerals.at_most(summary.mu.upper)} {where}; regret {regret}")
    sheet.plan(file, answer.adjacency, answer.accountant)
    doubt = None if decided is None else caution_of_notes(file.plan, file.notes)
    found = cautions(answer, file.plan, **at.asked)
    sheet.cautions((doubt, *found) if doubt else found)
    sheet.holds_if(answer.assumptions)
    if sheet.is_verbose:
        theorems = sources(file.plan, answer.accountant)
        sheet.bullets("Sources", [f"{one.of}: {one.text}" for one in theorems])
    return sheet


@click.command(
    cls=command.Command,
    examples=(
        "hockeystick compare 'Gaussian(4) @ Laplace(2)**3' --delta 1e-6",
        "hockeystick compare plan.toml noise_multiplier=1.3",
    ),
)
@options.plan_words
@click.option("--samplings", is_flag=True, help="Compare ways of drawing batches of this size.")
@options.options("group", "delta", "epsilon", "json", "verbose")
def compare(
    words: tuple[str, ...],
    samplings: bool,
    group: str | None,
    delta: str | None,
    epsilon: str | None,
    as_json: bool,
) -> None:
    """Print what each accountant says of a plan."""
    file = plan_of(words, group)
    at = options.one_question(file, delta, epsilon)
    about = heading(file, quantity=at.quantity, at={at.name: jsonable(at.value)})
    plan: Any = file.plan
    if samplings:
        with progress("asking for each sampling") as tell:
            found = hs.accountants.compare_samplings(plan, **at.asked, progress=tell)
        if as_json:
            print_json({**about, "samplings": [_sampling_as_dict(row) for row in found]})
        else:
            _sheet_of_samplings(file, at, found).show()
        return
    with progress("asking each accountant"):
        rows = hs.compare(plan, **at.asked)
    options.refuse_infinite(at, *(row.answer for row in rows))
    if as_json:
        truth = Truth.of(rows)
        proven = {"lower": jsonable(truth.lower), "upper": jsonable(truth.upper)}
        told = {"proven": proven, "accountants": [_row_as_dict(row, truth) for row in rows]}
        theorems = listed(hs.answers.sources_of_all(plan, rows))
        print_json({**about, **told, "sources": theorems})
    else:
        _comparison(file, at, rows).show()


def _sampling_as_dict(row: SamplingRow) -> dict[str, Any]:
    """Return the answer for one sampling."""
    return {
        "sampling": row.sampling,
        "adjacency": row.adjacency,
        "answer": None if row.answer is None else row.answer.as_dict(),
        "reason": row.reason or None,
        "seconds": row.seconds,
    }


def _row_as_dict(row: Row, truth: Truth) -> dict[str, Any]:
    """Return the answer of one accountant."""
    told: dict[str, Any] = {
        "accountant": row.accountant,
        "kind": row.kind,
        "answer": None,
        "reason": row.reason or None,
        "seconds": row.seconds,
    }
    if row.answer is not None:
        value = quoted(row.answer)
        ratio = truth.ratio(value)
        told["answer"] = row.answer.as_dict()
        told["ratio_to_proven_upper"] = None if ratio is None else jsonable(ratio)
        told["below_the_truth"] = truth.is_above(value)
    return told


def _asked(file: PlanFile, at: Question) -> Sheet:
    """Return what is asked of which plan."""
    sheet = Sheet(file.title)
    sheet.fact("question", f"{at.quantity} at {at.name} = {numerals.plain(at.value)}")
    sheet.plan(file, file.plan.adjacency)
    return sheet


def _comparison(file: PlanFile, at: Question, rows: Sequence[Row]) -> Sheet:
    """Return one line for each accountant that has an answer; with -v, why others have none."""
    sheet, truth = _asked(file, at), Truth.of(rows)
    found = table("accountant", "kind", f">{at.quantity}", "next to truth", ">time")
    for row in rows:
        if row.answer is not None:
            value = quoted(row.answer)
            rounded = numerals.at_most if isinstance(row.answer, Certified) else numerals.nearest
            alike = value <= truth.upper or truth.looks_equal(value)
            style = "bold red" if truth.is_above(value) else "green" if alike else "yellow"
            found.add_row(
                row.accountant,
                Text(row.kind, KIND_STYLES[row.kind]),
                Text(rounded(value), "bold"),
                Text(truth.beside(row.answer), style),
                Text(seconds(row.seconds), "dim"),
            )
    sheet.block(found)
    if sheet.is_verbose:
        proven = [f"{one.accountant}: {one.answer}" for one in rows if one.answer is not None]
        sheet.bullets("In full", proven)
        reasons = [f"{one.accountant}: {one.reason}" for one in rows if one.answer is None]
        sheet.bullets("No answer", reasons)
        theorems = hs.answers.sources_of_all(file.plan, rows)
        sheet.bullets("Sources", [f"{one.of}: {one.text}" for one in theorems])
    return sheet


def _sheet_of_samplings(file: PlanFile, at: Question, rows: Sequence[SamplingRow]) -> Sheet:
    """Return one line for each adjacency and sampling that has an answer; with -v for each."""
    sheet = _asked(file, at)
    found = table("adjacency", "sampling", f">{at.quantity}", "proven", ">time")
    for row in rows:
        if row.answer is not None:
            low, high = row.answer.lower, row.answer.upper
            number = Text(numerals.headline(low, high), "bold")
            proven = between(low, high) if high < math.inf else "no upper end"
            time = Text(seconds(row.seconds), "dim")
            found.add_row(row.adjacency, row.sampling, number, proven, time)
    sheet.block(found)
    if sheet.is_verbose:
        none = [row for row in rows if row.answer is None]
        reasons = [f"{row.sampling}, {row.adjacency}: {row.reason}" for row in none]
        sheet.bullets("No answer", reasons)
    return sheet
