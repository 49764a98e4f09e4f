"""A conversion: what was converted, into what, and why it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final, final

from hockeystick.answers import Caution, conversion_cautions
from hockeystick.cli.flags.of_group import OfGroup
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.notions import FDP, TCDP, ApproxDP, Notion, RenyiDP
from hockeystick.numerics.numerals import jsonable

_READ_AT: Final = (0.1, 0.01, 0.001)


@final
@dataclass(frozen=True, slots=True)
class Conversion:
    """What was converted, into what, and why it holds.

    Args:
        file: The source, with what a plan file says about it.
        written: Whether the source was written out, and not read from a file.
        asked: The names of the parameters that were given for the result.
        result: The guarantee that it implies.
        lower: Proven lower ends of the numbers of the result; none where none are known.
    """

    file: PlanFile
    written: bool
    asked: tuple[str, ...]
    result: Notion
    lower: tuple[float, ...] = ()

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What whoever quotes the result should know besides."""
        return conversion_cautions(self.result, self.file.plan, self.lower)

    @property
    def kind(self) -> str:
        """Whether the result is exact or a bound."""
        return "bound" if self.result.origin is None else self.result.origin.kind

    @property
    def theorem(self) -> str:
        """Why the result holds, and for a group why that is the group's."""
        found = "" if self.result.origin is None else self.result.origin.theorem
        plan = self.file.plan
        return f"{found}; {plan.theorem}" if isinstance(plan, OfGroup) else found

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the source to be as described."""
        return _assumptions(self.file, self.written)

    @property
    def found(self) -> list[float]:
        """The numbers of the result that were not given, each true of whatever is larger."""
        if isinstance(self.result, RenyiDP):
            return [size for _, size in self.result.divergences]
        if isinstance(self.result, FDP):
            return []
        numbers = numbers_of(self.result)
        return [float(value) for name, value in numbers.items() if name not in self.asked]

    @property
    def least(self) -> dict[str, Any] | None:
        """The proven lower ends of what was asked for, by their names; None where none are."""
        if not self.lower:
            return None
        if isinstance(self.result, RenyiDP):
            pairs = zip(self.result.divergences, self.lower, strict=True)
            return {"divergences": [[order, jsonable(low)] for (order, _), low in pairs]}
        numbers = zip(numbers_of(self.result), self.lower, strict=False)
        return {name: jsonable(low) for name, low in numbers if name not in self.asked}


@final
@dataclass(frozen=True, slots=True)
class Conversions:
    """What every notion says of one source.

    Args:
        file: The source, with what a plan file says about it.
        written: Whether the source was written out, and not read from a file.
        found: The conversion to each notion by the notion's name, or why there is none.
    """

    file: PlanFile
    written: bool
    found: Mapping[str, Conversion | str]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the source to be as described."""
        return _assumptions(self.file, self.written)


def _assumptions(file: PlanFile, written: bool) -> tuple[str, ...]:
    """Return what must hold for a source to be as described; a written notion is as it is."""
    return () if written and isinstance(file.plan, Notion) else assumptions_of(file.plan)


@singledispatch
def numbers_of(result: Mechanism) -> dict[str, Any]:
    """Return the parameters of a guarantee, ready for JSON."""
    names = [name for name in ("epsilon", "mu", "rho") if hasattr(result, name)]
    return {name: jsonable(getattr(result, name)) for name in names}


@numbers_of.register
def _(result: ApproxDP) -> dict[str, Any]:
    return {"epsilon": jsonable(result.epsilon), "delta": result.delta}


@numbers_of.register
def _(result: TCDP) -> dict[str, Any]:
    return {"rho": jsonable(result.rho), "omega": jsonable(result.omega)}


@numbers_of.register
def _(result: RenyiDP) -> dict[str, Any]:
    return {"divergences": [[order, jsonable(size)] for order, size in result.divergences]}


@numbers_of.register
def _(result: FDP) -> dict[str, Any]:
    f = result.tradeoff
    missed = [{"fpr": fpr, "fnr_lower": f(fpr)} for fpr in _READ_AT]
    return {"tradeoff": type(f).__name__, "rates": missed}
