"""Commands whose flags may be given once, of two values neither is taken; what a plan may be."""

from __future__ import annotations

from typing import Final

import click

from hockeystick._suggest import hint
from hockeystick.cli.flags.examples import write_examples

# Under this name a context has the words that its command was given.
GIVEN: Final = "hockeystick.given"
# More letters than a sentence has.
_WHOLE: Final = 1000
_A_PLAN: Final = (
    "PLAN is a plan file, - for one on standard input, or the plan itself as it is in Python: "
    "'Laplace(2)**3 @ Gaussian(4)'."
)


class Once(click.Command):
    """A command that refuses a flag given twice, unless the flag says that it may be."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, then raise for the first flag that is given twice."""
        given = list(args)
        ctx.meta[GIVEN] = tuple(args)
        rest = self._parsed(ctx, args)
        _, _, order = self.make_parser(ctx).parse_args(given)
        for index, one in enumerate(order):
            if _takes_one_value(one) and one in order[:index]:
                name = max(one.opts, key=len)
                raise click.UsageError(f"{name} is given twice; give it once", ctx)
        return rest

    def _parsed(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, or raise for a flag that there is not or that has no value."""
        flags = [flag for one in self.params for flag in one.opts if flag.startswith("--")]
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            told = hint(error.option_name.lstrip("-"), [flag[2:] for flag in flags])
            raise click.NoSuchOption(
                error.option_name, f"No such option {error.option_name!r}{told}", ctx=ctx
            ) from None
        for one in self.params:
            if _takes_one_value(one) and ctx.params.get(one.name or "") in flags:
                raise click.UsageError(f"{max(one.opts, key=len)} needs a value", ctx)
        return rest

    def _takes_a_plan(self) -> bool:
        """Return whether an argument is a plan."""
        return any(one.name == "plan_file" for one in self.params)

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first sentence of the help, whole."""
        return super().get_short_help_str(_WHOLE)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say what a plan may be, where the command takes one; end with examples."""
        if self._takes_a_plan():
            formatter.write_paragraph()
            formatter.write_text(_A_PLAN)
        super().format_epilog(ctx, formatter)
        write_examples(ctx, formatter)


def _takes_one_value(parameter: click.Parameter) -> bool:
    """Return whether another value of a parameter would replace the one before it."""
    return isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag)
