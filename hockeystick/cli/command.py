"""The command ``hockeystick``, what its commands have in common, and the flags that they share."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar

import click

from hockeystick._suggest import hint
from hockeystick._version import __version__

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
_MODULES: Final = {
    "delta": "epsilon",
    "compare": "epsilon",
    "init": "files",
    "check": "files",
    "report": "pages",
    "explore": "pages",
}
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


_LEDGER: Final = "hockeystick ledger init census --budget 'ZCDP(rho=0.5)' --ledger ledger.db"
_RESERVED: Final = "hockeystick ledger reserve census 'Gaussian(4)' --key run-7 --ledger ledger.db"
EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "hockeystick": (
        "hockeystick init",
        "hockeystick init --list",
        "hockeystick epsilon plan.toml",
        "hockeystick solve plan.toml --parameter noise_multiplier --epsilon 2",
        "hockeystick epsilon 'Laplace(2)**3 @ Gaussian(4)' --delta 1e-6",
    ),
    "hockeystick audit": (
        r"printf 'score,included\n2.1,1\n0.3,0\n1.7,1\n0.2,0\n' > scores.csv",
        "hockeystick audit scores.csv --plan plan.toml",
        "hockeystick audit scores.csv --delta 1e-5 --confidence 0.99",
    ),
    "hockeystick check": (
        "hockeystick check plan.toml",
        "hockeystick check --schema > plan.schema.json",
    ),
    "hockeystick compare": (
        "hockeystick compare 'Gaussian(4) @ Laplace(2)**3' --delta 1e-6",
        "hockeystick compare plan.toml noise_multiplier=1.3",
    ),
    "hockeystick convert": (
        "hockeystick convert 'ZCDP(rho=0.5)' --to ApproxDP --delta 1e-6",
        "hockeystick convert 'RenyiDP({2: 0.5, 8: 1.9})' --to ApproxDP --epsilon 2",
    ),
    "hockeystick delta": (
        "hockeystick delta 'Laplace(2)**3 @ Gaussian(4)' --epsilon 2",
        "hockeystick delta plan.toml --epsilon 3 --at-most 1e-5",
    ),
    "hockeystick epsilon": (
        "hockeystick epsilon 'Laplace(2)**3 @ Gaussian(4)' --delta 1e-6",
        "hockeystick epsilon plan.toml epochs=30 --at-most 3",
        "hockeystick epsilon rate=0.004 steps=14000 noise_multiplier=1.1 --delta 1e-5",
    ),
    "hockeystick explore": ("hockeystick explore", "hockeystick explore plan.toml --no-browser"),
    "hockeystick init": (
        "hockeystick init --list",
        "hockeystick init my-plan.toml",
        "hockeystick init laplace.toml --like Laplace",
        "hockeystick init - --like 'Laplace(2)**3 @ Gaussian(4)'",
    ),
    "hockeystick ledger": (
        "export HOCKEYSTICK_LEDGER=ledger.db",
        "hockeystick ledger init census --budget 'ZCDP(rho=0.5)'",
        "hockeystick ledger reserve census 'Gaussian(4)' --key run-7",
        "hockeystick ledger commit census run-7",
        "hockeystick ledger status",
    ),
    "hockeystick ledger init": (
        _LEDGER,
        "hockeystick ledger init trial --budget 'ApproxDP(2, 1e-6)' --ledger ledger.db",
        "hockeystick init sgd.toml",
        "hockeystick ledger init sgd --budget 'ApproxDP(2, 1e-6)' --expected sgd.toml "
        "--ledger ledger.db",
    ),
    "hockeystick ledger status": (
        _LEDGER,
        "hockeystick ledger status census --delta 1e-6 --ledger ledger.db",
    ),
    "hockeystick ledger reserve": (_LEDGER, _RESERVED),
    "hockeystick ledger commit": (
        _LEDGER,
        _RESERVED,
        "hockeystick ledger commit census run-7 --ledger ledger.db",
    ),
    "hockeystick ledger release": (
        _LEDGER,
        _RESERVED,
        "hockeystick ledger release census run-7 --note 'never began' --ledger ledger.db",
    ),
    "hockeystick ledger log": (
        _LEDGER,
        "hockeystick ledger log census --last 5 --ledger ledger.db",
    ),
    "hockeystick ledger verify": (
        _LEDGER,
        "hockeystick ledger status --json --ledger ledger.db > heads.json",
        "hockeystick ledger verify --noted heads.json --ledger ledger.db",
    ),
    "hockeystick report": (
        "hockeystick report 'Gaussian(4)' --delta 1e-6 -o gaussian.html",
        "hockeystick report plan.toml -o pages.html --budget-epsilon 3",
    ),
    "hockeystick solve": (
        "hockeystick solve 'Laplace()**10 @ Gaussian(4)' --epsilon 2 --delta 1e-6",
        "hockeystick solve rate=0.004 steps=14000 --epsilon 2 --delta 1e-5",
        "hockeystick solve plan.toml --parameter epochs --whole --epsilon 2 -o shorter.toml",
    ),
    "hockeystick sweep": (
        r"""printf '[dpsgd]\nexamples = 60_000\nbatch_size = 256\nepochs = 1\n' > grid.toml""",
        r"""printf '[grid]\nnoise_multiplier = [1, 2]\n[ask]\nfind = "epsilon"\n' >> grid.toml""",
        r"printf 'delta = 1e-5\n' >> grid.toml",
        "hockeystick sweep grid.toml -o answers.csv",
    ),
    "hockeystick tradeoff": (
        "hockeystick tradeoff 'Gaussian(4)' --fpr 0.01",
        "hockeystick tradeoff plan.toml 'Gaussian(1)'",
    ),
    "hockeystick verify": (
        "hockeystick epsilon 'Gaussian(4)' --delta 1e-6 --json > answer.json",
        "hockeystick verify answer.json",
        "hockeystick verify plan.toml",
    ),
}
