"""Calibrations of DP-SGD, and amplification by sampling."""

from __future__ import annotations

import math

from hockeystick.claims.found import Found, between
from hockeystick.claims.registry import way
from hockeystick.results import Certified


@way
def per_step_calibrated_delta(
    *, examples: int, steps: int, epsilon: float, delta: float
) -> Certified:
    """Return the true delta of steps on one example each, with the noise that is prescribed.

    It is ``16 l sqrt(T ln(2/d) ln(2.5 T/(d n)))/(n e)``, and replacing an example moves its
    gradient by up to ``2 l``.
    """
    logs = math.log(2.0 / delta) * math.log(2.5 * steps / (delta * examples))
    noise = 8.0 * math.sqrt(steps * logs) / (examples * epsilon)
    return _fixed_size_delta(noise, 1, examples, steps, epsilon)


@way
def hogwild_calibrated_delta(
    *, examples: int, batch_size: int, epsilon: float, delta: float
) -> Certified:
    """Return the true delta with ``sqrt(2 (e + ln(1/d))/e)`` after ``e (N/m)^2/2`` rounds."""
    noise = math.sqrt(2.0 * (epsilon + math.log(1.0 / delta)) / epsilon)
    rounds = int(epsilon * (examples / batch_size) ** 2 / 2.0)
    return _fixed_size_delta(noise, batch_size, examples, rounds, epsilon)


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
    from hockeystick.accountants import epsilon as asked
    from hockeystick.mechanisms import FixedSizeSubsampled, RandomizedResponse

    sampled = FixedSizeSubsampled(RandomizedResponse(epsilon), batch_size, examples)
    answer = asked(sampled, 0.0)
    return between(answer.lower, answer.upper, "epsilon")


def _fixed_size_delta(
    noise: float, batch_size: int, examples: int, steps: int, epsilon: float
) -> Certified:
    """Return delta of samples of a fixed size under replace-one."""
    from hockeystick.accountants import delta
    from hockeystick.mechanisms import FixedSizeSubsampled, Gaussian

    return delta(FixedSizeSubsampled(Gaussian(noise), batch_size, examples) ** steps, epsilon)
