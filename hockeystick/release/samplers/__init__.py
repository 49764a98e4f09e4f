"""Exact noise: each draw has the named distribution, given ideal bits, not a float's idea of it.

All take ``bits``, a source of random 64-bit words: the operating system's, in whose place tests
replay others. Most return ``size`` independent draws, an array of 64-bit integers, empty for 0.
``ParameterError`` names an argument that is outside its domain, and ``OSError`` says that the
operating system has no random bits to give.
"""

from __future__ import annotations

from hockeystick.release.samplers.bits import (
    Bits,
    bernoulli,
    permutation,
    secret_bits,
    uniform_integers,
)
from hockeystick.release.samplers.comparisons import NoisyNumber, RealNoise, noisy_argmax
from hockeystick.release.samplers.rounded import (
    discrete_laplace,
    rounded_gaussian,
    rounded_laplace,
    rounded_multivariate_laplace,
)
from hockeystick.release.samplers.tables import (
    discrete_gaussian,
    poisson,
    run_count,
    skellam,
    truncated_negative_binomial,
)

__all__ = [
    "Bits",
    "NoisyNumber",
    "RealNoise",
    "bernoulli",
    "discrete_gaussian",
    "discrete_laplace",
    "noisy_argmax",
    "permutation",
    "poisson",
    "rounded_gaussian",
    "rounded_laplace",
    "rounded_multivariate_laplace",
    "run_count",
    "secret_bits",
    "skellam",
    "truncated_negative_binomial",
    "uniform_integers",
]
