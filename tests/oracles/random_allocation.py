"""The profiles of random allocation by quadrature and by chance, with no lattice of likelihoods.

With ``S = exp(z/s - 1/(2 s^2))`` the last of t coordinates is integrated in closed form (the call
or the put on a lognormal), the others by the trapezoidal rule or by mpmath.
"""

import math

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]


def two_steps(noise: float, epsilon: float, *, removing: bool) -> mpf:
    """Return delta of 1 of 2 steps in 30 digits."""
    with mp.workdps(30):
        s, level = mpf(noise), mp.exp(epsilon if removing else -epsilon)

        def ratio(z: mpf) -> mpf:
            return mp.exp(z / s - 1 / (2 * s * s))

        def rest(z: mpf) -> mpf:
            left = 2 * level - ratio(z)
            if left <= 0:
                return (1 - left) if removing else mp.zero
            d = 1 / (2 * s) - s * mp.log(left)
            if removing:
                return mp.ncdf(d) - left * mp.ncdf(d - 1 / s)
            return left * mp.ncdf(1 / s - d) - mp.ncdf(-d)

        kink = s * mp.log(2 * level) + 1 / (2 * s)
        ends = sorted({mpf(-20), mpf(-2), kink - 1, kink - mpf("0.1"), kink, mpf(1), mpf(20)})
        total = mp.quad(lambda z: mp.npdf(z) * rest(z) / 2, [*ends, ends[-1] + 20])
        return total if removing else total / level


def few_steps(
    noise: float, steps: int, epsilon: float, *, removing: bool, width: float = 0.06
) -> float:
    """Return delta of 1 of 3 or 4 steps by the trapezoidal rule in all coordinates but one."""
    z = np.arange(-9.0, 9.0 + 1.0 / noise, width)
    ratio, weight = np.exp(z / noise - 0.5 / noise**2), width * np.exp(-0.5 * z * z)
    weight /= math.sqrt(2.0 * math.pi)
    level = math.exp(epsilon if removing else -epsilon)
    sums, mass = ratio, weight
    total = 0.0
    if steps == 4:
        sums = np.add.outer(ratio, ratio)[np.triu_indices(z.size)]
        twice = 2.0 * np.outer(weight, weight) - np.diag(weight * weight)
        mass = twice[np.triu_indices(z.size)]
    for own, share in zip(ratio, weight, strict=True):
        total += share * float((mass * _option(steps * level - own - sums, noise, removing)).sum())
    return total / steps / (1.0 if removing else level)


def _option(left: Array, noise: float, removing: bool) -> Array:
    """Return ``E (S - k)_+`` or ``E (k - S)_+`` of one likelihood ratio S."""
    positive = np.maximum(left, 1e-300)
    d = 0.5 / noise - noise * np.log(positive)
    if removing:
        inside = ndtr(d) - left * ndtr(d - 1.0 / noise)
        return np.asarray(np.where(left > 0.0, inside, 1.0 - left))
    inside = left * ndtr(1.0 / noise - d) - ndtr(-d)
    return np.asarray(np.where(left > 0.0, inside, 0.0))


def sampled_losses(
    noise: float, steps: int, runs: int, *, removing: bool, draws: int, seed: int = 1
) -> Array:
    """Return sums of losses of so many epochs, drawn under the distribution that they belong to."""
    rng = np.random.default_rng(seed)
    total = np.zeros(draws)
    for _ in range(runs):
        for part in np.array_split(np.arange(draws), max(draws * steps // 2_000_000, 1)):
            z = rng.standard_normal((part.size, steps), dtype=np.float32).astype(np.float64)
            if removing:
                z[:, 0] += 1.0 / noise
            mean = np.exp(z / noise - 0.5 / noise**2).mean(axis=1)
            total[part] += np.log(mean) if removing else -np.log(mean)
    return total


def confident(losses: Array, epsilon: float, *, failure: float = 1e-9) -> tuple[float, float]:
    """Return ends of delta that hold but with some probability (Maurer and Pontil 2009, thm 4)."""
    values = -np.expm1(np.minimum(epsilon - losses, 0.0))
    count, log = values.size, math.log(4.0 / failure)
    half = math.sqrt(2.0 * float(values.var(ddof=1)) * log / count) + 7.0 * log / (3.0 * count - 3)
    return float(values.mean()) - half, float(values.mean()) + half
