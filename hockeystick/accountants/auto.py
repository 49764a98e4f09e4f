"""The accountant that picks: a closed form, else a contour, else a lattice, else bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, final

from hockeystick.accountants.base import Accountant, Interval, Kind, Many
from hockeystick.accountants.choice import Choice, Parts
from hockeystick.accountants.classical import Advanced, Basic, ZeroConcentrated
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.limits import BerryEsseen, Edgeworth, GaussianLimit
from hockeystick.accountants.prv import PRV
from hockeystick.accountants.rdp import RDP, Moments
from hockeystick.accountants.selection import Selection
from hockeystick.errors import UnsupportedError
from hockeystick.privacy_loss import Composition

if TYPE_CHECKING:
    from hockeystick.results import Quantity


# For rare large losses a lattice takes a fraction of the time of a smoothed contour.
_ORDER: Final = (
    ClosedForm(),
    Selection(),
    Contour(smooths=False),
    PRV(),
    Contour(),
    Parts(),
    RDP(),
    ZeroConcentrated(),
)


@final
@dataclass(frozen=True)
class Auto(Choice):
    """The first answer that is narrow enough, else the intersection of all of them.

    References:
        Those of the accountant that answered, which the answer names.
    """

    order: tuple[Accountant, ...] = _ORDER
    name: ClassVar[str] = "auto"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "closed form where there is one, else contour, else a lattice"
    has_digits: ClassVar[bool] = True

    def within(self, tolerance: float) -> Auto:
        return Auto(tolerance)

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


ACCOUNTANTS: Final[Mapping[str, Accountant]] = MappingProxyType(
    {
        one.name: one
        for one in (
            Auto(),
            ClosedForm(),
            Contour(),
            PRV(),
            Selection(),
            Parts(),
            RDP(),
            ZeroConcentrated(),
            Moments(),
            Advanced(),
            Basic(),
            BerryEsseen(),
            GaussianLimit(),
            Edgeworth(),
        )
    }
)
