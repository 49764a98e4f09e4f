"""What the literature says of PriFedSync: the central limit theorem of its local steps."""

from __future__ import annotations

import math
from typing import Final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.accountants.limits import limiting_mu
from hockeystick.mechanisms import LocalTraining, PriFedSync
from hockeystick.privacy_loss import FixedSizeGaussianLoss, GaussianLoss, PrivacyLoss
from hockeystick.results import Approximate, Quantity

_NAME: Final = "federated-limit"
_DELTA: Final = Domain(
    symbol="delta", low=0, high=1, low_open=True, high_open=True, typical=(1e-12, 1e-4)
)
_EPSILON: Final = Domain(symbol="eps", low=0, high=math.inf, high_open=True, typical=(0.01, 20))


def limit_mu(plan: PriFedSync) -> float:
    """Return the published mu_max of a plan: that of the client that pays most; an approximation.

    ``mu_j = sqrt(2) c_j sqrt(e^(1/s^2) Phi(1.5/s) + 3 Phi(-0.5/s) - 2)`` for client j, with
    ``c_j = (B_j/n_j) sqrt(K_j R)`` and s half the noise multiplier: what the composition
    ``C_(B/n)(G_(1/s))^(K R)`` tends to where K R grows and c_j stays. A batch of all examples is
    Gaussian noise, ``mu_j = sqrt(K_j R)/s``.

    Guarantees:
        None, on either side. Client j's loss is not one of mu_j-GDP: delta is often far smaller,
        and, where steps are few and rarely sampled, far larger. The rate at which clients are drawn
        is not in the formula.

    Edge cases:
        0 for no steps or infinite noise; inf without noise.

    Args:
        plan: A federated training.

    Returns:
        mu_max, which proves nothing.

    References:
        Zheng, Chen, Long and Su, "Federated f-Differential Privacy", AISTATS 2021, theorem 2; Dong,
        Roth and Su 2022, corollary 5.4.

    Example:
        >>> import hockeystick as hs
        >>> local = hs.federated.LocalTraining(
        ...     examples=600, batch_size=16, noise_multiplier=2.0, local_steps=38
        ... )
        >>> round(limit_mu(hs.federated.PriFedSync(clients=local, rounds=93)), 2)
        2.71
    """
    return max(_mu_of(one, plan.rounds) for one in plan.settings)


def limit_epsilon(plan: PriFedSync, delta: float) -> Approximate:
    """Return epsilon of ``G_mu_max``: the published reading, an approximation.

    As ``limit_mu``, with the same guarantees: none.

    Args:
        plan: A federated training.
        delta: Above 0 and below 1.

    Returns:
        An ``Approximate``: no guarantee.

    Example:
        Too large here, where the truth is at most 13.8774:

        >>> import hockeystick as hs
        >>> local = hs.federated.LocalTraining(
        ...     examples=600, batch_size=16, noise_multiplier=2.0, local_steps=38
        ... )
        >>> print(limit_epsilon(hs.federated.PriFedSync(clients=local, rounds=93), delta=1e-5))
        epsilon ~ 14.6393 at delta = 1e-05 (approximation, no guarantee; federated-limit, ...)
    """
    probability = _validate.real("delta", delta, _DELTA)
    mu = limit_mu(plan)
    value = ClosedForm().epsilon_of(_run(mu), probability).estimate if 0.0 < mu < math.inf else mu
    return _answer(plan, value, "epsilon", probability)


def limit_delta(plan: PriFedSync, epsilon: float) -> Approximate:
    """Return delta of ``G_mu_max``: the published reading, an approximation.

    As ``limit_mu``, with the same guarantees: none.

    Args:
        plan: A federated training.
        epsilon: At least 0 and finite.

    Returns:
        An ``Approximate``: no guarantee.

    Example:
        Too small here, where the truth is above 6e-8:

        >>> import hockeystick as hs
        >>> local = hs.federated.LocalTraining(
        ...     examples=60_000, batch_size=6, noise_multiplier=1.0, local_steps=10
        ... )
        >>> print(limit_delta(hs.federated.PriFedSync(clients=local, rounds=10), epsilon=2.0))
        delta ~ 0 at epsilon = 2 (approximation, no guarantee; federated-limit, replace-one)
    """
    at = _validate.real("epsilon", epsilon, _EPSILON)
    mu = limit_mu(plan)
    value = ClosedForm().delta_of(_run(mu), at).estimate if 0.0 < mu < math.inf else min(mu, 1.0)
    return _answer(plan, value, "delta", at)


def _mu_of(local: LocalTraining, rounds: int) -> float:
    """Return the mu of one client."""
    steps = local.local_steps * rounds
    noise = 0.5 * local.noise_multiplier
    if steps == 0 or noise == math.inf:
        return 0.0
    if noise == 0.0:
        return math.inf
    rate = local.rate
    loss: PrivacyLoss = GaussianLoss(noise) if rate == 1 else FixedSizeGaussianLoss(rate, noise)
    return limiting_mu(((loss, steps),))


def _run(mu: float) -> tuple[tuple[GaussianLoss, int], ...]:
    """Return one run of a Gaussian."""
    return ((GaussianLoss(1.0 / mu), 1),)


def _answer(plan: PriFedSync, value: float, quantity: Quantity, at: float) -> Approximate:
    """Return an approximation with what it rests on."""
    return Approximate(
        value,
        quantity=quantity,
        accountant=_NAME,
        adjacency=plan.adjacency,
        assumptions=plan.assumptions,
        at=at,
    )
