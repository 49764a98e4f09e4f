"""Plans and numbers as people write them: read as Python reads them, and nothing is run.

A text is parsed by Python's own parser, and only these are taken from it: names of mechanisms,
notions and what they are made of, called with numbers, texts, sequences of them and each other;
``**`` with a count, ``@``, brackets, and numbers computed of others, ``2 * sqrt(3)``.
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
from inspect import Parameter
from typing import Any, Final, NoReturn

from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.io.vocabulary import (
    KINDS,
    RELEASES,
    TEXTS,
    Blanks,
    built,
    maker,
    parameters_of,
    refuse_overrides,
    training,
)
from hockeystick.mechanisms import DPSGD, Composed, Mechanism

_LONGEST: Final = 10_000
_DEEPEST: Final = 16
_SHOWN: Final = 60
_EXAMPLE: Final = "write for example 'Laplace(2)**3 @ Gaussian(4)' or 'ZCDP(rho=0.5)'"
_A_CALL: Final = re.compile(r"[\s(]*[A-Za-z_][\w.]*\s*\(")
# Where Python has what is called, which may be left out.
_ROOMS: Final = re.compile(r"^((hockeystick|hs|mechanisms|notions|federated)\.)+")
_MODULES: Final = re.compile(r"^(schedules|tuning)\.")
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "sqrt": math.sqrt,
    "log": math.log,
    "ln": math.log,
    "exp": math.exp,
    "Fraction": Fraction,
}
# What a text has in it that computes a number: a difference may be a date.
_MARKS: Final = ("/", "sqrt(", "log(", "ln(", "exp(", "**", "Fraction(")
# The largest power of integers that is computed exactly, and no base needs more bits.
_LARGEST_POWER: Final = 64
_BITS: Final = 64


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; of floats, unless it is of integers and small."""
    both = isinstance(base, int) and isinstance(exponent, int)
    if both and 0 <= exponent <= _LARGEST_POWER and base.bit_length() <= _BITS:
        return base**exponent
    return float(base) ** float(exponent)


_OPERATORS: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}


def is_call_text(text: str) -> bool:
    """Return whether a text looks like a plan that is written out, not like a file's name."""
    return _A_CALL.match(text) is not None and not text.lower().endswith(".toml")


def parse_plan(text: str, overrides: Mapping[str, object] | None = None) -> Mechanism:
    """Return the plan that a text writes out, as it would be written in Python.

    Guarantees:
        Nothing in the text is run.

    Edge cases:
        Rooms may be named or left out: ``hs.mechanisms.Skellam(9)`` is ``Skellam(9)``. A number may
        be computed, as ``256 / 60_000``, ``2 * sqrt(3)`` or ``log(3)``, with ``+ - * / **``: it is
        the float that Python computes; ``Fraction(1, 3)`` is exact. An override of one of a pair of
        alternatives, such as ``rate``, also drops the other one, ``batch_size``.

    Args:
        text: A call such as ``ZCDP(rho=0.5)``, or calls with ``@``, ``**`` and brackets; at most
            10,000 characters, nested at most 16 deep.
        overrides: Fields that replace those of a ``DPSGD`` that is the whole plan.

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
        if len(text) > _LONGEST:
            raise PlanFileError(f"a plan has at most {_LONGEST} characters")
        return _Reader(text.strip(), blanks).plan(overrides)
    except PlanFileError as error:
        raise PlanFileError(f"{_shown(text)}: {error}") from None


def parse(text: str) -> float | Fraction | Decimal | str:
    """Return the number that a text stands for; the text itself where it is none.

    A quotient of two, as 1/60000, is a float next to it, and so is what has a root or a power, as
    2*sqrt(3); ``Fraction(1, 60000)`` is exact. A number that a float would turn into inf or 0 comes
    as a ``Decimal``, which the library's own checks refuse by the name of the parameter.
    """
    try:
        return int(text)
    except ValueError:
        found = _computed(text)
        return parse_real(text) if found is None else found


def computed_in(node: Any) -> Any:
    """Return what a file holds, quotients, roots and powers in quotes computed.

    Other texts stay, a number in quotes among them, and so do the names that people give. What
    JSON says is null is left out.
    """
    if isinstance(node, dict):
        held = {key: one for key, one in node.items() if one is not None}
        return {key: one if key in TEXTS else computed_in(one) for key, one in held.items()}
    if isinstance(node, list):
        return [computed_in(one) for one in node]
    found = _computed(node) if isinstance(node, str) else None
    return node if found is None else found


def parse_real(text: str) -> float | Decimal | str:
    """Return the float that a text stands for, or what says why there is none."""
    try:
        value = float(text)
    except ValueError:
        return text
    overflowed = math.isinf(value) and "inf" not in text.lower()
    vanished = value == 0 and re.search("[1-9]", text.lower().partition("e")[0])
    return Decimal(text) if overflowed or vanished else value


def _computed(text: str) -> float | Fraction | None:
    """Return the number that a text with an operation computes; None where it is none, or 0."""
    if not any(mark in text for mark in _MARKS):
        return None
    try:
        reader = _Reader(text.strip())
        found: Any = reader.value(reader.node)
    except PlanFileError:
        return None
    return found if _is_number(found) and (found or isinstance(found, Fraction)) else None


class _Reader:
    def __init__(self, text: str, blanks: Blanks | None = None) -> None:
        self.text, self.blanks = text, blanks
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                self.node = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = f": {error.msg}" if isinstance(error, SyntaxError) else ""
            raise PlanFileError(f"this is no plan{why}; {_EXAMPLE}") from None

    def plan(self, overrides: Mapping[str, object]) -> Mechanism:
        """Return the mechanism that the text writes out; with overrides, a DPSGD."""
        node = self.node
        if overrides and isinstance(node, ast.Call) and self._name_in(node) == DPSGD.__name__:
            fields = self._fields(node, DPSGD.__name__, DPSGD, 0)
            return training(fields, overrides, DPSGD.__name__, self.blanks)
        found = self.value(node)
        if not isinstance(found, Mechanism):
            raise PlanFileError(f"this is no mechanism; {_EXAMPLE}")
        refuse_overrides(found, overrides)
        return found

    def value(self, node: ast.expr | None, depth: int = 0, field: str = "") -> Any:
        """Return the mechanism, number, text or sequence that a node stands for, or raise."""
        if depth > _DEEPEST:
            raise PlanFileError(f"values may be nested at most {_DEEPEST} deep")
        match node:
            case ast.Constant(value=float()):
                return parse_real(ast.get_source_segment(self.text, node) or "")
            case ast.Constant(value=int() | str() | None):
                return node.value
            case ast.Name(id="inf" | "nan"):
                return float(node.id)
            case ast.List() | ast.Tuple() | ast.Set():
                return tuple(self.value(one, depth + 1) for one in node.elts)
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                return [tuple(self.value(one, depth + 1) for one in pair) for pair in pairs]
            case ast.UnaryOp(op=ast.USub()):
                found = self.value(node.operand, depth + 1)
                return -found if _is_number(found, Decimal) else self._refuse(node)
            case ast.BinOp() | ast.Call():
                return self._made(node, depth + 1, field)
            case _:
                return self._refuse(node)

    def _made(self, node: ast.BinOp | ast.Call, depth: int, field: str) -> Any:
        """Return what an operator or a call makes, or raise as a file does."""
        try:
            if isinstance(node, ast.BinOp):
                return self._operation(node, depth)
            return self._called(node, depth, field)
        except PlanFileError:
            raise
        except HockeystickError as error:
            raise PlanFileError(str(error)) from None
        except (ArithmeticError, TypeError, ValueError):
            return self._refuse(node, "cannot be computed")

    def _operation(self, node: ast.BinOp, depth: int) -> Any:
        """Return a composition, a repetition, or the number that an operator computes of two."""
        if isinstance(node.op, ast.MatMult):
            return Composed([self.value(one, depth) for one in _operands(node)])
        left, right = self.value(node.left, depth), self.value(node.right, depth)
        if isinstance(left, Mechanism) and isinstance(node.op, ast.Pow):
            return left**right
        compute = _OPERATORS.get(type(node.op))
        if compute is None or not (_is_number(left) and _is_number(right)):
            self._refuse(node)
        found = compute(left, right)
        return found if math.isfinite(found) else self._refuse(node, "cannot be computed")

    def _called(self, node: ast.Call, depth: int, field: str) -> Any:
        name = self._name_in(node)
        if function := _FUNCTIONS.get(re.sub(r"^(math|np)\.", "", name)):
            given = [self.value(one, depth) for one in node.args]
            if node.keywords or not all(map(_is_number, given)):
                self._refuse(node)
            return function(*given)
        known: Mapping[str, Callable[..., object]] = RELEASES
        if field in KINDS:
            name = _MODULES.sub("", name)
            known = {make.__qualname__: make for make in KINDS[field].values()}
        make = maker(name, known, field or "mechanism or notion")
        return built(make, self._fields(node, name, make, depth), name, blanks=self.blanks)

    def _name_in(self, node: ast.Call) -> str:
        """Return what a call calls, without the room where Python has it."""
        path = ast.get_source_segment(self.text, node.func) or ""
        return _ROOMS.sub("", "".join(path.split()))

    def _fields(
        self, node: ast.Call, name: str, make: Callable[..., object], depth: int
    ) -> dict[str, object]:
        by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        names = [one.name for one in parameters_of(make).values() if one.kind in by_place]
        if len(node.args) > len(names):
            takes = f"at most {len(names)} values without a name: {', '.join(names)}"
            raise PlanFileError(f"{name} takes {takes}; got {len(node.args)}")
        named = ((one.arg, one.value) for one in node.keywords)
        fields: dict[str, object] = {}
        for key, value in (*zip(names, node.args, strict=False), *named):
            if key is None:
                raise PlanFileError(f"{name} takes each parameter written out, without **")
            if key in fields:
                raise PlanFileError(f"{name}.{key} is given twice")
            fields[key] = self.value(value, depth, key)
        return fields

    def _refuse(self, node: ast.expr | None, why: str = "may not stand here") -> NoReturn:
        segment = None if node is None else ast.get_source_segment(self.text, node)
        raise PlanFileError(f"{_shown(segment or '**')} {why}; {_EXAMPLE}")


def _operands(node: ast.expr) -> list[ast.expr]:
    """Return what ``a @ b @ c`` composes: it leans to the left, however long it is."""
    rest: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        rest.append(node.right)
        node = node.left
    return [node, *reversed(rest)]


def _is_number(value: object, *kinds: type) -> bool:
    """Return whether a value is a number to compute with, or of one of these kinds."""
    return isinstance(value, (int, float, Fraction, *kinds)) and not isinstance(value, bool)


def _shown(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= _SHOWN else words[: _SHOWN - 3] + "...")
