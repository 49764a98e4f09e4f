"""Commands that are loaded when they are asked for: an answer waits for no other command."""

from __future__ import annotations

import shlex
from importlib import import_module
from typing import Final

import click

from hockeystick._suggest import hint
from hockeystick.accountants.registry import ACCOUNTANTS
from hockeystick.cli.flags.examples import Overview
from hockeystick.io.call_text import is_call_text

# The module in this folder, and the command's name in it.
_ELSEWHERE: Final = {
    "audit": "command",
    "check": "check",
    "convert": "command",
    "explore": "explore",
    "init": "init",
    "ledger": "group",
    "plan": "plan",
    "report": "report",
    "solve": "solve",
    "sweep": "sweep",
    "tradeoff": "tradeoff",
    "verify": "verify",
}


class Loading(Overview):
    """A group of its own commands and of those in the other files of this folder."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all commands, in order."""
        return sorted({*super().list_commands(context), *_ELSEWHERE})

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is given, or raise: of a plan, with the command that it needs."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError:
            if not args[0].endswith(".toml") and not is_call_text(args[0]):
                near = hint(args[0], self.list_commands(context))
                raise click.UsageError(f"No such command {args[0]!r}{near}", context) from None
            asked = shlex.join(["hockeystick", "epsilon", *args])
            raise click.UsageError(f"No such command {args[0]!r}: {asked}?", context) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the accountants, below the commands; end with examples."""
        with formatter.section("Accountants"):
            formatter.write_dl([(one.name, one.summary) for one in ACCOUNTANTS.values()])
        super().format_epilog(ctx, formatter)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return a command by its name, or None."""
        if name in _ELSEWHERE and name not in self.commands:
            module = import_module(f"{__package__}.{name}")
            self.add_command(getattr(module, _ELSEWHERE[name]))
        return super().get_command(context, name)
