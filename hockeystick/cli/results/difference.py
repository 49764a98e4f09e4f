"""Two plans side by side: which numbers differ, and which of them costs less."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick.cli.describe import fields
from hockeystick.io.plan_file import PlanFile
from hockeystick.results import Certified

# These say again what other fields say.
_AGAIN: Final = ("steps_rule",)
ABSENT: Final = None


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """Two plans, asked for epsilon at the same delta.

    Args:
        names: What to call them.
        files: The plans.
        delta: Where they were asked.
        answers: Their epsilons.
    """

    names: tuple[str, str]
    files: tuple[PlanFile, PlanFile]
    delta: float
    answers: tuple[Certified, Certified]

    @property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """What differs, by its path: as the first plan has it, and as the second."""
        kinds = tuple(type(file.plan).__name__ for file in self.files)
        if kinds[0] != kinds[1]:
            return {"mechanism": (kinds[0], kinds[1])}
        first, second = (dict(_flat(fields(file.plan), "")) for file in self.files)
        paths = dict.fromkeys((*first, *second))
        both = {path: (first.get(path, ABSENT), second.get(path, ABSENT)) for path in paths}
        return {path: pair for path, pair in both.items() if pair[0] != pair[1]}

    @property
    def ends(self) -> tuple[float, float]:
        """Proven ends of the second epsilon less the first."""
        if self.sign == "the same":
            return 0.0, 0.0
        first, second = self.answers
        low, high = second.lower - first.upper, second.upper - first.lower
        # Infinity less infinity is no number, and may be anything.
        return (
            -math.inf if math.isnan(low) else math.nextafter(low, -math.inf),
            math.inf if math.isnan(high) else math.nextafter(high, math.inf),
        )

    @property
    def sign(self) -> str:
        """Whether the second costs "less", "more" or "the same", by proof, or "undecided"."""
        first, second = self.answers
        if self.files[0].plan == self.files[1].plan:
            return "the same"
        if second.upper < first.lower:
            return "less"
        if second.lower > first.upper:
            return "more"
        alone = first.lower == first.upper == second.lower == second.upper
        return "the same" if alone else "undecided"

    @property
    def verdict(self) -> str:
        """The sign in a sentence."""
        if self.sign == "undecided":
            return "undecided: the proven intervals overlap"
        return f"{self.names[1]} costs {self.sign}: proven"

    @property
    def caution(self) -> str | None:
        """Why the two do not mean the same, where their neighbours differ."""
        first, second = (file.plan.adjacency for file in self.files)
        if first == second or first is None or second is None:
            return None
        return f"neighbours differ, {first} and {second}: the epsilons promise different things"


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the numbers and words of a description, each by its path."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name not in _AGAIN:
                yield from _flat(one, f"{path}.{name}".removeprefix("."))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _flat(one, f"{path}[{index}]")
    else:
        yield path, value
