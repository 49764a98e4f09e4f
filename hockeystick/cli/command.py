"""The command ``hockeystick``, what its commands have in common, and how it ends."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from importlib import import_module
from numbers import Real
from typing import Any, Final

import click
from click.shell_completion import shell_complete

from hockeystick._version import __version__
from hockeystick.errors import BudgetExhausted, HockeystickError, InfeasibleError, ParameterError

# What each does: the overview loads none of them.
COMMANDS: Final = {
    "epsilon": "Print the epsilon that a plan costs at a delta.",
    "delta": "Print the delta that a plan costs at an epsilon.",
    "solve": "Print the value of one parameter that just meets a target.",
    "convert": "Convert to another notion of differential privacy.",
    "tradeoff": "Print what an attacker could learn of a plan.",
    "compare": "Print what each accountant says of a plan.",
    "sweep": "Ask one question at every cell of a grid.",
    "report": "Write a page for the person who has to approve a release.",
    "verify": "Have an answer verified by a second program.",
    "init": "Write a plan file to begin with.",
    "check": "Say whether plan files are well-formed.",
    "audit": "Print what the scores of an attack prove.",
    "explore": "Serve a page to play with a plan.",
    "ledger": "Keep privacy budgets that jobs and machines share.",
}
_MODULES: Final = {
    **dict.fromkeys(("init", "check", "report", "explore"), "files"),
    **{name: name for name in ("sweep", "ledger")},
}
_OVERVIEW: Final = """Differential-privacy accounting whose answers are proven intervals.

PLAN is a plan file (hockeystick init writes one), - for standard input, or a plan as in Python:
'Laplace(2)**3 @ Gaussian(4)'. NAME=VALUE replaces a number in it, as epochs=30 or parts[1].scale=3;
without PLAN, they are the numbers of DP-SGD.
"""


def examples(*lines: str) -> str:
    """Return what ends a help: each line as it stands."""
    return "\n  ".join(("\b\nExamples:", *lines))


class _Command(click.Command):
    """A command that takes each flag once, and for the words of a plan has what they stand for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args.copy())
        for index, one in enumerate(order):
            once = isinstance(one, click.Option) and not (one.is_flag or one.multiple)
            if once and one in order[:index]:
                raise click.UsageError(f"{one.opts[-1]} is given twice; give it once", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        from hockeystick.cli.options import source

        for name in {"plan", "maybe"} & ctx.params.keys():
            words, group = ctx.params.pop(name), ctx.params.pop("group", None)
            ctx.params["given"] = source(words, group) if words or name == "plan" else None
        return super().invoke(ctx)


def command(
    *lines: str, takes: str, of: Any = click, **helps: str
) -> Callable[[Callable[..., None]], click.Command]:
    """Return the decorator that makes a function a command, alone or ``of`` a group.

    It takes arguments (in capitals) and options, by their names in ``options``; ``helps`` are
    options whose help is another one here. The lines are its examples.
    """
    from hockeystick.cli.options import ARGUMENTS, OPTIONS

    def made(function: Callable[..., None]) -> click.Command:
        for name in reversed(takes.split()):
            add, known = (click.argument, ARGUMENTS) if name.isupper() else (click.option, OPTIONS)
            given = {**known[name], **({"help": helps[name]} if name in helps else {})}
            function = add(*given.pop("param_decls"), **given)(function)
        found: click.Command = of.command(cls=_Command, epilog=examples(*lines))(function)
        return found

    return made


class Group(click.Group):
    """A group of commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments; ask for help where no command is given."""
        return super().parse_args(ctx, args or ["--help"])


class _Loading(Group):
    """A group whose commands are loaded when they are asked for: no answer waits for the others."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = import_module(f"{__package__}.{_MODULES.get(name, 'asking')}")
        command: click.Command = getattr(module, name)
        return command


hockeystick: Final = click.version_option(__version__, message="hockeystick %(version)s")(
    _Loading(
        "hockeystick",
        help=_OVERVIEW,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
        epilog=examples(
            "hockeystick init",
            "hockeystick epsilon plan.toml",
            "hockeystick solve plan.toml --parameter noise_multiplier --epsilon 2",
            "hockeystick epsilon 'Laplace(2)**3 @ Gaussian(4)' --delta 1e-6",
        ),
    )
)


# Of wrong input it is 2.
_STATUSES: Final = {InfeasibleError: 1, BudgetExhausted: 4, KeyboardInterrupt: 130}
_COMPLETION: Final = "_HOCKEYSTICK_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status, as ``docs/reference/command.md`` has them.

    Wrong input is one line on standard error. With ``--json``, standard output then has the same as
    one object, under the key ``error``.

    Args:
        arguments: What follows the command's name; the process's own by default.

    Example:
        >>> from hockeystick.cli import main
        >>> main(["epsilon", "nowhere.toml"])
        2
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _status(given)
    except OSError as error:
        # The interpreter's last flush goes nowhere, so that it cannot fail again.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            return refuse(error)
        for note in getattr(error, "__notes__", ()):
            click.echo(f"hockeystick: {note}", err=True)
        return 141  # nobody reads what is printed


def _status(given: list[str]) -> int:
    if completing := os.environ.get(_COMPLETION):
        return shell_complete(hockeystick, {}, "hockeystick", _COMPLETION, completing)
    status = 0
    try:
        with hockeystick.make_context("hockeystick", given) as context:
            hockeystick.invoke(context)
    except click.exceptions.Exit as stop:
        status = stop.exit_code
    except (click.ClickException, HockeystickError, KeyboardInterrupt) as error:
        return refuse(error, as_json="--json" in given)
    if sys.stdout is None:
        return refuse(OSError(errno.EBADF, "standard output is closed"))
    sys.stdout.flush()
    return status


def refuse(error: BaseException, *, as_json: bool = False) -> int:
    """Say on standard error, and in JSON, why there is no answer; return the exit status."""
    status = _STATUSES.get(type(error), 2)
    message = on_one_line("; ".join((_message(error), *getattr(error, "__notes__", ()))))
    click.echo(f"hockeystick: {message}".encode(errors="backslashreplace"), err=True)
    if as_json:
        kind = "OSError" if type(error) is click.ClickException else type(error).__name__
        kind = "UsageError" if isinstance(error, click.UsageError) else kind
        told = {"type": kind, "message": message, "exit_status": status, **_known(error)}
        whole = {"version": __version__, "error": told}
        click.echo(json.dumps(whole, indent=2, allow_nan=False))
    return status


def on_one_line(message: str) -> str:
    """Return a message on one line, without what could steer a terminal."""
    words = " ".join(message.split())
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)


def _message(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"cannot write the answer: {error.strerror}"
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "hockeystick"
        return f"{error.format_message().rstrip('.')} (see {command} --help)"
    return str(error) or "interrupted"


def _known(error: BaseException) -> dict[str, Any]:
    """Return what an exception holds besides its message, or the wrong parameter behind it."""
    if isinstance(error, click.NoSuchOption | click.BadOptionUsage):
        return {"parameter": error.option_name.lstrip("-").replace("-", "_")}
    if isinstance(error, click.BadParameter) and error.param:
        return {"parameter": error.param.name}
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ParameterError):
        cause = cause.__context__
    first = cause or error
    held = vars(first) if isinstance(first, HockeystickError) else {}
    known = {key: _jsonable(value) for key, value in held.items() if key[0] != "_"}
    return {"parameter": known.pop("name"), **known} if "name" in known else known


def _jsonable(value: object) -> Any:
    is_finite = isinstance(value, float) and math.isfinite(value)
    if value is None or isinstance(value, str | int) or is_finite:
        return value
    return str(value) if isinstance(value, Real | Decimal) else repr(value)
