"""The command ``audit``: what an attack's scores prove, and whether they contradict a plan."""

from __future__ import annotations

from typing import Any, Final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.cli import command, options, plans
from hockeystick.cli.progress import progress
from hockeystick.cli.show import Sheet, fields, print_json
from hockeystick.io import PlanFile, parse
from hockeystick.reports.audit import Audit, Audited, audit_told, audited

REFUTED: Final = 1


@click.command(
    cls=command.Command,
    examples=(
        r"printf 'score,included\n2.1,1\n0.3,0\n1.7,1\n0.2,0\n' > scores.csv",
        "hockeystick audit scores.csv plan.toml",
        "hockeystick audit scores.csv --delta 1e-5 --confidence 0.99",
    ),
)
@click.argument("scores_file", metavar="SCORES")
@options.plan_words
@options.options("delta", "confidence")
@click.option("--one-run", is_flag=True, help="All scores come from one run with fair coins.")
@options.options("json", "verbose")
def audit(
    scores_file: str,
    words: tuple[str, ...],
    delta: str | None,
    confidence: str,
    one_run: bool,
    as_json: bool,
) -> None:
    """Print what the scores of an attack prove, and whether they contradict a plan.

    SCORES has one row for each trial: the score, larger where the attack is surer that the record
    took part, and whether it did. A .csv file has columns score and included (1 or 0); an .npz file
    has arrays scores_in and scores_out; an .npy file has shape (m, 2). Each score comes from a run
    of its own; with --one-run, all from one for which each record was included by a coin.

    Exit status 0: no contradiction, which is no proof of privacy; or no plan was given. 1: refuted.
    """
    file = plans.plan_of(words) if words else None
    at = _delta(delta, file)
    asked: dict[str, Any] = {"confidence": parse(confidence), "in_one_run": one_run}
    given = Audit(name=scores_file, scores=hs.audit.load_scores(scores_file), **asked)
    with progress("auditing"):
        found = audited(given, plan=None if file is None else file.plan, delta=at)
    if as_json:
        about = {} if file is None else {"title": file.title, "plan": fields(file.plan)}
        print_json({"version": hs.__version__, **about, **found.as_dict()})
    else:
        _sheet(found, file).show()
    if found.is_refuted:
        click.get_current_context().exit(REFUTED)


def _delta(given: str | None, file: PlanFile | None) -> float | None:
    """Return where epsilon is asked for: at the flag's delta, or else at the plan file's."""
    value: Any = parse(given) if given is not None else None if file is None else file.delta
    if value is None and file is None:
        allowed = _validate.PARAMETERS["delta"].allowed
        raise click.UsageError(f"Give a plan, --delta, or both; delta must be {allowed}")
    return None if value is None else _validate.real("delta", value)


def _sheet(found: Audited, file: PlanFile | None) -> Sheet:
    """Return the answer for people: the verdict, what was found and claimed."""
    told, sheet = audit_told(found), Sheet(None if file is None else file.title)
    if told.verdict:
        style = "bold red" if told.is_refuted else "bold green"
        sheet.fact("verdict", Text.assemble((told.verdict, style), f" {told.sure}"))
    for label, text in told.facts:
        sheet.fact(label, text)
    if file is not None:
        sheet.plan(file, file.plan.adjacency)
    sheet.more("meaning", told.meaning)
    sheet.holds_if(told.assumptions)
    return sheet
