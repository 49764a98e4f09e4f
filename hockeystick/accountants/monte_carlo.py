"""What balls in bins cost by chance: an upper confidence bound of delta, by importance sampling.

With G the Gram matrix of the bins' means in units of the noise, ``Y ~ N(0, G)`` under Q and
``rho = mean_r exp(Y_r - G_rr/2) = dP/dQ``,

    removing:  delta = E_Q[(rho - e^eps)_+],      adding:  delta = E_Q[(1 - e^eps rho)_+].

Removing, outputs are drawn from the mean of ``N(t m_r, I)``, t > 1, whose density over Q is
``rho_t = mean_r exp(t Y_r - t^2 G_rr/2)``. By Jensen ``rho_t >= e^(-t(t-1)g/2) rho^t`` with g the
largest ``G_rr``, so that the summand is at most

    (rho - e^eps)_+ / rho_t <= M = exp(t(t-1) g/2 - (t-1) eps) (t-1)^(t-1) / t^t.

Adding, they are drawn from ``N(-s mean_r m_r, I)``, s >= 0. As no mean is below the geometric one,
a summand above 0 has ``mean Y < mean G_rr / 2 - eps``, so that its weight
``exp(s mean Y + s^2 mean G_rs / 2)`` is at most that with this in place of ``mean Y``.

The mean of N independent numbers in [0, M] with sample variance V is exceeded by its expectation
by ``sqrt(2 V ln(2/alpha) / N) + 7 M ln(2/alpha) / (3 (N-1))`` with probability at most alpha
(Maurer and Pontil, "Empirical Bernstein Bounds and Sample Variance Penalization", 2009, theorem 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import BallsInBins
from hockeystick.privacy_loss.streams import gram_matrix
from hockeystick.results import Approximate

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# What no summand exceeds, and the summands of some draws; logarithms.
_Direction: TypeAlias = "tuple[float, Callable[[Array], Array]]"

_SAMPLES: Final = Domain(symbol="N", low=2, high=10**9, typical=(10**4, 10**7), whole=True)
_CONFIDENCE: Final = Domain("1 - alpha", 0, 1, (0.9, 0.999999), low_open=True, high_open=True)
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 2**31), whole=True)
_MOST_BINS: Final = 2000
# Outputs that are drawn at once have about so many numbers.
_AT_ONCE: Final = 10**6
# The orders that are tried for the tilt.
_ORDERS: Final = 1.0 + np.exp(np.linspace(math.log(0.01), math.log(1e4), 400))
_A_PLAN: Final = f"a BallsInBins with noise, of at most {_MOST_BINS:,} bins"


def monte_carlo_delta(
    plan: BallsInBins,
    epsilon: float,
    *,
    samples: float = 100_000,
    confidence: float = 0.99,
    seed: int | None = None,
) -> Approximate:
    """Return an upper confidence bound of delta of balls in bins, by chance.

    The larger one of both directions' means over ``samples`` outputs each, by importance sampling,
    plus what an empirical Bernstein bound adds.

    Guarantees:
        None for the number. In exact arithmetic, with independent random numbers, the procedure
        returns less than delta with probability at most ``1 - confidence``, whatever the plan:
        that is no proof of this number, all the less so where it is one of several that were
        drawn. ``hs.delta`` proves both ends.

    Edge cases:
        More samples bring it closer to delta, from above with that confidence. With few it may be
        further above than the proven end, but at most 1.

    Args:
        plan: A ``BallsInBins`` with a finite noise multiplier above 0, and at most 2,000 bins.
        epsilon: A finite number >= 0.
        samples: The number of outputs drawn in each direction, an integer from 2 to 10^9.
        confidence: Between 0 and 1.
        seed: What the random numbers are computed from; None for the operating system's.

    Returns:
        An ``Approximate``, whose assumptions name the confidence.

    References:
        Choquette-Choo, Ganesh, Haque, Steinke and Thakurta, "Near exact privacy amplification for
        matrix mechanisms", 2024 (arXiv 2410.06266), for Monte Carlo accounts of it; the tilts and
        the range of the summands are derived above.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.accountants import monte_carlo_delta
        >>> plan = hs.mechanisms.BallsInBins(4.0, (1.0, 0.5), rounds=40, bins=10)
        >>> found = monte_carlo_delta(plan, 0.6, samples=20_000, seed=1)
        >>> proven = hs.delta(plan, 0.6)
        >>> proven.lower < found.value < proven.upper
        True
    """
    if not isinstance(plan, BallsInBins) or plan.bins > _MOST_BINS:
        raise ParameterError("plan", plan, _A_PLAN)
    if not 0.0 < plan.noise_multiplier < math.inf or not any(plan.coefficients[: plan.rounds]):
        raise ParameterError("plan", plan, _A_PLAN)
    level = _validate.real("epsilon", epsilon)
    if level == math.inf:
        raise ParameterError("epsilon", epsilon, "a finite number >= 0")
    count = _validate.count("samples", samples, _SAMPLES)
    alpha = 0.5 * (1.0 - _validate.real("confidence", confidence, _CONFIDENCE))
    known = None if seed is None else _validate.count("seed", seed, _SEED)
    source = np.random.default_rng(known)
    products = gram_matrix(plan)
    removing, adding = _removing(products, level, source), _adding(products, level)
    bounds = [_bound(products, count, alpha, source, *one) for one in (removing, adding)]
    procedure = (
        f"An upper confidence bound from {count:,} random outputs in each direction: the "
        f"procedure returns less than delta with probability at most {1.0 - confidence:g}; "
        "nothing is proven of this number."
    )
    return Approximate(
        min(max(bounds), 1.0),
        quantity="delta",
        accountant="monte-carlo",
        adjacency=plan.adjacency,
        assumptions=(*plan.assumptions, procedure),
        at=level,
    )


def _bound(
    products: Array,
    count: int,
    alpha: float,
    source: np.random.Generator,
    log_most: float,
    log_summands: Callable[[Array], Array],
) -> float:
    """Return one direction's upper confidence bound; all are logarithms, draws from ``N(0, G)``."""
    values, vectors = np.linalg.eigh(products)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    block = max(_AT_ONCE // len(products), 1)
    total, squares = 0.0, 0.0
    for start in range(0, count, block):
        drawn = source.standard_normal((min(block, count - start), len(products))) @ root.T
        shares = np.exp(np.minimum(log_summands(drawn) - log_most, 0.0))
        total, squares = total + float(shares.sum()), squares + float((shares**2).sum())
    mean = total / count
    variance = max(squares - count * mean * mean, 0.0) / (count - 1)
    logarithm = math.log(2.0 / alpha)
    more = math.sqrt(2.0 * variance * logarithm / count) + 7.0 * logarithm / (3.0 * (count - 1))
    return math.exp(min(math.log(mean + more) + log_most, 0.0))


def _removing(products: Array, epsilon: float, source: np.random.Generator) -> _Direction:
    """Return ``ln((rho - e^eps)_+ / rho_t)`` of outputs of the mean of ``N(t m_r, I)``, best t."""
    t, own = _ORDERS, np.diagonal(products)
    entropy = (t - 1.0) * np.log(t - 1.0) - t * np.log(t)
    exponents = 0.5 * t * (t - 1.0) * float(own.max()) - (t - 1.0) * epsilon + entropy
    best = int(np.argmin(exponents))
    order = float(t[best])

    def log_summands(drawn: Array) -> Array:
        chosen = source.integers(len(products), size=len(drawn))
        outputs = drawn + order * products[chosen]
        log_ratio = _log_mean(outputs - 0.5 * own)
        excess = np.log(np.maximum(-np.expm1(np.minimum(epsilon - log_ratio, 0.0)), 1e-300))
        value = log_ratio + excess - _log_mean(order * outputs - 0.5 * order * order * own)
        return np.where(log_ratio > epsilon, value, -np.inf)

    return float(exponents[best]), log_summands


def _adding(products: Array, epsilon: float) -> _Direction:
    """Return ``ln((1 - e^eps rho)_+ weight)`` of outputs of ``N(-s mean m_r, I)``, best s."""
    mean, own = float(products.mean()), float(np.diagonal(products).mean())
    shift = max(epsilon - 0.5 * own, 0.0) / mean

    def log_summands(drawn: Array) -> Array:
        outputs = drawn - shift * products.mean(axis=1)
        log_ratio = _log_mean(outputs - 0.5 * np.diagonal(products))
        missing = np.log(np.maximum(-np.expm1(np.minimum(epsilon + log_ratio, 0.0)), 1e-300))
        weight = shift * outputs.mean(axis=1) + 0.5 * shift**2 * mean
        return np.where(log_ratio < -epsilon, missing + weight, -np.inf)

    return shift * (0.5 * own - epsilon) + 0.5 * shift * shift * mean, log_summands


def _log_mean(exponents: Array) -> Array:
    largest = exponents.max(axis=1)
    found: Array = largest + np.log(np.exp(exponents - largest[:, None]).mean(axis=1))
    return found
