"""All the losses of a mechanism that may be composed or repeated, each with its count."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import singledispatch
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from hockeystick._solve import increasing_root
from hockeystick.mechanisms import Composed, Mechanism, Plan, Repeated
from hockeystick.notions import FDP
from hockeystick.privacy_loss.base import Cumulants, PrivacyLoss
from hockeystick.privacy_loss.registry import dominating_pair
from hockeystick.privacy_loss.renyi_curve import CurveLoss

Counted: TypeAlias = tuple[tuple[PrivacyLoss, int], ...]

_ULP: Final = 2.0**-52
# The real axis is searched for ln c up to this far from 0.
_FARTHEST: Final = 60.0


class CountedPair(NamedTuple):
    """The losses of all runs inside a mechanism in the two directions."""

    removing: Counted
    adding: Counted


@singledispatch
def counted_losses(mechanism: Mechanism) -> CountedPair:
    """Return the losses of a mechanism that stands inside another one, as a whole.

    Raises:
        NoAnalysisError: If those of a part are not known.
    """
    return _once(mechanism)


@counted_losses.register
def _(mechanism: Composed) -> CountedPair:
    pairs = [counted_losses(part) for part in mechanism.parts]
    return CountedPair(_merged(pair.removing for pair in pairs), _merged(p.adding for p in pairs))


@counted_losses.register
def _(mechanism: Repeated) -> CountedPair:
    once, count = counted_losses(mechanism.inner), mechanism.count
    return CountedPair(*(tuple((loss, n * count) for loss, n in way if count) for way in once))


@counted_losses.register
def _(mechanism: Plan) -> CountedPair:
    return counted_losses(mechanism.mechanism)


@counted_losses.register
def _(mechanism: FDP) -> CountedPair:
    # The trade-off function of a plan stands for the plan.
    release = mechanism.tradeoff.release
    if isinstance(release, Mechanism):
        return counted_losses(release)
    return _once(mechanism)


def _once(mechanism: Mechanism) -> CountedPair:
    """Return the losses of a mechanism that is one run."""
    removing, adding = dominating_pair(mechanism)
    return CountedPair(
        () if removing is None else ((removing, 1),), () if adding is None else ((adding, 1),)
    )


def _merged(lists: Iterable[Counted]) -> Counted:
    """Return several lists as one, equal losses counted together."""
    counts: dict[PrivacyLoss, int] = {}
    for loss, count in chain.from_iterable(lists):
        counts[loss] = counts.get(loss, 0) + count
    return tuple(counts.items())


def total(terms: Counted, c: float) -> Cumulants:
    """Return the cumulants of the composition, fast and unproven."""
    found = [(loss.cumulants(c), count) for loss, count in terms]
    value, slope, curvature = (
        sum(count * one[place] for one, count in found) for place in range(3)
    )
    return Cumulants(value, slope, curvature)


def log_mgf_upper(terms: Counted, c: float) -> float:
    """Return a proven upper bound of the composition's ``K(c)``."""
    if c > last_order(terms):
        return math.inf
    found = [(loss.log_mgf(c), count) for loss, count in terms]
    return math.fsum(count * (k.value + k.error) for k, count in found) * (1.0 + 8.0 * _ULP)


def largest_loss(terms: Counted) -> float:
    """Return an upper bound of the sum of all losses, 0 for none."""
    return math.fsum(count * loss.supremum for loss, count in terms) * (1.0 + 8.0 * _ULP)


def last_order(terms: Counted) -> float:
    """Return the largest c at which K is known to be bounded, inf where there is none."""
    return min((loss.end for loss, _ in terms if isinstance(loss, CurveLoss)), default=math.inf)


def corners(terms: Counted) -> tuple[float, ...]:
    """Return where the slope of the bound of K jumps, rising."""
    found = {c for loss, _ in terms if isinstance(loss, CurveLoss) for c in loss.corners}
    return tuple(sorted(found))


def places(terms: Counted, condition: Callable[[float], float]) -> tuple[float, ...]:
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
