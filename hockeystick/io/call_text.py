"""Plans as calls: ``Laplace(2)**3 @ Gaussian(4)`` is read as in Python, and nothing is run.

The text is parsed by Python's own parser, and only these are taken from it: names of mechanisms,
notions and what they are made of, called with numbers, texts, sequences of them and each other;
``**`` with a count, ``@``, brackets, and numbers computed of others, ``2 * sqrt(3)``.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, Final, NoReturn

from hockeystick._suggest import hint
from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.io.arithmetic import computed, is_arithmetic
from hockeystick.io.blanks import Blanks
from hockeystick.io.building import CALL, built, parameters_of
from hockeystick.io.numbers import parse
from hockeystick.io.vocabulary import ALTERNATIVES, IN_PYTHON_ONLY, KINDS, NO_ADJACENCY, RELEASES
from hockeystick.mechanisms import DPSGD, Composed, Mechanism
from hockeystick.notions import NOTIONS

_LONGEST: Final = 10_000
_DEEPEST: Final = 16
_SHOWN: Final = 60
_EXAMPLE: Final = "write for example 'Laplace(2)**3 @ Gaussian(4)'"
# What Python says of brackets, and what there is to write.
_BRACKETS: Final = {
    "'(' was never closed": "a ) is missing",
    "'[' was never closed": "a ] is missing",
    "unmatched ')'": "it has a ) too many",
    "unmatched ']'": "it has a ] too many",
    "does not match opening parenthesis '('": "a ) is missing",
    "does not match opening parenthesis '['": "a ] is missing",
}
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_FILE: Final = ".toml"
_A_CALL: Final = re.compile(r"[\s(]*[A-Za-z_][\w.]*\s*\(")
# Where Python has the mechanisms: a call may name the room or leave it out.
_ROOMS: Final = ("hockeystick", "hs", "mechanisms", "notions", "federated")
# The modules of what some fields are made of: for these fields, a call may leave them out as well.
_MODULES: Final = {"batch_schedule": "schedules", "distribution": "tuning", "schedule": "schedules"}


def _parts() -> dict[str, Callable[..., object]]:
    """Return what mechanisms are made of, by the names that Python has for it."""
    found: dict[str, Callable[..., object]] = {}
    for field, kinds in KINDS.items():
        for make in kinds.values():
            name: str = make.__qualname__
            found[f"{_MODULES[field]}.{name}" if field in _MODULES else name] = make
    return found


_CALLABLE: Final[Mapping[str, Callable[..., object]]] = {**_parts(), **RELEASES}

# Papers write zCDP and tCDP.
_NOTIONS: Final = {name.lower(): name for name in NOTIONS if name in RELEASES}


def is_call_text(text: str) -> bool:
    """Return whether a text looks like a plan that is written out, not like a file's name."""
    return _A_CALL.match(text) is not None and not text.lower().endswith(_FILE)


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
    reader = _Reader(text, overrides, blanks)
    try:
        return reader.read()
    except PlanFileError as error:
        raise PlanFileError(f"{_shown(text)}: {error}") from None


class _Reader:
    """What reads one text."""

    def __init__(self, text: str, overrides: Mapping[str, object], blanks: Blanks | None) -> None:
        self._text = text.strip()
        self._overrides = overrides
        self._blanks = blanks

    def read(self) -> Mechanism:
        """Return the plan."""
        node = self._parsed()
        if self._overrides:
            return self._overridden(node)
        return self._plan(node, 0)

    def _parsed(self) -> ast.expr:
        """Return the syntax tree, or raise."""
        if len(self._text) > _LONGEST:
            raise PlanFileError(f"a plan must be written in at most {_LONGEST} characters")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self._text, mode="eval").body
        except SyntaxError as error:
            said = next((f": {_BRACKETS[one]}" for one in _BRACKETS if one in error.msg), "")
            if percent := _PERCENT.search(self._text):
                said = f": write {float(percent[1]) / 100!r} for {percent[0]}"
            raise PlanFileError(f"this is no plan{said}; {_EXAMPLE}") from None
        except (ValueError, RecursionError, MemoryError):
            raise PlanFileError(f"this is no plan; {_EXAMPLE}") from None

    def _overridden(self, node: ast.expr) -> Mechanism:
        """Return a DPSGD with other fields."""
        if not isinstance(node, ast.Call) or self._made_by(node)[1] is not DPSGD:
            flags = ", ".join(self._overrides)
            if flags == "adjacency" and self._plan(node, 0).adjacency is None:
                raise PlanFileError(NO_ADJACENCY)
            raise PlanFileError(
                f"there is no DPSGD alone in which to override {flags}: change the text itself"
            )
        dropped = {ALTERNATIVES.get(name) for name in self._overrides}
        fields = self._fields(node, "DPSGD", DPSGD, 0)
        kept = {name: value for name, value in fields.items() if name not in dropped}
        changed = {**kept, **self._overrides}
        return built(DPSGD, changed, "DPSGD", self._overrides, dialect=CALL, blanks=self._blanks)

    def _plan(self, node: ast.expr, depth: int) -> Mechanism:
        """Return the mechanism that a node stands for, or raise."""
        if depth > _DEEPEST:
            raise PlanFileError(f"mechanisms may be nested at most {_DEEPEST} deep")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return self._composed(node, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return self._repeated(node, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.BitXor):
            self._refuse(node, "is no plan: repeat a mechanism with **, as in 'Laplace(2) ** 3'")
        several = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
        if several or isinstance(node, ast.List | ast.Tuple):
            self._refuse(node, f"is no plan: compose with @; {_EXAMPLE}")
        made = self._made(node, depth) if isinstance(node, ast.Call) else None
        if not isinstance(made, Mechanism):
            self._refuse(node, f"is no mechanism; {_EXAMPLE}")
        return made

    def _composed(self, node: ast.BinOp, depth: int) -> Mechanism:
        """Return a composition: ``a @ b @ c`` leans to the left, however long it is."""
        parts, left = [], node
        while True:
            parts.append(left.right)
            if not (isinstance(left.left, ast.BinOp) and isinstance(left.left.op, ast.MatMult)):
                break
            left = left.left
        return self._checked(
            lambda: Composed([self._plan(one, depth + 1) for one in (left.left, *reversed(parts))])
        )

    def _repeated(self, node: ast.BinOp, depth: int) -> Mechanism:
        """Return a repetition."""
        if isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.Pow):
            self._refuse(node, "needs brackets: Python takes the powers from the right")
        once, count = self._plan(node.left, depth + 1), self._value(node.right, depth)
        times: Any = count
        return self._checked(lambda: once**times)

    def _checked(self, make: Callable[[], Mechanism]) -> Mechanism:
        """Return what is made, or raise as a file does."""
        try:
            return make()
        except PlanFileError:
            raise
        except HockeystickError as error:
            raise PlanFileError(str(error)) from None

    def _made(self, node: ast.Call, depth: int, field: str = "") -> object:
        """Return what a call makes, for a field if it is not for itself."""
        name, make = self._made_by(node, field)
        fields = self._fields(node, name, make, depth)
        return built(make, fields, name, dialect=CALL, blanks=self._blanks)

    def _made_by(self, node: ast.Call, field: str = "") -> tuple[str, Callable[..., object]]:
        """Return what a call calls, by its name."""
        path = self._path(node.func).split(".")
        while len(path) > 1 and path[0] in _ROOMS:
            path = path[1:]
        name = ".".join(path)
        name = _NOTIONS.get(name.lower(), name)
        in_module = f"{_MODULES.get(field)}.{name}"
        name = in_module if in_module in _CALLABLE else name
        if name == IN_PYTHON_ONLY:
            raise PlanFileError("no text can hold a trade-off function; use Python for FDP")
        if name not in _CALLABLE:
            near = hint(name, _CALLABLE) or "; hockeystick init --list names all"
            raise PlanFileError(f"{name!r} is no mechanism or notion{near}")
        return name, _CALLABLE[name]

    def _path(self, node: ast.expr) -> str:
        """Return a name with dots, or raise."""
        left: ast.expr = node
        after = ""
        while isinstance(left, ast.Attribute):
            after = f".{left.attr}{after}"
            left = left.value
        if not isinstance(left, ast.Name):
            self._refuse(node, f"is no name of a mechanism; {_EXAMPLE}")
        return left.id + after

    def _fields(
        self, node: ast.Call, name: str, make: Callable[..., object], depth: int
    ) -> dict[str, object]:
        """Return the fields that a call gives, by their names."""
        parameters = parameters_of(make)
        by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        names = [one.name for one in parameters.values() if one.kind in by_place]
        if len(node.args) > len(names):
            takes = f"at most {len(names)} values without a name: {', '.join(names)}"
            raise PlanFileError(f"{name} takes {takes}; got {len(node.args)}")
        given = [*zip(names, node.args, strict=False)]
        for keyword in node.keywords:
            if keyword.arg is None:
                raise PlanFileError(f"{name}: write each parameter out, without **")
            given.append((keyword.arg, keyword.value))
        fields: dict[str, object] = {}
        for key, value in given:
            if key in fields:
                raise PlanFileError(f"{name}: {key} is given twice")
            fields[key] = self._value(value, depth, key)
        return fields

    def _value(self, node: ast.expr | None, depth: int, field: str = "") -> object:
        """Return the number, text, mechanism or sequence that a node stands for, or raise."""
        if depth > _DEEPEST:
            raise PlanFileError(f"values may be nested at most {_DEEPEST} deep")
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return [tuple(self._value(one, depth + 1) for one in pair) for pair in pairs]
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return tuple(self._value(one, depth + 1) for one in node.elts)
        if is_arithmetic(node):
            return self._computed(node)
        if isinstance(node, ast.Call):
            return self._made(node, depth + 1, field)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Pow):
            return self._plan(node, depth)
        return self._constant(node)

    def _constant(self, node: ast.expr | None) -> object:
        """Return a number, a text, True, False or None, without losing a number's range."""
        inner = node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = node.operand
        if isinstance(inner, ast.Name) and inner.id in ("inf", "nan"):
            found: Any = float(inner.id)
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, int | float | str | None):
            found = self._exactly(inner)
        else:
            why = "may not stand here: give a number, a text or a mechanism"
            left_out = "; what is to be solved for is left out" * isinstance(inner, ast.Name)
            self._refuse(node, f"{why}{left_out}; {_EXAMPLE}")
        if inner is node:
            return found
        if not _is_number(found):
            self._refuse(node, "is no number")
        return -found

    def _exactly(self, node: ast.Constant) -> object:
        """Return a constant; a number that a float cannot hold is read as a ``Decimal``."""
        if not isinstance(node.value, float) or (node.value and math.isfinite(node.value)):
            return node.value
        return parse(ast.get_source_segment(self._text, node) or "")

    def _number(self, node: ast.expr) -> Any:
        """Return a number, or raise."""
        found = self._constant(node)
        if not _is_number(found):
            self._refuse(node, "is no number")
        return found

    def _computed(self, node: ast.expr | None) -> Any:
        """Return what is computed of numbers, as Python has it."""
        try:
            return None if node is None else computed(node, self._number)
        except (ArithmeticError, TypeError, ValueError):
            self._refuse(node, "cannot be computed")

    def _refuse(self, node: ast.expr | None, why: str) -> NoReturn:
        """Raise for what may not stand where it does."""
        segment = None if node is None else ast.get_source_segment(self._text, node)
        raise PlanFileError(f"{_shown(segment or '**')} {why}")


def _is_number(value: object) -> bool:
    """Return whether a constant is a number."""
    return value is not None and not isinstance(value, str | bool)


def _shown(text: str) -> str:
    """Return a text short enough for a line."""
    words = " ".join(text.split())
    return repr(words if len(words) <= _SHOWN else words[: _SHOWN - 3] + "...")
