"""The accountant that picks: a closed form where there is one, the contour integral otherwise."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, final

from hockeystick.accountants._cost import Cost
from hockeystick.accountants._interval import Interval
from hockeystick.accountants.base import Accountant, Kind
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.parts import Parts
from hockeystick.accountants.rdp import RDP
from hockeystick.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hockeystick.results import Quantity

_ORDER: Final = (ClosedForm(), Contour(), Parts(), RDP())


@final
class Auto(Accountant):
    """The narrowest proven interval: closed form, else contour, else the Renyi bound."""

    name: ClassVar[str] = "auto"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "closed form where there is one, contour otherwise"
    has_digits: ClassVar[bool] = True

    def epsilon(self, cost: Cost, delta: float) -> Interval:
        """Return epsilon by the first accountant that applies."""
        return self.choose(lambda accountant: accountant.epsilon(cost, delta))[1]

    def delta(self, cost: Cost, epsilon: float) -> Interval:
        """Return delta by the first accountant that applies."""
        return self.choose(lambda accountant: accountant.delta(cost, epsilon))[1]

    def digits(self, cost: Cost, quantity: Quantity, value: float, digits: int) -> Interval:
        """Return epsilon or delta to so many digits by the first accountant that can."""
        return self.choose(lambda one: one.digits(cost, quantity, value, digits), digits=True)[1]

    def choose(
        self, ask: Callable[[Accountant], Interval], *, digits: bool = False
    ) -> tuple[Accountant, Interval]:
        """Return the first accountant that answers, and its answer."""
        *first, last = [one for one in _ORDER if one.has_digits or not digits]
        for accountant in first:
            with suppress(UnsupportedError):
                return accountant, ask(accountant)
        return last, ask(last)
