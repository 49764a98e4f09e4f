"""An exact interval of one direction, by the contour integral or on a lattice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, final

from hockeystick.accountants.base import TOLERANCE, DirectedAccountant, Interval, Kind
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.prv import PRV
from hockeystick.errors import UnsupportedError
from hockeystick.privacy_loss import AnalyticLoss, CellLoss, PrivacyLoss, Terms


@final
@dataclass(frozen=True)
class Exact(DirectedAccountant):
    """The contour integral, or the lattice where that is narrower and the contour is wide."""

    tolerance: float = TOLERANCE
    name: ClassVar[str] = "exact"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "contour or lattice"

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        return self._read(lambda one: one.epsilon_of(terms, delta))

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        return self._read(lambda one: one.delta_of(terms, epsilon))

    def _read(self, read: Callable[[DirectedAccountant], Interval]) -> Interval:
        """Return the first answer that is narrow enough, else the intersection of both."""
        found: Interval | None = None
        for one in (Contour(), PRV(self.tolerance)):
            with suppress(UnsupportedError):
                new = read(one)
                found = new if found is None else new.within(found)
            if found is not None and found.is_narrow(self.tolerance):
                return found
        if found is None:
            raise self.refuse("the plan", "it has losses with lines only and with cells only")
        return found


def is_known(loss: PrivacyLoss) -> bool:
    """Return whether a loss has an analytic cgf, or interval masses of its own and is attained."""
    if isinstance(loss, AnalyticLoss):
        return not loss.out_of_range
    return isinstance(loss, CellLoss) and loss.attained is loss
