"""Whether what an attack found contradicts what a plan has been proven to have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick._validate import real
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.audit._region import Objective, Region, best_of, epsilons
from hockeystick.audit._scores import Array, checked_scores, error_probability, mixed_seed
from hockeystick.audit.bounds import ASSUMPTIONS, THEOREMS, proven, rules_of
from hockeystick.audit.results import Consistent, Refuted
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.results import Certified
from hockeystick.tradeoffs import TradeOff

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_ALLOWED: Final = "a mechanism or plan, or a trade-off function"


def tradeoff_of(name: str, claim: object) -> TradeOff:
    """Return the trade-off function of a claim, for both orders of its neighbours, or raise."""
    if isinstance(claim, TradeOff):
        return claim.symmetrize()
    if isinstance(claim, Mechanism):
        return tradeoff(claim)
    raise ParameterError(name, claim, _ALLOWED)


def premises_of(claim: object) -> tuple[str, ...]:
    """Return what must hold for a claim to apply."""
    return assumptions_of(claim) if isinstance(claim, Mechanism) else ()


def margins(f: TradeOff) -> Objective:
    """Return the objective that is above 0 exactly where f provably excludes a corner.

    No test has ``p > 1 - f(q)``, nor, which is the same and precise where p is near 1, a false
    negative rate ``1 - p < f(q)``; the claim's side is its proven one.
    """

    def objective(corners: Region) -> Array:
        shape = np.broadcast_shapes(corners.q.shape, corners.p.shape)
        rates = np.broadcast_to(corners.q, shape)
        with np.errstate(divide="ignore"):
            most, least = np.log(f.power(rates)), np.log(f(rates))
            hits = np.where(corners.p > 0.0, np.log(corners.p) - most, -np.inf)
            misses = np.where(least > -np.inf, least - np.log(corners.miss), -np.inf)
        return np.maximum(_beyond(hits, most), _beyond(misses, least))

    return objective


def _beyond(value: Array, size: Array) -> Array:
    """Return a difference of logarithms, less its round-off."""
    slack = 2.0**-48 * (1.0 + np.where(np.isfinite(size), np.abs(size), 0.0))
    return value - slack


_CLAIM: Final = "the certified trade-off function of {}"


def falsify(
    plan: Mechanism | TradeOff,
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    *,
    confidence: float = 0.95,
    delta: float | None = None,
    threshold: float | None = None,
    share: float = 0.5,
    seed: int = 0,
) -> Refuted | Consistent:
    """Return whether the scores of an attack contradict the certified trade-off function of a plan.

    For a plan that is f-DP, no test has a false negative rate below f of its false positive rate.
    The plan is refuted if some test's whole confidence region lies where ``1 - p < f(q)``.

    Guarantees:
        If what ran is what the plan describes, the answer is ``Refuted`` with probability at most
        ``1 - confidence``: f is the certified lower end, for both orders of the neighbours, and the
        rates are bounded by exact binomial laws. ``Consistent`` guarantees nothing.

    Edge cases:
        Constant scores, swapped labels, or very few are consistent with everything. A plan without
        noise has f = 0 and is consistent with everything; one that releases nothing has
        f = 1 - alpha.

    Args:
        plan: What was claimed to run: a mechanism or plan, a notion such as ``hs.GDP(1.0)``, or a
            trade-off function.
        scores_in: Scores of runs in which the record took part, shape (n,); larger means "in".
        scores_out: Scores of runs on the neighbouring data, shape (m,). What neighbours are is the
            plan's adjacency.
        confidence: In (0, 1).
        delta: Where a lower bound on epsilon is to stand beside the verdict, for a plan; it holds
            together with the verdict.
        threshold: As for ``lower_epsilon``.
        share: As for ``lower_epsilon``.
        seed: As for ``lower_epsilon``.

    Raises:
        ParameterError: As for ``lower_epsilon``, or if the plan is none.
        UnsupportedError: If no privacy loss is known for a part of the plan.

    References:
        Dong, Roth and Su 2022, definition 2.3; the region is derived in docs/theory/audit.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> from hockeystick import audit
        >>> random = np.random.default_rng(1)
        >>> scores = random.normal(1, 0.5, 1000), random.normal(0, 0.5, 1000)
        >>> print(audit.falsify(hs.Gaussian(noise_multiplier=1.0), *scores))
        refuted with confidence 0.95: ...
        >>> print(audit.falsify(hs.Gaussian(noise_multiplier=0.5), *scores))
        not refuted at confidence 0.95: ...; consistent is not a proof of privacy
    """
    f = tradeoff_of("plan", plan)
    at = None if delta is None else real("delta", delta)
    both = checked_scores("scores_in", scores_in), checked_scores("scores_out", scores_out)
    alpha, known = error_probability(confidence), mixed_seed(seed, *both)
    used, rules = rules_of(both, alpha, threshold=threshold, share=share, seed=known)
    value, point = best_of(rules, margins(f))
    kind, sure = (Refuted if value > 0.0 else Consistent), float(confidence)
    beside = None if at is None else proven("epsilon", rules, epsilons(at), sure, used, at)
    return kind(
        _CLAIM.format(plan),
        sure,
        THEOREMS[used],
        method=used,
        point=point,
        claimed_tpr=float(f.power(point.fpr)),
        epsilon=beside,
        claimed_epsilon=None if at is None else _claimed(plan, f, at),
        trials=both[0].size + both[1].size,
        assumptions=(*ASSUMPTIONS, *premises_of(plan)),
    )


def _claimed(plan: Mechanism | TradeOff, f: TradeOff, delta: float) -> Certified:
    """Return what a claim has at a delta."""
    return epsilon_of(plan, delta) if isinstance(plan, Mechanism) else f.epsilon(delta)
