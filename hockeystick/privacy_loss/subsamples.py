"""The pairs of losses of mechanisms on samples that are not plain Poisson ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import (
    Composed,
    FixedSizeSubsampled,
    Gaussian,
    Mechanism,
    Plan,
    Repeated,
    WithReplacementSubsampled,
)
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.base import CellLoss, PrivacyLoss
from hockeystick.privacy_loss.dominated import DominatedLoss
from hockeystick.privacy_loss.gaussian import GaussianLoss
from hockeystick.privacy_loss.gaussian_mixture import GaussianMixtureLoss
from hockeystick.privacy_loss.leaves import sampled_loss
from hockeystick.privacy_loss.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.revealed_mixture import revealed_mixture
from hockeystick.privacy_loss.symmetrized import symmetrized
from hockeystick.privacy_loss.two_point import TwoPointLoss

if TYPE_CHECKING:
    from mpmath import mpf

# Numbers of hits up to this are accounted one by one, larger ones in groups that grow by this.
_ONE_BY_ONE: Final = 6
_GROWTH: Final = 1.25
# Less likely than this, what is left goes to the largest number of hits.
_UNLIKELY: Final = 1e-290
_DIGITS: Final = 370
_BITS: Final = 960


@dominating_pair.register
def _(mechanism: FixedSizeSubsampled) -> DominatingPair:
    pair = _of_one_run(mechanism.inner, "sampling of a fixed size")
    zeroed = mechanism.adjacency is Adjacency.ZERO_OUT
    whole = mechanism.rate == 1
    if pair.removing is None or (whole and mechanism.adjacency is Adjacency.REPLACE_ONE):
        return pair
    if whole and not zeroed and not isinstance(mechanism.inner, Gaussian):
        raise NoAnalysisError(
            "without one of its examples a sample of all has none to take the place of the missing "
            f"one, and of {mechanism.inner} it is only known what a replacement costs"
        )
    if pair.removing != pair.adding:
        raise NoAnalysisError(
            f"samples of a fixed size are analysed for what costs the same in both directions of a "
            f"replacement, not for {mechanism.inner}"
        )
    if zeroed or whole:
        return _zeroed(pair.removing, mechanism)
    removing, adding = (sampled_loss(pair.removing, mechanism.rate, way) for way in (True, False))
    if mechanism.adjacency is Adjacency.ADD_REMOVE:
        return DominatingPair(removing, adding)
    return _exchanged(removing, removing.attained, adding.attained)


@dominating_pair.register
def _(mechanism: WithReplacementSubsampled) -> DominatingPair:
    noise = noise_of(mechanism.inner, "Sampling with replacement")
    if noise is None or mechanism.examples == 1:
        # The only example is in every place.
        return dominating_pair(
            Gaussian(math.inf if noise is None else noise / mechanism.batch_size)
        )
    noise_multiplier = Fraction(repr(noise))
    above, below = (_hits(mechanism, up=up) for up in (True, False))
    rate = sum((group.chance for group in above), Fraction(0))
    upper = sampled_loss(_seen(above, noise_multiplier, rate), rate, True)
    return _exchanged(upper, *(_alike(below, noise_multiplier, way) for way in (True, False)))


def _of_one_run(inner: Mechanism, what: str) -> DominatingPair:
    """Return the losses of an inner mechanism that runs once, or raise."""
    if isinstance(inner, Composed | Repeated | Plan):
        raise NoAnalysisError(
            f"{what} is analysed for a single run inside, not for {inner}; repeat or compose the "
            "sampled mechanism instead"
        )
    return dominating_pair(inner)


def noise_of(inner: Mechanism, what: str) -> float | None:
    """Return the noise multiplier of a Gaussian, None where it is infinite, or raise."""
    if not isinstance(inner, Gaussian):
        raise NoAnalysisError(f"{what} is analysed for the Gaussian mechanism, not for {inner}")
    if inner.noise_multiplier == 0.0:
        raise NoAnalysisError(f"{what} is not analysed without noise")
    return None if math.isinf(inner.noise_multiplier) else inner.noise_multiplier


def _exchanged(worst: PrivacyLoss, *attained: PrivacyLoss | None) -> DominatingPair:
    """Return the losses where neighbours may be exchanged.

    For ``eps >= 0`` no pair costs more than ``worst``; the others are what some data sets reach.
    """
    if not isinstance(worst, CellLoss):
        raise NoAnalysisError("its privacy loss has no distribution that is known cell by cell")
    # A profile in closed form is taken for exact: only that of what some data reach is.
    exact = attained[0] is worst
    return DominatingPair(*(symmetrized(worst, loss, profiled=exact) for loss in attained))


def _zeroed(replaced: PrivacyLoss, mechanism: FixedSizeSubsampled) -> DominatingPair:
    """Return the losses of samples of a fixed size where an example is zeroed.

    None costs more than a replacement. Among examples that contribute nothing, one that is zeroed
    moves a Gaussian's sum by half as much. The same holds of an example that is missing in a sample
    of all.
    """
    rate, half = mechanism.rate, None
    if isinstance(replaced, GaussianLoss):
        noise = replaced.noise_multiplier
        half = GaussianLoss(2 * (noise if isinstance(noise, Fraction) else Fraction(repr(noise))))
    if rate == 1:
        alone = DominatedLoss(_distribution(replaced, mechanism.inner), half)
        return DominatingPair(alone, alone)
    attained = (half and sampled_loss(half, rate, way) for way in (True, False))
    return _exchanged(sampled_loss(replaced, rate, True), *attained)


def _distribution(replaced: PrivacyLoss, inner: Mechanism) -> CellLoss:
    """Return the loss if it is one that another one may be said to be dominated by, or raise."""
    fails = isinstance(replaced, TwoPointLoss) and replaced.failure > 0.0
    if isinstance(replaced, CellLoss) and not fails:
        return replaced
    raise NoAnalysisError(
        f"of {inner} no distribution of losses is known that is finite, to bound what zeroing an "
        "example costs; under replace-one the whole sample is accounted, and costs no less"
    )


class _Group(NamedTuple):
    """Some numbers of hits, from the fewest to the most, and how likely one of them is."""

    fewest: int
    most: int
    chance: Fraction


def _hits(mechanism: WithReplacementSubsampled, *, up: bool) -> list[_Group]:
    """Return how often an example is in a sample, in groups; chances are rounded up or down.

    Up, what is lost to rounding is a hit in every place; down, it is no hit at all.
    """
    from mpmath import mp

    places, examples = mechanism.batch_size, mechanism.examples
    groups: list[_Group] = []
    first, likely = 1, True
    with working_digits(_DIGITS):
        while first <= places and likely:
            last = min(
                max(first, math.floor(_GROWTH * first)) if first > _ONE_BY_ONE else first, places
            )
            chances = [_binomial(places, k, examples) for k in range(first, last + 1)]
            likely = chances[-1] > _UNLIKELY or last * examples < places
            groups.append(_Group(first, last, _dyadic(mp.fsum(chances))))
            first = last + 1
        if up:
            none = _dyadic(_binomial(places, 0, examples))
            rest = 1 - none - sum((group.chance for group in groups), Fraction(0))
            groups.append(_Group(places, places, rest))
    return groups


def _last_of_group(first: int) -> int:
    """Return the largest number of hits that is accounted with another one."""
    return first if first <= _ONE_BY_ONE else math.floor(_GROWTH * first)


def _binomial(places: int, hits: int, examples: int) -> mpf:
    """Return ``P[Bin(places, 1/examples) = hits]``."""
    from mpmath import mp

    share = mp.one / examples
    return mp.binomial(places, hits) * share**hits * (1 - share) ** (places - hits)


def _dyadic(chance: mpf) -> Fraction:
    """Return a chance rounded down to a multiple of ``2^-960``, its own round-off included."""
    from mpmath import mp

    return Fraction(max(int(mp.floor(mp.ldexp(chance, _BITS))) - 1, 0), 2**_BITS)


def _seen(groups: list[_Group], noise_multiplier: Fraction, rate: Fraction) -> CellLoss:
    """Return the loss of so many hits, given that there are some, where their number is seen."""
    seen = revealed_mixture(
        (group.chance / rate, GaussianLoss(noise_multiplier / group.most)) for group in groups
    )
    return cast(CellLoss, seen)


def _alike(groups: list[_Group], noise_multiplier: Fraction, removing: bool) -> PrivacyLoss:
    """Return the loss of data whose other examples are all alike: a mixture of Gaussians."""
    known = [group for group in groups if group.chance > 0]
    rate = sum((group.chance for group in known), Fraction(0))
    distances = tuple(group.fewest / noise_multiplier for group in known)
    weights = tuple(group.chance / rate for group in known)
    return sampled_loss(GaussianMixtureLoss(distances, weights, removing), rate, removing)
