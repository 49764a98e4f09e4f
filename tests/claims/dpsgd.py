"""Composition, calibrations of DP-SGD, and amplification by sampling."""

import math
from itertools import product

from hockeystick.accountants import delta as delta_of
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.calibration import gaussian_noise
from hockeystick.mechanisms import FixedSizeSubsampled, Gaussian, RandomizedResponse
from hockeystick.numerics.multiprecision import mp
from hockeystick.results import Certified
from tests.claims.found import Found, proven, way


@way
def advanced_epsilon(*, epsilon: float, runs: int, delta: float, halved: bool = False) -> float:
    """Return ``sqrt(2 k ln(1/delta)) e + k e (exp(e) - 1)``, or with the second term halved."""
    second = runs * epsilon * math.expm1(epsilon)
    root = math.sqrt(2.0 * runs * math.log(1.0 / delta)) * epsilon
    return root + (second / 2.0 if halved else second)


@way
def doubled_root_epsilon(*, epsilon: float, runs: int, delta: float) -> float:
    """Return ``2 sqrt(2 k ln(1/delta)) e``, advanced composition with its second term dropped."""
    return 2.0 * math.sqrt(2.0 * runs * math.log(1.0 / delta)) * epsilon


@way
def exact_epsilon(*, epsilon: float, runs: int, delta: float) -> Certified:
    """Return the epsilon of several e-DP mechanisms, which randomized response attains."""
    return epsilon_of(RandomizedResponse(epsilon) ** runs, delta)


@way
def group_attained(*, epsilon: float, delta: float, size: int) -> Found:
    """Return delta at ``g epsilon`` of an (epsilon, delta)-DP mechanism on a chain of data sets.

    With two outputs, ``P_i(a) = delta (e^((g-i) eps) - 1)/(e^eps - 1)`` for i = 0..g has
    ``P_i(a) - e^eps P_(i+1)(a) = delta`` between neighbours, less in the other direction and for
    b where ``P_0(a) <= 1 - e^-eps``; and ``P_0(a) - e^(g eps) P_g(a) = P_0(a)`` between the ends.
    """
    eps = mp.mpf(epsilon)
    first = mp.mpf(delta) * mp.expm1(size * eps) / mp.expm1(eps)
    if first > -mp.expm1(-eps):
        raise ValueError("the mechanism needs a smaller delta")
    return proven(first, "delta")


@way
def moved_record_epsilon(*, epsilon: float, blocks: int) -> Found:
    """Return the epsilon of disjoint parts of the data where a record is in several of them.

    Each part reports truthfully whether the record is in it with probability
    ``e^eps/(1 + e^eps)``: the largest ratio of probabilities of all 2^blocks outputs. An added or
    removed record changes one part, and so does a replaced one that stays in its part; a replaced
    one may also leave a part for another.
    """
    odds = mp.exp(mp.mpf(epsilon))
    chances = {True: odds / (1 + odds), False: 1 / (1 + odds)}
    ratios = [
        mp.fprod(chances[seen] / chances[not seen] for seen in outputs)
        for outputs in product((True, False), repeat=blocks)
    ]
    return proven(mp.log(max(ratios)), "epsilon")


@way
def per_step_calibrated_delta(
    *, examples: int, steps: int, epsilon: float, delta: float, share: float = 1.0
) -> Certified:
    """Return the true delta of steps on one example each, with a share of the prescribed noise.

    It is ``16 l sqrt(T ln(2/d) ln(2.5 T/(d n)))/(n e)``, and replacing an example moves its
    gradient by up to ``2 l``.
    """
    noise = share * _step_noise(examples, steps, epsilon, delta)
    return _fixed_size_delta(noise, 1, examples, steps, epsilon)


@way
def classical_step_epsilon(*, examples: int, steps: int, epsilon: float, delta: float) -> Found:
    """Return what the classical formula has for the prescribed noise, at ``d n/(2 T)``."""
    eps, d = mp.mpf(epsilon), mp.mpf(delta)
    logs = mp.log(2 / d) * mp.log(mp.mpf("2.5") * steps / (d * examples))
    noise = 16 * mp.sqrt(steps * logs) / (examples * eps)
    sensitivity, own = mp.mpf(2), d * examples / (2 * steps)
    return proven(sensitivity * mp.sqrt(2 * mp.log(mp.mpf("1.25") / own)) / noise, "epsilon")


@way
def sampled_step_delta(*, examples: int, steps: int, epsilon: float, delta: float) -> Certified:
    """Return the true delta of one step at the ``e/(2 sqrt(2 T ln(2/d)))`` of the proof."""
    one = epsilon / (2.0 * math.sqrt(2.0 * steps * math.log(2.0 / delta)))
    noise = _step_noise(examples, steps, epsilon, delta)
    return _fixed_size_delta(noise, 1, examples, 1, one)


@way
def hogwild_calibrated_delta(
    *, examples: int, batch_size: int, epsilon: float, delta: float, share: float = 1.0
) -> Certified:
    """Return the true delta with ``sqrt(2 (e + ln(1/d))/e)`` after ``e (N/m)^2/2`` rounds."""
    noise = share * math.sqrt(2.0 * (epsilon + math.log(1.0 / delta)) / epsilon)
    rounds = int(epsilon * (examples / batch_size) ** 2 / 2.0)
    return _fixed_size_delta(noise, batch_size, examples, rounds, epsilon)


@way
def sampled_gaussian_delta(
    *, epsilon: float, delta: float, batch_size: int, examples: int
) -> Certified:
    """Return delta at ``ln(1 + (m/n) (e^eps - 1))`` of samples, given to just enough noise.

    The Gaussian noise is the least that is (epsilon, delta)-DP.
    """
    noise = gaussian_noise(epsilon, delta)
    less = amplified_epsilon(epsilon=epsilon, batch_size=batch_size, examples=examples)
    return _fixed_size_delta(noise, batch_size, examples, 1, less)


@way
def amplified_epsilon(*, epsilon: float, batch_size: int, examples: int) -> float:
    """Return ``ln(1 + (m/n) (e^eps - 1))``."""
    return math.log1p(batch_size / examples * math.expm1(epsilon))


def _step_noise(examples: int, steps: int, epsilon: float, delta: float) -> float:
    """Return the noise that the slides prescribe for a step, in units of its sensitivity."""
    logs = math.log(2.0 / delta) * math.log(2.5 * steps / (delta * examples))
    return 8.0 * math.sqrt(steps * logs) / (examples * epsilon)


def _fixed_size_delta(
    noise: float, batch_size: int, examples: int, steps: int, epsilon: float
) -> Certified:
    return delta_of(
        FixedSizeSubsampled(Gaussian(noise), batch_size, examples) ** steps, epsilon=epsilon
    )
