"""The commands ``report`` and ``explore``: a page for whoever approves a plan, or tries one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from hockeystick import _validate
from hockeystick.accountants import epsilon
from hockeystick.answers import Decision, registration, require_verifier, units_of
from hockeystick.answers.cautions import reservation
from hockeystick.answers.registration import BLANK
from hockeystick.cli import command, options, plans
from hockeystick.cli.group import for_group, on_a_page
from hockeystick.cli.options import MISSED
from hockeystick.cli.out_file import out_path, write_whole
from hockeystick.cli.progress import progress
from hockeystick.errors import HockeystickError
from hockeystick.io import PlanFile, parse
from hockeystick.io.plan_file import plan_text
from hockeystick.numerics.numerals import plain

if TYPE_CHECKING:
    from hockeystick.reports import Findings
    from hockeystick.reports.audit import Audit
    from hockeystick.reports.ledger import Ledgered

_PAGE: Final = ".html"
_ENTRIES: Final = (".yaml", ".yml")
_WRONG: Final = 1


@click.command(
    cls=command.Command,
    examples=(
        "hockeystick report 'Gaussian(4)' --delta 1e-6 -o gaussian.html",
        "hockeystick report plan.toml -o pages.html --at-most 3",
        "hockeystick report plan.toml -o entry.yaml",
    ),
)
@options.plan_words
@options.options("group", "delta", "at_most")
@options.options(out="A new .html file, by default named after the plan file; or .yaml.")
@options.options("force", "verify")
@click.option("--audit", "scores_file", metavar="SCORES", help="The scores of an attack on it.")
@options.options("confidence", "ledger")
@click.option("--dataset", metavar="NAME", help="The dataset of the ledger that the plan reads.")
@options.options("head")
def report(
    words: tuple[str, ...],
    group: str | None,
    delta: str | None,
    out: str | None,
    force: bool,
    verify: bool,
    **asked: str | None,
) -> None:
    """Write a page for the person who has to approve a release.

    One HTML file that loads nothing, for a screen or paper. It holds the answer for hockeystick
    verify. With --audit it says whether an attack's scores contradict the plan, with --dataset what
    the ledger says. A .yaml file is an entry for the registry of deployments, with blanks to be
    filled in. Exit status 1: the budget is not met, or what it shows contradicts the plan.
    """
    source, values = plans.read(words)
    file = for_group(plans.plan_file(source, values), group)
    if out is None and source is not None and os.path.isfile(source.text):
        out = Path(source.text).stem + _PAGE
    if out is None:
        raise click.UsageError(f"Missing -o FILE{_PAGE}, where the page goes")
    path = out_path(out, (_PAGE, *_ENTRIES), force)
    about = {"--audit": asked["scores_file"], "--dataset": asked["dataset"]}
    file, together = on_a_page(file, about)
    at = options.question("delta", delta, file)
    if path.suffix.lower() in _ENTRIES:
        _write_entry(replace(file, plan=together or file.plan), at, path, force)
        return
    from hockeystick.reports import Report, Subject, day_of_build, investigate, require_libraries

    require_libraries()
    if verify:
        require_verifier()
    question = [*words, *([] if group is None else ["--group", group]), "--delta", repr(at.value)]
    subject = Subject(
        plan=file.plan,
        delta=at.value,
        title=file.title,
        source=file.source,
        notes=file.notes,
        **_shown_file(source),
        # Where the ledger is, they leave to the environment: its URL may hold a password.
        commands=(
            shlex.join(["hockeystick", "epsilon", *question]),
            shlex.join(
                ["hockeystick", "report", *question, *_flags(asked, verify), "-o", path.name]
            ),
        ),
        budget=options.budget_of(asked["at_most"], "epsilon"),
        verify=verify,
        audit=_audit(asked["scores_file"], asked["confidence"]),
        ledger=_ledger(asked["url"], asked["dataset"], asked["head"]),
        group=together,
        one=None if together is None else together.plan,
        size=1 if together is None else together.size,
    )
    with progress("reporting") as tell:
        made = Report(investigate(subject, tell), day_of_build())
    options.refuse_infinite(at, made.answer)
    write_whole(path, made.html, force)
    click.echo(f"{path}: {made.answer}")
    for line in options.default_lines():
        click.echo(f"hockeystick: {line}", err=True)
    click.get_current_context().exit(_status_of(made.findings))


def _write_entry(file: PlanFile, at: options.Question, path: Path, force: bool) -> None:
    """Write an entry for the registry, and say what it still needs."""
    answer = epsilon(file.plan, at.value)
    options.refuse_infinite(at, answer)
    about = {"title": file.title, "source": file.source, "notes": file.notes}
    text = registration(answer, file.plan, delta=at.value, **about)
    write_whole(path, text, force)
    click.echo(f"{path}: {answer}\n{text.count(BLANK)} blanks to be filled in")


def _shown_file(source: plans.Source | None) -> dict[str, Any]:
    """Return the plan file that a page shows: of JSON, one that has its plan."""
    if source is None or source.content is None:
        return {"file_name": None, "file_content": None}
    is_json = source.content.lstrip().startswith(b"{")
    if source.text == plans.STDIN or is_json:
        content = plan_text(source.file()).encode() if is_json else source.content
        return {"file_name": "plan.toml", "file_content": content}
    return {"file_name": os.path.basename(source.text), "file_content": source.content}


def _flags(asked: Mapping[str, str | None], verify: bool) -> Sequence[str]:
    """Return what gives the page again besides the question."""
    scores = asked["scores_file"]
    besides = {
        "--at-most": asked["at_most"],
        "--audit": scores,
        "--confidence": scores and asked["confidence"],
        "--dataset": asked["dataset"],
        "--head": asked["head"],
    }
    words = [word for pair in besides.items() if pair[1] is not None for word in pair]
    return [*map(str, words), *["--verify"] * verify]


def _status_of(findings: Findings) -> int:
    """Print what budget, audit, ledger and verifier say; return the first exit status not 0."""
    subject, verdict = findings.subject, findings.verdict
    statuses = [0]
    for caution in findings.cautions:
        if not caution.is_mild:
            click.echo(f"caution: {caution.text}")
    if findings.decision is not None:
        meets = findings.decision is Decision.MEETS
        but = reservation(subject.delta, units_of(subject.described)) if meets else ""
        limit = f"{findings.decision}: epsilon at most {plain(subject.budget or 0.0)}"
        click.echo(f"{limit}, but {but}" if but else limit)
        statuses.append(0 if meets else MISSED)
    if findings.audited is not None and findings.audited.is_refuted:
        click.echo(str(findings.audited.verdict))
        statuses.append(_WRONG)
    if (ledger := subject.ledger) is not None:
        if not ledger.check.sound:
            click.echo(f"ledger not sound: {ledger.check.problems[0]}")
            statuses.append(_WRONG)
        click.echo(ledger.verdict(subject.plan))
        statuses.append(0 if ledger.covers(subject.plan) else MISSED)
    if verdict is not None:
        click.echo(f"{verdict.status}: {verdict.reason or 'every claim holds'}")
        statuses.append(verdict.exit_status)
    return next((one for one in statuses if one), 0)


def _audit(scores_file: str | None, confidence: str | None) -> Audit | None:
    """Return what an audit is asked, where a file of scores is given."""
    if scores_file is None:
        return None
    from hockeystick.audit import load_scores
    from hockeystick.reports.audit import Audit

    sure: Any = parse(confidence or "")
    return Audit(name=scores_file, scores=load_scores(scores_file), confidence=sure)


def _ledger(url: str | None, dataset: str | None, head: str | None) -> Ledgered | None:
    """Return what the ledger says of a dataset, where one is named."""
    if dataset is None:
        source = click.get_current_context().get_parameter_source("url")
        if source is ParameterSource.COMMANDLINE or head is not None:
            raise click.UsageError("Missing --dataset, whose ledger is to be shown")
        return None
    import hockeystick as hs
    from hockeystick.cli.ledger import named
    from hockeystick.reports.ledger import ledgered

    return ledgered(hs.Ledger(named(url), dataset, read_only=True), head=head)


_PORT: Final = _validate.Domain(symbol="n", low=0, high=65_535, typical=(1024, 9999), whole=True)


@click.command(
    cls=command.Command, examples=("hockeystick explore", "hockeystick explore plan.toml")
)
@options.plan_words
@click.option("--port", metavar="N", default="0", help="Where it is served; by default anywhere.")
def explore(words: tuple[str, ...], port: str) -> None:
    """Serve a page to play with a plan, and print its link.

    The page shows epsilon, what an attacker could learn, how the budget is spent, and the cost at
    other noises; it solves for a target, and shows the plan as a file. It is served to this machine
    alone, and to whoever has its link. Ctrl-C ends it.
    """
    given: Any = parse(port)
    number = _validate.count("port", given, _PORT)
    file = plans.plan_of(words) if words else None
    try:
        from hockeystick.explore.page import USUAL, serve
    except ModuleNotFoundError:
        message = "the page needs Bokeh: pip install 'hockeystick[explore]'"
        raise HockeystickError(message) from None

    def opened(url: str) -> None:
        click.echo(
            f"{url}\nWhoever has this link can open the page, on this machine; Ctrl-C ends it."
        )

    try:
        serve(USUAL if file is None else file, number, opened)
    except OSError as error:
        raise click.ClickException(f"cannot serve at port {number}: {error.strerror}") from None
