"""Two noisy queries in the place of one: adaptive clipping and learning rates."""

from __future__ import annotations

import math

from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.calibration import clipping_noise, joint_noise
from hockeystick.mechanisms import Gaussian
from hockeystick.numerics.roots import increasing_root
from hockeystick.results import Certified
from tests.claims.found import way


@way
def query_noise(*, inflation: float) -> float:
    """Return nu_q/nu where the gradients' noise is inflated by so much."""
    return joint_noise(1.0, inflation=inflation).query


@way
def query_over_bit_noise(*, inflation: float) -> float:
    """Return the ratio of the query's noise to that of a clipped bit at the same privacy.

    The bit, in {-1/2, 1/2}, has sensitivity 1/2, the query 1. ``clipping_noise`` tells how much
    noise the gradients need beside a bit's; half the query's noise needs the same.
    """

    def short(log_excess: float) -> float:
        return inflation - clipping_noise(1.0, 0.5 + math.exp(log_excess))

    query = query_noise(inflation=inflation)
    bit = 0.5 + math.exp(increasing_root(short, math.log(query), tolerance=1e-12))
    return query / bit


@way
def one_release_epsilon(*, noise_multiplier: float, delta: float) -> Certified:
    """Return the epsilon of one Gaussian release."""
    return epsilon_of(Gaussian(noise_multiplier), delta)


@way
def joint_epsilon(
    *, noise_multiplier: float, delta: float, inflation: float, algorithm: bool = False
) -> Certified:
    """Return the epsilon of gradients and query; as the algorithm has it, both with nu_g."""
    both = joint_noise(noise_multiplier, inflation=inflation)
    query = both.gradient if algorithm else both.query
    return epsilon_of(Gaussian(both.gradient) @ Gaussian(query), delta)
