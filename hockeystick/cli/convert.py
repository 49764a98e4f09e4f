"""The command ``convert``: from one notion of differential privacy, or a plan, to another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.answers import Caution, conversion_cautions
from hockeystick.cli import command, flags, layout, of_group, plans
from hockeystick.cli.as_json import dumped
from hockeystick.cli.layout import Sheet
from hockeystick.cli.of_group import OfGroup
from hockeystick.cli.progress import waiting
from hockeystick.cli.refusal import on_the_command_line
from hockeystick.conversions import TARGETS, lower_ends
from hockeystick.errors import IncompatibleError, UnsupportedError
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.notions import FDP, TCDP, ApproxDP, Notion, RenyiDP
from hockeystick.numerics import numerals as numerals
from hockeystick.numerics.numerals import at_most, jsonable

_NEEDED: Final = {"ApproxDP": {"delta", "epsilon"}, "TCDP": {"omega"}, "RenyiDP": {"orders"}}
_FREE: Final = "ApproxDP needs --delta or --epsilon, TCDP --omega, RenyiDP --orders"


@click.command(cls=command.Command, epilog=_FREE)
@plans.plan_words
@click.option("--to", metavar="NAME", help=f"One of {', '.join(TARGETS)}; by default all of them.")
@flags.question_flag("epsilon")
@flags.question_flag("delta")
@click.option("--omega", metavar="W", help="The largest order of a TCDP.")
@click.option("--orders", metavar="A,B,...", help="The orders of a RenyiDP.")
@of_group.group_flag
@flags.short_flag
@flags.json_flag
@flags.verbose_flag
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
    flags.refuse_beside_short(short, as_json=as_json)
    given_words = plans.words_of(words)
    source = None if given_words.plan is None else plans.source(given_words.plan)
    file, written = given_words.of(source, group=group), source is not None and not source.content
    given: dict[str, object] = {
        name: parse(text) for name, text in numbers.items() if text is not None
    }
    if orders is not None:
        given["orders"] = [parse(one.strip()) for one in orders.strip("[]()").split(",")]
    if to is None:
        _print_all(file, written, given, short=short, as_json=as_json)
        return
    conversion = _converted(file, written, to, given, with_lower=not short)
    if short:
        click.echo(_one_number(conversion))
    elif as_json:
        click.echo(_json(conversion))
    else:
        _sheet(conversion).show()


def _converted(
    file: PlanFile, written: bool, to: str, given: dict[str, object], *, with_lower: bool
) -> Conversion:
    """Return the conversion to one notion, or raise where there is none."""
    given = _with_defaults(to, given, file)
    if to in _NEEDED and _NEEDED[to].isdisjoint(given):
        raise click.UsageError(_needs(to))
    with waiting(f"converting to {to}"):
        result = hs.convert(file.plan, to, **given)
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
    else:
        _sheet_of_all(every).show()


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


def _one_number(conversion: Conversion) -> str:
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


_READ_AT: Final = (0.1, 0.01, 0.001)


@final
@dataclass(frozen=True, slots=True)
class Conversion:
    """What was converted, into what, and why it holds.

    Args:
        file: The source, with what a plan file says about it.
        written: Whether the source was written out, and not read from a file.
        asked: The names of the parameters that were given for the result.
        result: The guarantee that it implies.
        lower: Proven lower ends of the numbers of the result; none where none are known.
    """

    file: PlanFile
    written: bool
    asked: tuple[str, ...]
    result: Notion
    lower: tuple[float, ...] = ()

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What whoever quotes the result should know besides."""
        return conversion_cautions(self.result, self.file.plan, self.lower)

    @property
    def kind(self) -> str:
        """Whether the result is exact or a bound."""
        return "bound" if self.result.origin is None else self.result.origin.kind

    @property
    def theorem(self) -> str:
        """Why the result holds, and for a group why that is the group's."""
        found = "" if self.result.origin is None else self.result.origin.theorem
        plan = self.file.plan
        return f"{found}; {plan.theorem}" if isinstance(plan, OfGroup) else found

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the source to be as described."""
        return _assumptions(self.file, self.written)

    @property
    def found(self) -> list[float]:
        """The numbers of the result that were not given, each true of whatever is larger."""
        if isinstance(self.result, RenyiDP):
            return [size for _, size in self.result.divergences]
        if isinstance(self.result, FDP):
            return []
        numbers = numbers_of(self.result)
        return [float(value) for name, value in numbers.items() if name not in self.asked]

    @property
    def least(self) -> dict[str, Any] | None:
        """The proven lower ends of what was asked for, by their names; None where none are."""
        if not self.lower:
            return None
        if isinstance(self.result, RenyiDP):
            pairs = zip(self.result.divergences, self.lower, strict=True)
            return {"divergences": [[order, jsonable(low)] for (order, _), low in pairs]}
        numbers = zip(numbers_of(self.result), self.lower, strict=False)
        return {name: jsonable(low) for name, low in numbers if name not in self.asked}


@final
@dataclass(frozen=True, slots=True)
class Conversions:
    """What every notion says of one source.

    Args:
        file: The source, with what a plan file says about it.
        written: Whether the source was written out, and not read from a file.
        found: The conversion to each notion by the notion's name, or why there is none.
    """

    file: PlanFile
    written: bool
    found: Mapping[str, Conversion | str]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the source to be as described."""
        return _assumptions(self.file, self.written)


def _assumptions(file: PlanFile, written: bool) -> tuple[str, ...]:
    """Return what must hold for a source to be as described; a written notion is as it is."""
    return () if written and isinstance(file.plan, Notion) else assumptions_of(file.plan)


@singledispatch
def numbers_of(result: Mechanism) -> dict[str, Any]:
    """Return the parameters of a guarantee, ready for JSON."""
    names = [name for name in ("epsilon", "mu", "rho") if hasattr(result, name)]
    return {name: jsonable(getattr(result, name)) for name in names}


@numbers_of.register
def _(result: ApproxDP) -> dict[str, Any]:
    return {"epsilon": jsonable(result.epsilon), "delta": result.delta}


@numbers_of.register
def _(result: TCDP) -> dict[str, Any]:
    return {"rho": jsonable(result.rho), "omega": jsonable(result.omega)}


@numbers_of.register
def _(result: RenyiDP) -> dict[str, Any]:
    return {"divergences": [[order, jsonable(size)] for order, size in result.divergences]}


@numbers_of.register
def _(result: FDP) -> dict[str, Any]:
    f = result.tradeoff
    missed = [{"fpr": fpr, "fnr_lower": f(fpr)} for fpr in _READ_AT]
    return {"tradeoff": type(f).__name__, "rates": missed}


_FUNCTION: Final = "f"
# How near to few digits a number is shown with all that it has: 0.5000000000000001.
_ROUND_OFF: Final = 1e-12
_ALL_DIGITS: Final = 16
_LEGEND: Final = (
    "exact: no smaller number holds. bound: proven; a smaller one may hold. f(x): the least share "
    "of records that an attack misses at false-positive rate x."
)
_MEANINGS: Final = {
    "exact": "no smaller result holds for all that satisfy this",
    "bound": "proven; a smaller result may hold",
}
_ROUNDED_UP: Final = ", but for the last digits, which are rounded up"
_A_LARGER_F: Final = "proven; a larger f may hold"


def _sheet(conversion: Conversion) -> Sheet:
    """Return one conversion for people: the result, why it holds, and what it came from."""
    sheet, kind = Sheet(conversion.file.title), conversion.kind
    for label, value in _lines(conversion.result, conversion.asked):
        sheet.fact(label, value)
    for line in _proven(conversion):
        sheet.fact("proven", line)
    of_f = kind == "bound" and isinstance(conversion.result, FDP)
    meaning = _A_LARGER_F if of_f else _MEANINGS[kind]
    if kind == "exact" and any(map(_is_off, conversion.found)):
        meaning += _ROUNDED_UP
    said = f": {meaning}" if sheet.is_verbose else ""
    sheet.fact("kind", Text.assemble((kind, layout.KIND_STYLES[kind]), said))
    sheet.more("theorem", conversion.theorem)
    _add_source(sheet, conversion)
    sheet.cautions(conversion.cautions)
    sheet.holds_if(conversion.assumptions)
    return sheet


def _sheet_of_all(every: Conversions) -> Sheet:
    """Return one line for each notion that says something; with -v, why, and why others do not."""
    sheet = Sheet(every.file.title)
    _add_source(sheet, every)
    table = layout.table("notion", "says", "kind")
    found = {name: one for name, one in every.found.items() if isinstance(one, Conversion)}
    for name, one in found.items():
        lines = [line for line in _lines(one.result, one.asked) if line[0] != _FUNCTION]
        says = Text(", ").join([Text(f"{label} ").append_text(value) for label, value in lines])
        table.add_row(name, says, Text(one.kind, style=layout.KIND_STYLES[one.kind]))
    sheet.block(table)
    if sheet.is_verbose:
        sheet.bullets("Why", [f"{name}: {one.theorem}" for name, one in found.items()])
        none = [f"{name}: {one}" for name, one in every.found.items() if isinstance(one, str)]
        sheet.bullets("None", none)
        said = [f"{name}: {c.text}" for name, one in found.items() for c in one.cautions]
        if said:
            sheet.bullets("Cautions", said)
        sheet.block(Text(f"\n{_LEGEND}", style="dim"))
    sheet.holds_if(every.assumptions)
    return sheet


def _add_source(sheet: Sheet, of: Conversion | Conversions) -> None:
    """Add what is converted: as it was written, or what a plan file says about it."""
    if of.written:
        sheet.fact("from", str(of.file.plan))
    else:
        sheet.plan(of.file)
        sheet.setting(of.file.plan.adjacency)


def _proven(conversion: Conversion) -> list[Text]:
    """Return the proven ends of what was asked for, unless it is exact or there is no number."""
    least, upper = conversion.least, conversion.found
    if not upper or (conversion.kind == "exact" and least is None):
        return []
    if isinstance(conversion.result, RenyiDP):
        lower = [low for _, low in least["divergences"]] if least else [0.0] * len(upper)
        names = [f"order {numerals.plain(order)}: " for order, _ in conversion.result.divergences]
    else:
        lower, names = list((least or {"": 0.0}).values()), [""]
    rows = [
        (name, _ends(float(low), high)) for name, low, high in zip(names, lower, upper, strict=True)
    ]
    if len(rows) == 1:
        return [Text(rows[0][1])]
    return [Text(name + told) for name, told in rows]


def _ends(lower: float, upper: float) -> str:
    """Return an interval in words; the upper end alone where no lower is known."""
    if lower == 0.0 < upper:
        return f"at most {_quoted(upper)}"
    low, high = numerals.interval(lower, upper)
    if low == high:
        return f"exactly {low}"
    return f"from {low} to {_quoted(upper) if _is_off(upper) else high}"


@singledispatch
def _lines(result: Mechanism, asked: tuple[str, ...]) -> list[tuple[str, Text]]:
    """Return labels and numbers of a guarantee: rounded up, but what was given as it was."""
    numbers = {name: float(value) for name, value in numbers_of(result).items()}
    found = [(name, _headline(value)) for name, value in numbers.items() if name not in asked]
    given = [(name, Text(numerals.plain(numbers[name]))) for name in numbers if name in asked]
    return found + [(f"at {name}", value) for name, value in given]


@_lines.register
def _(result: RenyiDP, asked: tuple[str, ...]) -> list[tuple[str, Text]]:
    pairs = result.divergences
    return [(f"tau at order {numerals.plain(order)}", _headline(size)) for order, size in pairs]


@_lines.register
def _(result: FDP, asked: tuple[str, ...]) -> list[tuple[str, Text]]:
    told = numbers_of(result)
    rows = [
        (
            f"f({numerals.plain(one['fpr'])})",
            Text(f"at least {numerals.at_least(one['fnr_lower'])}"),
        )
        for one in told["rates"]
    ]
    return [(_FUNCTION, Text(told["tradeoff"])), *rows]


def _headline(value: float) -> Text:
    """Return a number rounded up, to quote."""
    return Text(_quoted(value), style="bold green")


def _quoted(value: float) -> str:
    """Return a number rounded up; as it is, where it is by round-off above few digits."""
    digits = _ALL_DIGITS if _is_off(value) else numerals.HEADLINE_DIGITS
    return numerals.at_most(float(value), digits)


def _is_off(value: float) -> bool:
    """Return whether a number is one of few digits but for round-off."""
    number = float(value)
    few = float(numerals.nearest(number))
    return number != few and abs(number - few) <= _ROUND_OFF * number < math.inf
