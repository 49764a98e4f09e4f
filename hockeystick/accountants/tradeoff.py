"""The trade-off function of a plan, and the tensor product of trade-off functions."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Final

from hockeystick import _validate
from hockeystick.accountants.auto import AUTO
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.profile import profile_of
from hockeystick.errors import NoGroupFormError, ParameterError
from hockeystick.mechanisms import Composed, Mechanism, PriFedSync, Repeated
from hockeystick.mechanisms.base import checked
from hockeystick.mechanisms.federated.prifedsync import View
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.notions import FDP
from hockeystick.numerics import decimal
from hockeystick.numerics.rounding import float_up
from hockeystick.privacy_loss import Composition, GaussianLoss, Terms
from hockeystick.tradeoffs import (
    GaussianTradeOff,
    GroupTradeOff,
    MaximumProfile,
    Profile,
    ProfileTradeOff,
    TradeOff,
)

_NAME: Final = "f-dp"


def tradeoff(plan: Mechanism, *, view: View | str | None = None) -> TradeOff:
    """Return the trade-off function of a plan: what no test of the output can beat.

    The lower convex envelope over both directions, so that it holds for every ordered pair of
    neighbours: the plan is f-DP.

    Guarantees:
        ``f(alpha)`` is a proven lower end, ``f.bounds(alpha)`` holds the truth for the worst pair
        of neighbours, and ``f.power(fpr)`` is a proven upper end of any attack's true positives.
        The ends are close where the contour accountant draws lines, for single runs, for
        Gaussians, and where the runs of one loss on a lattice, such as that of integer noise, add
        up to a few thousand values; elsewhere they are what the "rdp" accountant proves.

    Edge cases:
        A plan that releases nothing has ``1 - alpha``; a release without noise leaves what it
        does not show.

    Args:
        plan: A mechanism or plan.
        view: For a plan of several clients who attacks one of them: "one-client" (weak federated
            f-DP) or "all-clients" (strong federated f-DP). Both have the same function, since all
            that anyone sees is post-processing of what the client sends out.

    Returns:
        A symmetric ``TradeOff``; a ``GaussianTradeOff`` where the plan is a Gaussian mechanism.

    Raises:
        ParameterError: If the plan is not a mechanism, the view none of these, or one is given for
            a plan that has none.
        UnsupportedError: If no privacy loss is known for a part of it.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, theorem 3.2; Zhu, Dong and
        Wang, AISTATS 2022, theorem 10 for the directions.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
        >>> f = hs.tradeoff(plan)
        >>> f.power(0.01) < 0.0403  # at a false positive rate of 1 %, no attack finds 4.03 %
        True
    """
    known = checked("plan", plan)
    if view is not None:
        _validate.choice("view", view, View)
        if not isinstance(known, PriFedSync):
            allowed = f"left out: {known} has no clients that see each other's releases"
            raise ParameterError("view", view, allowed)
    if isinstance(known, FDP) and known.tradeoff.release is None:
        return known.tradeoff.symmetrize()
    composition = composition_of(known, _NAME)
    mu = _gaussian_mu(composition)
    if mu is not None:
        return GaussianTradeOff(mu)
    profile = _worst(composition.directions)
    # The worst of several parts stands for none of them: composed, it is known by its profile.
    return ProfileTradeOff((profile, profile), release=None if composition.others else known)


def tensor(factors: Sequence[tuple[TradeOff, int]]) -> TradeOff:
    """Return the tensor product of trade-off functions: that of a plan that has it."""
    gaussians = [(Fraction(f.mu), n) for f, n in factors if isinstance(f, GaussianTradeOff)]
    if len(gaussians) == len(factors):
        return GaussianTradeOff(
            float_up(square_root(sum((n * mu * mu for mu, n in gaussians), Fraction(0))))
        )
    plan = Composed([FDP(f) ** count for f, count in factors])
    if all(f.is_symmetric for f, _ in factors):
        return tradeoff(plan)
    composition = composition_of(plan, _NAME)
    removing, adding = composition.removing, composition.adding
    return ProfileTradeOff((profile_of(removing, AUTO), profile_of(adding, AUTO)), release=plan)


def group_of_release(release: object, size: int) -> TradeOff | None:
    """Return the trade-off function of a plan for groups, None where its loss is not known."""
    if not isinstance(release, Mechanism):
        return None
    try:
        grown = release.for_group(size)
    except NoGroupFormError:
        return None
    return None if _is_iterated(grown) else tradeoff(grown)


def _is_iterated(plan: Mechanism) -> bool:
    """Return whether a part is known by f of a group alone: the whole's own is nearer to it."""
    if isinstance(plan, Composed):
        return any(map(_is_iterated, plan.parts))
    inner = plan.inner if isinstance(plan, Repeated) else plan
    return isinstance(inner, FDP) and isinstance(inner.tradeoff, GroupTradeOff)


def _worst(directions: Iterable[Terms]) -> Profile:
    return reduce(MaximumProfile, (profile_of(terms, AUTO) for terms in directions))


def _gaussian_mu(composition: Composition) -> float | None:
    """Return the largest mu, rounded up, where all losses in all places are Gaussian."""
    found = []
    for place in composition.branches:
        losses = [(loss, n) for loss, n in place.removing if isinstance(loss, GaussianLoss)]
        if place.removing != place.adding or len(losses) < len(place.removing):
            return None
        squares = (n / _least_noise(loss) ** 2 for loss, n in losses)
        found.append(float_up(square_root(sum(squares, Fraction(0)))))
    return max(found) if max(found) < sys.float_info.max else None


def _least_noise(loss: GaussianLoss) -> Fraction:
    """Return the noise exactly, the smaller of a float's own value and the decimal it prints as."""
    noise = loss.noise_multiplier
    return noise if isinstance(noise, Fraction) else min(Fraction(noise), decimal(noise))
