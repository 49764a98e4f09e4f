"""The commands: each reads a plan, asks the library, and prints one answer."""

from __future__ import annotations

import math
from typing import Any, Final

import click

import hockeystick as hs
from hockeystick import _validate
from hockeystick.accountants.base import TOLERANCE
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.cli import options
from hockeystick.cli.claims import claims
from hockeystick.cli.convert import command as convert_command
from hockeystick.cli.describe import Question
from hockeystick.cli.numerals import parse
from hockeystick.cli.once import Once
from hockeystick.cli.plan import plan
from hockeystick.cli.plan_file import PlanFile
from hockeystick.cli.report import report
from hockeystick.cli.solve import solve
from hockeystick.cli.sweep import sweep
from hockeystick.cli.tradeoff import tradeoff
from hockeystick.cli.waiting import waiting
from hockeystick.errors import ParameterError
from hockeystick.results import Approximate, Certified

_LOADING_SECONDS: Final = 2.0
_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _print_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version and stop, if it was asked for."""
    if asked:
        click.echo(f"hockeystick {hs.__version__}")
        context.exit()


_OVERVIEW: Final = """Differential-privacy accounting whose answers are proven intervals.

A plan comes from a TOML file, from flags, or from a file with flags that override its [dpsgd]
table.

\b
  hockeystick epsilon examples/mnist-tutorial.toml
  hockeystick epsilon --examples 60000 --batch-size 256 --epochs 60 \\
      --noise-multiplier 1.1 --delta 1e-5
  hockeystick compare examples/mnist-tutorial.toml --noise-multiplier 1.3
  hockeystick solve examples/mnist-tutorial.toml --parameter noise_multiplier --epsilon 2
  hockeystick plan --examples 60000 --epsilon 2 --delta 1e-5

\b
Accountants:
""" + "\n".join(f"  {one.name:<14}{one.summary}" for one in ACCOUNTANTS.values())


@click.group(
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


hockeystick.add_command(claims)
hockeystick.add_command(plan)
hockeystick.add_command(report)
hockeystick.add_command(sweep)
hockeystick.add_command(tradeoff)
hockeystick.add_command(convert_command)
hockeystick.add_command(solve)


@hockeystick.command(cls=Once)
@options.plan_flags
@options.question("delta")
@options.accountant_flags
@options.json_flag
def epsilon(plan_file: str | None, delta: str | None, **flags: Any) -> None:
    """Print the epsilon that a plan costs at a delta."""
    _answer("delta", delta, plan_file, **flags)


@hockeystick.command(cls=Once)
@options.plan_flags
@options.question("epsilon")
@options.accountant_flags
@options.json_flag
def delta(plan_file: str | None, epsilon: str | None, **flags: Any) -> None:
    """Print the delta that a plan costs at an epsilon."""
    _answer("epsilon", epsilon, plan_file, **flags)


@hockeystick.command(cls=Once)
@options.comparison_flags
@options.question("delta")
@options.question("epsilon")
@options.json_flag
def compare(
    plan_file: str | None, delta: str | None, epsilon: str | None, as_json: bool, **flags: Any
) -> None:
    """Print what each accountant says of a plan, and how far that is from the truth.

    With --sampling alone, print what each way of drawing batches would cost instead, for the same
    batch size, noise and number of steps.
    """
    every = flags["sampling"] == options.EVERY
    file = options.plan_of(plan_file, {**flags, "sampling": None} if every else flags)
    at = _one_question({"delta": delta, "epsilon": epsilon}, file)
    if every:
        _compare_samplings(file, at, as_json)
        return
    with waiting("asking each accountant"):
        rows = _timed(file.plan, at)
    _refuse_infinite(at, *(row.answer for row in rows))
    if as_json:
        from hockeystick.cli import as_json as programs

        click.echo(programs.comparison(file, at, rows, hs.__version__))
    else:
        from hockeystick.cli import render

        render.print_comparison(file, at, rows)


def _compare_samplings(file: PlanFile, at: Question, as_json: bool) -> None:
    """Print what each way of drawing batches would cost."""
    plan: Any = file.plan
    with waiting("asking for each sampling"):
        rows = hs.compare_samplings(plan, **{at.name: at.value})
    if as_json:
        from hockeystick.cli import as_json as programs

        click.echo(programs.samplings(file, at, rows, hs.__version__))
    else:
        from hockeystick.cli import sampling_table

        sampling_table.print_samplings(file, at, rows)


def _answer(
    given_name: str,
    given: str | None,
    plan_file: str | None,
    *,
    accountant: str,
    digits: str | None,
    tolerance: str | None,
    as_json: bool,
    **flags: str | None,
) -> None:
    """Print the answer to one question."""
    file = options.plan_of(plan_file, flags)
    at = _question(given_name, given, file)
    ask = hs.epsilon if given_name == "delta" else hs.delta
    count: Any = None if digits is None else parse(digits)
    width: Any = TOLERANCE if tolerance is None else parse(tolerance)
    with waiting(f"computing {ask.__name__}"):
        answer = ask(file.plan, at.value, accountant=accountant, digits=count, tolerance=width)
    _refuse_infinite(at, answer)
    if as_json:
        from hockeystick.cli import as_json as programs

        click.echo(programs.answer(file, at, answer, hs.__version__))
    else:
        from hockeystick.cli import render

        render.print_answer(file, at, answer)


def _question(name: str, given: str | None, file: PlanFile) -> Question:
    """Return the delta or epsilon to ask at: the flag's, or else the file's."""
    value = getattr(file, name) if given is None else parse(given)
    if value is None:
        allowed = _validate.PARAMETERS[name].allowed
        raise click.UsageError(f"{name} must be given, as --{name} or in the plan file: {allowed}")
    return Question(name, _validate.real(name, value))


def _one_question(given: dict[str, str | None], file: PlanFile) -> Question:
    """Return the one question of the flags, or else the one of the file."""
    flags = [name for name, text in given.items() if text is not None]
    names = flags or [name for name in given if getattr(file, name) is not None]
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} are both given; ask at one of them")
    name = names[0] if names else "delta"
    return _question(name, given[name], file)


def _refuse_infinite(at: Question, *answers: Certified | Approximate | None) -> None:
    """Raise where delta 0 is asked for and nothing but an infinite epsilon has it."""
    if at == Question("delta", 0.0) and any(
        isinstance(answer, Certified) and answer.lower == math.inf for answer in answers
    ):
        raise ParameterError("delta", at.value, "above 0: at 0, this plan's epsilon is infinite")


def _timed(plan: hs.Mechanism, at: Question) -> tuple[hs.Row, ...]:
    """Return every accountant's row; ask twice where loading could be most of the time."""
    rows = hs.compare(plan, **{at.name: at.value})
    if sum(row.seconds for row in rows) > _LOADING_SECONDS:
        return rows
    return hs.compare(plan, **{at.name: at.value})
