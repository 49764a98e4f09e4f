"""What scores of an attack prove: bounds on epsilon and mu, a curve, or that a plan is false."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick._validate import Domain, real
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.audit.region import (
    Objective,
    Region,
    Rule,
    at_ranks,
    at_threshold,
    best_of,
    epsilons,
    mus,
    quarter_ellipse,
)
from hockeystick.audit.results import AuditQuantity, Consistent, LowerBound, OperatingPoint, Refuted
from hockeystick.audit.scores import Array, checked_scores, error_probability, mixed_seed
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.tradeoffs import TradeOff

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_EXACT: Final = "combined exact binomial p-values (hockeystick, docs/theory/audit)"
_THEOREMS: Final = {
    "simultaneous": f"{_EXACT} at ranks fixed in advance, by Bonferroni's inequality",
    "combined": f"{_EXACT} at a threshold fixed in advance",
}
_ASSUMPTIONS: Final = (
    "The scores are independent: each comes from a run, or a record, of its own.",
    "The runs of both kinds differ only as neighbours do.",
)
_SHARE: Final = Domain(symbol="w", low=0.01, high=0.99, typical=(0.1, 0.9))
_THRESHOLD: Final = Domain(symbol="t", low=-float("inf"), high=float("inf"), typical=(-10.0, 10.0))


def lower_epsilon(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    *,
    delta: float,
    confidence: float = 0.95,
    threshold: float | None = None,
    share: float = 0.5,
    seed: int = 0,
) -> LowerBound:
    """Return a lower bound on the epsilon of what the scores are of, at a delta.

    A test with false positive rate q and true positive rate p shows that

        e^epsilon >= max((p - delta) / q, (1 - q - delta) / (1 - p))

    and the bound is the least such epsilon in a confidence region of (q, p).

    Guarantees:
        With probability at least ``confidence`` over trials and seed, the mechanism is not
        (epsilon', delta)-DP for any epsilon' below the value, whatever the attack. The rates are
        bounded by exact binomial laws for any number of trials, rounding errors included.
        Infinite scores are compared like all others. Below a confidence of 0.5 it is that of 0.5.

    Args:
        scores_in: Scores of runs in which the record took part, shape (n,); larger means "in".
        scores_out: Scores of runs without it, or with its neighbour, shape (m,).
        delta: Where epsilon is asked, in [0, 1].
        confidence: In (0, 1).
        threshold: A score fixed in advance: what reaches it is called "in". Without it, ranks 1, 3,
            9, ... of the scores of both kinds are looked at, which hold together.
        share: How much of the error probability guards the false positive rate at a threshold,
            fixed in advance: near 1 where that rate will be small.
        seed: What orders tied scores, beside themselves; fixed in advance, no best of several.

    References:
        Jagielski, Ullman and Oprea, NeurIPS 2020; the region is derived in docs/theory/audit.

    Example:
        >>> import numpy as np
        >>> from hockeystick import audit
        >>> random = np.random.default_rng(1)
        >>> found = audit.lower_epsilon(
        ...     random.normal(1, 1, 10_000), random.normal(0, 1, 10_000), delta=1e-5
        ... )
        >>> 2.0 < found.value < 4.38  # what the mechanism has
        True
    """
    at = real("delta", delta)
    used, rules = _rules_of(scores_in, scores_out, confidence, threshold, share, seed)
    return _proven("epsilon", rules, epsilons(at), float(confidence), used, at)


def lower_mu(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    *,
    confidence: float = 0.95,
    threshold: float | None = None,
    share: float = 0.5,
    seed: int = 0,
) -> LowerBound:
    """Return a lower bound on the mu for which what the scores are of may be mu-GDP.

    A test with rates q and p of false and true positives shows ``mu >= PhiInv(p) - PhiInv(q)``.
    With probability at least ``confidence`` over trials and seed, the mechanism is not mu'-GDP for
    any mu' below the value. The epsilon that a mu has bounds that of the mechanism only where its
    trade-off function is that of a Gaussian. Arguments are those of ``lower_epsilon`` (Nasr et al.,
    "Tight auditing of differentially private machine learning", USENIX Security 2023).

    Example:
        >>> from hockeystick import audit
        >>> print(f"{audit.lower_mu([1.0, 3.0, 2.0, 5.0] * 50, [0.0, 1.0] * 100).value:.3f}")
        2.493
    """
    used, rules = _rules_of(scores_in, scores_out, confidence, threshold, share, seed)
    return _proven("mu", rules, mus, float(confidence), used, None)


def lower_curve(
    scores_in: ArrayLike, scores_out: ArrayLike, *, confidence: float = 0.95, seed: int = 0
) -> tuple[OperatingPoint, ...]:
    """Return points below the attack's curve of true and false positives, which hold together.

    There is one for each of the ranks 1, 3, 9, ... of both kinds of scores, by rising ``fpr``.
    Arguments are those of ``lower_epsilon``. With probability at least ``confidence``, for all
    points at once, the false positive rate of the rule is at most ``fpr`` and its true positive
    rate at least ``tpr`` (Clopper and Pearson 1934 with the beta law of order statistics, and
    Bonferroni's inequality).

    Example:
        >>> from hockeystick import audit
        >>> points = audit.lower_curve([1.0, 2.0, 3.0] * 50, [0.0, 1.0] * 75)
        >>> all(one.tpr <= 1.0 and one.fpr > 0.0 for one in points)
        True
    """
    both = checked_scores("scores_in", scores_in), checked_scores("scores_out", scores_out)
    alpha, known = error_probability(confidence), mixed_seed(seed, *both)
    points = [one.point(one.region, 0) for one in at_ranks(*both, alpha, known, boxes=True)]
    return tuple(sorted(points, key=lambda one: (one.fpr, one.tpr)))


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

    The plan is a mechanism, a notion such as ``hs.GDP(1.0)``, or a trade-off function; neighbours
    are those of its adjacency. With a delta a lower bound on epsilon stands beside the verdict, and
    both hold together. Other arguments are those of ``lower_epsilon``.

    Raises:
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
    """
    f = tradeoff_of("plan", plan)
    at = None if delta is None else real("delta", delta)
    used, rules = _rules_of(scores_in, scores_out, confidence, threshold, share, seed)
    sure = float(confidence)
    value, point = best_of(rules, margins(f))
    beside = claimed = None
    if at is not None:
        beside = _proven("epsilon", rules, epsilons(at), sure, used, at)
        claimed = epsilon_of(plan, at) if isinstance(plan, Mechanism) else f.epsilon(at)
    return (Refuted if value > 0.0 else Consistent)(
        f"the certified trade-off function of {plan}",
        sure,
        _THEOREMS[used],
        method=used,
        point=point,
        claimed_tpr=float(f.power(point.fpr)),
        epsilon=beside,
        claimed_epsilon=claimed,
        trials=point.in_trials + point.out_trials,
        assumptions=(*_ASSUMPTIONS, *premises_of(plan)),
    )


def _rules_of(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    confidence: float,
    threshold: float | None,
    share: float,
    seed: int,
) -> tuple[str, list[Rule]]:
    """Return the method and its tests, in which no score has a say."""
    both = checked_scores("scores_in", scores_in), checked_scores("scores_out", scores_out)
    alpha, known = error_probability(confidence), mixed_seed(seed, *both)
    weight = real("share", share, _SHARE)
    if threshold is None:
        return "simultaneous", at_ranks(*both, alpha, known)
    put = real("threshold", threshold, _THRESHOLD)
    return "combined", [at_threshold(*both, put, quarter_ellipse(alpha, weight))]


def _proven(
    quantity: AuditQuantity,
    rules: list[Rule],
    objective: Objective,
    confidence: float,
    method: str,
    delta: float | None,
) -> LowerBound:
    value, point = best_of(rules, objective)
    return LowerBound(
        max(value, 0.0),
        quantity,
        confidence,
        _THEOREMS[method],
        method=method,
        delta=delta,
        point=point,
        trials=point.in_trials + point.out_trials,
        assumptions=_ASSUMPTIONS,
    )


def tradeoff_of(name: str, claim: object) -> TradeOff:
    """Return the trade-off function of a claim, for both orders of its neighbours, or raise."""
    if isinstance(claim, TradeOff):
        return claim.symmetrize()
    if isinstance(claim, Mechanism):
        return tradeoff(claim)
    raise ParameterError(name, claim, "a mechanism or plan, or a trade-off function")


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
