"""Calls with a wrong parameter: the error names what there is, and what was meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper, wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, Final, TypeVar, cast

from hockeystick._instead import TOO_MANY
from hockeystick._synonyms import how_called, parameter_hint
from hockeystick.errors import ParameterError

_BY_PLACE: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_ANY: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_SHOWN: Final = 5
_Function = TypeVar("_Function", bound=Callable[..., Any])


def explaining(init: _Function) -> _Function:
    """Return an ``__init__`` that says what it takes where it is called with something else.

    Nothing is looked at unless the call fails, and the signature stays as it is written.
    """

    @wraps(init)
    def explained(self: object, *given: Any, **named: Any) -> None:
        try:
            init(self, *given, **named)
        except TypeError:
            kind = init.__qualname__.rpartition(".")[0]
            parameters = list(signature(init).parameters.values())[1:]
            _refuse_wrong_call(kind, parameters, given, named)
            if hasattr(self, "falls_with"):
                _refuse_open(type(self), parameters, given, named)
            raise
        except ParameterError as error:
            _refuse_swapped(error, init, given)
            raise

    return cast(_Function, explained)


def explaining_function(function: _Function) -> _Function:
    """Return a function that says what it takes where it is called with something else."""

    def refuse(given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        parameters = list(signature(function).parameters.values())
        bound = parameters[0].name in ("self", "cls")
        kind = function.__qualname__ if how_called(function.__qualname__) else function.__name__
        _refuse_wrong_call(kind, parameters[bound:], given[bound:], named)

    def explained(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except TypeError:
            refuse(given, named)
            raise

    # It is of the function's module, whose examples are looked for in what is of it.
    code, names = cast(FunctionType, explained), cast(FunctionType, function).__globals__
    made = FunctionType(code.__code__, names, function.__name__, None, code.__closure__)
    return cast(_Function, update_wrapper(made, function))


class Explained:
    """A dataclass with slots that says what it takes where it is made of something else."""

    __slots__ = ()

    def __init_subclass__(cls, **given: object) -> None:
        """Let a call with a wrong parameter say which ones there are."""
        super().__init_subclass__(**given)
        made_by = vars(cls).get("__init__")
        # A class with slots is made twice: the second time, of what the first one has.
        if made_by is not None and not hasattr(made_by, "__wrapped__"):
            setattr(cls, "__init__", explaining(made_by))  # noqa: B010


def _refuse_swapped(
    error: ParameterError, init: Callable[..., None], given: tuple[Any, ...]
) -> None:
    """Raise where the first two parameters, a mechanism and a number, are given in turn."""
    _, *names = signature(init).parameters
    swapped = len(given) > 1 and hasattr(given[1], "for_group")
    if error.name == names[0] == "inner" and swapped:
        text = "in this order: they are swapped"
        raise ParameterError(", ".join(names[:2]), given[:2], text) from None


def _refuse_wrong_call(
    kind: str, parameters: list[Parameter], given: tuple[Any, ...], named: Mapping[str, Any]
) -> None:
    """Raise where a parameter has no such name, is missing, or too many are given by place."""
    names = [one.name for one in parameters if one.name != "origin" and one.kind not in _ANY]
    if not any(one.kind in _ANY for one in parameters):
        _refuse_unknown(kind, names, [one.name for one in parameters], named)
    if not any(one.kind is Parameter.VAR_POSITIONAL for one in parameters):
        refuse_too_many(kind, parameters, given)
    if how_called(kind):
        _refuse_missing(kind, parameters, given, named)


def _refuse_unknown(
    kind: str, names: list[str], every: list[str], named: Mapping[str, Any]
) -> None:
    """Raise where no parameter has a name that is given."""
    for name, value in named.items():
        if name not in every:
            hint = parameter_hint(kind, name, value, names, named)
            text = (
                f"{kind} has no parameter {name!r}{hint}; it takes {', '.join(names) or 'nothing'}"
            )
            raise TypeError(text) from None


def refuse_too_many(kind: str, parameters: list[Parameter], given: Sequence[Any]) -> None:
    """Raise where more is given by place than there are places."""
    names = [one.name for one in parameters if one.name != "origin" and one.kind not in _ANY]
    placed = [one.name for one in parameters if one.kind in _BY_PLACE]
    if len(given) <= len(placed):
        return
    by_name = [f"{name}=..." for name in names if name not in placed]
    shown = [*by_name[:_SHOWN], "..."] if len(by_name) > _SHOWN else by_name
    takes = f"only {', '.join(placed)}" if placed else "nothing"
    where = " without a name" if by_name else ""
    write = f"{kind}({', '.join([*placed, *shown])})" if by_name else how_called(kind)
    write = TOO_MANY.get(kind, write)
    how = f": write {write}" if write else ""
    raise TypeError(f"{kind} takes {takes}{where}; got {len(given)} values{how}") from None


def _refuse_missing(
    kind: str, parameters: list[Parameter], given: tuple[Any, ...], named: Mapping[str, Any]
) -> None:
    """Raise where what has no default is not given."""
    needed = _missing(parameters, given, named)
    if needed:
        missing = " and ".join(needed)
        hint = _hint_for_missing(kind, parameters, named, needed)
        raise TypeError(f"{kind} needs {missing}{hint}: write {how_called(kind)}") from None


def _hint_for_missing(
    kind: str, parameters: list[Parameter], named: Mapping[str, Any], needed: list[str]
) -> str:
    """Return what was given under another name in place of what is missing; nothing if unknown."""
    known = {one.name for one in parameters}
    for name, value in named.items():
        hint = parameter_hint(kind, name, value, needed)
        if name not in known and hint:
            return f"; got {name}{hint}"
    return ""


def _refuse_open(
    mechanism: type[Any],
    parameters: list[Parameter],
    given: tuple[Any, ...],
    named: Mapping[str, Any],
) -> None:
    """Raise where a mechanism lacks a number: what to write, also where it is solved for."""
    needed, kind = _missing(parameters, given, named), mechanism.__name__
    if not needed:
        return
    text = f"{kind} needs {' and '.join(needed)}"
    if len(needed) == 1 and needed[0] in (*mechanism.falls_with, *mechanism.rises_with):
        there = [one.name for one in parameters[: len(given)]] + list(named)
        others = "".join(f", {name}=..." for name in there)
        text += (
            f"; to solve for it, give the class: calibrate({kind}, {needed[0]!r}, target{others}); "
            "within a larger plan any number will do"
        )
    raise TypeError(text) from None


def _missing(
    parameters: list[Parameter], given: tuple[Any, ...], named: Mapping[str, Any]
) -> list[str]:
    """Return the names of what has no default and is not given."""
    return [
        one.name
        for place, one in enumerate(parameters)
        if one.kind not in _ANY
        and one.default is Parameter.empty
        and (place >= len(given) or one.kind is Parameter.KEYWORD_ONLY)
        and one.name not in named
    ]
