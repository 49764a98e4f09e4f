"""The command ``convert``: from one notion of differential privacy, or a plan, to another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.answers import conversion_cautions
from hockeystick.cli import command, options, plans
from hockeystick.cli.group import OfGroup, for_group
from hockeystick.cli.progress import progress
from hockeystick.cli.show import KIND_STYLES, Sheet, listed, print_json, table
from hockeystick.conversions import TARGETS, lower_ends
from hockeystick.errors import IncompatibleError, UnsupportedError
from hockeystick.io import PlanFile, parse
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.notions import FDP, Notion, RenyiDP
from hockeystick.numerics import numerals
from hockeystick.numerics.numerals import at_most, jsonable

_NEEDED: Final = {"ApproxDP": ("delta", "epsilon"), "TCDP": ("omega",), "RenyiDP": ("orders",)}
_FLAGS: Final = {"omega": "orders"}
_READ_AT: Final = (0.1, 0.01, 0.001)
# How near to few digits a number is shown with all that it has: 0.5000000000000001.
_ROUND_OFF: Final = 1e-12
_ALL_DIGITS: Final = 16


@final
@dataclass(frozen=True, slots=True)
class _Conversion:
    """What was converted, into what, and why it holds.

    Args:
        plan: The source.
        asked: The names of the parameters that were given for the result.
        result: The guarantee that it implies.
        lower: Proven lower ends of the numbers of the result; none where none are known.
    """

    plan: Mechanism
    asked: tuple[str, ...]
    result: Notion
    lower: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        """Whether the result is exact or a bound."""
        return "bound" if self.result.origin is None else self.result.origin.kind

    @property
    def theorem(self) -> str:
        """Why the result holds, and for a group why that is the group's."""
        found = "" if self.result.origin is None else self.result.origin.theorem
        return f"{found}; {self.plan.theorem}" if isinstance(self.plan, OfGroup) else found

    @property
    def found(self) -> list[float]:
        """The numbers of the result that were not given, each true of whatever is larger."""
        if isinstance(self.result, RenyiDP):
            return [size for _, size in self.result.divergences]
        numbers = {} if isinstance(self.result, FDP) else _numbers_of(self.result)
        return [float(value) for name, value in numbers.items() if name not in self.asked]

    @property
    def least(self) -> dict[str, Any] | None:
        """The proven lower ends of what was asked for, by their names; None where none are."""
        if not self.lower:
            return None
        if isinstance(self.result, RenyiDP):
            pairs = zip(self.result.divergences, self.lower, strict=True)
            return {"divergences": [[order, jsonable(low)] for (order, _), low in pairs]}
        numbers = zip(_numbers_of(self.result), self.lower, strict=False)
        return {name: jsonable(low) for name, low in numbers if name not in self.asked}

    def as_dict(self) -> dict[str, Any]:
        """Return the same, ready for JSON."""
        return {
            "to": type(self.result).__name__,
            "result": _numbers_of(self.result),
            "lower": self.least,
            "kind": self.kind,
            "theorem": self.theorem,
            "cautions": listed(conversion_cautions(self.result, self.plan, self.lower)),
        }


@click.command(
    cls=command.Command,
    epilog="ApproxDP needs --delta or --epsilon, TCDP and RenyiDP --orders",
    examples=(
        "hockeystick convert 'ZCDP(rho=0.5)' --to ApproxDP --delta 1e-6",
        "hockeystick convert 'RenyiDP({2: 0.5, 8: 1.9})' --to ApproxDP --epsilon 2",
    ),
)
@options.plan_words
@click.option("--to", metavar="NAME", help=f"One of {', '.join(TARGETS)}; by default all of them.")
@options.options("epsilon", "delta")
@click.option("--orders", metavar="A,B,...", help="Of a RenyiDP; of a TCDP the largest, omega.")
@options.options("group", "short", "json", "verbose")
def convert(
    words: tuple[str, ...],
    to: str | None,
    orders: str | None,
    group: str | None,
    short: bool,
    as_json: bool,
    **numbers: str | None,
) -> None:
    """Convert to other notions of differential privacy.

    PLAN is a notion, such as 'ZCDP(rho=0.5)' or 'RenyiDP({2: 0.5, 8: 1.9})', or any plan. Every
    number is rounded to the safe side.
    """
    options.refuse_beside_short(short, as_json)
    if short and to is None:
        raise click.UsageError("--short prints one number: it needs --to")
    source, values = plans.read(words)
    file = for_group(plans.plan_file(source, values), group)
    # A notion that is written out is as it is; of a plan it is assumed that it ran.
    is_stated = source is not None and source.content is None and isinstance(file.plan, Notion)
    assumptions = () if is_stated else assumptions_of(file.plan)
    given: dict[str, Any] = {
        name: parse(text) for name, text in numbers.items() if text is not None
    }
    if orders is not None:
        given["orders"] = [parse(one.strip()) for one in orders.strip("[]()").split(",")]
    if orders is not None and to in (None, "TCDP"):
        given["omega"] = parse(orders)
        given = given if to is None else {"omega": given["omega"]}
    found = _all(file, given) if to is None else {to: _converted(file, to, given, not short)}
    if short:
        click.echo(_one_number(next(iter(found.values()))))
        return
    if not as_json:
        _sheet(file, found, assumptions, alone=to is not None).show()
        return
    about = {"version": hs.__version__, "title": file.title, "from": str(file.plan)}
    rows = [
        one.as_dict() if isinstance(one, _Conversion) else {"to": name, "none": one}
        for name, one in found.items()
    ]
    supposed = {"adjacency": file.plan.adjacency, "assumptions": list(assumptions)}
    print_json({**about, **(rows[0] if to is not None else {"conversions": rows}), **supposed})


def _all(file: PlanFile, given: dict[str, Any]) -> dict[str, _Conversion | str]:
    """Return what every notion says, or why one says nothing."""
    found: dict[str, _Conversion | str] = {}
    for to in TARGETS:
        its = {name: value for name, value in given.items() if name in _NEEDED.get(to, ())}
        try:
            found[to] = _converted(file, to, its, with_lower=True)
        except (click.UsageError, IncompatibleError, UnsupportedError) as error:
            found[to] = str(error)
    return found


def _converted(file: PlanFile, to: str, given: dict[str, Any], with_lower: bool) -> _Conversion:
    """Return the conversion to one notion, or raise where there is none."""
    needed = _NEEDED.get(to, ())
    if to == "ApproxDP" and given.keys().isdisjoint(needed):
        told = {name: getattr(file, name) for name in needed}
        given |= dict([(name, value) for name, value in told.items() if value is not None][:1])
    if needed and given.keys().isdisjoint(needed):
        raise click.UsageError(
            f"{to} needs " + " or ".join(f"--{_FLAGS.get(name, name)}" for name in needed)
        )
    with progress(f"converting to {to}"):
        result = hs.convert(file.plan, to, **given)
        lower = lower_ends(file.plan, result) if with_lower else ()
    return _Conversion(file.plan, tuple(given), result, lower)


def _one_number(conversion: Any) -> str:
    """Return the one number that was not given, rounded up, or raise where there are several."""
    numbers = conversion.found
    if len(numbers) != 1:
        kind = type(conversion.result).__name__
        message = f"--short prints one number, and this {kind} has {len(numbers) or 'none'}"
        raise click.UsageError(message)
    return at_most(numbers[0])


def _numbers_of(result: Notion) -> dict[str, Any]:
    """Return the parameters of a guarantee, ready for JSON."""
    if isinstance(result, RenyiDP):
        return {"divergences": [[order, jsonable(size)] for order, size in result.divergences]}
    if isinstance(result, FDP):
        f = result.tradeoff
        missed = [{"fpr": fpr, "fnr_lower": f(fpr)} for fpr in _READ_AT]
        return {"tradeoff": type(f).__name__, "rates": missed}
    names = ("epsilon", "delta", "mu", "rho", "omega")
    return {name: jsonable(getattr(result, name)) for name in names if hasattr(result, name)}


def _sheet(
    file: PlanFile,
    found: Mapping[str, _Conversion | str],
    assumptions: tuple[str, ...],
    *,
    alone: bool,
) -> Sheet:
    """Return one line for each notion that says something; with -v, why, and why others do not."""
    sheet, rows = Sheet(file.title), table("notion", "says", "proven", "kind")
    for name, one in found.items():
        if isinstance(one, _Conversion):
            says, kind = Text(_says(one), "bold green"), Text(one.kind, KIND_STYLES[one.kind])
            rows.add_row(name, says, _proven(one), kind)
            for label, text in (("says", says), ("proven", _proven(one)), ("kind", kind)):
                if alone and text:
                    sheet.fact(label, text)
    sheet.plan(file, file.plan.adjacency)
    if not alone:
        sheet.block(rows)
    if alone or sheet.is_verbose:
        for one in found.values():
            if isinstance(one, _Conversion):
                sheet.cautions(conversion_cautions(one.result, one.plan, one.lower))
    if sheet.is_verbose:
        reasons = {n: o.theorem if isinstance(o, _Conversion) else o for n, o in found.items()}
        sheet.bullets("Why, or why not", [f"{name}: {why}" for name, why in reasons.items()])
    sheet.holds_if(assumptions)
    return sheet


def _says(one: _Conversion) -> str:
    """Return the numbers of a guarantee: rounded up, but what was given as it was."""
    if isinstance(one.result, RenyiDP):
        pairs = one.result.divergences
        return ", ".join(
            f"tau {_quoted(size)} at order {numerals.plain(order)}" for order, size in pairs
        )
    numbers = _numbers_of(one.result)
    if isinstance(one.result, FDP):
        return ", ".join(
            f"f({numerals.plain(rate['fpr'])}) at least {numerals.at_least(rate['fnr_lower'])}"
            for rate in numbers["rates"]
        )
    found = [f"{name} {_quoted(float(x))}" for name, x in numbers.items() if name not in one.asked]
    at = [f"{name} = {x}" for name, x in numbers.items() if name in one.asked]
    return ", ".join(found) + (f" at {', '.join(at)}" if at else "")


def _proven(one: _Conversion) -> str:
    """Return the proven ends of what was asked for; nothing where there is no number."""
    least: Any = one.least or {}
    lower = [low for _, low in least["divergences"]] if "divergences" in least else least.values()
    pairs = zip(lower or [0.0] * len(one.found), one.found, strict=True)
    return "; ".join(_ends(float(low), high) for low, high in pairs)


def _ends(lower: float, upper: float) -> str:
    """Return an interval in words; the upper end alone where no lower is known."""
    if lower == 0.0 < upper:
        return f"at most {_quoted(upper)}"
    low, high = numerals.interval(lower, upper)
    return f"exactly {low}" if low == high else f"from {low} to {high}"


def _quoted(value: float) -> str:
    """Return a number rounded up; as it is, where it is by round-off above few digits."""
    few = float(numerals.nearest(value))
    is_off = value != few and abs(value - few) <= _ROUND_OFF * value < math.inf
    return at_most(value, _ALL_DIGITS if is_off else numerals.HEADLINE_DIGITS)
