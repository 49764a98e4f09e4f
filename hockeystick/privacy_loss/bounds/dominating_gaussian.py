"""The Gaussian that dominates one run: the least known mu with ``f >= G_mu`` for its pair (P, Q).

Trade-off functions above G_mu stay above it in mixtures whose weights are the same under P and
under Q (joint convexity of every hockey-stick divergence): sampling costs at most what each of the
cases does that it chooses from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import singledispatch

from hockeystick.numerics import decimal
from hockeystick.numerics.rounding import short_up
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.observed_mixture import (
    ObservedMixtureLoss,
    ObservedMixtureProfiledLoss,
)
from hockeystick.privacy_loss.core.symmetrized import SymmetrizedLoss, SymmetrizedProfiledLoss
from hockeystick.privacy_loss.federated.revealed_round import RevealedRoundLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.noise.gaussian_mixture import GaussianMixtureLoss
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.privacy_loss.sampling.gaussian_sequence import GaussianSequenceLoss
from hockeystick.privacy_loss.sampling.replaced_gaussian import ReplacedGaussianLoss
from hockeystick.privacy_loss.sampling.sampled import SampledLoss, SampledProfiledLoss
from hockeystick.privacy_loss.sampling.sampled_atoms import SampledAtomsLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss


@singledispatch
def gaussian_square_of(loss: PrivacyLoss) -> Fraction | None:
    """Return ``mu^2`` of a Gaussian mechanism that dominates one run.

    Guarantees:
        An upper bound: the trade-off functions of (P, Q) and of (Q, P) are at least ``G_mu``.
        Exact for a ``GaussianLoss``. Numbers mean the decimals that they print as; fractions are
        rounded up to 40 digits, so that sums of many stay short.

    Edge cases:
        Only Gaussian noise has such a bound here. Any bounded loss has another, by the largest
        loss: see ``hockeystick.conversions.theorems.liu_mu``.

    Args:
        loss: The loss of one run.

    Returns:
        The square of mu; None where none is known.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, definition 2.6.

    Example:
        >>> from hockeystick.privacy_loss import GaussianLoss
        >>> from hockeystick.privacy_loss.bounds.dominating_gaussian import gaussian_square_of
        >>> gaussian_square_of(GaussianLoss(0.5))
        Fraction(4, 1)
    """
    return None


@gaussian_square_of.register(GaussianLoss)
@gaussian_square_of.register(SampledGaussianLoss)
@gaussian_square_of.register(FixedSizeGaussianLoss)
def _(loss: GaussianLoss | SampledGaussianLoss | FixedSizeGaussianLoss) -> Fraction:
    return _square(loss.noise_multiplier)


@gaussian_square_of.register
def _(loss: ReplacedGaussianLoss) -> Fraction:
    # An example that is sampled moves the sum from one side of the others' to the other side.
    return 4 * _square(loss.noise_multiplier)


@gaussian_square_of.register
def _(loss: GaussianMixtureLoss) -> Fraction:
    return short_up(max(loss.distances) ** 2)


@gaussian_square_of.register
def _(loss: GaussianSequenceLoss) -> Fraction:
    noises = Counter(loss.levels.noise.tolist())
    return sum((_square(noise) * count for noise, count in noises.items()), Fraction(0))


@gaussian_square_of.register(SampledLoss)
@gaussian_square_of.register(SampledProfiledLoss)
@gaussian_square_of.register(SampledAtomsLoss)
def _(loss: SampledLoss | SampledProfiledLoss | SampledAtomsLoss) -> Fraction | None:
    return gaussian_square_of(loss.inner)


@gaussian_square_of.register(SymmetrizedLoss)
@gaussian_square_of.register(SymmetrizedProfiledLoss)
def _(loss: SymmetrizedLoss | SymmetrizedProfiledLoss) -> Fraction | None:
    # Its profile is that of the loss that is mirrored, and G_mu is its own mirror image.
    return gaussian_square_of(loss.one)


@gaussian_square_of.register(ObservedMixtureLoss)
@gaussian_square_of.register(ObservedMixtureProfiledLoss)
def _(loss: ObservedMixtureLoss | ObservedMixtureProfiledLoss) -> Fraction | None:
    return _largest(gaussian_square_of(one) for _, one in loss.components if one)


@gaussian_square_of.register
def _(loss: RevealedRoundLoss) -> Fraction | None:
    squares = [(gaussian_square_of(one), count) for one, count in loss.terms]
    known = [square * count for square, count in squares if square is not None]
    return sum(known, Fraction(0)) if len(known) == len(squares) else None


@gaussian_square_of.register
def _(loss: DominatedLoss) -> Fraction | None:
    return gaussian_square_of(loss.above)


def _largest(squares: Iterable[Fraction | None]) -> Fraction | None:
    """Return the largest number, None where one is not known."""
    listed = list(squares)
    known = [square for square in listed if square is not None]
    return max(known, default=Fraction(0)) if len(known) == len(listed) else None


def _square(noise_multiplier: float | Fraction) -> Fraction:
    """Return ``1/z^2`` of a noise multiplier, rounded up where it is no short fraction."""
    if isinstance(noise_multiplier, Fraction):
        return short_up(1 / noise_multiplier**2)
    return short_up(1 / decimal(noise_multiplier) ** 2)
