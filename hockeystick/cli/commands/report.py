"""The command ``report``: one page, in a file, for the person who approves a release."""

from __future__ import annotations

import datetime as dt
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from hockeystick.accountants import epsilon
from hockeystick.answers import Decision, registration, require_verifier, units_of
from hockeystick.answers.cautions import reservation
from hockeystick.answers.registration import BLANK
from hockeystick.cli.commands.audit import REFUTED
from hockeystick.cli.commands.ledger import NOT_SOUND
from hockeystick.cli.flags import asking, defaults, of_group, options
from hockeystick.cli.flags.deciding import MISSED, budget_of
from hockeystick.cli.flags.of_ledgers import VARIABLE, named
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.out_file import out_flags, out_path, write_whole
from hockeystick.cli.flags.source import Source, source
from hockeystick.cli.terminal.progress import bar
from hockeystick.errors import ParameterError
from hockeystick.io import PlanFile, parse
from hockeystick.numerics.numerals import plain
from hockeystick.results import Certified

if TYPE_CHECKING:
    from hockeystick.reports import Findings
    from hockeystick.reports.audit import Audit
    from hockeystick.reports.ledger import Ledgered

_ENDING: Final = ".html"
_PDF: Final = ".pdf"
_SCORES: Final = "The scores of an attack on what ran, to be set against the plan."
_LEDGER: Final = "The ledger of --dataset; by default what the environment says."
_BUDGET: Final = "Say whether epsilon is at most this; exit status 1 if that is not proven."
_REGISTRY: Final = "Write an entry for the registry of deployments, with blanks to be filled in."
_ENTRIES: Final = (".yaml", ".yml")
_A_DATE: Final = "a day such as 2026-01-31"


@click.command(cls=Once)
@options.plan_flags
@of_group.group_flag
@options.question("delta")
@click.option("--budget-epsilon", "--at-most", "budget", metavar="E", help=_BUDGET)
@out_flags("Where the page goes: a new .html file; by default here, named after the plan file.")
@click.option("--title", metavar="TEXT", help="What to call the plan; by default as its file does.")
@click.option("--date", metavar="DAY", help=f"The day that the page bears, {_A_DATE}; or today.")
@click.option("--registry", metavar="FILE.yaml", help=_REGISTRY)
@options.verify_flag
@click.option("--audit", "scores_file", metavar="SCORES", help=_SCORES)
@click.option("--ledger", "url", envvar=VARIABLE, metavar="URL", help=_LEDGER)
@click.option("--dataset", metavar="NAME", help="The dataset of the ledger that the plan reads.")
@click.option("--head", metavar="HEAD", help="A head of that dataset that was noted before.")
@click.option(
    "--confidence", default="0.95", metavar="C", help="Of the audit, in (0, 1); 0.95 by default."
)
def report(
    plan_file: str | None,
    delta: str | None,
    budget: str | None,
    out: str | None,
    registry: str | None,
    force: bool,
    title: str | None,
    date: str | None,
    verify: bool,
    scores_file: str | None,
    confidence: str,
    url: str | None,
    dataset: str | None,
    head: str | None,
    **flags: str | None,
) -> None:
    """Write a page for the person who has to approve a release.

    One HTML file that loads nothing: the plan in words, what is proven of it, what an attacker
    could learn, how the budget is spent, what must hold, what other accountants say, and how to
    get it all again. It can be read on a phone, in the dark, and on paper.

    The page holds the answer for hockeystick verify. With --verify it also says what came of that.
    With --audit it says whether an attack's scores, as for hockeystick audit, contradict the plan.
    With --dataset it shows the ledger: what is left of the budget, what happened, whether it is
    sound, and whether it covers the plan; exit status 1 if it does not.
    With --budget-epsilon (or --at-most) it says whether the plan is within that budget.

    With --registry it writes, besides or instead, an entry for OpenDP's registry of deployments:
    what the plan proves is filled in, and what only people know is marked "to be filled in".
    """
    given = None if plan_file is None else source(plan_file)
    # A page given for a plan is told so, before it is told to be there already.
    file = options.plan_of(given, flags)
    if out is None and (registry is None or verify or scores_file or dataset or budget):
        out = _beside(plan_file if registry is None else None)
    path = None if out is None else _page_path(out, force)
    entry_path = None if registry is None else out_path(registry, _ENTRIES, force, "registry")
    day = _day(date)
    file = file if title is None else replace(file, title=title)
    file, group = of_group.on_a_page(file, {"--audit": scores_file, "--dataset": dataset})
    described = file.plan if group is None else group
    at = asking.question("delta", delta, file)
    if path is None:
        answer = epsilon(described, at.value)
        asking.refuse_infinite(at, answer)
        _write_entry(entry_path, replace(file, plan=described), at.value, answer, force)
        defaults.tell()
        return
    from hockeystick.reports import Report, Subject, investigate, require_libraries

    require_libraries()
    if verify:
        require_verifier()
    audit = {} if scores_file is None else {"audit": scores_file, "confidence": confidence}
    besides = {"budget_epsilon": budget, **audit, "dataset": dataset, "head": head}
    subject = Subject(
        plan=file.plan,
        delta=at.value,
        title=file.title,
        source=file.source,
        notes=file.notes,
        file_name=None if given is None else _base_name(given.file_name),
        file_content=None if given is None else given.content,
        commands=_commands(given, at.value, path, flags, besides, verify=verify),
        budget=budget_of("budget_epsilon", "epsilon", budget),
        verify=verify,
        audit=_audit(scores_file, confidence),
        ledger=_ledger(url, dataset, head),
        group=group,
        one=None if group is None else group.plan,
        size=1 if group is None else group.size,
    )
    with bar("reporting") as tell:
        made = Report(investigate(subject, tell), day)
    asking.refuse_infinite(at, made.answer)
    write_whole(path, made.html, force)
    click.echo(f"{path}: {made.answer}")
    defaults.tell()
    _write_entry(entry_path, replace(file, plan=described), at.value, made.answer, force)
    click.get_current_context().exit(_told_of(made.findings))


def _write_entry(
    path: Path | None, file: PlanFile, delta: float, answer: Certified, force: bool
) -> None:
    """Write an entry for the registry, where one is asked for, and say what it still needs."""
    if path is None:
        return
    about = {"title": file.title, "source": file.source, "notes": file.notes}
    text = registration(answer, file.plan, delta=delta, **about)
    write_whole(path, text, force)
    click.echo(f"{path}: {answer}\n{text.count(BLANK)} blanks to be filled in")


def _told_of(findings: Findings) -> int:
    """Print what audit, ledger and verifier say, and return the first exit status that is not 0."""
    statuses, ledger, verdict = [0], findings.subject.ledger, findings.verdict
    for caution in findings.cautions:
        if not caution.is_mild:
            click.echo(f"caution: {caution.text}")
    if findings.decision is not None:
        click.echo(_decision(findings))
        statuses.append(0 if findings.decision is Decision.MEETS else MISSED)
    if findings.audited is not None and findings.audited.is_refuted:
        click.echo(str(findings.audited.verdict))
        statuses.append(REFUTED)
    if ledger is not None and not ledger.check.sound:
        click.echo(f"ledger not sound: {ledger.check.problems[0]}")
        statuses.append(NOT_SOUND)
    if ledger is not None:
        click.echo(ledger.verdict(findings.subject.plan))
        statuses.append(0 if ledger.covers(findings.subject.plan) else MISSED)
    if verdict is not None:
        click.echo(f"{verdict.status}: {verdict.reason or 'every claim holds'}")
        statuses.append(verdict.exit_status)
    return next((one for one in statuses if one), 0)


def _decision(findings: Findings) -> str:
    """Return the verdict on the budget, and why one that is met promises little, if it does."""
    subject = findings.subject
    told = f"{findings.decision}: epsilon at most {plain(subject.budget or 0.0)}"
    but = reservation(subject.delta, units_of(subject.described))
    return f"{told}, but {but}" if but and findings.decision is Decision.MEETS else told


def _audit(scores_file: str | None, confidence: str) -> Audit | None:
    """Return what an audit is asked, where a file of scores is given."""
    if scores_file is None:
        return None
    from hockeystick.audit import load_scores
    from hockeystick.reports.audit import Audit

    sure: Any = parse(confidence)
    return Audit(name=scores_file, scores=load_scores(scores_file), confidence=sure)


def _ledger(url: str | None, dataset: str | None, head: str | None) -> Ledgered | None:
    """Return what the ledger says of a dataset, where one is named."""
    if dataset is None:
        source = click.get_current_context().get_parameter_source("url")
        if source is ParameterSource.COMMANDLINE or head is not None:
            raise click.UsageError("Missing --dataset, whose ledger is to be shown")
        return None
    import hockeystick as hs
    from hockeystick.reports.ledger import ledgered

    return ledgered(hs.Ledger(named(url), dataset, read_only=True), head=head)


def _beside(plan_file: str | None) -> str:
    """Return the name of a page that is named after its plan file, or raise."""
    if plan_file is None or not os.path.isfile(plan_file):
        raise click.UsageError(f"Missing -o FILE{_ENDING}, where the page goes")
    return Path(plan_file).stem + _ENDING


def _page_path(out: str, force: bool) -> Path:
    """Return where the page goes, or raise; of a PDF, say how to make one of the page."""
    try:
        return out_path(out, (_ENDING,), force)
    except ParameterError as error:
        if Path(out).suffix.lower() == _PDF:
            page = shlex.quote(f"{out[: -len(_PDF)]}{_ENDING}")
            error.add_note(f"write -o {page}, open that in a browser, and print it to a PDF")
        raise


def _day(date: str | None) -> dt.date:
    """Return the day that the page bears: the one given, that of the build, or today's."""
    if date is None:
        from hockeystick.reports import day_of_build

        return day_of_build()
    try:
        return dt.date.fromisoformat(date)
    except ValueError:
        raise ParameterError("date", date, _A_DATE) from None


def _base_name(path: str | None) -> str | None:
    """Return the name of a file without its folders."""
    return None if path is None else os.path.basename(path)


def _commands(
    given: Source | None,
    delta: float,
    out: Path,
    flags: Mapping[str, str | None],
    besides: Mapping[str, str | None],
    *,
    verify: bool,
) -> tuple[str, ...]:
    """Return what gives the headline again, and what gives the page.

    Where the ledger is, they leave to the environment: its URL may hold a password.
    """
    text = None if given is None else given.file_name or given.text
    plan = [*([] if text is None else [text]), *options.written(flags)]
    asked = ["--delta", repr(delta)]
    verified = ["--verify"] if verify else []
    page = [*plan, *asked, *options.written(besides), *verified, "-o", out.name]
    lines = (["epsilon", *plan, *asked], ["report", *page])
    return tuple(shlex.join(["hockeystick", *line]) for line in lines)
