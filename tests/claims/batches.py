"""Batches that an adversary sees the members of: shuffled epochs, and samples drawn afresh."""

import math
from typing import Any

from hockeystick.accountants import delta as delta_of
from hockeystick.conversions.published.shuffling import limit_delta
from hockeystick.mechanisms import Gaussian, RevealedSample
from hockeystick.numerics.multiprecision import mp
from hockeystick.results import Approximate, Certified
from tests.claims.found import Found, proven, way


@way
def limiting_delta(
    *, noise_multiplier: float, epochs: int, epsilon: float, side: int
) -> Approximate:
    """Return delta of ``G_mu``, ``mu = sqrt((1 + side/sqrt(2 E)) E)/sigma``."""
    return limit_delta(noise_multiplier, epochs, epsilon, side)


@way
def limiting_delta_with_its_error(*, epochs: int, **given: Any) -> Found:
    """Return the same and ``e^-E``, which is to tend to 0 for the approximation to be tight."""
    limit = limiting_delta(epochs=epochs, **given)
    most = float(limit.value) + math.exp(-epochs)
    return Found(most, most, "approximation", "delta")


@way
def resampled_delta(
    *, noise_multiplier: float, epochs: int, batches: int, epsilon: float
) -> Certified:
    """Return delta of batches drawn afresh: a mixture over the number of rounds with the record."""
    step = RevealedSample(Gaussian(noise_multiplier), 1.0 / batches)
    return delta_of(step ** (batches * epochs), epsilon=epsilon)


@way
def gaussian_of_the_same_variation(*, epsilon: float, **given: Any) -> Found:
    """Return delta of the ``G_mu`` that has the same delta at epsilon = 0: mu is what is free."""
    variation = resampled_delta(epsilon=0.0, **given)
    ends = [
        float(_profile(2 * mp.sqrt(2) * mp.erfinv(mp.mpf(end)), epsilon))
        for end in (variation.lower, variation.upper)
    ]
    return Found(min(ends), max(ends), "proven", "delta")


@way
def root_delta(*, noise_multiplier: float, epochs: int, epsilon: float, size: int = 1) -> Found:
    """Return delta of ``G_mu``, ``mu = sqrt(g E)/sigma``."""
    mu = mp.sqrt(size * epochs) / mp.mpf(noise_multiplier)
    return proven(_profile(mu, epsilon), "delta")


@way
def clipped_batches_delta(
    *, noise_multiplier: float, epsilon: float, size: int, examples: int, batches: int
) -> Found:
    """Return delta of a group in one epoch where each batch's sum is clipped as a whole.

    A batch moves by the same whether it has one of the group or several. To an adversary who sees
    how many batches have one, delta is the mean over that number.
    """
    chances = _batches_of_a_group(size, examples, batches)
    noise = mp.mpf(noise_multiplier)
    each = [p * _profile(mp.sqrt(k) / noise, epsilon) for k, p in chances.items()]
    return proven(mp.fsum(each), "delta")


@way
def one_batch_delta(
    *, noise_multiplier: float, epsilon: float, size: int, examples: int, batches: int
) -> Found:
    """Return a lower bound on a group's delta in one epoch where each example is clipped.

    With probability ``C(n - g, m - g)/C(n, m)`` times the number of batches the whole group is in
    one batch, whose sum moves g times as far. To an adversary who sees which, delta is the mean.
    """
    whole = _profile(size / mp.mpf(noise_multiplier), epsilon)
    least = float(_share_in_one_batch(size, examples, batches) * whole)
    return Found(math.nextafter(least, 0.0), 1.0, "proven", "delta")


@way
def divergence_of_hits(
    *, noise_multiplier: float, epochs: int, batches: int, order: float, shuffled: bool
) -> Found:
    """Return the Renyi divergence of batches, to an adversary who sees which have the record.

    Given that k do, ``e^((a - 1) D_a)`` is ``e^(k a (a - 1)/(2 sigma^2))``. Of an epoch's batches
    exactly one has it where they are shuffled; drawn afresh, each has it with chance 1/batches.
    """
    a = mp.mpf(order)
    exponent = a * (a - 1) / (2 * mp.mpf(noise_multiplier) ** 2)
    share = mp.mpf(1) / batches
    chances = (
        {1: batches * share}
        if shuffled
        else {
            k: mp.binomial(batches, k) * share**k * (1 - share) ** (batches - k)
            for k in range(batches + 1)
        }
    )
    moment = mp.fsum(p * mp.exp(k * exponent) for k, p in chances.items())
    return proven(epochs * mp.log(moment) / (a - 1), "divergence")


@way
def clipped_batches_divergence(
    *, noise_multiplier: float, order: float, size: int, examples: int, batches: int
) -> Found:
    """Return the Renyi divergence of a group in one epoch whose batches are clipped as a whole."""
    a, chances = mp.mpf(order), _batches_of_a_group(size, examples, batches)
    exponent = a * (a - 1) / (2 * mp.mpf(noise_multiplier) ** 2)
    moment = mp.fsum(p * mp.exp(k * exponent) for k, p in chances.items())
    return proven(mp.log(moment) / (a - 1), "divergence")


@way
def one_batch_divergence(
    *, noise_multiplier: float, order: float, size: int, examples: int, batches: int
) -> Found:
    """Return a lower bound on a group's divergence in one epoch where each example is clipped.

    All are in one batch with the chance of ``one_batch_delta``, and no term of the mean is below 1.
    """
    a, share = mp.mpf(order), _share_in_one_batch(size, examples, batches)
    exponent = size**2 * a * (a - 1) / (2 * mp.mpf(noise_multiplier) ** 2)
    least = mp.log1p(share * mp.expm1(exponent)) / (a - 1)
    return Found(math.nextafter(float(least), 0.0), math.inf, "proven", "divergence")


def _profile(mu: Any, epsilon: float) -> Any:
    """Return delta of mu-Gaussian differential privacy, by the formula and in mpmath."""
    power, size = (mp.ncdf(side * mu / 2 - mp.mpf(epsilon) / mu) for side in (1, -1))
    return power - mp.exp(epsilon) * size


def _share_in_one_batch(size: int, examples: int, batches: int) -> Any:
    batch = examples // batches
    return batches * mp.binomial(examples - size, batch - size) / mp.binomial(examples, batch)


def _batches_of_a_group(size: int, examples: int, batches: int) -> dict[int, Any]:
    """Return with which chance a shuffle puts a group into k of the batches, for each k."""
    batch = examples // batches
    # Places for the group's members one after another, by how many batches have one already.
    ways: dict[tuple[int, ...], Any] = {(): mp.one}
    for placed in range(size):
        after: dict[tuple[int, ...], Any] = {}
        for sizes, chance in ways.items():
            for index, own in enumerate(sizes):
                grown = tuple(sorted((*sizes[:index], own + 1, *sizes[index + 1 :])))
                share = mp.mpf(batch - own) / (examples - placed)
                after[grown] = after.get(grown, mp.zero) + chance * share
            share = mp.mpf((batches - len(sizes)) * batch) / (examples - placed)
            fresh = tuple(sorted((*sizes, 1)))
            after[fresh] = after.get(fresh, mp.zero) + chance * share
        ways = after
    found: dict[int, Any] = {}
    for sizes, chance in ways.items():
        found[len(sizes)] = found.get(len(sizes), mp.zero) + chance
    return found
