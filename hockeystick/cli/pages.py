"""The command ``report``: one page, in a file, for the person who approves a release."""

from __future__ import annotations

import os
import shlex
import webbrowser
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
from hockeystick.cli import command, flags, of_group, plans
from hockeystick.cli.audit import REFUTED
from hockeystick.cli.flags import MISSED, budget_of
from hockeystick.cli.ledger import NOT_SOUND, VARIABLE, named
from hockeystick.cli.out_file import out_flags, out_path, write_whole
from hockeystick.cli.plans import source
from hockeystick.cli.progress import bar
from hockeystick.errors import HockeystickError, ParameterError
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


@click.command(cls=command.Command)
@plans.plan_words
@of_group.group_flag
@flags.question_flag("delta")
@click.option("--budget-epsilon", "--at-most", "budget", metavar="E", help=_BUDGET)
@out_flags("Where the page goes: a new .html file; by default here, named after the plan file.")
@click.option("--title", metavar="TEXT", help="What to call the plan; by default as its file does.")
@click.option("--registry", metavar="FILE.yaml", help=_REGISTRY)
@flags.verify_flag
@click.option("--audit", "scores_file", metavar="SCORES", help=_SCORES)
@click.option("--ledger", "url", envvar=VARIABLE, metavar="URL", help=_LEDGER)
@click.option("--dataset", metavar="NAME", help="The dataset of the ledger that the plan reads.")
@click.option("--head", metavar="HEAD", help="A head of that dataset that was noted before.")
@click.option(
    "--confidence", default="0.95", metavar="C", help="Of the audit, in (0, 1); 0.95 by default."
)
def report(
    words: tuple[str, ...],
    group: str | None,
    delta: str | None,
    budget: str | None,
    out: str | None,
    registry: str | None,
    force: bool,
    title: str | None,
    verify: bool,
    scores_file: str | None,
    confidence: str,
    url: str | None,
    dataset: str | None,
    head: str | None,
) -> None:
    """Write a page for the person who has to approve a release.

    One HTML file that loads nothing, for a screen or paper. It holds the answer for hockeystick
    verify. With --audit it says whether an attack's scores contradict the plan, with --dataset what
    the ledger says. Exit status 1: the budget is not met, or what it shows contradicts the plan.
    """
    asked_of = plans.words_of(words)
    given = None if asked_of.plan is None else source(asked_of.plan)
    file = asked_of.of(given, group=group)
    if out is None and (registry is None or verify or scores_file or dataset or budget):
        out = _beside(asked_of.plan if registry is None else None)
    path = None if out is None else _page_path(out, force)
    entry_path = None if registry is None else out_path(registry, _ENTRIES, force, "registry")
    file = file if title is None else replace(file, title=title)
    file, together = of_group.on_a_page(file, {"--audit": scores_file, "--dataset": dataset})
    described = file.plan if together is None else together
    at = flags.question("delta", delta, file)
    if path is None:
        answer = epsilon(described, at.value)
        flags.refuse_infinite(at, answer)
        _write_entry(entry_path, replace(file, plan=described), at.value, answer, force)
        flags.tell()
        return
    from hockeystick.reports import Report, Subject, day_of_build, investigate, require_libraries

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
        commands=_commands(words, group, at.value, path, besides, verify=verify),
        budget=budget_of("budget_epsilon", "epsilon", budget),
        verify=verify,
        audit=_audit(scores_file, confidence),
        ledger=_ledger(url, dataset, head),
        group=together,
        one=None if together is None else together.plan,
        size=1 if together is None else together.size,
    )
    with bar("reporting") as tell:
        made = Report(investigate(subject, tell), day_of_build())
    flags.refuse_infinite(at, made.answer)
    write_whole(path, made.html, force)
    click.echo(f"{path}: {made.answer}")
    flags.tell()
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


def _base_name(path: str | None) -> str | None:
    """Return the name of a file without its folders."""
    return None if path is None else os.path.basename(path)


def _commands(
    words: tuple[str, ...],
    group: str | None,
    delta: float,
    out: Path,
    besides: Mapping[str, str | None],
    *,
    verify: bool,
) -> tuple[str, ...]:
    """Return what gives the headline again, and what gives the page.

    Where the ledger is, they leave to the environment: its URL may hold a password.
    """
    asked = [*words, *([] if group is None else ["--group", group]), "--delta", repr(delta)]
    more = [
        word
        for name, text in besides.items()
        if text is not None
        for word in (f"--{name.replace('_', '-')}", text)
    ]
    verified = ["--verify"] if verify else []
    lines = (["epsilon", *asked], ["report", *asked, *more, *verified, "-o", out.name])
    return tuple(shlex.join(["hockeystick", *line]) for line in lines)


_LARGEST_PORT: Final = 65_535
_A_PORT: Final = f"an integer from 0 to {_LARGEST_PORT}"

_HELP: Final = """Serve a page to play with a plan.

The page shows epsilon, what an attacker could learn, how the budget is spent, and the cost at other
noises; it solves for a target, and shows the plan as a file. It is served to this machine alone,
and to whoever has its link. Ctrl-C ends it.
"""


@click.command(cls=command.Command, help=_HELP)
@plans.plan_words
@click.option("--port", metavar="N", default="0", help="Where it is served; by default anywhere.")
@click.option("--no-browser", is_flag=True, help="Print the link, and open no browser.")
def explore(words: tuple[str, ...], port: str, no_browser: bool) -> None:
    """Serve the page until it is interrupted."""
    number = _port(port)
    file = plans.words_of(words).file() if words else None
    try:
        from hockeystick.explore.page import USUAL, serve
    except ModuleNotFoundError:
        message = "the page needs Bokeh: pip install 'hockeystick[explore]'"
        raise HockeystickError(message) from None

    def opened(url: str) -> None:
        click.echo(
            f"{url}\nWhoever has this link can open the page, on this machine; Ctrl-C ends it."
        )
        if not no_browser:
            webbrowser.open(url)

    try:
        serve(USUAL if file is None else file, number, opened)
    except OSError as error:
        raise click.ClickException(f"cannot serve at port {number}: {error.strerror}") from None


def _port(text: str) -> int:
    """Return a port, or raise."""
    number = parse(text)
    if not isinstance(number, int) or not 0 <= number <= _LARGEST_PORT:
        raise ParameterError("port", number, _A_PORT)
    return number
