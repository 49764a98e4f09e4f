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

from hockeystick._suggest import hint
from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.io.vocabulary import (
    ALTERNATIVES,
    IN_PYTHON_ONLY,
    KINDS,
    NO_ADJACENCY,
    RELEASES,
    TEXTS,
    Blanks,
    built,
    parameters_of,
)
from hockeystick.mechanisms import DPSGD, Composed, Mechanism
from hockeystick.notions import NOTIONS

_LONGEST: Final = 10_000
_DEEPEST: Final = 16
_SHOWN: Final = 60
_EXAMPLE: Final = "write for example 'Laplace(2)**3 @ Gaussian(4)'"
_A_CALL: Final = re.compile(r"[\s(]*[A-Za-z_][\w.]*\s*\(")
# Where Python has the mechanisms, and the functions: a call may name the room or leave it out.
_ROOMS: Final = ("hockeystick", "hs", "mechanisms", "notions", "federated")
_OF_FUNCTIONS: Final = ("math", "np")
# The modules of what some fields are made of: for these fields, a call may leave them out as well.
_MODULES: Final = {
    "batch_schedule": "schedules.",
    "distribution": "tuning.",
    "schedule": "schedules.",
}
_CALLABLE: Final[Mapping[str, Callable[..., object]]] = {
    **{
        _MODULES.get(field, "") + make.__qualname__: make
        for field, kinds in KINDS.items()
        for make in kinds.values()
    },
    **RELEASES,
}
# Papers write zCDP and tCDP.
_NOTIONS: Final = {name.lower(): name for name in NOTIONS if name in RELEASES}
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
        Nothing in the text is run: it is parsed, and names, numbers and the operators ``@`` and
        ``**`` are all that is taken from it.

    Edge cases:
        Rooms may be named or left out: ``hs.mechanisms.Skellam(9)`` is ``Skellam(9)``. A number may
        be computed, as ``256 / 60_000``, ``2 * sqrt(3)`` or ``log(3)``, with ``+ - * / **``: it is
        the float that Python computes; ``Fraction(1, 3)`` is exact. An override of one of a pair of
        alternatives, such as ``rate``, also drops the other one, ``batch_size``.

    Args:
        text: A call such as ``ZCDP(rho=0.5)``, or calls with ``@``, ``**`` and brackets; at most
            10,000 characters, nested at most 16 deep.
        overrides: Fields that replace those of a ``DPSGD`` that is the whole plan.

    Returns:
        The plan.

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
        reader = _Reader(text.strip(), overrides, blanks)
        found = reader.overridden() if overrides else reader.value(reader.node)
        if not isinstance(found, Mechanism):
            raise PlanFileError(f"this is no mechanism; {_EXAMPLE}")
        return found
    except PlanFileError as error:
        raise PlanFileError(f"{_shown(text)}: {error}") from None


def parse(text: str) -> float | Fraction | Decimal | str:
    """Return the number that a text stands for; the text itself where it is none.

    A quotient of two, as 1/60000, is a float next to it, and so is what has a root or a power, as
    2*sqrt(3); ``Fraction(1, 60000)`` is exact. A number that a float would turn into
    inf or 0 comes as a ``Decimal``. The library's own checks then refuse it, as they refuse the
    text, by the name of the parameter.
    """
    try:
        return int(text)
    except ValueError:
        found = _computed(text)
        return parse_real(text) if found is None else found


def computed_in(node: Any) -> Any:
    """Return what a file holds, quotients, roots and powers in quotes computed.

    Other texts stay, a number in quotes among them, and so do the names that people give.

    Example:
        >>> from hockeystick.io.call_text import computed_in
        >>> computed_in({"rate": "1/98", "grid": ["2**0.5", "1.5", "1/0", "a/b"]})
        {'rate': 0.01020408163265306, 'grid': [1.4142135623730951, '1.5', '1/0', 'a/b']}
    """
    if isinstance(node, dict):
        return {key: one if key in TEXTS else computed_in(one) for key, one in node.items()}
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
        reader = _Reader(text.strip(), {}, None)
        found: Any = reader.value(reader.node)
    except PlanFileError:
        return None
    return found if _is_number(found) and (found or isinstance(found, Fraction)) else None


class _Reader:
    """Reads one text."""

    def __init__(self, text: str, overrides: Mapping[str, object], blanks: Blanks | None) -> None:
        self.text, self.overrides, self.blanks = text, overrides, blanks
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                self.node = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = f": {error.msg}" if isinstance(error, SyntaxError) else ""
            raise PlanFileError(f"this is no plan{why}; {_EXAMPLE}") from None

    def overridden(self) -> Mechanism:
        """Return a DPSGD with other fields."""
        node, names = self.node, ", ".join(self.overrides)
        if not isinstance(node, ast.Call) or self._name_in(node) != DPSGD.__name__:
            plan = self.value(node)
            if names == "adjacency" and isinstance(plan, Mechanism) and plan.adjacency is None:
                raise PlanFileError(NO_ADJACENCY)
            raise PlanFileError(f"there is no DPSGD alone in which to override {names}")
        dropped = {ALTERNATIVES.get(name) for name in self.overrides}
        fields = self._fields(node, "DPSGD", DPSGD, 0)
        kept = {name: value for name, value in fields.items() if name not in dropped}
        given = {**kept, **self.overrides}
        return built(DPSGD, given, "DPSGD", overrides=self.overrides, blanks=self.blanks)

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
        """Return what a call makes, for a field if it is not for itself, or the number."""
        name = self._name_in(node, field)
        function = _FUNCTIONS.get(name)
        if function is None:
            make = self._made_by(name)
            return built(make, self._fields(node, name, make, depth), name, blanks=self.blanks)
        given = [self.value(one, depth) for one in node.args]
        if node.keywords or not all(map(_is_number, given)):
            self._refuse(node)
        return function(*given)

    def _name_in(self, node: ast.Call, field: str = "") -> str:
        """Return what a call calls, without the room where Python has it."""
        path = "".join((ast.get_source_segment(self.text, node.func) or "").split()).split(".")
        if path[0] in _OF_FUNCTIONS and path[-1] in _FUNCTIONS:
            path = path[1:]
        while len(path) > 1 and path[0] in _ROOMS:
            path = path[1:]
        name = ".".join(path)
        in_module = f"{_MODULES.get(field, '')}{name}"
        return in_module if in_module in _CALLABLE else _NOTIONS.get(name.lower(), name)

    def _made_by(self, name: str) -> Callable[..., object]:
        """Return what is called by a name, or raise."""
        if name == IN_PYTHON_ONLY:
            raise PlanFileError("no text can hold a trade-off function; use Python for FDP")
        if name not in _CALLABLE:
            near = hint(name, _CALLABLE) or "; hockeystick init --list names all"
            raise PlanFileError(f"{_shown(name)} is no mechanism or notion{near}")
        return _CALLABLE[name]

    def _fields(
        self, node: ast.Call, name: str, make: Callable[..., object], depth: int
    ) -> dict[str, object]:
        """Return the fields that a call gives, by their names."""
        by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        names = [one.name for one in parameters_of(make).values() if one.kind in by_place]
        if len(node.args) > len(names):
            takes = f"at most {len(names)} values without a name: {', '.join(names)}"
            raise PlanFileError(f"{name} takes {takes}; got {len(node.args)}")
        named = ((one.arg, one.value) for one in node.keywords)
        fields: dict[str, object] = {}
        for key, value in (*zip(names, node.args, strict=False), *named):
            if key is None or key in fields:
                why = "is given twice" if key else "takes each parameter written out, without **"
                raise PlanFileError(f"{name}.{key} {why}" if key else f"{name} {why}")
            fields[key] = self.value(value, depth, key)
        return fields

    def _refuse(self, node: ast.expr | None, why: str = "may not stand here") -> NoReturn:
        """Raise for what may not stand where it does."""
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
    """Return a text short enough for a line."""
    words = " ".join(text.split())
    return repr(words if len(words) <= _SHOWN else words[: _SHOWN - 3] + "...")
