"""Plans and numbers as they are written in Python: parsed by Python's own parser, and never run.

A call becomes a table, as plan files have it. A text may have calls with numbers, texts, sequences
of them and each other; ``**`` with a count, ``@``, brackets, quotients and exact fractions.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NoReturn

from hockeystick.errors import PlanFileError
from hockeystick.io.codec import KINDS, RELEASES, Blanks, maker, parameters_of, plan_of
from hockeystick.mechanisms import Mechanism

_LONGEST: Final = 10_000
_EXAMPLE: Final = "write for example 'Laplace(2)**3 @ Gaussian(4)' or 'ZCDP(rho=0.5)'"
_A_CALL: Final = re.compile(r"[\s(]*[A-Za-z_][\w.]*\s*\(")
# Where Python has what is called, which may be left out.
_ROOMS: Final = re.compile(r"^((hockeystick|hs|mechanisms|notions|federated|schedules|tuning)\.)+")


def is_call_text(text: str) -> bool:
    """Return whether a text looks like a plan that is written out, not like a file's name."""
    return _A_CALL.match(text) is not None and not text.lower().endswith(".toml")


def parse_plan(text: str, overrides: Mapping[str, object] | None = None) -> Mechanism:
    """Return the plan that a text writes out, as it would be written in Python. Nothing is run.

    Rooms may be left out: ``hs.mechanisms.Skellam(9)`` is ``Skellam(9)``. A number may be a
    quotient, ``256 / 60_000``; ``Fraction(1, 3)`` is exact.

    Args:
        text: A call such as ``ZCDP(rho=0.5)``, or calls with ``@``, ``**`` and brackets; at most
            10,000 characters, mechanisms nested at most 16 deep.
        overrides: Fields that replace those of a ``DPSGD`` that is the whole plan, as in
            ``load_plan``.

    Raises:
        PlanFileError: If the text writes out anything else, or a number is outside its domain.
        ParameterError: If an override is outside its domain.

    Example:
        >>> from hockeystick.io import parse_plan
        >>> print(parse_plan("Laplace(2)**3 @ Gaussian(noise_multiplier=4)"))
        Laplace (scale 2) x 3 and Gaussian (noise multiplier 4)
    """
    return plan_of_text(text, overrides or {}, None)


def plan_of_text(text: str, overrides: Mapping[str, object], blanks: Blanks | None) -> Mechanism:
    """Return the plan that a text writes out, with numbers in place of those that it leaves out."""
    try:
        tree = _tree_of(text.strip())
        if not isinstance(tree, dict):
            raise PlanFileError(f"this is no mechanism; {_EXAMPLE}")
        return plan_of(tree, "", overrides, blanks)
    except PlanFileError as error:
        # Where fields are given beside it, the text may be none that anybody has written.
        raise PlanFileError(str(error) if overrides else f"{text!r:.60}: {error}") from None


def parse(text: str) -> float | Decimal | str:
    """Return the number that a text stands for, or the text itself.

    A number that a float would turn into inf or 0 comes as a ``Decimal``, which the library's own
    checks refuse by the name of the parameter.
    """
    try:
        return int(text)
    except ValueError:
        return parse_real(text)


def parse_real(text: str) -> float | Decimal | str:
    """Return the float that a text stands for, or what says why there is none."""
    try:
        value = float(text)
    except ValueError:
        return text
    overflowed = math.isinf(value) and "inf" not in text.lower()
    vanished = value == 0 and re.search("[1-9]", text.lower().partition("e")[0])
    return Decimal(text) if overflowed or vanished else value


def _tree_of(text: str) -> Any:
    if len(text) > _LONGEST:
        raise PlanFileError(f"a plan has at most {_LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            node = ast.parse(text, mode="eval").body
        return _Reader(text).value(node)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = f": {error.msg}" if isinstance(error, SyntaxError) else ""
        raise PlanFileError(f"this is no plan{why}; {_EXAMPLE}") from None


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def value(self, node: ast.expr | None, field: str = "") -> Any:
        """Return what a node stands for; that of a field may have names of its own."""
        match node:
            case ast.Constant(value=float()):
                return parse_real(ast.get_source_segment(self.text, node) or "")
            case ast.Constant(value=int() | str() | None):
                return node.value
            case ast.Name(id="inf" | "nan"):
                return float(node.id)
            case ast.List() | ast.Tuple() | ast.Set():
                return [self.value(one) for one in node.elts]
            case ast.Dict():
                return [[*map(self.value, two)] for two in zip(node.keys, node.values, strict=True)]
            case ast.UnaryOp(op=ast.USub()):
                return self._computed(node, operator.neg, self.value(node.operand))
            case ast.BinOp():
                return self._operation(node)
            case ast.Call():
                return self._called(node, field)
            case _:
                return self._refuse(node)

    def _operation(self, node: ast.BinOp) -> Any:
        """Return a composition, however long it leans to the left, a repetition or a quotient."""
        operands: list[ast.expr] = [node]
        while isinstance(first := operands[-1], ast.BinOp) and isinstance(first.op, ast.MatMult):
            operands[-1:] = first.right, first.left
        if len(operands) > 1:
            return {"mechanism": "Composed", "parts": list(map(self.value, reversed(operands)))}
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Pow) and isinstance(left, dict):
            return {"mechanism": "Repeated", "inner": left, "count": right}
        if not isinstance(node.op, ast.Div):
            self._refuse(node)
        return self._computed(node, operator.truediv, left, right)

    def _computed(self, node: ast.expr, compute: Callable[..., Any], *given: Any) -> Any:
        if not all(isinstance(one, int | float | Fraction) for one in given):
            self._refuse(node)
        try:
            if math.isfinite(found := compute(*given)):
                return found
        except (ArithmeticError, TypeError, ValueError):
            pass
        return self._refuse(node, "cannot be computed")

    def _called(self, node: ast.Call, field: str) -> Any:
        """Return an exact fraction, or the table of a call."""
        path = ast.get_source_segment(self.text, node.func) or ""
        name = _ROOMS.sub("", "".join(path.split()))
        if name == "Fraction" and not node.keywords:
            return self._computed(node, Fraction, *map(self.value, node.args))
        tag, known = ("kind", KINDS[field]) if field in KINDS else ("mechanism", RELEASES)
        if tag == "kind":
            name = {make.__qualname__: one for one, make in known.items()}.get(name, name)
        parameters = parameters_of(maker(name, known, field or "mechanism or notion"))
        places = [key for key, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
        given: list[Any] = [*zip(places, node.args, strict=False)]
        given += [(one.arg, one.value) for one in node.keywords]
        table = {tag: name, **{key: self.value(value, key) for key, value in given}}
        if len(table) <= len(node.args) + len(node.keywords) or None in table:
            once = f"each once, {len(places)} at most without a name"
            raise PlanFileError(f"{name} takes {', '.join(parameters)}: {once}")
        return table

    def _refuse(self, node: ast.expr | None, why: str = "may not stand here") -> NoReturn:
        segment = None if node is None else ast.get_source_segment(self.text, node)
        raise PlanFileError(f"{segment or '**'!r:.60} {why}; {_EXAMPLE}")
