"""The composition of a mechanism inside another one: its losses, each with its count."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import singledispatch
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from hockeystick._solve import increasing_root
from hockeystick.mechanisms import Composed, Mechanism, Plan, Repeated
from hockeystick.notions import FDP
from hockeystick.privacy_loss.base import CGFEstimate, PrivacyLoss
from hockeystick.privacy_loss.registry import dominating_pair
from hockeystick.privacy_loss.renyi_curve import CurveLoss

Terms: TypeAlias = tuple[tuple[PrivacyLoss, int], ...]

_ULP: Final = 2.0**-52
# The real axis is searched for ln c up to this far from 0.
_FARTHEST: Final = 60.0


class ComposedPair(NamedTuple):
    """The losses of all runs inside a mechanism in the two directions."""

    removing: Terms
    adding: Terms


@singledispatch
def compose_inner(mechanism: Mechanism) -> ComposedPair:
    """Return the composition of a mechanism that stands inside another one.

    Raises:
        NoAnalysisError: If those of a part are not known.
    """
    return _once(mechanism)


@compose_inner.register
def _(mechanism: Composed) -> ComposedPair:
    pairs = [compose_inner(part) for part in mechanism.parts]
    return ComposedPair(_merged(pair.removing for pair in pairs), _merged(p.adding for p in pairs))


@compose_inner.register
def _(mechanism: Repeated) -> ComposedPair:
    once, count = compose_inner(mechanism.inner), mechanism.count
    return ComposedPair(*(tuple((loss, n * count) for loss, n in way if count) for way in once))


@compose_inner.register
def _(mechanism: Plan) -> ComposedPair:
    return compose_inner(mechanism.mechanism)


@compose_inner.register
def _(mechanism: FDP) -> ComposedPair:
    # The trade-off function of a plan stands for the plan.
    release = mechanism.tradeoff.release
    if isinstance(release, Mechanism):
        return compose_inner(release)
    return _once(mechanism)


def _once(mechanism: Mechanism) -> ComposedPair:
    """Return the losses of a mechanism that is one run."""
    removing, adding = dominating_pair(mechanism)
    return ComposedPair(
        () if removing is None else ((removing, 1),), () if adding is None else ((adding, 1),)
    )


def _merged(lists: Iterable[Terms]) -> Terms:
    """Return the union of several lists, equal losses counted together."""
    counts: dict[PrivacyLoss, int] = {}
    for loss, count in chain.from_iterable(lists):
        counts[loss] = counts.get(loss, 0) + count
    return tuple(counts.items())


def total(terms: Terms, c: float) -> CGFEstimate:
    """Return the cumulants of the composition, fast and unproven."""
    found = [(loss.cgf_estimate(c), count) for loss, count in terms]
    value, slope, curvature = (
        sum(count * one[place] for one, count in found) for place in range(3)
    )
    return CGFEstimate(value, slope, curvature)


def cgf_upper(terms: Terms, c: float) -> float:
    """Return a proven upper bound of the composition's ``K(c)``."""
    if c > last_order(terms):
        return math.inf
    found = [(loss.cgf_bounds(c), count) for loss, count in terms]
    return math.fsum(count * (k.midpoint + k.radius) for k, count in found) * (1.0 + 8.0 * _ULP)


def largest_loss(terms: Terms) -> float:
    """Return an upper bound of the sum of all losses, 0 for none."""
    return math.fsum(count * loss.supremum for loss, count in terms) * (1.0 + 8.0 * _ULP)


def last_order(terms: Terms) -> float:
    """Return the largest c at which K is known to be bounded, inf where there is none."""
    return min((loss.end for loss, _ in terms if isinstance(loss, CurveLoss)), default=math.inf)


def corners(terms: Terms) -> tuple[float, ...]:
    """Return where the slope of the bound of K jumps, rising."""
    found = {c for loss, _ in terms if isinstance(loss, CurveLoss) for c in loss.corners}
    return tuple(sorted(found))


def places(terms: Terms, condition: Callable[[float], float]) -> tuple[float, ...]:
    """Return orders c, within reach, where a function is least whose slope has this sign.

    The function falls where the condition, which increases, is negative. Where its slope jumps,
    the least value is at the corner next to where the sign changes.
    """
    last = last_order(terms)

    def sign(log_c: float) -> float:
        c = math.exp(log_c)
        return condition(c) if c <= last else math.inf

    c = min(math.exp(increasing_root(sign, 1.0, tolerance=1e-6, farthest=_FARTHEST)), last)
    near = corners(terms)
    below, above = [x for x in near if x < c], [x for x in near if c < x <= last]
    return (c, *below[-1:], *above[:1])
