"""The accountant that picks: a closed form where there is one, the contour integral otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

from hockeystick.accountants._cost import Cost
from hockeystick.accountants.base import Accountant, Interval, Kind
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.rdp import RDP
from hockeystick.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hockeystick.results import Quantity


@final
class Auto(Accountant):
    """The narrowest proven interval: closed form, else contour, else the Renyi bound."""

    name: ClassVar[str] = "auto"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "closed form where there is one, contour otherwise"

    def epsilon(self, cost: Cost, delta: float) -> Interval:
        """Return epsilon by the first accountant that applies."""
        return self.choose(lambda accountant: accountant.epsilon(cost, delta))[1]

    def delta(self, cost: Cost, epsilon: float) -> Interval:
        """Return delta by the first accountant that applies."""
        return self.choose(lambda accountant: accountant.delta(cost, epsilon))[1]

    def digits(self, cost: Cost, quantity: Quantity, value: float, digits: int) -> Interval:
        """Return epsilon or delta to so many digits by the first accountant that can."""
        return self.choose(lambda one: one.digits(cost, quantity, value, digits))[1]

    def choose(self, ask: Callable[[Accountant], Interval]) -> tuple[Accountant, Interval]:
        """Return the first accountant that answers, and its answer."""
        for accountant in (ClosedForm(), Contour()):
            try:
                return accountant, ask(accountant)
            except UnsupportedError:
                continue
        last = RDP()
        return last, ask(last)
