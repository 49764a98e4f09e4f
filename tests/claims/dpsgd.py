"""Calibrations of DP-SGD, and amplification by sampling."""

from __future__ import annotations

import math

from hockeystick.accountants import delta as delta_of
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.calibration import gaussian_noise
from hockeystick.mechanisms import FixedSizeSubsampled, Gaussian, RandomizedResponse
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.working_precision import working_digits
from hockeystick.results import Certified
from tests.claims.found import Found, between, proven, way


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
def promised_step_epsilon(*, examples: int, steps: int, epsilon: float, delta: float) -> float:
    """Return ``n e/(4 sqrt(2 T ln(2/d)))``, what the proof has for a step before sampling."""
    return examples * epsilon / (4.0 * math.sqrt(2.0 * steps * math.log(2.0 / delta)))


@way
def classical_step_epsilon(*, examples: int, steps: int, epsilon: float, delta: float) -> Found:
    """Return what the classical formula has for the prescribed noise, at ``d n/(2 T)``."""
    with working_digits(30):
        eps, d = mp.mpf(epsilon), mp.mpf(delta)
        logs = mp.log(2 / d) * mp.log(mp.mpf("2.5") * steps / (d * examples))
        noise = 16 * mp.sqrt(steps * logs) / (examples * eps)
        sensitivity, own = mp.mpf(2), d * examples / (2 * steps)
        return proven(sensitivity * mp.sqrt(2 * mp.log(mp.mpf("1.25") / own)) / noise, "epsilon")


@way
def promised_step_delta(*, steps: int, delta: float) -> float:
    """Return ``d/(2 T)``."""
    return delta / (2.0 * steps)


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
def amplified_delta(*, delta: float, batch_size: int, examples: int) -> float:
    """Return ``(m/n) delta``."""
    return batch_size / examples * delta


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


@way
def linear_amplified_epsilon(*, epsilon: float, batch_size: int, examples: int) -> float:
    """Return ``2 (m/n) eps``."""
    return 2.0 * batch_size / examples * epsilon


@way
def sampled_response_epsilon(*, epsilon: float, batch_size: int, examples: int) -> Found:
    """Return the pure epsilon of randomized response on samples without replacement."""
    sampled = FixedSizeSubsampled(RandomizedResponse(epsilon), batch_size, examples)
    answer = epsilon_of(sampled, 0.0)
    return between(answer.lower, answer.upper, "epsilon")


def _step_noise(examples: int, steps: int, epsilon: float, delta: float) -> float:
    """Return the noise that the slides prescribe for a step, in units of its sensitivity."""
    logs = math.log(2.0 / delta) * math.log(2.5 * steps / (delta * examples))
    return 8.0 * math.sqrt(steps * logs) / (examples * epsilon)


def _fixed_size_delta(
    noise: float, batch_size: int, examples: int, steps: int, epsilon: float
) -> Certified:
    """Return delta of samples of a fixed size under replace-one."""
    return delta_of(
        FixedSizeSubsampled(Gaussian(noise), batch_size, examples) ** steps, epsilon=epsilon
    )
