"""The command ``convert``: from one notion of differential privacy, or a plan, to another."""

from __future__ import annotations

from typing import Final

import click

import hockeystick as hs
from hockeystick.cli.as_json import dumped
from hockeystick.cli.flags import of_group, options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.source import source
from hockeystick.cli.results.conversion import Conversion, Conversions, numbers_of
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.cli.wording import on_the_command_line
from hockeystick.conversions import TARGETS, convert, lower_ends
from hockeystick.errors import IncompatibleError, UnsupportedError
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile
from hockeystick.numerics.numerals import at_most

_NEEDED: Final = {"ApproxDP": {"delta", "epsilon"}, "TCDP": {"omega"}, "RenyiDP": {"orders"}}
_FREE: Final = "ApproxDP needs --delta or --epsilon, TCDP --omega, RenyiDP --orders"


@click.command(name="convert", cls=Once, epilog=_FREE)
@click.argument("plan_file", metavar="PLAN")
@click.option("--to", metavar="NAME", help=f"One of {', '.join(TARGETS)}; by default all of them.")
@click.option("--epsilon", metavar="E", help="Ask for delta at this epsilon.")
@click.option("--delta", metavar="D", help="Ask for epsilon at this delta.")
@click.option("--omega", metavar="W", help="The largest order of a TCDP.")
@click.option("--orders", metavar="A,B,...", help="The orders of a RenyiDP.")
@of_group.group_flag
@options.short_flag
@options.json_flag
def command(
    plan_file: str,
    to: str | None,
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
    answer says that too. Without --to, every notion is asked.
    """
    options.refuse_beside_short(short, as_json=as_json)
    given_plan = source(plan_file)
    file = of_group.for_group(given_plan.plan_file(), group)
    given: dict[str, object] = {
        name: parse(text) for name, text in numbers.items() if text is not None
    }
    if orders is not None:
        given["orders"] = [parse(one.strip()) for one in orders.strip("[]()").split(",")]
    if to is None:
        _print_all(file, given_plan.content is None, given, short=short, as_json=as_json)
        return
    conversion = _converted(file, given_plan.content is None, to, given, with_lower=not short)
    if short:
        click.echo(_quoted(conversion))
    elif as_json:
        click.echo(_json(conversion))
    else:
        from hockeystick.cli.panels import conversion_panel, render

        render.print_plainly(conversion_panel.panel(conversion))


def _converted(
    file: PlanFile, written: bool, to: str, given: dict[str, object], *, with_lower: bool
) -> Conversion:
    """Return the conversion to one notion, or raise where there is none."""
    given = _with_defaults(to, given, file)
    if to in _NEEDED and _NEEDED[to].isdisjoint(given):
        raise click.UsageError(_needs(to))
    with waiting(f"converting to {to}"):
        result = convert(file.plan, to, **given)
        lower = lower_ends(file.plan, result) if with_lower else ()
    return Conversion(file, written, tuple(given), result, lower)


def _print_all(
    file: PlanFile, written: bool, given: dict[str, object], *, short: bool, as_json: bool
) -> None:
    """Print what every notion says, or why one says nothing."""
    if short:
        raise click.UsageError("--short prints one number: it needs --to")
    found: dict[str, Conversion | str] = {}
    for to in TARGETS:
        its = {name: value for name, value in given.items() if name in _NEEDED.get(to, ())}
        try:
            found[to] = _converted(file, written, to, its, with_lower=True)
        except click.UsageError as error:
            found[to] = str(error)
        except (IncompatibleError, UnsupportedError) as error:
            found[to] = on_the_command_line(error)
    every = Conversions(file, written, found)
    if as_json:
        click.echo(_json_of_all(every))
        return
    from hockeystick.cli.panels import conversion_panel, render

    render.print_plainly(conversion_panel.table(every))


def _needs(to: str) -> str:
    """Return what a notion needs besides its name."""
    return f"{to} needs " + " or ".join(f"--{name}" for name in sorted(_NEEDED[to]))


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
    return dumped({**_told(conversion.file), **_told_of(conversion), **_supposed(conversion)})


def _json_of_all(every: Conversions) -> str:
    """Return what every notion says as strict JSON in ASCII."""
    rows = [
        _told_of(one) if isinstance(one, Conversion) else {"to": name, "none": one}
        for name, one in every.found.items()
    ]
    return dumped({**_told(every.file), "conversions": rows, **_supposed(every)})


def _told(file: PlanFile) -> dict[str, object]:
    """Return what is converted."""
    return {"version": hs.__version__, "title": file.title, "from": str(file.plan)}


def _told_of(conversion: Conversion) -> dict[str, object]:
    """Return what one notion says, and why."""
    return {
        "to": type(conversion.result).__name__,
        "result": numbers_of(conversion.result),
        "lower": conversion.least,
        "kind": conversion.kind,
        "theorem": conversion.theorem,
        "cautions": [{"about": one.about, "text": one.text} for one in conversion.cautions],
    }


def _supposed(of: Conversion | Conversions) -> dict[str, object]:
    """Return what a conversion, or all of them, suppose."""
    return {"adjacency": of.file.plan.adjacency, "assumptions": list(of.assumptions)}
