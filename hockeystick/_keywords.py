"""Calls with a wrong parameter: the error names what there is, and what was meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Final

from hockeystick._synonyms import parameter_hint

_BY_PLACE: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_SHOWN: Final = 5


def explaining(init: Callable[..., None]) -> Callable[..., None]:
    """Return an ``__init__`` that says what it takes where it is called with something else.

    Nothing is looked at unless the call fails, and the signature stays as it is written.
    """

    @wraps(init)
    def explained(self: object, *given: Any, **named: Any) -> None:
        try:
            init(self, *given, **named)
        except TypeError:
            _refuse_wrong_call(init, given, named)
            raise

    return explained


def _refuse_wrong_call(
    init: Callable[..., None], given: tuple[Any, ...], named: Mapping[str, Any]
) -> None:
    """Raise where a parameter has no such name, or too many are given by their place."""
    kind = init.__qualname__.rpartition(".")[0]
    _, *parameters = signature(init).parameters.values()
    names = [one.name for one in parameters if one.name != "origin"]
    if any(one.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for one in parameters):
        return
    for name, value in named.items():
        if name not in (one.name for one in parameters):
            hint = parameter_hint(kind, name, value, names)
            text = f"{kind} has no parameter {name!r}{hint}; it takes {', '.join(names)}"
            raise TypeError(text) from None
    placed = [one.name for one in parameters if one.kind in _BY_PLACE]
    if len(given) > len(placed):
        by_name = [f"{name}=..." for name in names if name not in placed]
        shown = [*by_name[:_SHOWN], "..."] if len(by_name) > _SHOWN else by_name
        takes = f"only {', '.join(placed)}" if placed else "nothing"
        where = " without a name" if by_name else ""
        how = f": write {kind}({', '.join([*placed, *shown])})" if by_name else ""
        raise TypeError(f"{kind} takes {takes}{where}; got {len(given)} values{how}") from None
