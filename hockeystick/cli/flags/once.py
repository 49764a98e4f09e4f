"""Commands whose flags may be given once: of two values neither is taken silently."""

from __future__ import annotations

import click


class Once(click.Command):
    """A command that refuses a flag given twice, unless the flag says that it may be."""

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


def _takes_one_value(parameter: click.Parameter) -> bool:
    """Return whether another value of a parameter would replace the one before it."""
    return isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag)
