"""The ways to an integral: along a plain line, without the far outputs, of the tails alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from hockeystick.accountants.contour._far_outputs import FarMode, FarOutputs, far_mode, near_terms
from hockeystick.accountants.contour._integral import Integral, integrate, rules_for, tail_rules_for
from hockeystick.accountants.contour._line import (
    AnalyticTerms,
    ContourTarget,
    VerticalContour,
    cheapest_contour,
    choose_contour,
)
from hockeystick.accountants.contour._sampled_gaussians import first_order
from hockeystick.accountants.contour._tail_and_bulk import TailAndBulk, tail_and_bulk
from hockeystick.accountants.orders import saddle
from hockeystick.privacy_loss import (
    ContourRule,
    FixedSizeGaussianLoss,
    GaussianSequenceLoss,
    TailRule,
)
from hockeystick.privacy_loss.core.analytic_cgf import equivalent_terms

# What an integral may take in any case.
AFFORDABLE: Final = 5_000_000
MOST_NODES: Final = 100_000
# Losses whose lines are always summed term by term.
_TERM_BY_TERM: Final = (FixedSizeGaussianLoss, GaussianSequenceLoss)
# What is asked at most of an integral without far outputs: its round-off is seldom below.
_NEAR_ACCURACY: Final = 29.0


class Effort(NamedTuple):
    """How accurate an integral is to be, and how many terms it may take.

    The accuracy is the natural logarithm of what is asked of each error, relative to delta; the
    terms are nodes on the line times nodes of the losses.
    """

    accuracy: float
    most_work: int


class LineGuess(NamedTuple):
    """ln delta at an epsilon, c of a line that is good there, and which way led to it.

    Without a c every line is looked at. Rough says that six digits are enough.
    """

    log_delta: float
    c: float | None = None
    way: str = ""
    rough: bool = False


class LocatedIntegral(NamedTuple):
    """An integral, the epsilon that its line was chosen for, and the losses along the line."""

    integral: Integral
    epsilon: float
    terms: AnalyticTerms
    way: str = ""

    def guess(self, log_delta: float) -> LineGuess:
        """Return its line as the guess for a composition that is nearly the same."""
        return LineGuess(log_delta, self.integral.line.c if self.way else None, self.way)


def cheapest_integral(
    terms: AnalyticTerms,
    c: float,
    epsilon: float,
    log_delta: float,
    effort: Effort,
    *,
    weak_counts: bool = False,
) -> LocatedIntegral | None:
    """Return the integral along the cheapest line near the saddle, or None for too much work.

    ``AFFORDABLE`` work is always allowed, also where ``most_work`` is 0. A weak far mode counts
    as a strong one where a plain line has turned out to be imprecise.
    """
    target = ContourTarget(epsilon, log_delta, effort.accuracy)
    mode = far_mode(terms, c)
    ways = _WAYS[FarMode.STRONG if weak_counts and mode else mode]
    best: Quadratures | None = None
    best_way = ""
    for way, enough in ways if effort.most_work > 0 else ways[:-1]:
        one = QUADRATURES[way](terms, c, target, None)
        if one is not None and (best is None or one.work < best.work):
            best, best_way = one, way
        if best is not None and best.work <= enough:
            break
    if best is None or best.work > max(effort.most_work, AFFORDABLE):
        return None
    return best.locate(epsilon, best_way)


class Quadratures(NamedTuple):
    """A contour with the losses that it is for, their quadratures, and what is apart."""

    terms: AnalyticTerms
    line: VerticalContour
    rules: list[ContourRule]
    tails: TailAndBulk | None
    tail_rules: list[TailRule]
    far: FarOutputs | None = None

    @property
    def work(self) -> int:
        """The number of terms of the integral's sum."""
        last = self.line.last
        work = sum(equivalent_terms(one.nodes, last) for one in self.tail_rules)
        for (loss, _), rule in zip(self.terms, self.rules, strict=True):
            slow = isinstance(loss, _TERM_BY_TERM)
            work += rule.nodes * last if slow else equivalent_terms(rule.nodes, last)
        return work

    def integrate(self) -> Integral:
        """Return the integral."""
        found = integrate(self.terms, self.line, self.rules, self.tails, self.tail_rules)
        return replace(found, far=self.far)

    def locate(self, epsilon: float, way: str) -> LocatedIntegral:
        """Return the integral for an epsilon, with the way that led to its line."""
        return LocatedIntegral(self.integrate(), epsilon, self.terms, way)


# In each of these, ``known`` is the c of a line if it is known to be good, and c is the saddle.
def plain(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> Quadratures | None:
    """Return the quadratures along the cheapest line near c."""
    choose = cheapest_contour if known is None else choose_contour
    return quadratures_along(terms, choose(terms, known or c, target, MOST_NODES), target)


def near(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> Quadratures | None:
    """Return those without the far outputs, along the cheapest line near their own saddle."""
    modest = replace(target, accuracy=min(target.accuracy, _NEAR_ACCURACY))
    split = near_terms(terms, modest)
    if split is None:
        return None
    start = first_order(split.terms, target.log_delta)
    c = known or saddle(split.terms, target.epsilon, start)
    found = plain(split.terms, c, modest, known)
    return found and found._replace(far=split.far)


def _rare(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> Quadratures | None:
    """Return those with the tails alone, without the far outputs where these can be taken out."""
    modest = replace(target, accuracy=min(target.accuracy, _NEAR_ACCURACY))
    split = near_terms(terms, modest)
    near = known or (saddle(split.terms, target.epsilon, c) if split else c)
    found = split and _tail(split.terms, near, modest)
    return found._replace(far=split.far) if split and found else _tail(terms, known or c, target)


def _tail(terms: AnalyticTerms, c: float, target: ContourTarget) -> Quadratures | None:
    """Return those with the tails of rare large losses alone, along the cheapest line near c."""
    tails = tail_and_bulk(terms, target)
    line = tails and choose_contour(terms, c, target, MOST_NODES, tails)
    return quadratures_along(terms, line, target, tails) if line else None


def quadratures_along(
    terms: AnalyticTerms,
    line: VerticalContour | None,
    target: ContourTarget,
    tails: TailAndBulk | None = None,
) -> Quadratures | None:
    """Return a contour with its quadratures, or None where there is no contour."""
    if line is None:
        return None
    rules = rules_for(terms, line, target)
    tail_rules = tail_rules_for(terms, line, target, tails) if tails else []
    if rules is None or tail_rules is None:
        return None
    return Quadratures(terms, line, rules, tails, tail_rules)


QUADRATURES: Final = {"plain": plain, "near": near, "rare": _rare}
# What is tried in turn, and the work at which the search for a shorter sum ends.
_WAYS: Final = {
    FarMode.NONE: (("plain", AFFORDABLE), ("rare", 0)),
    FarMode.WEAK: (("plain", AFFORDABLE), ("near", AFFORDABLE), ("rare", 0)),
    FarMode.STRONG: (("near", AFFORDABLE), ("plain", AFFORDABLE), ("rare", 0)),
}
