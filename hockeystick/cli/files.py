"""The commands ``init``, ``check``, ``report`` and ``explore``: plan files, and pages of plans."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import hockeystick as hs
from hockeystick import _validate
from hockeystick.answers.cautions import caution_of_delta
from hockeystick.answers.registration import BLANK
from hockeystick.cli import options, show
from hockeystick.cli.asking import ask, budgeted
from hockeystick.cli.command import command, on_one_line
from hockeystick.cli.options import STDIN, Source
from hockeystick.cli.show import progress
from hockeystick.cli.sweep import grid_file
from hockeystick.errors import HockeystickError, same_name
from hockeystick.io.codec import RELEASES, Blanks, required_by
from hockeystick.io.plan_file import plan_text
from hockeystick.mechanisms import index
from hockeystick.mechanisms.structure import first_sentence
from hockeystick.notions import NOTIONS
from hockeystick.numerics.numerals import plain

if TYPE_CHECKING:
    from hockeystick.reports import Findings
    from hockeystick.reports.ledger import Ledgered


@command(
    "hockeystick init my-plan.toml",
    "hockeystick init - 'Laplace(2)**3 @ Gaussian(4)'",
    "hockeystick init --list",
    takes="NEW LIKE list force",
)
def init(file: str, like: str | None, list_all: bool, force: bool) -> None:
    """Write a plan file to begin with: of DP-SGD, every key with a comment, or of a plan.

    FILE is a new .toml file, plan.toml by default, or - for standard output. LIKE is a plan as it
    is in Python, a plan file, or what --json printed.
    """
    if list_all:
        click.echo(f"{index()}\n\nGuarantees, of which no mechanism is known")
        for name, kind in NOTIONS.items():
            where = "" if name in RELEASES else " In Python only."
            click.echo(f"  {name}: {first_sentence(kind)}{where}")
        return
    path = None if file == STDIN else show.out_path(file, (".toml",), force, "FILE")
    begin = resources.files("hockeystick.io") / "plan.toml"
    text = begin.read_text("utf-8") if like is None else _text(like)
    if path is None:
        click.echo(text, nl=False)
    else:
        show.write_whole(path, text, force)
        click.echo(f"{path} is written; hockeystick check {path} says what it means")


def _text(like: str) -> str:
    name = same_name(like, RELEASES)
    if name in RELEASES:
        numbers = ", ".join(f"{one}=..." for one in required_by(RELEASES[name]))
        raise click.UsageError(f"{like} needs its numbers: write '{name}({numbers})'")
    held = Source.of(like).file()
    if held.delta is held.epsilon is None:
        units = hs.answers.units_of(held.plan)
        held = replace(held, delta=1e-6 if units is None else hs.answers.suggested_delta(units))
    return plan_text(held)


@command("hockeystick check plan.toml", takes="FILES json")
def check(files: tuple[str, ...]) -> None:
    """Say whether plan files are well-formed and what they mean; nothing is computed.

    PLAN is a plan file, a grid file, - for standard input, or a plan as it is in Python.

    Exit status 0: all are well-formed. 1: some are not.
    """
    found = [_checked(one) for one in files]
    if options.is_given("json"):
        show.print_json({"version": hs.__version__, "files": found})
    for one in () if options.is_given("json") else found:
        word, color = ("well-formed", "green") if one["well_formed"] else ("wrong", "red")
        click.echo(f"{on_one_line(one['file'])}: {click.style(word, color)}")
        cautions = (f"caution: {caution.text}" for caution in one["cautions"])
        for line in (*one["problems"], *one["meaning"], *cautions):
            click.echo(f"  {on_one_line(line)}")
    click.get_current_context().exit(int(not all(one["well_formed"] for one in found)))


def _checked(text: str) -> dict[str, Any]:
    name, problems, told = text, list[str](), dict[str, Any](meaning=[], cautions=[])
    try:
        given = Source.of(text)
        name = given.name
        told |= _meaning(given)
    except HockeystickError as error:
        problems = [str(error).removeprefix(f"{name}: ")]
    lines = [re.search(r"\bline (\d+)", problem) for problem in problems]
    about = {"problems": problems, "lines": [one and int(one[1]) for one in lines]}
    return {"file": name, "well_formed": not problems, **about, **told}


def _meaning(given: Source) -> dict[str, Any]:
    """Return what a plan or a grid says, or raise."""
    content = given.content or b""
    if re.search(rb"(?m)^\s*\[grid[\].]", content):
        grid, question, _ = grid_file(content)
        sizes = ", ".join(f"{len(values)} of {key}" for key, values in grid.items())
        return {"meaning": [f"a grid for hockeystick sweep: {sizes}", f"finds {question.find}"]}
    blanks = Blanks()
    given.file(blanks)
    if len(blanks.begun) == 1:
        return {"meaning": [f"{blanks.begun[0][0]} is left out: hockeystick solve finds it"]}
    file = given.file()
    said = [*hs.answers.in_words(file.plan), *hs.answers.steps_rules(file.plan)]
    if file.plan.adjacency is not None:
        said.append(f"neighbours: {file.plan.adjacency}")
    at = {"delta": file.delta, "epsilon": file.epsilon}
    asks = [f"asked at {name} = {plain(one)}" for name, one in at.items() if one is not None]
    unusual = None if file.delta is None else caution_of_delta(file.delta, file.plan)
    said += asks or ["no delta: give --delta"]
    return {"meaning": said, "cautions": [unusual] if unusual else [], **at}


@command(
    "hockeystick report 'Gaussian(4)' --delta 1e-6 -o gaussian.html",
    "hockeystick report plan.toml -o pages.html --at-most 3",
    "hockeystick report plan.toml -o entry.yaml",
    takes="PLAN delta at_most out force verify audit confidence ledger dataset head",
    out="A new .html file, by default named after the plan file; or .yaml.",
)
def report(
    given: Source, delta: Any, out: str | None, force: bool, verify: bool, **asked: Any
) -> None:
    """Write a page for the person who has to approve a release.

    One HTML file that loads nothing, for a screen or paper. It holds the answer for hockeystick
    verify. With --audit it says whether an attack's scores contradict the plan, with --dataset what
    the ledger says. A .yaml file is an entry for the registry of deployments, with blanks to be
    filled in. Exit status 1: the budget is not met, or what it shows contradicts the plan.
    """
    stem = Path(given.text).stem if os.path.isfile(given.text) else "report"
    path = show.out_path(out or f"{stem}.html", (".html", ".yaml", ".yml"), force)
    file = given.file()
    at = options.question(file, delta=delta)
    about: Any = {"title": file.title, "source": file.source, "notes": file.notes}
    attack, limit = None, options.limit_of(asked["at_most"], "epsilon")
    if path.suffix.lower() != ".html":
        answer = ask(file, at)
        text = hs.answers.registration(answer, file.plan, delta=at.value, **about)
        show.write_whole(path, text, force)
        _, said, status = budgeted(answer, file.plan, at, limit)
        facts = [("written to", str(path)), ("answer", str(answer)), ("budget", said)]
        blanks = f"{text.count(BLANK)} to be filled in"
        show.answer({}, [*facts, ("blanks", blanks)], status=status)
    from hockeystick import reports

    reports.require_libraries()
    if verify:
        hs.answers.require_verifier()
    if (name := asked["scores"]) is not None:
        scores = hs.audit.load_scores(name)
        attack = reports.Audit(name=name, scores=scores, confidence=asked["confidence"])
    subject = reports.Subject(
        plan=file.plan,
        delta=at.value,
        **about,
        file_name="plan.toml" if given.text == STDIN else os.path.basename(given.text),
        file_content=given.content,
        commands=(shlex.join(["hockeystick", "epsilon", *given.words, "--delta", repr(at.value)]),),
        budget=limit,
        verify=verify,
        audit=attack,
        ledger=_ledger(asked["url"], asked["dataset"], asked["head"]),
    )
    with progress("reporting") as tell:
        made = reports.Report(reports.investigate(subject, tell), reports.day_of_build())
    options.refuse_infinite(at, made.answer)
    show.write_whole(path, made.html, force)
    found = [("budget", *budgeted(made.answer, file.plan, at, limit)[1:]), *_found(made.findings)]
    facts = [("written to", str(path)), ("answer", str(made.answer)), *(one[:2] for one in found)]
    status = next((one for *_, one in found if one), 0)
    show.answer({}, facts, cautions=made.findings.cautions, status=status)


def _found(findings: Findings) -> Iterator[tuple[str, str, int]]:
    """Yield what audit, ledger and verifier say, each with its exit status."""
    if findings.audited is not None and findings.audited.is_refuted:
        yield "audit", str(findings.audited.verdict), 1
    if (ledger := findings.subject.ledger) is not None:
        if not ledger.check.sound:
            yield "ledger", f"not sound: {ledger.check.problems[0]}", 1
        covered, says = ledger.verdict(findings.subject.plan)
        yield "ledger", says, int(not covered)
    if (verdict := findings.verdict) is not None:
        said = f"{verdict.status}: {verdict.reason or 'every claim holds'}"
        yield "verdict", said, verdict.exit_status


def _ledger(url: str | None, dataset: str | None, head: str | None) -> Ledgered | None:
    if dataset is None:
        source = click.get_current_context().get_parameter_source("url")
        if source is ParameterSource.COMMANDLINE or head is not None:
            raise click.UsageError("Missing --dataset, whose ledger is to be shown")
        return None
    from hockeystick.cli.ledger import named
    from hockeystick.reports.ledger import ledgered

    return ledgered(hs.Ledger(named(url), dataset, read_only=True), head=head)


@command("hockeystick explore", "hockeystick explore plan.toml", takes="[PLAN] port")
def explore(given: Source | None, port: Any) -> None:
    """Serve a page to play with a plan, and print its link.

    The page shows epsilon, what an attacker could learn, how the budget is spent, and the cost at
    other noises; it solves for a target, and shows the plan as a file. It is served to this machine
    alone, and to whoever has its link. Ctrl-C ends it.
    """
    allowed = _validate.Domain(symbol="n", low=0, high=65_535, typical=(1024, 9999), whole=True)
    number = _validate.count("port", port, allowed)
    file = given and given.file()
    try:
        from hockeystick.explore.page import USUAL, serve
    except ModuleNotFoundError:
        raise HockeystickError("the page needs Bokeh: pip install 'hockeystick[explore]'") from None

    who = "Whoever has this link can open the page, on this machine; Ctrl-C ends it."
    try:
        serve(file or USUAL, number, lambda url: click.echo(f"{url}\n{who}"))
    except OSError as error:
        raise click.ClickException(f"cannot serve at port {number}: {error.strerror}") from None
