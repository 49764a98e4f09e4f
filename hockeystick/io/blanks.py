"""The number that a plan leaves out, and what stands in its place until it is solved for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hockeystick._validate import PARAMETERS
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.io.vocabulary import ALTERNATIVES
from hockeystick.mechanisms import DPSGD, Mechanism, Sampling

# Of a DPSGD.
_STARTS: Final[Mapping[str, float]] = {
    "noise_multiplier": 1,
    "examples": 1_000_000,
    "batch_size": 1,
    "rate": 0.01,
    "epochs": 1,
    "steps": 1000,
}
# Of others: numbers that hardly stand elsewhere in a plan, so that they are found again.
_ANY: Final = (1.0625, 1, 2, 0.53125, 101, 0.010009765625, 1009, 1_000_003)


def begun(make: Callable[..., Mechanism], fields: Mapping[str, Any], name: str) -> float | None:
    """Return the first number for a field with which a mechanism can be made; None for none."""
    for start in starts(make, name):
        try:
            make(**fields, **{name: start})
        except ParameterError as error:
            if name not in error.name.replace(" or ", ", ").split(", "):
                return None
        except (HockeystickError, TypeError):
            return None
        else:
            return start
    return None


def starts(make: Callable[..., object], name: str) -> Iterator[float]:
    """Return numbers that a field may have, the likeliest first."""
    if make is DPSGD and name in _STARTS:
        yield _STARTS[name]
    elif name in PARAMETERS:
        low, high = PARAMETERS[name].typical
        yield math.sqrt(low * high)
    yield from _ANY


@dataclass(slots=True)
class Blanks:
    """What a plan leaves out, collected while it is read.

    Args:
        wanted: The name of what is to be solved for, where that is said: of two alternatives, as
            epochs and steps, it is the one that is meant.
        found: What is left out: of which mechanism, its name, and the number in its place.
    """

    wanted: str | None = None
    found: list[tuple[type[Mechanism], str, float]] = field(default_factory=list)

    def filled(self, make: Any, fields: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
        """Return fields, with a number in place of one that is left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        if make is DPSGD:
            missing = self._missing_of_dpsgd(given)
        elif isinstance(make, type) and issubclass(make, Mechanism):
            missing = [name for name in required if name not in given]
        else:
            missing = []
        if len(missing) != 1:
            return dict(fields)
        start = begun(make, given, missing[0])
        if start is None:
            return dict(fields)
        self.found.append((make, missing[0], start))
        return {**fields, missing[0]: start}

    def _missing_of_dpsgd(self, given: Mapping[str, Any]) -> list[str]:
        """Return what a DPSGD lacks of noise, length and batches, of which one size is enough."""
        sized = "examples" in given
        missing = [] if "noise_multiplier" in given else ["noise_multiplier"]
        if given.keys().isdisjoint(("epochs", "steps")):
            missing.append(self._meant("epochs" if sized else "steps"))
        whole = given.get("sampling") == Sampling.FULL_BATCH
        if not whole and given.keys().isdisjoint(("batch_size", "rate")):
            missing.append(self._meant("batch_size" if sized else "rate"))
        elif "batch_size" in given and not sized:
            missing.append("examples")
        return missing

    def _meant(self, name: str) -> str:
        """Return a name, or its alternative where that is wanted."""
        other = ALTERNATIVES[name]
        return other if self.wanted == other else name
