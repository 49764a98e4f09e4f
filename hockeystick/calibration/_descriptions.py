"""Mechanisms, guarantees and all that they are made of, as JSON and back, exactly.

A description becomes an object with its ``type`` and its fields; reading it calls the type's
constructor, so that nothing comes in unchecked. Only types of the registries are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache, singledispatch
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from hockeystick import _validate
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.calibration._forms import SPECIAL, Form, by_fields, release_of
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.io.vocabulary import RUN_COUNTS, SCHEDULES, STRATEGIES
from hockeystick.mechanisms import MECHANISMS, Mechanism
from hockeystick.mechanisms.base import Plan, checked
from hockeystick.notions import NOTIONS
from hockeystick.tradeoffs import (
    GaussianTradeOff,
    LaplaceTradeOff,
    ProfileTradeOff,
    SampledGaussianTradeOff,
)
from hockeystick.tradeoffs.functions.piecewise import IdentityTradeOff
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiLine, RenyiPoints

Json: TypeAlias = Any

_TYPE: Final = "type"
_FLOAT: Final = "float"
_FRACTION: Final = "fraction"
_A_DESCRIPTION: Final = "a description as state_dict writes it"
_TRADEOFFS: Final = (
    GaussianTradeOff,
    IdentityTradeOff,
    LaplaceTradeOff,
    RenyiLine,
    RenyiPoints,
    SampledGaussianTradeOff,
)


def describe(plan: Mechanism) -> dict[str, Any]:
    """Return a plan as JSON keeps it exactly: the form in which answers say what they are of.

    An object has the name of its ``type`` (schedules, distributions of runs and trade-off
    functions after the name of their module) and its fields. What JSON does not have is an object
    of one key: ``{"float": "inf"}``, ``{"fraction": "0x1/0x3"}`` with hexadecimal integers.

    Guarantees:
        Nothing is rounded, and equal plans give the same description. A plan of a class that is
        none of the package's is described by the mechanism that it comes down to.

    Args:
        plan: A mechanism or plan.

    Returns:
        Numbers, texts, lists and objects.

    Raises:
        ParameterError: If it is no plan, or holds something that has no such form, as a mechanism
            that is none of the package's or a trade-off function that only a program knows.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.calibration import describe
        >>> describe(hs.Gaussian(2.0) ** 10)
        {'type': 'Repeated', 'inner': {'type': 'Gaussian', 'noise_multiplier': 2.0}, 'count': 10}
    """
    described: dict[str, Any] = encoded(checked("plan", plan))
    return described


@singledispatch
def encoded(value: Any) -> Json:
    """Return a description as numbers, texts, lists and objects that JSON keeps exactly.

    Raises:
        ParameterError: If it holds something that has no such form.
    """
    name = _names().get(type(value))
    if name is None and isinstance(value, Plan):
        return encoded(value.mechanism)
    if name is None:
        allowed = "made of what has a form in JSON: numbers, texts and the registered types"
        raise ParameterError("state", value, allowed)
    parts = _forms()[name].apart(value)
    return {_TYPE: name, **{key: encoded(part) for key, part in parts.items()}}


def read_description(document: Json) -> Mechanism:
    """Return the plan that a description says: ``describe`` the other way round.

    Guarantees:
        The plan equals the one that was described. Each type's constructor is called, so that
        nothing comes in unchecked; only types of the package are read.

    Args:
        document: What ``describe`` returned, also after a way through JSON.

    Returns:
        A mechanism or plan.

    Raises:
        ParameterError: If it is no description, or of an unknown type, or has other fields.
        IncompatibleError: If its parts do not go together.

    Example:
        >>> from hockeystick.calibration import read_description
        >>> read_description({"type": "Gaussian", "noise_multiplier": 2.0})
        Gaussian(noise_multiplier=2.0)
    """
    try:
        return checked("mechanism", _decoded(document))
    except RecursionError:
        raise ParameterError("mechanism", "what is nested too deeply", _A_DESCRIPTION) from None


@encoded.register
def _(value: int | None) -> Json:
    return value


@encoded.register
def _(value: str) -> Json:
    return str(value)


@encoded.register
def _(value: float) -> Json:
    return value if math.isfinite(value) else {_FLOAT: repr(value)}


@encoded.register
def _(value: Fraction) -> Json:
    # Hexadecimal, since Python reads no decimals of more than a few thousand digits.
    return {_FRACTION: f"{value.numerator:#x}/{value.denominator:#x}"}


@encoded.register(tuple)
def _(value: tuple[Any, ...]) -> Json:
    return [encoded(item) for item in value]


@encoded.register(frozenset)
def _(value: frozenset[Any]) -> Json:
    return [encoded(item) for item in sorted(value)]


@singledispatch
def _decoded(document: Json) -> Any:
    """Return what is neither a list nor an object as it is."""
    return document


@_decoded.register(list)
def _(document: list[Any]) -> Any:
    return tuple(_decoded(item) for item in document)


@_decoded.register(dict)
def _(document: dict[str, Any]) -> Any:
    keys = set(document)
    if keys == {_FLOAT}:
        return float(_validate.one_of(_FLOAT, document[_FLOAT], ("inf", "-inf")))
    if keys == {_FRACTION}:
        return _fraction(document[_FRACTION])
    name = document.get(_TYPE)
    form = _forms().get(name) if isinstance(name, str) else None
    if form is None:
        allowed = "a registered one; this may come from another version of hockeystick"
        raise ParameterError(_TYPE, name, allowed)
    if keys | set(form.optional) != {_TYPE, *form.names}:
        allowed = f"given with {', '.join(form.names) or 'nothing'} and no other field"
        raise ParameterError(f"a {name}", sorted(map(str, keys - {_TYPE})), allowed)
    return _made(form, {key: _decoded(document[key]) for key in form.names if key in document})


def _made(form: Form, values: Mapping[str, Any]) -> Any:
    """Return what the constructor makes of the fields; what it chokes on is no description."""
    try:
        return form.made(**values)
    except HockeystickError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError):
        raise ParameterError(f"a {form.kind.__name__}", dict(values), _A_DESCRIPTION) from None


def _fraction(text: object) -> Fraction:
    """Return the fraction that a text says, or raise."""
    numerator, _, denominator = text.partition("/") if isinstance(text, str) else ("", "", "")
    try:
        return Fraction(int(numerator, 16), int(denominator, 16))
    except (ValueError, ZeroDivisionError):
        allowed = "two hexadecimal numbers with a stroke between them"
        raise ParameterError(_FRACTION, text, allowed) from None


@cache
def _forms() -> Mapping[str, Form]:
    """Return the forms of all types that are read, by name."""
    plain: dict[str, type] = {**MECHANISMS, **NOTIONS}
    named: dict[str, type] = {f"schedules.{kind.__name__}": kind for kind in SCHEDULES.values()}
    named |= {f"tuning.{kind.__name__}": kind for kind in RUN_COUNTS.values()}
    named |= {f"tradeoffs.{kind.__name__}": kind for kind in _TRADEOFFS}
    of_plan = Form(ProfileTradeOff, ("plan",), release_of, tradeoff)
    plain |= {kind.__name__: kind for kind in STRATEGIES.values()}
    forms = {name: by_fields(kind) for name, kind in {**plain, **named}.items()}
    return MappingProxyType({**forms, **SPECIAL, "tradeoffs.of_plan": of_plan})


@cache
def _names() -> Mapping[type, str]:
    """Return the names of all types that are written."""
    return MappingProxyType({form.kind: name for name, form in _forms().items()})
