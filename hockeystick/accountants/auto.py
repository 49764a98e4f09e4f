"""The accountant that picks: a closed form, else a contour, else a lattice, else bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, final

from hockeystick.accountants.base import TOLERANCE, Accountant, Kind, Many
from hockeystick.accountants.closed_forms.closed_form import ClosedForm
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.parts import Parts
from hockeystick.accountants.prv import PRV
from hockeystick.accountants.theorems.rdp import RDP
from hockeystick.accountants.theorems.zcdp import ZeroConcentrated
from hockeystick.errors import UnsupportedError
from hockeystick.privacy_loss import Composition

if TYPE_CHECKING:
    from hockeystick.results import Quantity

# For rare large losses a lattice takes a fraction of the time of a smoothed contour.
_ORDER: Final = (
    ClosedForm(),
    Contour(smooths=False),
    PRV(),
    Contour(),
    Parts(),
    RDP(),
    ZeroConcentrated(),
)
# A contour interval of a larger relative width is not narrowed by smoothing; a lattice may then
# leave this many times the tolerance.
_WIDE_CONTOUR: Final = 0.1
_LATTICE_FACTOR: Final = 100.0


@final
@dataclass(frozen=True)
class Auto(Accountant):
    """The first answer that is narrow enough: closed form, contour, lattice; else the narrowest."""

    tolerance: float = TOLERANCE
    name: ClassVar[str] = "auto"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "closed form where there is one, else contour, else a lattice"
    has_digits: ClassVar[bool] = True

    def within(self, tolerance: float) -> Auto:
        """Return the same with another tolerance."""
        return Auto(tolerance)

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        """Return epsilon by the accountant that is chosen."""
        return self.choose(lambda accountant: accountant.epsilon(composition, delta))[1]

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        """Return delta by the accountant that is chosen."""
        return self.choose(lambda accountant: accountant.delta(composition, epsilon))[1]

    def many(self, composition: Composition, quantity: Quantity, values: Sequence[float]) -> Many:
        """Return those answers that a few contour integrals give; none where a closed form does."""
        ask = ClosedForm().epsilon if quantity == "epsilon" else ClosedForm().delta
        try:
            ask(composition, values[0])
        except UnsupportedError:
            found = Contour(self.tolerance, smooths=False).many(composition, quantity, values)
            return {
                value: (one, interval)
                for value, (one, interval) in found.items()
                if interval.is_narrow(self.tolerance)
            }
        return {}

    def digits(
        self, composition: Composition, quantity: Quantity, value: float, digits: int
    ) -> Interval:
        """Return epsilon or delta to a number of digits by the first accountant that can."""
        return self.choose(
            lambda one: one.digits(composition, quantity, value, digits), digits=True
        )[1]

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
        for accountant in (one.within(self.tolerance) for one in _ORDER):
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
