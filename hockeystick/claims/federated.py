"""What "Federated f-Differential Privacy" computes, and what of it is proven.

A client takes K local steps in each of R rounds, on batches of B of its n examples, with noise s in
units of the sensitivity under replace-one. Theorem 2: ``C_(B/n)(G_(1/s))^(x KR)``, and in the limit
``G_mu``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hockeystick.claims.found import Found, between, proven
from hockeystick.claims.registry import way
from hockeystick.results import Certified


@way
def limiting_mu(
    *, noise_multiplier: float, batch_size: int, examples: int, local_steps: int, rounds: int
) -> Found:
    """Return mu of the limit in theorem 2: ``sqrt(2) c sqrt(e^(1/s^2) Phi(1.5/s) + ...)``."""
    from hockeystick.accountants.gdp import limiting_mu as limit
    from hockeystick.losses.fixed_size_gaussian import FixedSizeGaussianLoss

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
    from hockeystick.accountants import delta as delta_of
    from hockeystick.accountants import epsilon
    from hockeystick.conversions.theorems import gaussian_mu
    from hockeystick.notions import GDP

    steps = local_steps * rounds
    answer = epsilon(_step(noise_multiplier, batch_size / examples) ** steps, delta)
    # gaussian_mu is rounded down: go up until the Gaussian is proven to cost more.
    upper = gaussian_mu(answer.upper, delta)
    while delta_of(GDP(upper), answer.upper).lower < delta:
        upper *= 1.0 + 2.0**-45
    return between(
        gaussian_mu(answer.lower, delta), upper, f"at delta {delta:g}".replace("e-0", "e-")
    )


@way
def strong_mu(*, clients: int, **client: Any) -> Found:
    """Return mu of the strong notion as theorem 2 has it: ``sqrt(m - 1)`` times the weak one's."""
    mu = math.sqrt(clients - 1) * limiting_mu(**client).upper
    return Found(mu, mu, "approximation", "limit")


@way
def limiting_delta(
    *, noise_multiplier: float, examples: int, batch_size: int, steps: int, epsilon: float
) -> Found:
    """Return delta of the limit in theorem 2."""
    from hockeystick.accountants import delta
    from hockeystick.notions import GDP

    one = limiting_mu(
        noise_multiplier=noise_multiplier,
        batch_size=batch_size,
        examples=examples,
        local_steps=steps,
        rounds=1,
    )
    value = float(delta(GDP(one.upper), epsilon).estimate)
    return Found(value, value, "approximation", "delta")


@way
def trained_delta(
    *, noise_multiplier: float, examples: int, batch_size: int, steps: int, epsilon: float
) -> Certified:
    """Return delta of the local steps themselves; the lower end is what some data lose."""
    from hockeystick.accountants import delta
    from hockeystick.mechanisms import FixedSizeSubsampled, Gaussian

    step = FixedSizeSubsampled(Gaussian(noise_multiplier), batch_size, examples)
    return delta(step**steps, epsilon)


@way
def steps(*, local_steps: int, rounds: int, batch_size: int = 1) -> float:
    """Return how many iterations a client takes, or how many examples it processes."""
    return float(local_steps * rounds * batch_size)


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
    ratios = [
        limiting_mu(
            noise_multiplier=noise,
            batch_size=batch_size,
            examples=examples,
            local_steps=local_steps,
            rounds=mine,
        ).upper
        / limiting_mu(
            noise_multiplier=noise,
            batch_size=other_batch_size,
            examples=examples,
            local_steps=other_local_steps,
            rounds=others,
        ).upper
        for noise, mine, others in zip(noise_multipliers, rounds, other_rounds, strict=True)
    ]
    return math.fsum(ratios) / len(ratios)


@way
def one_round_bound(*, mu: float, client_rate: float, epsilon: float) -> Found:
    """Return delta of ``max(G_mu, 1 - a - p^2)``, lemma 3.8's bound for one round.

    ``delta = max over a of 1 - g(a) - e^epsilon a`` is concave in a; where the tangent of slope
    ``-e^epsilon`` touches ``G_mu``, at ``a = Phi(-epsilon/mu - mu/2)``, the line ``1 - a - p^2`` is
    below it if ``1 - G_mu(a) - a <= p^2``; then g has the same tangent, and the same delta.
    """
    from mpmath import mp

    with mp.workdps(30):
        power = mp.ncdf(-mp.mpf(epsilon) / mu + mp.mpf(mu) / 2)
        size = mp.ncdf(-mp.mpf(epsilon) / mu - mp.mpf(mu) / 2)
        if power - size > mp.mpf(client_rate) ** 2:
            raise ValueError("the line is above the tangent's point: another formula is needed")
        return proven(power - mp.exp(epsilon) * size, "delta")


@way
def one_round_delta(*, mu: float, client_rate: float, epsilon: float) -> Found:
    """Return ``p^2 delta_f(epsilon)``: with probability p^2 both clients are in the round.

    Joint convexity over who is sampled; it is attained where the two can be seen apart.
    """
    from hockeystick.accountants import delta
    from hockeystick.notions import GDP

    answer, share = delta(GDP(mu), epsilon), client_rate**2
    return between(
        float(answer.lower) * share * (1 - 1e-15), float(answer) * share * (1 + 1e-15), "delta"
    )


@way
def many_rounds_bound(*, client_rate: float, rounds: int) -> Found:
    """Return the total variation that theorem 1 allows over R rounds: ``1 - (1 - p^2)^R``.

    It is what the lines ``1 - a - p^2`` compose to, whatever the local training is.
    """
    from mpmath import mp

    with mp.workdps(30):
        return proven(1 - (1 - mp.mpf(str(client_rate)) ** 2) ** rounds, "total variation")


@way
def carried_over(*, client_rate: float, rounds: int) -> Found:
    """Return the total variation where the server's state carries a client's model over rounds.

    Client j's training is without noise, the others' leaves the model as it was. With ``eta < 1``
    the global model keeps j's contribution from j's first round on, and the observer reads it off
    in any round from then on in which it is sampled itself. With T the first round of j, it misses
    with ``(1-p)^R + sum_t p (1-p)^(t-1) (1-p)^(R-t+1) = (1 + p R) (1-p)^R``.
    """
    from mpmath import mp

    with mp.workdps(30):
        p = mp.mpf(str(client_rate))
        return proven(1 - (1 + p * rounds) * (1 - p) ** rounds, "total variation")


def _step(noise_multiplier: float, rate: float) -> Any:
    """Return one local step of theorem 2: ``C_rate(G_(1/s))``."""
    from hockeystick.notions import FDP
    from hockeystick.tradeoffs import GaussianTradeOff

    return FDP(GaussianTradeOff(1.0 / noise_multiplier).subsample(rate))
