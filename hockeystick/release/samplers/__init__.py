"""Exact noise: each draw has the named distribution, given ideal bits, not a float's idea of it."""

from __future__ import annotations

from hockeystick.release.samplers.bits import Bits, secret_bits
from hockeystick.release.samplers.comparisons import NoisyNumber, RealNoise, noisy_argmax
from hockeystick.release.samplers.discrete_gaussian import discrete_gaussian
from hockeystick.release.samplers.poisson import poisson, skellam
from hockeystick.release.samplers.radial_laplace import rounded_multivariate_laplace
from hockeystick.release.samplers.rounded import discrete_laplace, rounded_gaussian, rounded_laplace
from hockeystick.release.samplers.run_counts import run_count, truncated_negative_binomial
from hockeystick.release.samplers.uniform import bernoulli, permutation, uniform_integers

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
