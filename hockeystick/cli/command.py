"""The command ``hockeystick``, what its commands have in common, and the flags that they share."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar

import click

from hockeystick._suggest import hint
from hockeystick._version import __version__
from hockeystick.cli.examples import EXAMPLES

_Function = TypeVar("_Function", bound=Callable[..., Any])

# What each does, so that the overview loads none of them.
COMMANDS: Final = {
    "epsilon": "Print the epsilon that a plan costs at a delta.",
    "delta": "Print the delta that a plan costs at an epsilon.",
    "solve": "Print the value of one parameter that just meets a target.",
    "convert": "Convert to other notions of differential privacy.",
    "tradeoff": "Print what an attacker could learn of plans.",
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
_MODULES: Final = {"delta": "epsilon"}
_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 80}
_OVERVIEW: Final = """Differential-privacy accounting whose answers are proven intervals.

PLAN is a plan file (hockeystick init writes one), - for standard input, or a plan as in Python:
'Laplace(2)**3 @ Gaussian(4)'. NAME=VALUE replaces a number in it, as epochs=30 or parts[1].scale=3;
without PLAN, they are the numbers of DP-SGD.

Defaults of delta and adjacency: HOCKEYSTICK_DELTA, HOCKEYSTICK_ADJACENCY, or [tool.hockeystick] in
the nearest pyproject.toml.
"""


class Command(click.Command):
    """A command that refuses a flag given twice, and whose help ends with examples."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, then raise for the first flag that is given twice."""
        given = list(args)
        rest = super().parse_args(ctx, args)
        _, _, order = self.make_parser(ctx).parse_args(given)
        for index, one in enumerate(order):
            if _takes_one_value(one) and one in order[:index]:
                name = max(one.opts, key=len)
                raise click.UsageError(f"{name} is given twice; give it once", ctx)
        return rest

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        write_examples(ctx, formatter)


def _takes_one_value(parameter: click.Parameter) -> bool:
    """Return whether of two values only the last would count."""
    return isinstance(parameter, click.Option) and not (parameter.is_flag or parameter.multiple)


def write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the examples of a command, each on a line of its own."""
    lines = EXAMPLES.get(ctx.command_path, ())
    if lines:
        with formatter.section("Examples"):
            formatter.write("".join(f"  {line}\n" for line in lines))


class Group(click.Group):
    """A group whose help ends with examples."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        write_examples(ctx, formatter)


class Loading(Group):
    """A group whose commands are loaded when they are asked for: no answer waits for the others."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all commands, the most usual first."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return a command by its name, or None."""
        if name not in COMMANDS:
            return None
        module = import_module(f"{__package__}.{_MODULES.get(name, name)}")
        command: click.Command = getattr(module, name)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is given, or raise: of a plan, with the command that it needs."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError:
            from hockeystick.io.call_text import is_call_text

            if not args[0].endswith(".toml") and not is_call_text(args[0]):
                near = hint(args[0], COMMANDS)
                raise click.UsageError(f"No such command {args[0]!r}{near}", context) from None
            asked = shlex.join(["hockeystick", "epsilon", *args])
            raise click.UsageError(f"No such command {args[0]!r}: {asked}?", context) from None


@click.group(cls=Loading, invoke_without_command=True, context_settings=_SETTINGS, help=_OVERVIEW)
@click.version_option(__version__, message="hockeystick %(version)s")
@click.pass_context
def hockeystick(context: click.Context) -> None:
    """Print the overview where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
