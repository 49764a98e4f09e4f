"""The command ``convert``: from one notion of differential privacy, or a plan, to another."""

from __future__ import annotations

from typing import Final

import click

import hockeystick as hs
from hockeystick.cli.as_json import dumped
from hockeystick.cli.flags import of_group, options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.source import source
from hockeystick.cli.results.conversion import Conversion, numbers_of
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.conversions import TARGETS, convert, lower_ends
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile
from hockeystick.numerics.numerals import at_most

_NEEDED: Final = {"ApproxDP": {"delta", "epsilon"}, "TCDP": {"omega"}, "RenyiDP": {"orders"}}
_FREE: Final = "ApproxDP needs --delta or --epsilon, TCDP --omega, RenyiDP --orders"


@click.command(name="convert", cls=Once, epilog=_FREE)
@click.argument("plan_file", metavar="PLAN")
@click.option("--to", required=True, metavar="NAME", help=f"One of {', '.join(TARGETS)}.")
@click.option("--epsilon", metavar="E", help="Ask for delta at this epsilon.")
@click.option("--delta", metavar="D", help="Ask for epsilon at this delta.")
@click.option("--omega", metavar="W", help="The largest order of a TCDP.")
@click.option("--orders", metavar="A,B,...", help="The orders of a RenyiDP.")
@of_group.group_flag
@options.short_flag
@options.json_flag
def command(
    plan_file: str,
    to: str,
    orders: str | None,
    group: str | None,
    short: bool,
    as_json: bool,
    **numbers: str | None,
) -> None:
    """Print what one notion of differential privacy says in terms of another.

    What is converted is a notion, such as 'ZCDP(rho=0.5)' or 'RenyiDP({2: 0.5, 8: 1.9})', or any
    other plan; a plan file's delta or epsilon serves where neither is given. Every number of the
    result is rounded to the safe side; where it is proven that none below another number holds, the
    answer says that too.
    """
    options.refuse_beside_short(short, as_json=as_json)
    given_plan = source(plan_file)
    file = of_group.for_group(given_plan.plan_file(), group)
    given: dict[str, object] = {
        name: parse(text) for name, text in numbers.items() if text is not None
    }
    if orders is not None:
        given["orders"] = [parse(one.strip()) for one in orders.split(",")]
    given = _with_defaults(to, given, file)
    if to in _NEEDED and _NEEDED[to].isdisjoint(given):
        flags = " or ".join(f"--{name}" for name in sorted(_NEEDED[to]))
        raise click.UsageError(f"{to} needs {flags}")
    with waiting(f"converting to {to}"):
        result = convert(file.plan, to, **given)
        lower = () if short else lower_ends(file.plan, result)
    conversion = Conversion(file, given_plan.content is None, tuple(given), result, lower)
    if short:
        click.echo(_quoted(conversion))
    elif as_json:
        click.echo(_json(conversion))
    else:
        from hockeystick.cli.panels import conversion_panel, render

        render.print_plainly(conversion_panel.panel(conversion))


def _with_defaults(to: str, given: dict[str, object], file: PlanFile) -> dict[str, object]:
    """Return what is given, with the plan file's delta or epsilon where neither is."""
    if to != "ApproxDP" or "epsilon" in given or "delta" in given:
        return given
    if file.delta is not None:
        return {**given, "delta": file.delta}
    return given if file.epsilon is None else {**given, "epsilon": file.epsilon}


def _quoted(conversion: Conversion) -> str:
    """Return the one number that was not given, rounded up, or raise where there are several."""
    numbers = conversion.found
    if len(numbers) != 1:
        kind = type(conversion.result).__name__
        raise click.UsageError(
            f"--short prints one number, and this {kind} has {len(numbers) or 'none'}"
        )
    return at_most(numbers[0])


def _json(conversion: Conversion) -> str:
    """Return a conversion as strict JSON in ASCII."""
    told = {
        "version": hs.__version__,
        "title": conversion.file.title,
        "from": str(conversion.file.plan),
        "to": type(conversion.result).__name__,
        "result": numbers_of(conversion.result),
        "lower": conversion.least,
        "kind": conversion.kind,
        "theorem": conversion.theorem,
        "adjacency": conversion.file.plan.adjacency,
        "assumptions": list(conversion.assumptions),
        "cautions": [{"about": one.about, "text": one.text} for one in conversion.cautions],
    }
    return dumped(told)
