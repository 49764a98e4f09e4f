"""The plan that calibration begins with: as given, or made of a class and all but one field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from hockeystick._suggest import hint
from hockeystick.errors import ParameterError
from hockeystick.io.building import begun, parameters_of, required_by, starts
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked

_A_PLAN: Final = "a mechanism, or a class of them such as hs.DPSGD, with its fields as keywords"
_OPTIONS: Final = ("spent", "tolerance", "accountant", "whole")
_INSTEAD_OF_A_FUNCTION: Final = (
    " (in place of a function, a plan with any number in the parameter's place: "
    "hs.calibrate(hs.Gaussian(1) ** 10, 'noise_multiplier', target))"
)


def begun_with(
    plan: Mechanism | Callable[..., Mechanism], parameter: str, fields: Mapping[str, Any]
) -> Mechanism:
    """Return a plan as it is, or one of a class, with a number for what is solved for.

    Raises:
        ParameterError: If it is neither, or a field is unknown, missing, or beside a whole plan.
    """
    if isinstance(plan, Mechanism):
        for name, value in fields.items():
            allowed = f"left out beside a plan, which has its numbers{hint(name, _OPTIONS)}"
            raise ParameterError(name, value, allowed)
        return plan
    given = {**plan.keywords, **fields} if isinstance(plan, partial) else dict(fields)
    kind = plan.func if isinstance(plan, partial) else plan
    if not (isinstance(kind, type) and issubclass(kind, Mechanism)):
        return checked("plan", plan, allowed=_A_PLAN + _INSTEAD_OF_A_FUNCTION * callable(plan))
    make = partial(kind, *plan.args) if isinstance(plan, partial) and plan.args else kind
    return _of_a_class(kind.__name__, make, parameter, given)


def _of_a_class(
    kind: str, make: Callable[..., Mechanism], parameter: str, fields: Mapping[str, Any]
) -> Mechanism:
    """Return a mechanism of a class, with a number for the parameter where that is one of it."""
    names = list(parameters_of(make))
    for name in fields:
        if name not in names:
            raise ParameterError(f"a field of {kind}", name, f"one of {str(names)[1:-1]}")
    is_open = parameter in names and parameter not in fields
    for name in required_by(make):
        if name not in fields and not (is_open and name == parameter):
            if parameter not in names and hint(parameter, [name]):
                raise ParameterError("parameter", parameter, f"{name!r}, as {kind} calls it")
            raise ParameterError(name, None, f"given beside {kind}")
    if not is_open:
        return make(**fields)
    start = begun(make, fields, parameter)
    # Where no start will do, what is wrong with the fields is said by making it of any.
    return make(**fields, **{parameter: next(starts(make, parameter)) if start is None else start})
