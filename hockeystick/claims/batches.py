"""Batches that an adversary sees the members of: shuffled epochs, and samples drawn afresh."""

from __future__ import annotations

import math

from hockeystick.claims.found import Found, proven
from hockeystick.claims.registry import way
from hockeystick.results import Approximate, Certified


@way
def limiting_delta(
    *, noise_multiplier: float, epochs: int, epsilon: float, side: int
) -> Approximate:
    """Return delta of ``G_mu``, ``mu = sqrt((1 + side/sqrt(2 E)) E)/sigma``."""
    from hockeystick.accountants.shuffling import limit_delta

    return limit_delta(noise_multiplier, epochs, epsilon, side)


@way
def resampled_delta(
    *, noise_multiplier: float, epochs: int, batches: int, epsilon: float
) -> Certified:
    """Return delta of batches drawn afresh: a mixture over the number of rounds with the record."""
    from hockeystick.accountants import delta
    from hockeystick.mechanisms import Gaussian, RevealedSample

    step = RevealedSample(Gaussian(noise_multiplier), 1.0 / batches)
    return delta(step ** (batches * epochs), epsilon)


@way
def shuffled_delta(*, noise_multiplier: float, epochs: int, epsilon: float) -> Certified:
    """Return delta of shuffled epochs, to an adversary who sees the members of their batches.

    Each epoch has the record in exactly one batch, whose release is Gaussian; of the others it is
    independent.
    """
    from hockeystick.accountants import delta
    from hockeystick.mechanisms import Gaussian

    return delta(Gaussian(noise_multiplier) ** epochs, epsilon)


@way
def root_delta(*, noise_multiplier: float, epochs: int, epsilon: float, size: int = 1) -> Certified:
    """Return delta of ``G_mu``, ``mu = sqrt(g E)/sigma``."""
    from hockeystick.accountants import delta
    from hockeystick.notions import GDP

    return delta(GDP(math.sqrt(size * epochs) / noise_multiplier), epsilon)


@way
def clipped_batches_delta(
    *, noise_multiplier: float, epochs: int, epsilon: float, size: int
) -> Certified:
    """Return delta of a group where each batch's sum is clipped as a whole."""
    from hockeystick.accountants import delta
    from hockeystick.accountants.shuffling import shuffled_group
    from hockeystick.mechanisms import Gaussian

    return delta(shuffled_group(Gaussian(noise_multiplier), epochs, size, "batch"), epsilon)


@way
def one_batch_delta(
    *, noise_multiplier: float, epsilon: float, size: int, examples: int, batches: int
) -> Found:
    """Return a lower bound on a group's delta in one epoch where each example is clipped.

    With probability ``C(n - g, m - g)/C(n, m)`` times the number of batches the whole group is in
    one batch, whose sum moves g times as far. To an adversary who sees which, delta is the mean.
    """
    from mpmath import mp

    from hockeystick.accountants import delta
    from hockeystick.mechanisms import Gaussian

    whole = delta(Gaussian(noise_multiplier / size), epsilon)
    batch = examples // batches
    with mp.workdps(30):
        share = batches * mp.binomial(examples - size, batch - size)
        share /= mp.binomial(examples, batch)
        lower = math.nextafter(float(share * mp.mpf(whole.lower)), 0.0)
    return Found(lower, 1.0, "proven", "delta")


@way
def less_noise_at_the_end_delta(
    *, noise_multiplier: float, epochs: int, epsilon: float
) -> Certified:
    """Return delta where the last of E shuffled epochs has noise ``sigma/sqrt(E + 1)``."""
    from hockeystick.accountants import delta
    from hockeystick.mechanisms import Gaussian

    last = Gaussian(noise_multiplier / math.sqrt(epochs + 1.0))
    return delta(Gaussian(noise_multiplier) ** (epochs - 1) @ last, epsilon)


@way
def twice_the_epochs_delta(*, noise_multiplier: float, epochs: int, epsilon: float) -> Certified:
    """Return delta of ``G_mu``, ``mu = sqrt(2 E)/sigma``."""
    return root_delta(noise_multiplier=noise_multiplier, epochs=2 * epochs, epsilon=epsilon)


@way
def concentrated_divergence(*, noise_multiplier: float, epochs: int, order: float) -> Found:
    """Return ``a E/(2 sigma^2)``, the divergence of order a that E/(2 sigma^2)-zCDP allows."""
    from mpmath import mp

    with mp.workdps(30):
        return proven(mp.mpf(order) * epochs / (2 * mp.mpf(noise_multiplier) ** 2), "divergence")


@way
def shuffled_divergence(*, noise_multiplier: float, epochs: int, order: float) -> Found:
    """Return the Renyi divergence of shuffled epochs, an upper bound."""
    from hockeystick.conversions import convert
    from hockeystick.mechanisms import Gaussian
    from hockeystick.notions import RenyiDP

    ((_, upper),) = convert(Gaussian(noise_multiplier) ** epochs, RenyiDP, orders=order).divergences
    return Found(0.0, upper, "proven", "divergence")


@way
def resampled_divergence(
    *, noise_multiplier: float, epochs: int, batches: int, order: float
) -> Found:
    """Return the Renyi divergence of batches drawn afresh, to an adversary who sees their members.

    Given the number of rounds with the record the divergences are those of Gaussians, so that
    ``(a - 1) D_a = T ln(1 + p (e^(a (a - 1)/(2 sigma^2)) - 1))``.
    """
    from mpmath import mp

    with mp.workdps(30):
        a = mp.mpf(order)
        grown = mp.expm1(a * (a - 1) / (2 * mp.mpf(noise_multiplier) ** 2))
        rounds = batches * epochs
        return proven(rounds * mp.log1p(grown / batches) / (a - 1), "divergence")
