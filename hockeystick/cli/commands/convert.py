"""The command ``convert``: from one notion of differential privacy, or a plan, to another."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any, Final

import click

import hockeystick as hs
from hockeystick.cli.as_json import dumped
from hockeystick.cli.flags import options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.results.conversion import Conversion, numbers_of
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.conversions import TARGETS, convert
from hockeystick.io import did_you_mean, parse
from hockeystick.io.plan_file import PlanFile, load_plan
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import NOTIONS, Notion

_LONGEST: Final = 10_000
_CALL: Final = re.compile(r"\s*(\w+)\s*\(")
_SOURCES: Final = tuple(name for name in NOTIONS if name != "FDP")
_NEEDED: Final = {"ApproxDP": {"delta", "epsilon"}, "TCDP": {"omega"}, "RenyiDP": {"orders"}}
_FREE: Final = "ApproxDP needs --delta or --epsilon, TCDP --omega, RenyiDP --orders"


@click.command(name="convert", cls=Once, epilog=_FREE)
@click.argument("source", metavar="NOTION|PLAN.toml")
@click.option("--to", required=True, metavar="NAME", help=f"One of {', '.join(TARGETS)}.")
@click.option("--epsilon", metavar="E", help="Ask for delta at this epsilon.")
@click.option("--delta", metavar="D", help="Ask for epsilon at this delta.")
@click.option("--omega", metavar="W", help="The largest order of a TCDP.")
@click.option("--orders", metavar="A,B,...", help="The orders of a RenyiDP.")
@options.json_flag
def command(source: str, to: str, orders: str | None, as_json: bool, **numbers: str | None) -> None:
    """Print what one notion of differential privacy says in terms of another.

    The source is a notion as in Python, such as 'ZCDP(rho=0.5)' or 'RenyiDP({2: 0.5, 8: 1.9})',
    or a plan file, whose delta or epsilon serves where neither is given. Every number of the result
    is rounded to the safe side.
    """
    file, written = _source(source)
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
    conversion = Conversion(file, written, tuple(given), result)
    if as_json:
        click.echo(_json(conversion))
    else:
        from hockeystick.cli.panels import conversion_panel, render

        render.print_plainly(conversion_panel.panel(conversion))


def notion_of(text: str) -> Notion:
    """Return the notion that a text writes out: a name and numbers, and nothing else.

    Raises:
        click.UsageError: If it writes out anything else.
    """
    call = _parsed(text)
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise click.UsageError(f"{_shown(text)} is no notion; {_example()}")
    name = call.func.id
    if name not in _SOURCES:
        wrong = f"{name!r} is no notion that can be written out{_hint(name)}"
        raise click.UsageError(f"{wrong}; {_example()}")
    arguments = [_value(node, text) for node in call.args]
    names = [str(one.arg) for one in call.keywords]
    if len(set(names)) < len(names):
        raise click.UsageError(f"{_shown(text)} gives a parameter twice")
    keywords = {str(one.arg): _value(one.value, text) for one in call.keywords}
    make: Callable[..., Notion] = NOTIONS[name]
    if "origin" in keywords:
        raise click.UsageError(f"{name} has no parameter 'origin' here; {_example()}")
    try:
        return make(*arguments, **keywords)
    except TypeError:
        takes = [one for one in signature(make).parameters if one != "origin"]
        raise click.UsageError(f"{_shown(text)}: {name} takes {', '.join(takes)}") from None


def _source(text: str) -> tuple[PlanFile, bool]:
    """Return what is to be converted, and whether it was written out as a notion."""
    if _CALL.match(text) and not text.endswith(".toml"):
        return PlanFile(plan=notion_of(text)), True
    if text in NOTIONS:
        raise click.UsageError(f"{text} needs its numbers; {_example()}")
    return load_plan(text), False


def _with_defaults(to: str, given: dict[str, object], file: PlanFile) -> dict[str, object]:
    """Return what is given, with the plan file's delta or epsilon where neither is."""
    if to != "ApproxDP" or "epsilon" in given or "delta" in given:
        return given
    if file.delta is not None:
        return {**given, "delta": file.delta}
    return given if file.epsilon is None else {**given, "epsilon": file.epsilon}


def _parsed(text: str) -> ast.expr:
    """Return the syntax tree of an expression, or raise."""
    if len(text) > _LONGEST:
        raise click.UsageError(f"a notion must be written in at most {_LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise click.UsageError(f"{_shown(text)} is no notion; {_example()}") from None


def _value(node: ast.expr, text: str) -> object:
    """Return a number, or a mapping or list of numbers, or raise."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [(_number(key, text), _number(value, text)) for key, value in pairs]
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(_value(one, text) for one in node.elts)
    return _number(node, text)


def _number(node: ast.expr | None, text: str) -> object:
    """Return the number that a node stands for, without losing its range, or raise."""
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) and sign < 0 else node
    if isinstance(inner, ast.Name) and inner.id in ("inf", "nan"):
        return sign * float(inner.id)
    number = isinstance(inner, ast.Constant) and type(inner.value) in (int, float)
    written = ast.get_source_segment(text.strip(), inner) if inner is not None and number else None
    if written is None:
        raise click.UsageError(f"{_shown(text)} may hold numbers only; {_example()}")
    found: Any = parse(written)
    return sign * found if not isinstance(found, str) else found


def _shown(text: str) -> str:
    """Return a text short enough for a line."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _hint(name: str) -> str:
    """Return what to do about a name that is no notion, or nothing."""
    if name in MECHANISMS:
        return " (describe the mechanism in a plan file)"
    return did_you_mean(name, _SOURCES)


def _example() -> str:
    """Return how to write a notion."""
    return f"write for example 'ZCDP(rho=0.5)', or one of {', '.join(_SOURCES)}"


def _json(conversion: Conversion) -> str:
    """Return a conversion as strict JSON in ASCII."""
    told = {
        "version": hs.__version__,
        "title": conversion.file.title,
        "from": str(conversion.file.plan),
        "to": type(conversion.result).__name__,
        "result": numbers_of(conversion.result),
        "kind": conversion.kind,
        "theorem": conversion.theorem,
        "adjacency": conversion.file.plan.adjacency,
        "assumptions": list(conversion.assumptions),
    }
    return dumped(told)
