"""The choice among several accountants: the first narrow answer, else the narrowest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from hockeystick.accountants.base import TOLERANCE, Accountant, Kind
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.prv import PRV
from hockeystick.errors import UnsupportedError
from hockeystick.privacy_loss import Composition

# A contour interval of a larger relative width is not narrowed by smoothing; a lattice may then
# leave this many times the tolerance.
_WIDE_CONTOUR: Final = 0.1
_LATTICE_FACTOR: Final = 100.0


@dataclass(frozen=True)
class Choice(Accountant):
    """The first of several accountants whose answer is narrow enough; else the narrowest one."""

    tolerance: float = TOLERANCE
    order: tuple[Accountant, ...] = ()
    name: ClassVar[str] = "auto"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "the first of several accountants that is narrow enough"
    has_digits: ClassVar[bool] = True

    def within(self, tolerance: float) -> Choice:
        return replace(self, tolerance=tolerance)

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        return self.choose(lambda accountant: accountant.epsilon(composition, delta))[1]

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        return self.choose(lambda accountant: accountant.delta(composition, epsilon))[1]

    def choose(
        self, ask: Callable[[Accountant], Interval], *, digits: bool = False
    ) -> tuple[Accountant, Interval]:
        """Return the accountant chosen, and its answer.

        Raises:
            UnsupportedError: Where none has an answer, with the last one's reason.
        """
        best: tuple[Accountant, Interval] | None = None
        refusal: UnsupportedError | None = None
        widths: dict[str, float] = {}
        for accountant in (one.within(self.tolerance) for one in self.order):
            if digits and not accountant.has_digits:
                continue
            try:
                found = accountant, ask(accountant)
            except UnsupportedError as error:
                refusal = error
                continue
            if best is None or _narrowness(found[1]) < _narrowness(best[1]):
                best = found
            widths.setdefault(accountant.name, found[1].relative_width)
            if digits or best[1].is_narrow(self._sufficient_width(widths)):
                return best
        if best is not None:
            return best
        raise refusal or UnsupportedError(self.name, "the plan", "no accountant applies")

    def _sufficient_width(self, widths: dict[str, float]) -> float:
        """Return the width at which the search ends, given those of contour and lattice."""
        wide_contour = PRV.name in widths and widths.get(Contour.name, 0.0) > _WIDE_CONTOUR
        return self.tolerance * (_LATTICE_FACTOR if wide_contour else 1.0)


def _narrowness(interval: Interval) -> tuple[float, float]:
    """Return the key by which intervals are compared: the width, then the upper end."""
    return interval.relative_width, interval.upper
