"""Numbers that are written as ``2 * sqrt(3)`` or ``Fraction(1, 3)``, as Python has them."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from hockeystick.errors import PlanFileError

_DEEPEST: Final = 16
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    f"{module}{name}": function
    for module in ("", "math.", "np.")
    for name, function in (("sqrt", math.sqrt), ("log", math.log), ("exp", math.exp))
} | {"ln": math.log, "Fraction": Fraction}
_MARKS: Final = ("sqrt(", "log(", "ln(", "exp(", "**", "Fraction(")
# The largest power of integers that is computed exactly, and no base needs more bits.
_LARGEST_POWER: Final = 64
_BITS: Final = 64


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; of floats, unless it is of integers and small."""
    both = isinstance(base, int) and isinstance(exponent, int)
    if both and 0 <= exponent <= _LARGEST_POWER and base.bit_length() <= _BITS:
        return base**exponent
    found = float(base) ** float(exponent)
    if isinstance(found, complex):
        raise ArithmeticError("a root of a negative number")
    return found


_OPERATIONS: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}


def is_arithmetic(node: ast.expr | None) -> bool:
    """Return whether a node computes a number: its first operand is one, or of a function.

    Example:
        >>> import ast
        >>> from hockeystick.io.arithmetic import is_arithmetic
        >>> [is_arithmetic(ast.parse(one, mode="eval").body) for one in ("2**0.5", "a**2", "2")]
        [True, False, False]
    """
    first = node
    while isinstance(first, ast.BinOp | ast.UnaryOp):
        if isinstance(first, ast.BinOp) and type(first.op) not in _OPERATIONS:
            return False
        first = first.left if isinstance(first, ast.BinOp) else first.operand
    if isinstance(first, ast.Call):
        return _is_function(first)
    return isinstance(first, ast.Constant) and _holds_operation(node)


def computed(node: ast.expr, number: Callable[[ast.expr], Any], depth: int = 0) -> Any:
    """Return the number that a node computes, each step rounded to the nearest float.

    Args:
        node: Sums, differences, products, quotients, powers, square roots, natural logarithms and
            exponentials; fractions are exact.
        number: What reads a number that is written out.
        depth: How deep the node is nested.

    Raises:
        PlanFileError: If it is nested too deep.
        ArithmeticError: If a step has no result among the finite floats.
        ValueError: If it is the root or logarithm of a number that has none.
    """
    if depth > _DEEPEST:
        raise PlanFileError(f"values may be nested at most {_DEEPEST} deep")
    if isinstance(node, ast.Call) and _is_function(node):
        given = [computed(one, number, depth + 1) for one in node.args]
        return _FUNCTIONS[ast.unparse(node.func)](*given)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and is_arithmetic(node):
        return -computed(node.operand, number, depth + 1)
    if not (isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS):
        return number(node)
    two = (computed(side, number, depth + 1) for side in (node.left, node.right))
    found = _OPERATIONS[type(node.op)](*two)
    if not math.isfinite(found):
        raise ArithmeticError("out of range")
    return found


def number_of(text: str) -> float | Fraction | None:
    """Return the number that a text with a function or a power computes; None where it is none.

    Example:
        >>> from hockeystick.io.arithmetic import number_of
        >>> number_of("2 * sqrt(2)"), number_of("1/2**0.5"), number_of("2024-01-01")
        (2.8284271247461903, 0.7071067811865475, None)
    """
    if not any(mark in text for mark in _MARKS):
        return None
    try:
        node = ast.parse(text.strip(), mode="eval").body
        found = computed(node, _written) if is_arithmetic(node) else None
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, PlanFileError):
        return None
    return found if found or isinstance(found, Fraction) else None


def _written(node: ast.expr) -> Any:
    """Return a number that is written out, or raise."""
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) and sign < 0 else node
    value: Any = inner.value if isinstance(inner, ast.Constant) else None
    if type(value) not in (int, float):
        raise ValueError("no number")
    return sign * value


def _holds_operation(node: ast.expr | None) -> bool:
    """Return whether a node has an operator of two numbers at its beginning."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.BinOp)


def _is_function(node: ast.Call) -> bool:
    """Return whether a call is one of the functions, of one thing, or of two for a fraction."""
    name = ast.unparse(node.func)
    most = 2 if name == "Fraction" else 1
    return name in _FUNCTIONS and 1 <= len(node.args) <= most and not node.keywords
