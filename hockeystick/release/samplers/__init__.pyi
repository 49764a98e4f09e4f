# The public names and where they are: type checkers read it, and they are loaded by it.
from .bits import (
    Bits as Bits,
    bernoulli as bernoulli,
    permutation as permutation,
    secret_bits as secret_bits,
    uniform_integers as uniform_integers,
)
from .real_noise import (
    NoisyNumber as NoisyNumber,
    RealNoise as RealNoise,
    discrete_laplace as discrete_laplace,
    noisy_argmax as noisy_argmax,
    rounded_gaussian as rounded_gaussian,
    rounded_laplace as rounded_laplace,
    rounded_multivariate_laplace as rounded_multivariate_laplace,
)
from .tables import (
    discrete_gaussian as discrete_gaussian,
    poisson as poisson,
    run_count as run_count,
    skellam as skellam,
    truncated_negative_binomial as truncated_negative_binomial,
)

__all__: list[str]
