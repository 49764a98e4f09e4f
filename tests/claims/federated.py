"""What "Federated f-Differential Privacy" computes, and what of it is proven.

A client takes K local steps in each of R rounds, on batches of B of its n examples, with noise s in
units of the sensitivity under replace-one. Theorem 2: ``C_(B/n)(G_(1/s))^(x KR)``, and in the limit
``G_mu``.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hockeystick.accountants import delta as delta_of
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.accountants.limits import limiting_mu as limit
from hockeystick.conversions.theorems import gaussian_mu
from hockeystick.notions import FDP, GDP
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.results import Certified
from hockeystick.tradeoffs import GaussianTradeOff
from tests.claims.found import Found, proven, way


@way
def limiting_mu(
    *, noise_multiplier: float, batch_size: int, examples: int, local_steps: int, rounds: int
) -> Found:
    """Return mu of the limit in theorem 2: ``sqrt(2) c sqrt(e^(1/s^2) Phi(1.5/s) + ...)``."""
    loss = FixedSizeGaussianLoss(Fraction(batch_size, examples), noise_multiplier)
    mu = limit(((loss, local_steps * rounds),))
    return Found(mu, mu, "approximation", "limit")


@way
def composed_mu(
    *,
    noise_multiplier: float,
    batch_size: int,
    examples: int,
    local_steps: int,
    rounds: int,
    delta: float,
) -> Found:
    """Return the mu whose epsilon at one delta is that of the composition in theorem 2."""
    steps = local_steps * rounds
    answer = epsilon_of(_step(noise_multiplier, batch_size / examples) ** steps, delta)
    # gaussian_mu is rounded down: go up until the Gaussian is proven to cost more.
    upper = gaussian_mu(answer.upper, delta)
    while delta_of(GDP(upper), epsilon=answer.upper).lower < delta:
        upper *= 1.0 + 2.0**-45
    shown = f"{delta:g}".replace("e-0", "e-")
    lower = gaussian_mu(answer.lower, delta)
    return Found(lower, upper, "proven", f"of the bound, at delta {shown}")


@way
def strong_mu(*, clients: int, **client: Any) -> Found:
    """Return mu of the strong notion as theorem 2 has it: ``sqrt(m - 1)`` times the weak one's."""
    mu = math.sqrt(clients - 1) * limiting_mu(**client).upper
    return Found(mu, mu, "approximation", "limit")


@way
def limiting_delta(*, steps: int, epsilon: float, **client: Any) -> Found:
    """Return delta of the limit in theorem 2."""
    one = limiting_mu(local_steps=steps, rounds=1, **client)
    value = float(delta_of(GDP(one.upper), epsilon=epsilon).estimate)
    return Found(value, value, "approximation", "delta")


@way
def mean_ratio_of_steps(
    *,
    local_steps: int,
    rounds: Sequence[int],
    other_local_steps: int,
    other_rounds: Sequence[int],
    examples_ratio: float = 1.0,
) -> float:
    """Return the mean over the rows of a table of how many times as many iterations one takes."""
    ratios = [
        local_steps * mine / (other_local_steps * others)
        for mine, others in zip(rounds, other_rounds, strict=True)
    ]
    return examples_ratio * math.fsum(ratios) / len(ratios)


@way
def mean_ratio_of_mu(
    *,
    noise_multipliers: Sequence[float],
    batch_size: int,
    local_steps: int,
    rounds: Sequence[int],
    other_batch_size: int,
    other_local_steps: int,
    other_rounds: Sequence[int],
    examples: int,
) -> float:
    """Return the mean over the rows of a table of one limiting mu over another."""

    def mu_of(**of_one: Any) -> Any:
        return limiting_mu(examples=examples, **of_one).upper

    own = {"batch_size": batch_size, "local_steps": local_steps}
    other = {"batch_size": other_batch_size, "local_steps": other_local_steps}
    ratios = [
        mu_of(noise_multiplier=noise, rounds=mine, **own)
        / mu_of(noise_multiplier=noise, rounds=others, **other)
        for noise, mine, others in zip(noise_multipliers, rounds, other_rounds, strict=True)
    ]
    return math.fsum(ratios) / len(ratios)


@way
def composed_delta(
    *, noise_multiplier: float, examples: int, batch_size: int, steps: int, epsilon: float
) -> Certified:
    """Return delta of ``C_(B/n)(G_(1/s))^(x steps)``, the bound of theorem 2."""
    return delta_of(_step(noise_multiplier, batch_size / examples) ** steps, epsilon=epsilon)


@way
def step_delta(*, noise_multiplier: float, examples: int, batch_size: int, epsilon: float) -> Found:
    """Return delta of one local step: ``p delta_G(ln(1 + (e^epsilon - 1)/p))``, ``p = B/n``.

    It is attained: the other examples of the batch have the gradient of one of the two neighbours.
    """
    p, mu = mp.mpf(batch_size) / examples, 1 / mp.mpf(noise_multiplier)
    inner = mp.log1p(mp.expm1(epsilon) / p)
    power, size = (mp.ncdf(side * mu / 2 - inner / mu) for side in (1, -1))
    return proven(p * (power - mp.exp(inner) * size), "delta")


@way
def gap_to_the_limit(
    *, noise_multiplier: float, examples: int, epsilon: float, share: float = 1.0
) -> Found:
    """Return by how much delta of n^2 steps on one of n examples each differs from their limit's.

    Then ``c = (B/n) sqrt(KR)`` is 1 for all n. A share of it is a claim on how fast it falls.
    """
    steps = {"batch_size": 1, "examples": examples, "steps": examples**2}
    limit = limiting_delta(noise_multiplier=noise_multiplier, epsilon=epsilon, **steps).upper
    finite = composed_delta(noise_multiplier=noise_multiplier, epsilon=epsilon, **steps)
    ends = sorted(share * abs(limit - end) for end in (finite.lower, finite.upper))
    return Found(ends[0] * (1 - 1e-9), ends[1] * (1 + 1e-9), "approximation", "delta")


@way
def one_round_bound(*, mu: float, client_rate: float, epsilon: float) -> Found:
    """Return delta of ``max(G_mu, 1 - a - p^2)``, lemma 3.8's bound for one round.

    It is the largest ``min(1 - G_mu(a), a + p^2) - e^epsilon a``. The first grows up to where the
    tangent of ``G_mu`` has slope ``-e^epsilon``, the second falls: it is there, or where they meet.
    """
    share = mp.mpf(str(client_rate)) ** 2

    def apart(z: Any) -> Any:
        return mp.ncdf(z + mu) - mp.ncdf(z) - share

    touches = -mp.mpf(epsilon) / mu - mp.mpf(mu) / 2
    z = touches
    if apart(touches) > 0:
        z = mp.findroot(apart, (touches - 20, touches), solver="bisect", maxsteps=200)
    return proven(mp.ncdf(z + mu) - mp.exp(epsilon) * mp.ncdf(z), "delta")


@way
def one_round_delta(*, mu: float, client_rate: float, epsilon: float) -> Found:
    """Return ``p^2 delta_f(epsilon)``: with probability p^2 both clients are in the round.

    Joint convexity over who is sampled; it is attained where the two are distinguishable.
    """
    answer, share = delta_of(GDP(mu), epsilon=epsilon), client_rate**2
    ends = float(answer.lower) * share * (1 - 1e-15), float(answer) * share * (1 + 1e-15)
    return Found(*ends, "proven", "delta")


@way
def carried_over(*, client_rate: float, rounds: int, observers: int = 1) -> Found:
    """Return the total variation where the server's state carries a client's model over rounds.

    Client j's training is without noise, the others' leaves the model as it was. With ``eta < 1``
    the global model keeps j's contribution from j's first round on, and an observer reads it off
    in any round from then on in which it is sampled itself: in none, if the first round of j is t,
    with ``(1-p)^(observers (R-t+1))``.
    """
    p = mp.mpf(str(client_rate))
    first = [p * (1 - p) ** (t - 1) for t in range(1, rounds + 1)]
    blind = [(1 - p) ** (observers * (rounds - t + 1)) for t in range(1, rounds + 1)]
    missed = (1 - p) ** rounds + mp.fdot(first, blind)
    return proven(1 - missed, "total variation")


def _step(noise_multiplier: float, rate: float) -> Any:
    return FDP(GaussianTradeOff(1.0 / noise_multiplier).subsample(rate))
