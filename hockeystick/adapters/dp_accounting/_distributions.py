"""Discrete privacy-loss distributions of dp-accounting: of a plan, and as a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.accountants.tradeoff import profiles_of
from hockeystick.errors import ParameterError, UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP
from hockeystick.numerics import ULP
from hockeystick.tradeoffs import Ends, Profile, ProfileValues, discrete_tradeoff
from hockeystick.tradeoffs.functions.piecewise import lower_envelope
from hockeystick.tradeoffs.profiles.profile import Array

_STEP: Final = Domain(symbol="h", low=1e-6, high=1, typical=(1e-4, 0.1))
_TRUNCATION: Final = Domain(symbol="t", low=1e-300, high=0.1, typical=(1e-20, 1e-9))
_MOST_POINTS: Final = 1_000_000
# The largest loss whose odds a float holds.
_LARGEST_LOSS: Final = 600.0
_MOST_READ: Final = 10_000
# How far probabilities may be from the sum 1: those that dp-accounting finds are.
_OFF: Final = 1e-3
# The largest factor that makes up for round-off.
_NEAR: Final = 1.0 + 1e-6


_At: TypeAlias = Callable[[Array], ProfileValues]


class _Losses(NamedTuple):
    """Probabilities of the losses ``k h`` from the first k on, and that of an infinite loss."""

    first: int
    masses: Array
    infinite: float


class _Side(NamedTuple):
    """Positive losses of one direction, their probabilities under both, and an infinite one's.

    Losses are rounded up and probabilities under the other distribution down.
    """

    places: Array
    own: Array
    other: Array
    infinite: float


def to_pld(
    plan: Mechanism, *, step: float = 1e-3, dominating: bool = True, truncation: float = 1e-15
) -> PrivacyLossDistribution:
    """Return the privacy loss of a plan as dp-accounting has it: probabilities on a grid.

    Dominating (``pessimistic_estimate=True``): deltas at multiples of the step, rounded up, are
    joined by chords in ``e^epsilon``, which lie above the convex profile. Dominated
    (``pessimistic_estimate=False``): the same with deltas rounded down, and every loss less one
    step, so that each chord is below the value at its left end.

    Guarantees:
        For both directions, every real epsilon and exact arithmetic, the divergences of the result
        and of its compositions are at least those of the plan (dominating), or at most those
        (dominated), as near as the ends of ``hs.tradeoff``. What dp-accounting computes with them
        is up to its own round-off, which it does not count: about 1e-16 for each point.

    Args:
        plan: A mechanism or plan.
        step: The distance of the losses (``value_discretization_interval``), from 1e-6 to 1.
        dominating: Whether it is to dominate the plan, or to be dominated by it.
        truncation: The largest probability that is cut off, from 1e-300 to 0.1: such losses count
            as infinite, or are left out.

    Raises:
        ParameterError: If a parameter is outside its domain, or more than a million losses result.
        UnsupportedError: If no privacy loss is known for a part of the plan.

    References:
        Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the dots", PoPETs 2022.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.dp_accounting import to_pld
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 100
        >>> ends = [to_pld(plan, dominating=one) for one in (False, True)]
        >>> [round(one.get_epsilon_for_delta(1e-5), 3) for one in ends]
        [0.549, 0.55]
    """
    h = _validate.real("step", step, _STEP)
    least = _validate.real("truncation", truncation, _TRUNCATION)
    if not isinstance(dominating, bool):
        raise ParameterError("dominating", dominating, "True or False")
    removing, adding = profiles_of(plan)
    last = max(_last_point(one, h, least) for one in (removing, adding))
    make = _dominating if dominating else _dominated
    found = [make(*pair, h, last, least) for pair in ((removing, adding), (adding, removing))]
    remove, add = (
        {one.first + k: p for k, p in enumerate(one.masses.tolist()) if p} for one in found
    )
    return PrivacyLossDistribution.create_from_rounded_probability(
        remove,
        found[0].infinite,
        h,
        pessimistic_estimate=dominating,
        rounded_probability_mass_function_add=add,
        infinity_mass_add=found[1].infinite,
        symmetric=False,
    )


def from_pld(pld: PrivacyLossDistribution) -> FDP:
    """Return the guarantee that a pessimistic privacy-loss distribution of dp-accounting gives.

    In each direction the probabilities p of its positive losses l, with ``p e^-l`` under the other
    distribution, tell delta at every ``epsilon >= 0``. The result is the trade-off function of a
    pair that has both, in between a line.

    Guarantees:
        What is f-DP for the result's f includes all that the distribution dominates, and answers
        are for the worst of that. dp-accounting's own round-off is not counted, about 1e-13 of one
        run of Gaussian noise, and more of what it has composed: read one run, and compose here.

    Edge cases:
        What probabilities lack of the sum 1, 1e-3 at most, counts as an infinite loss, which leaves
        no finite epsilon at delta 0. More than 10,000 losses are split between those of a coarser
        grid: a ``value_discretization_interval`` of 1e-3 or more is quicker.

    Args:
        pld: A distribution with at most 10^6 losses, each in units of its step.

    Raises:
        ParameterError: If it is none, has more losses, or its probabilities are not those of a
            distribution.
        UnsupportedError: If it is an optimistic one, from which no upper end follows.

    Example:
        >>> from dp_accounting.pld import privacy_loss_distribution
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.dp_accounting import from_pld
        >>> pld = privacy_loss_distribution.from_laplace_mechanism(
        ...     2.0, value_discretization_interval=0.1
        ... )
        >>> print(f"{hs.epsilon(from_pld(pld) ** 2, delta=1e-3):.4f}")
        0.9962
    """
    removing, adding = (_side_of(*_coarser(*one)) for one in _read(pld))
    # T(Q, P) of sums that are 1 but for round-off.
    sides = _joined_sides(removing, adding)
    return FDP(discrete_tradeoff(*(one / math.fsum(one.tolist()) for one in sides)))


def _read(pld: Any) -> list[tuple[_Losses, float]]:
    if not isinstance(pld, PrivacyLossDistribution):
        raise ParameterError("pld", pld, "a PrivacyLossDistribution of dp_accounting")
    return [_losses_of(pld, pmf) for pmf in (pld._pmf_remove, pld._pmf_add)]


def _losses_of(pld: PrivacyLossDistribution, pmf: Any) -> tuple[_Losses, float]:
    if not pmf._pessimistic_estimate:
        reason = "it is optimistic: dominated by what it is for, of which no upper end follows"
        raise UnsupportedError("dp-accounting", "the distribution", reason)
    if pmf.size > _MOST_POINTS:
        has = f"this one has {pmf.size}: give it a larger value_discretization_interval"
        raise ParameterError("pld", pld, f"of at most {_MOST_POINTS:,} losses, and {has}")
    dense = pmf.to_dense_pmf()
    masses = np.maximum(np.asarray(dense._probs, dtype=np.float64), 0.0)
    infinite = float(dense._infinity_mass)
    missing = 1.0 - infinite - math.fsum(masses.tolist())
    if abs(missing) > _OFF:
        raise ParameterError("pld", pld, f"a distribution: probabilities of sum 1, to {_OFF:g}")
    losses = _Losses(dense._lower_loss, masses, infinite + max(missing, 0.0))
    return losses, dense._discretization


def _coarser(losses: _Losses, step: float) -> tuple[_Losses, float]:
    """Return at most so many losses, each split between its neighbours on a coarser grid.

    Both probabilities of an outcome are those of the two into which it is split, so that who joins
    these again has the former pair: the new one dominates it.
    """
    if np.count_nonzero(losses.masses) <= _MOST_READ:
        return losses, step
    count = -(-losses.masses.size // (_MOST_READ - 2))
    below, away = np.divmod(losses.first + np.arange(losses.masses.size), count)
    above = losses.masses * (np.expm1(-step * away) / math.expm1(-step * count))
    above = np.minimum(above, losses.masses)
    first = int(below[0])
    coarse: Array = np.zeros(int(below[-1]) - first + 2)
    coarse += np.bincount(below - first, losses.masses - above, coarse.size)
    coarse += np.bincount(below - first + 1, above, coarse.size)
    return _Losses(first, coarse, losses.infinite), step * count


def _side_of(losses: _Losses, step: float) -> _Side:
    """Return what the positive losses of one direction say."""
    places: Array = step * (losses.first + np.arange(losses.masses.size, dtype=np.float64))
    kept = (places > 0.0) & (losses.masses > 0.0)
    own, places = losses.masses[kept], places[kept]
    round_off = 32.0 * ULP * (1.0 + places)
    other = own * np.exp(-places) * (1.0 - round_off)
    return _Side(places + round_off, own, other, losses.infinite)


def _joined_sides(removing: _Side, adding: _Side) -> tuple[Array, Array]:
    """Return probabilities under Q and P of one pair that has what is known of both directions.

    With ``x = e^epsilon``, delta of removing is known above x = 1 by its own losses, and below it
    by those of adding. Being convex, it is below any line between a point of the one and a point of
    the other: two outcomes, with the losses at its ends, have what P and Q have in the middle. The
    ends move outward until both have what they must; what fits nowhere is an infinite loss.
    """
    ups, downs = (np.r_[0.0, side.places] for side in (removing, adding))
    up_own, up_other = _from_each_on(removing.own), _from_each_on(removing.other)
    down_own, down_other = _from_each_on(adding.own), _from_each_on(adding.other)
    i = j = 0
    while True:
        p = 1.0 - removing.infinite - up_own[i] - down_other[j]
        q = 1.0 - adding.infinite - up_other[i] - down_own[j]
        outward = min(p, q) < 0.0
        up = i + 1 < ups.size and (outward or q < p * math.exp(-ups[i]))
        down = j + 1 < downs.size and (outward or q > p * math.exp(downs[j]))
        if not up and not down:
            break
        i, j = i + up, j + down
    p = 1.0 - math.fsum([removing.infinite, *removing.own[i:], *adding.other[j:]])
    q = 1.0 - math.fsum([adding.infinite, *removing.other[i:], *adding.own[j:]])
    p, q, least, most = max(p, 0.0), max(q, 0.0), math.exp(-ups[i]), math.exp(downs[j])
    infinite, rest = max(p - q / least, 0.0), max(q - p * most, 0.0)
    p -= infinite
    share = min(max((q - p * least) / (most - least), 0.0), p) if most > least else p
    first = [removing.other[i:], [(p - share) * least, share * most], adding.own[j:]]
    second = [removing.own[i:], [p - share, share], adding.other[j:]]
    ends = [[0.0, adding.infinite + rest], [removing.infinite + infinite, 0.0]]
    return np.concatenate([*first, ends[0]]), np.concatenate([*second, ends[1]])


def _from_each_on(values: Array) -> Array:
    """Return, for each value and for none, the sum of it and those after it."""
    found: Array = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    return found


def _last_point(profile: Profile, step: float, least: float) -> int:
    """Return the number of steps beyond which delta is below the least one, or raise."""
    last, most = 1, int(_LARGEST_LOSS / step)
    least += profile.infinity_mass_lower

    def reaches(point: int) -> bool:
        return point * step < profile.supremum and _delta(profile, point * step) > least

    while last < most and reaches(last):
        last *= 2
    below, last = last // 2, min(last, most)
    while last - below > 1:
        middle = (last + below) // 2
        below, last = (middle, last) if reaches(middle) else (below, middle)
    if last > _MOST_POINTS:
        allowed = f"larger: more than {_MOST_POINTS:,} losses are above the truncation"
        raise ParameterError("step", step, allowed)
    return last


def _delta(profile: Profile, epsilon: float) -> float:
    return float(profile.at(np.array([epsilon])).upper[0])


def _dominating(profile: Profile, other: Profile, step: float, last: int, least: float) -> _Losses:
    """Return losses that dominate those of a profile: at each point no less than its upper end.

    Delta is convex, so that it is not above the chords below its upper ends. What round-off left
    short of those is made up for by a factor, and where that would be large as an infinite loss.
    """
    own = _deltas(profile.at, other.at, step, last).upper
    infinite = float(own[-1])
    masses, reached, most = _joined(own, step, last)
    wanted = np.maximum(np.minimum(most, own) - infinite, 0.0)
    near = wanted <= _NEAR * reached
    slack = 1.0 + 32.0 * own.size * ULP
    held = near & (reached > 0.0)
    grown = float((wanted[held] / reached[held]).max(initial=1.0)) * slack
    infinite = min((infinite + float((wanted - reached)[~near].max(initial=0.0))) * slack, 1.0)
    rest = max(1.0 - infinite - grown * math.fsum(masses.tolist()), 0.0)
    return _Losses(-last, masses * grown, infinite + rest)


def _dominated(profile: Profile, other: Profile, step: float, last: int, least: float) -> _Losses:
    """Return losses that those of a profile dominate: at each point no more than its lower end."""
    own = _deltas(profile.at, other.at, step, last).lower
    infinite = min(profile.infinity_mass_lower, float(own[-1])) * (1.0 - 4.0 * ULP)
    masses, reached, _ = _joined(np.maximum(own - infinite - least, 0.0), step, last)
    known, rest = reached > 0.0, np.maximum(own - infinite, 0.0)
    share = float((rest[known] / reached[known]).min(initial=1.0))
    share *= 1.0 - 32.0 * own.size * ULP
    return _Losses(-last - 1, masses * share, infinite)


def _deltas(own: _At, other: _At, step: float, last: int) -> Ends:
    """Return both ends of delta at multiples of the step, from -last to last, by reflection."""
    epsilons = step * np.arange(1, last + 1, dtype=np.float64)
    zero, above, below = own(np.zeros(1)), own(epsilons), other(epsilons)
    odds, rest = np.exp(-epsilons), -np.expm1(-epsilons)
    slack = 16.0 * ULP * (1.0 + epsilons)
    # A float next to a multiple of the step stands for it.
    lower = (rest + odds * below.lower) * (1.0 - slack)
    upper = np.minimum((rest + odds * below.upper) * (1.0 + slack), 1.0)
    near = 4.0 * ULP * (1.0 + epsilons)
    return Ends(
        np.r_[lower[::-1], zero.lower, np.maximum(above.lower - near * np.exp(epsilons), 0.0)],
        np.r_[upper[::-1], zero.upper, above.upper],
    )


def _joined(own: Array, step: float, last: int) -> tuple[Array, Array, Array]:
    """Return masses of the chords in e^epsilon below points, their divergences, and no less."""
    places = step * np.arange(-last, last + 1)
    x = np.exp(places)
    corners = np.array(lower_envelope(np.r_[0.0, x], np.r_[1.0, own])).T
    heights = np.interp(x, corners[0], corners[1])
    slopes = np.r_[(heights[0] - 1.0) / x[0], np.diff(heights) / np.diff(x), 0.0]
    masses = np.where(np.r_[1.0, heights[:-1]] > 0.0, np.maximum(np.diff(slopes), 0.0) * x, 0.0)
    kept, found, factor = 0.0, np.zeros_like(masses), math.exp(-step)
    for k in range(masses.size - 2, -1, -1):
        kept = float(masses[k + 1]) + factor * kept
        found[k] = found[k + 1] - math.expm1(-step) * kept
    left = corners[1][np.searchsorted(corners[0], x, side="right") - 1]
    return masses, found, heights + 8.0 * ULP * left
