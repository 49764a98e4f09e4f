"""The accountant that picks: the first narrow answer, else what several accountants prove."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, final

from hockeystick.accountants.base import (
    TOLERANCE,
    Accountant,
    DirectedAccountant,
    Interval,
    Kind,
    Many,
)
from hockeystick.accountants.closed_form import has_closed_form
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.prv import PRV
from hockeystick.accountants.rdp import RDP
from hockeystick.errors import UnsupportedError
from hockeystick.numerics import down, up
from hockeystick.privacy_loss import (
    AnalyticLoss,
    CellLoss,
    Composition,
    PrivacyLoss,
    Terms,
    largest_loss,
)

if TYPE_CHECKING:
    from hockeystick.results import Quantity

# Shares of delta, or of epsilon, that the part known exactly is given.
_SHARES: Final = (0.5, 0.8, 0.95, 0.99, 0.999)


@final
class Parts(DirectedAccountant):
    """The part of a plan that is known exactly, together with what is known by a bound only.

    Lower end: that part alone, since releasing less never costs more. Upper end: the least of the
    Renyi bound of all, of that part's epsilon plus the largest loss of the rest, and of sums
    ``(eps_1 + eps_2, delta_1 + delta_2)`` over several shares of delta.

    References:
        Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, theorem 3.16
        (sums); Mironov, "Renyi Differential Privacy", CSF 2017, proposition 1, and Canonne, Kamath
        and Steinke 2020, proposition 12 (the Renyi bound).
    """

    name: ClassVar[str] = "parts"
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "contour or lattice for what is known exactly, bounds for the rest"

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        known, rest = self._split(terms)
        whole, alone = RDP().epsilon_of(terms, delta), _EXACT.epsilon(known, delta)
        upper = min(whole.upper, alone.upper + largest_loss(rest))
        for first, second in ((share * delta, down(delta - share * delta)) for share in _SHARES):
            of_rest = RDP().epsilon_of(rest, second).upper if first > 0.0 < second else math.inf
            # A smaller delta costs the known part no less.
            if alone.lower + of_rest < upper:
                upper = min(upper, up(_EXACT.epsilon(known, first).upper + of_rest))
        lower, upper = max(whole.lower, alone.lower), up(upper)
        return Interval(lower, upper, max(upper, lower))

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        known, rest = self._split(terms)
        whole, alone = RDP().delta_of(terms, epsilon), _EXACT.delta(known, epsilon)
        upper, left = min(whole.upper, 1.0), down(epsilon - largest_loss(rest))
        if 0.0 < left < math.inf and alone.lower < upper:
            upper = min(upper, _EXACT.delta(known, left).upper)
        for first in (share * epsilon for share in _SHARES):
            of_rest = RDP().delta_of(rest, down(epsilon - first)).upper
            if alone.lower + of_rest < upper:
                upper = min(upper, up(_EXACT.delta(known, first).upper + of_rest))
        lower = max(whole.lower, alone.lower)
        return Interval(lower, upper, max(upper, lower))

    def _split(self, terms: Terms) -> tuple[Composition, Terms]:
        known = tuple((loss, n) for loss, n in terms if _is_known(loss))
        rest = tuple((loss, n) for loss, n in terms if not _is_known(loss))
        if not known or not rest:
            reason = "it is not made of parts known exactly and parts known by a bound only"
            raise self.refuse("the plan", reason)
        return Composition(known, known), rest


def _is_known(loss: PrivacyLoss) -> bool:
    if isinstance(loss, AnalyticLoss):
        return not loss.out_of_range
    return isinstance(loss, CellLoss) and loss.attained is loss


# A contour interval of a larger relative width is not narrowed by smoothing; a lattice may then
# leave this many times the tolerance.
_WIDE_CONTOUR: Final = 0.1
_LATTICE_FACTOR: Final = 100.0


@final
@dataclass(frozen=True)
class Auto(Accountant):
    """The first answer that is narrow enough, else the intersection of all of them.

    References:
        Those of the accountant that answered, which the answer names.
    """

    order: tuple[Accountant, ...]
    tolerance: float = TOLERANCE
    name: ClassVar[str] = "auto"
    kind: ClassVar[Kind] = "exact"
    summary: ClassVar[str] = "closed form where there is one, else contour, else a lattice"
    has_digits: ClassVar[bool] = True

    def within(self, tolerance: float) -> Auto:
        if tolerance == self.tolerance:
            return self
        return Auto(tuple(one.within(tolerance) for one in self.order), tolerance)

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        return self.answer(composition, "epsilon", delta)[1]

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        return self.answer(composition, "delta", epsilon)[1]

    def many(self, composition: Composition, quantity: Quantity, values: Sequence[float]) -> Many:
        """Return those answers that a few contour integrals give; none where a closed form does."""
        if all(map(has_closed_form, composition.directions)):
            return {}
        found = Contour(self.tolerance, smooths=False).many(composition, quantity, values)
        return {at: one for at, one in found.items() if one[1].is_narrow(self.tolerance)}

    def answer(
        self, composition: Composition, quantity: Quantity, value: float, digits: int | None = None
    ) -> tuple[Accountant, Interval]:
        """Return the intersection of the answers, and the accountant that proves its upper end.

        Where none has an answer it raises, with the last one's reason.
        """
        best: tuple[Accountant, Interval] | None = None
        refusal: UnsupportedError | None = None
        widths: dict[str, float] = {}
        for accountant in self.order:
            if digits is not None and not accountant.has_digits:
                continue
            if not accountant.applies(composition, quantity, value):
                continue
            try:
                found = accountant.answer(composition, quantity, value, digits)
            except UnsupportedError as error:
                refusal = error
                continue
            best = found if best is None else _intersection(best, found)
            widths.setdefault(accountant.name, found[1].relative_width)
            if digits is not None or best[1].is_narrow(self._sufficient_width(widths)):
                return best
        if best is not None:
            return best
        raise refusal or UnsupportedError(self.name, "the plan", "no accountant applies")

    def _sufficient_width(self, widths: dict[str, float]) -> float:
        """Return the width at which the search ends, given those of contour and lattice."""
        wide_contour = PRV.name in widths and widths.get(Contour.name, 0.0) > _WIDE_CONTOUR
        return self.tolerance * (_LATTICE_FACTOR if wide_contour else 1.0)


# What is known exactly: a lattice where a contour is wide.
_EXACT: Final = Auto((Contour(), PRV()))

# Upper ends that differ by less are the same bound: the narrower answer is named.
_SAME: Final = 1.0 - 1e-9


def _intersection(
    first: tuple[Accountant, Interval], second: tuple[Accountant, Interval]
) -> tuple[Accountant, Interval]:
    """Return what two answers prove together, and the accountant that proves its upper end."""
    low, high = sorted((first, second), key=lambda one: one[1].upper)
    narrow, wide = sorted((first, second), key=lambda one: (one[1].relative_width, one[1].upper))
    accountant = (low if low[1].upper < _SAME * high[1].upper else narrow)[0]
    return accountant, type(narrow[1])(*narrow[1].within(wide[1]))
