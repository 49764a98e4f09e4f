"""The commands: each reads a plan, asks the library, and prints one answer."""

from __future__ import annotations

from typing import Any, Final

import click

import hockeystick as hs
from hockeystick.accountants.base import TOLERANCE
from hockeystick.accountants.summary import LEAST_RATE
from hockeystick.cli.commands.loading import Loading
from hockeystick.cli.commands.verify import end_with, verdict_of
from hockeystick.cli.describe import Question
from hockeystick.cli.flags import asking, deciding, defaults, of_group, options
from hockeystick.cli.flags.citing import cite_flag
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.several import several_in
from hockeystick.cli.terminal.progress import bar
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile
from hockeystick.numerics.numerals import at_most as rounded_up

_LOADING_SECONDS: Final = 2.0
_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _print_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version and stop, if it was asked for."""
    if asked:
        click.echo(f"hockeystick {hs.__version__}")
        context.exit()


_OVERVIEW: Final = """Differential-privacy accounting whose answers are proven intervals.

A plan comes from a TOML file (- for standard input), from a text that writes it out, from flags, or
from a file with flags that override its [dpsgd] table.

What none of these says is, of a delta, that of HOCKEYSTICK_DELTA, or of [tool.hockeystick] in the
nearest pyproject.toml; likewise the adjacency of a plan of flags. The answer then says so.
"""


@click.group(
    cls=Loading,
    invoke_without_command=True,
    context_settings=_SETTINGS,
    help=_OVERVIEW,
    short_help="Account for a plan.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def hockeystick(context: click.Context) -> None:
    """Print the overview where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@hockeystick.command(cls=Once)
@options.plan_flags
@of_group.group_flag
@options.question("delta")
@deciding.at_most_flag("epsilon")
@options.accountant_flags
@options.gaussian_flags
@cite_flag
@options.verify_flag
@options.short_flag
@options.answer_json_flag
def epsilon(plan_file: str | None, delta: str | None, **flags: Any) -> None:
    """Print the epsilon that a plan costs at a delta.

    Where flags have several values, as in --epochs 10,20,30, it prints a row for each combination.

    Which epsilon is usual, of published releases: docs/howto/usual.md.
    """
    _answer("delta", delta, plan_file, **flags)


@hockeystick.command(cls=Once)
@options.plan_flags
@of_group.group_flag
@options.question("epsilon")
@deciding.at_most_flag("delta")
@options.accountant_flags
@cite_flag
@options.verify_flag
@options.short_flag
@options.answer_json_flag
def delta(plan_file: str | None, epsilon: str | None, **flags: Any) -> None:
    """Print the delta that a plan costs at an epsilon.

    Where flags have several values, as in --epochs 10,20,30, it prints a row for each combination.
    """
    _answer("epsilon", epsilon, plan_file, **flags)


@hockeystick.command(cls=Once)
@options.comparison_flags
@of_group.group_flag
@options.question("delta")
@options.question("epsilon")
@cite_flag
@options.json_flag
def compare(
    plan_file: str | None,
    delta: str | None,
    epsilon: str | None,
    cite: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Print what each accountant says of a plan, and how far that is from the truth.

    With --sampling alone, print what each way of drawing batches would cost instead, for the same
    batch size, noise and number of steps; of a long training that may take minutes.

    Opacus's RDPAccountant and TensorFlow Privacy are the row rdp, on orders of their own; Opacus's
    PRVAccountant is usually some 0.01 above prv, its eps_error.
    """
    every = flags["sampling"] == options.EVERY
    known = {**flags, "sampling": None} if every else defaults.with_adjacency(plan_file, flags)
    file = options.plan_of(plan_file, known)
    at = asking.one_question({"delta": delta, "epsilon": epsilon}, file)
    if every:
        if cite:
            raise click.UsageError("--cite is for accountants side by side, not for samplings")
        _compare_samplings(file, at, as_json)
        return
    with waiting("asking each accountant"):
        rows = _timed(file.plan, at)
    asking.refuse_infinite(at, *(row.answer for row in rows))
    if as_json:
        from hockeystick.cli import as_json as programs

        click.echo(programs.comparison(file, at, rows, hs.__version__))
    else:
        from hockeystick.cli.panels import render

        render.print_comparison(file, at, rows)
        if cite:
            from hockeystick.cli.panels import sources_list

            render.print_plainly(sources_list.listing(hs.answers.sources_of_all(file.plan, rows)))


def _compare_samplings(file: PlanFile, at: Question, as_json: bool) -> None:
    """Print what each way of drawing batches would cost."""
    plan: Any = file.plan
    with bar("asking for each sampling") as tell:
        rows = hs.accountants.compare_samplings(plan, **{at.name: at.value}, progress=tell)
    if as_json:
        from hockeystick.cli import as_json as programs

        click.echo(programs.samplings(file, at, rows, hs.__version__))
    else:
        from hockeystick.cli.panels import render, sampling_table

        render.print_plainly(sampling_table.panel(file, at, rows), render.WIDER)


def _answer(
    given_name: str,
    given: str | None,
    plan_file: str | None,
    *,
    accountant: str,
    digits: str | None,
    tolerance: str | None,
    at_most: str | None,
    cite: bool,
    verify: bool,
    short: bool,
    as_json: bool,
    mu: bool = False,
    least_rate: str | None = None,
    **flags: str | None,
) -> None:
    """Print the answer to one question, and what the verifier says of it."""
    several = several_in({**flags, given_name: given})
    if several:
        from hockeystick.cli.commands.rows import answer_rows, refuse_of_one

        refuse_of_one(cite=cite, verify=verify, mu=mu, least_rate=least_rate is not None)
        known = {**defaults.with_adjacency(plan_file, flags), given_name: given}
        status = answer_rows(
            given_name,
            plan_file,
            several,
            known,
            accountant=accountant,
            digits=digits,
            tolerance=tolerance,
            at_most=at_most,
            short=short,
            as_json=as_json,
        )
        click.get_current_context().exit(status)
    if verify:
        hs.answers.require_verifier()
    options.refuse_beside_short(short, verify=verify, as_json=as_json, mu=mu, cite=cite)
    rate = _least_rate(mu, least_rate)
    file = options.plan_of(plan_file, defaults.with_adjacency(plan_file, flags))
    at = asking.question(given_name, given, file)
    ask: Any = hs.epsilon if given_name == "delta" else hs.delta
    budget = deciding.budget_of("at_most", at.quantity, at_most)
    count: Any = None if digits is None else parse(digits)
    width: Any = TOLERANCE if tolerance is None else parse(tolerance)
    with waiting(f"computing {ask.__name__}"):
        how = {at.name: at.value, "accountant": accountant, "digits": count, "tolerance": width}
        answer = ask(file.plan, **how)
    asking.refuse_infinite(at, answer, held=plan_file if given is None else None)
    decided = deciding.decided(answer, file.plan, at, budget)
    with waiting("computing mu"):
        summary = hs.accountants.gaussian_summary(file.plan, rate) if mu else None
    verdict = verdict_of(answer, file.plan, **{at.name: at.value}) if verify else None
    if short:
        _print_short(file, at, answer)
    elif as_json:
        from hockeystick.cli import as_json as programs

        click.echo(programs.answer(file, at, answer, hs.__version__, verdict, summary, decided))
    else:
        from hockeystick.cli.panels import render

        render.print_answer(file, at, answer, summary, decided)
        if cite:
            from hockeystick.cli.panels import sources_list

            found = hs.answers.sources(file.plan, answer.accountant)
            render.print_plainly(sources_list.listing(found))
    end_with(verdict, as_json, otherwise=0 if decided is None else decided.exit_status)


def _print_short(file: PlanFile, at: Question, answer: hs.Certified | hs.Approximate) -> None:
    """Print the number to quote alone, and on standard error what is grave."""
    click.echo(_quoted(answer))
    defaults.tell()
    for one in hs.answers.cautions(answer, file.plan, **{at.name: at.value}):
        if not one.is_mild:
            click.echo(f"hockeystick: caution: {one.text}", err=True)


def _quoted(answer: hs.Certified | hs.Approximate) -> str:
    """Return the number to quote, rounded up, or raise where nothing is proven."""
    if isinstance(answer, hs.Approximate):
        raise click.UsageError(
            f"--short prints what is proven, and {answer.accountant} proves nothing"
        )
    return rounded_up(answer.upper)


def _least_rate(mu: bool, given: str | None) -> Any:
    """Return the least error rate at which mu is to hold, or raise."""
    if given is None:
        return LEAST_RATE
    if not mu:
        raise click.UsageError("--least-rate says where --mu is to hold; give both")
    return parse(given)


def _timed(plan: hs.Mechanism, at: Question) -> tuple[hs.accountants.Row, ...]:
    """Return every accountant's row; ask twice where loading could be most of the time."""
    rows = hs.compare(plan, **{at.name: at.value})
    if sum(row.seconds for row in rows) > _LOADING_SECONDS:
        return rows
    return hs.compare(plan, **{at.name: at.value})
