"""What the literature says of PriFedSync: the central limit theorem of its local steps."""

from __future__ import annotations

import math

from hockeystick.accountants.limits import limiting_mu
from hockeystick.conversions.published.shuffling import of_limit
from hockeystick.mechanisms import LocalTraining, PriFedSync
from hockeystick.privacy_loss import FixedSizeGaussianLoss, GaussianLoss, PrivacyLoss
from hockeystick.results import Approximate, Quantity


def limit_mu(plan: PriFedSync) -> float:
    """Return the published mu_max of a plan: that of the client that pays most; an approximation.

    ``mu_j = sqrt(2) c_j sqrt(e^(1/s^2) Phi(1.5/s) + 3 Phi(-0.5/s) - 2)`` for client j, with
    ``c_j = (B_j/n_j) sqrt(K_j R)`` and s half the noise multiplier: what the composition
    ``C_(B/n)(G_(1/s))^(K R)`` tends to where K R grows and c_j stays. A batch of all examples is
    Gaussian noise, ``mu_j = sqrt(K_j R)/s``. 0 for no steps or infinite noise; inf without noise.

    Guarantees:
        None, on either side. Client j's loss is not one of mu_j-GDP: delta is often far smaller,
        and, where steps are few and rarely sampled, far larger. The rate at which clients are drawn
        is not in the formula.

    Zheng, Chen, Long and Su, "Federated f-Differential Privacy", AISTATS 2021, theorem 2; Dong,
    Roth and Su 2022, corollary 5.4.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.conversions.published.federated_limit import limit_mu
        >>> local = hs.federated.LocalTraining(
        ...     examples=600, batch_size=16, noise_multiplier=2.0, local_steps=38
        ... )
        >>> round(limit_mu(hs.federated.PriFedSync(clients=local, rounds=93)), 2)
        2.71
    """
    return max(_mu_of(one, plan.rounds) for one in plan.settings)


def limit_epsilon(plan: PriFedSync, delta: float) -> Approximate:
    """Return epsilon of ``G_mu_max`` at a delta in (0, 1): an approximation without guarantees.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.conversions.published.federated_limit import limit_epsilon
        >>> local = hs.federated.LocalTraining(
        ...     examples=600, batch_size=16, noise_multiplier=2.0, local_steps=38
        ... )
        >>> plan = hs.federated.PriFedSync(clients=local, rounds=93)  # in truth at most 13.8774
        >>> print(limit_epsilon(plan, delta=1e-5))
        epsilon ~ 14.6393 at delta = 1e-05 (approximation, no guarantee; federated-limit, ...)
    """
    return _of_limit(plan, "epsilon", delta)


def limit_delta(plan: PriFedSync, epsilon: float) -> Approximate:
    """Return delta of ``G_mu_max`` at a finite epsilon >= 0: an approximation without guarantees.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.conversions.published.federated_limit import limit_delta
        >>> local = hs.federated.LocalTraining(
        ...     examples=60_000, batch_size=6, noise_multiplier=1.0, local_steps=10
        ... )
        >>> plan = hs.federated.PriFedSync(clients=local, rounds=10)  # in truth above 6e-8
        >>> print(limit_delta(plan, epsilon=2.0))
        delta ~ 0 at epsilon = 2 (approximation, no guarantee; federated-limit, replace-one)
    """
    return _of_limit(plan, "delta", epsilon)


def _of_limit(plan: PriFedSync, quantity: Quantity, at: float) -> Approximate:
    about = {"adjacency": plan.adjacency, "assumptions": plan.assumptions}
    return of_limit(limit_mu(plan), quantity, at, "federated-limit", **about)


def _mu_of(local: LocalTraining, rounds: int) -> float:
    steps = local.local_steps * rounds
    noise = 0.5 * local.noise_multiplier
    if steps == 0 or noise == math.inf:
        return 0.0
    if noise == 0.0:
        return math.inf
    rate = local.rate
    loss: PrivacyLoss = GaussianLoss(noise) if rate == 1 else FixedSizeGaussianLoss(rate, noise)
    return limiting_mu(((loss, steps),))
