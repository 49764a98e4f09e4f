"""The command ``audit``: what an attack's scores prove, and whether they contradict a plan."""

from __future__ import annotations

from typing import Any, Final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.cli import command, flags, plans
from hockeystick.cli.as_json import dumped, fields
from hockeystick.cli.layout import Sheet
from hockeystick.cli.progress import waiting
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile
from hockeystick.reports.audit import Audited, audit_told

REFUTED: Final = 1

_HELP: Final = """Print what the scores of an attack prove, and whether they contradict a plan.

SCORES has one row for each trial: the score, larger where the attack is surer that the record took
part, and whether it did. A .csv file has columns score and included (1 or 0); an .npz
file has arrays scores_in and scores_out; an .npy file has shape (m, 2).

Each score comes from a run of its own. With --one-run, all come from one run for which each of
these records was included or not by a fair coin of its own.

Exit status 0: the scores do not contradict the plan, which is no proof of privacy; or no plan was
given. 1: refuted. 2: wrong input.
"""


@click.command(
    cls=command.Command, help=_HELP, short_help="Print what the scores of an attack prove."
)
@click.argument("scores_file", metavar="SCORES")
@click.option("--plan", "plan_file", metavar="PLAN", help="The plan that is said to have run.")
@flags.question_flag("delta")
@click.option(
    "--confidence", default="0.95", metavar="C", help="How sure to be, in (0, 1); 0.95 by default."
)
@click.option(
    "--threshold",
    metavar="T",
    help="Call a score of at least T a member; fixed before the scores were seen.",
)
@click.option("--one-run", is_flag=True, help="All scores come from one run with fair coins.")
@flags.json_flag
@flags.verbose_flag
def audit(
    scores_file: str,
    plan_file: str | None,
    delta: str | None,
    confidence: str,
    threshold: str | None,
    one_run: bool,
    as_json: bool,
) -> None:
    """Print what the scores of an attack prove, and whether they contradict a plan."""
    file = None if plan_file is None else plans.load(plan_file)
    at = _delta(delta, file)
    asked: dict[str, Any] = {"confidence": parse(confidence), "in_one_run": one_run}
    if threshold is not None:
        asked["threshold"] = parse(threshold)
    from hockeystick.reports.audit import Audit, audited

    asked_of = Audit(name=scores_file, scores=hs.audit.load_scores(scores_file), **asked)
    with waiting("auditing"):
        found = audited(asked_of, plan=None if file is None else file.plan, delta=at)
    if as_json:
        about = {} if file is None else {"title": file.title, "plan": fields(file.plan)}
        click.echo(dumped({"version": hs.__version__, **about, **found.as_dict()}))
    else:
        _sheet(found, file).show()
    if found.is_refuted:
        click.get_current_context().exit(REFUTED)


def _delta(given: str | None, file: PlanFile | None) -> float | None:
    """Return where epsilon is asked for: at the flag's delta, or else at the plan file's."""
    value = parse(given) if given is not None else None if file is None else file.delta
    if value is None and file is None:
        allowed = _validate.PARAMETERS["delta"].allowed
        raise click.UsageError(f"Give --plan, --delta, or both; delta must be {allowed}")
    return None if value is None else _validate.real("delta", value)


_STYLES: Final = {"refuted": "bold red", "consistent": "bold green"}


def _sheet(audited: Audited, file: PlanFile | None) -> Sheet:
    """Return the answer for people: the verdict, what was found and claimed."""
    told, sheet = audit_told(audited), Sheet(None if file is None else file.title)
    if told.verdict:
        verdict = (told.verdict, _STYLES[told.verdict])
        sheet.fact("verdict", Text.assemble(verdict, f"  {told.sure}"))
    for label, text in told.facts:
        sheet.fact(label, text)
    if file is not None:
        sheet.plan(file)
    sheet.more_block(Text(f"\n{told.meaning}", style="dim"))
    sheet.holds_if(told.assumptions)
    return sheet
