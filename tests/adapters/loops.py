"""Private loops of torch, for tests that name the options of counting and loading at once."""

from dataclasses import fields
from typing import Any

from hockeystick.adapters.torch import Counting, Loading
from hockeystick.adapters.torch import make_private as made


def make_private(*given: Any, **options: Any) -> Any:
    """Return what ``make_private`` does, with values made of the options that are theirs."""
    values: dict[str, Any] = {}
    for name, kind in {"counting": Counting, "loading": Loading}.items():
        own = {one.name for one in fields(kind)} & options.keys()
        if own:
            values[name] = kind(**{one: options.pop(one) for one in own})
    return made(*given, **options | values)
