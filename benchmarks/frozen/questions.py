"""The questions: those of the table, and of every plan those that it lacks.

A plan is the text of an expression in public names: what the table asks about closely, and the
documented example of each mechanism and notion that is not among them.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

import hockeystick as hs
from benchmarks.frozen.answers import NAMES
from benchmarks.frozen.table import read
from hockeystick.accountants import ACCOUNTANTS
from tests.examples import documented

_PLAN: Final = re.compile(r"hs\.epsilon\((.*), 1e-05, (?:digits=20|tolerance=1e-08)\)")
_TRAINING: Final = "hs.DPSGD(noise_multiplier=2.0, rate=0.03, steps=400)"
_TARGETS: Final = (
    ("PureDP", ""),
    *(("ApproxDP", given) for given in (", delta=1e-05", ", delta=1e-30", ", epsilon=0.7")),
    *(("GDP", ""), ("ZCDP", ""), ("TCDP", ", omega=4.0")),
    *(("RenyiDP", ", orders=(1.5, 8.0)"), ("FDP", "")),
)
_BUDGETS: Final = (
    *("hs.PureDP(1e9)", "hs.GDP(1e9)", "hs.ZCDP(1e9)", "hs.TCDP(1e9, 9.0)"),
    *("hs.RenyiDP({1.5: 1e9, 8.0: 1e9})", "hs.ApproxDP(1e9, 1e-4)"),
)


def questions() -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of every question."""
    yield from ((one.kind, one.question) for one in read().values())
    for text in plans():
        yield from _of_plan(text)
        for other in list(variants(text))[1:]:
            yield from _of_variant(other)


def plans() -> list[str]:
    """Return the texts of all plans."""
    known = [found[1] for question in read() if (found := _PLAN.fullmatch(question))]
    missing = (
        name
        for name in (*hs.mechanisms.MECHANISMS, *hs.notions.NOTIONS)
        if not any(is_about(text, name) for text in known)
    )
    return list(dict.fromkeys([*known, *map(documented, missing)]))


def is_about(text: str, name: str) -> bool:
    """Return whether a question makes a mechanism or a notion of a name."""
    return re.search(rf"\bhs\.((mechanisms|federated|notions)\.)?{name}\(", text) is not None


def variants(text: str) -> Iterator[str]:
    """Yield a plan, and itself with every other word for each field that takes words."""
    yield text
    plan, call = eval(text, dict(NAMES)), ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not dataclasses.is_dataclass(plan):
        return
    fields = [one.name for one in dataclasses.fields(plan)]
    given: dict[str | None, ast.expr] = dict(zip(fields, call.args, strict=False))
    given |= {one.arg: one.value for one in call.keywords}
    for name in fields:
        value = getattr(plan, name)
        kind: Any = hs.Adjacency if name == "adjacency" else type(value)
        for word in kind if isinstance(value, StrEnum) or name == "adjacency" else ():
            if word != value:
                other = given | {name: ast.Constant(str(word))}
                keywords = [ast.keyword(key, one) for key, one in other.items()]
                yield ast.unparse(ast.Call(call.func, [], keywords))


def _of_plan(text: str) -> Iterator[tuple[str, str]]:
    for delta in (1e-5, 1e-30, 1e-300, 0.0):
        yield "epsilon", f"hs.epsilon({text}, {delta!r})"
    for epsilon in (0.0, 0.7, 5.0):
        yield "delta", f"hs.delta({text}, {epsilon!r})"
    for name in ACCOUNTANTS.keys() - {"auto"}:
        yield f"epsilon by {name}", f"hs.epsilon({text}, 1e-05, accountant={name!r})"
        yield f"delta by {name}", f"hs.delta({text}, 0.7, accountant={name!r})"
    for name, asked in (("epsilon", "1e-05"), ("delta", "0.7")):
        yield f"{name} to 20 digits", f"hs.{name}({text}, {asked}, digits=20)"
        yield f"{name} closely", f"hs.{name}({text}, {asked}, tolerance=1e-08)"
    yield "epsilon of many", f"hs.epsilon({text}**100, 1e-05)"
    yield "epsilon of many", f"hs.epsilon({text}**10000, 1e-05)"
    yield "delta of many", f"hs.delta({text}**100, 3.0)"
    for other in (_TRAINING, "hs.Laplace(3.0)"):
        yield "epsilon of two", f"hs.epsilon({text} @ {other}, 1e-05)"
    yield "tradeoff", f"hs.tradeoff({text})"
    yield "shown", f"shown(1e-6, {text})"
    for budget in _BUDGETS:
        yield "charged", f"charged({budget}, {text}, {text})"
    for target, given in _TARGETS:
        yield f"convert to {target}", f"hs.convert({text}, hs.{target}{given})"
    plan = eval(text, dict(NAMES))
    for field in dataclasses.fields(plan):
        value = getattr(plan, field.name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            asked = f"{text}, {field.name!r}, hs.ApproxDP(2.0, 1e-05)"
            yield f"calibrate {field.name}", f"hs.calibrate({asked})"


def _of_variant(text: str) -> Iterator[tuple[str, str]]:
    yield "epsilon", f"hs.epsilon({text}, 1e-05)"
    try:
        eval(text, dict(NAMES))
    except (hs.HockeystickError, TypeError):
        return
    yield "epsilon", f"hs.epsilon({text}**30, 1e-300)"
    yield "delta", f"hs.delta({text}, 0.7)"
    for name in ("prv", "rdp"):
        yield f"epsilon by {name}", f"hs.epsilon({text}, 1e-05, accountant={name!r})"
    yield "convert to ApproxDP", f"hs.convert({text}, hs.ApproxDP, delta=1e-05)"
    yield "convert to ZCDP", f"hs.convert({text}, hs.ZCDP)"
