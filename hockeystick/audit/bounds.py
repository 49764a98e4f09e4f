"""Lower bounds on epsilon and mu from the scores of an attack, and on its whole curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hockeystick._validate import Domain, real
from hockeystick.audit._region import (
    Objective,
    Rule,
    at_ranks,
    at_threshold,
    best_of,
    epsilons,
    mus,
    quarter_ellipse,
)
from hockeystick.audit._scores import Scores, checked_scores, error_probability, mixed_seed
from hockeystick.audit.results import AuditQuantity, LowerBound, OperatingPoint

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_EXACT: Final = "combined exact binomial p-values (hockeystick, docs/theory/audit)"
THEOREMS: Final = {
    "simultaneous": f"{_EXACT} at ranks fixed in advance, by Bonferroni's inequality",
    "combined": f"{_EXACT} at a threshold fixed in advance",
}
ASSUMPTIONS: Final = (
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
        Thresholds and weights are fixed before the scores are seen.

    Edge cases:
        Constant scores, swapped labels, three scores, or a delta of 1 give 0, the vacuous bound.
        Infinite scores are compared like all others. Below a confidence of 0.5 the bound is that
        of 0.5.

    Args:
        scores_in: Scores of runs in which the record took part, shape (n,); larger means "in".
        scores_out: Scores of runs without it, or with its neighbour, shape (m,).
        delta: Where epsilon is asked, in [0, 1].
        confidence: In (0, 1).
        threshold: A score fixed in advance: what reaches it is called "in". Without it, ranks 1, 3,
            9, ... of the scores of both kinds are looked at, which hold together.
        share: How much of the error probability guards the false positive rate at a threshold,
            fixed in advance: near 1 where that rate will be small.
        seed: What orders tied scores, beside the scores themselves; fixed before they are seen, and
            never the best of several.

    Returns:
        A lower bound: 0 where nothing was found.

    Raises:
        ParameterError: If scores are no one-dimensional numbers without nan, or another parameter
            is outside its domain.

    References:
        Jagielski, Ullman and Oprea, NeurIPS 2020, for audits by Clopper and Pearson's bounds; the
        region is derived in docs/theory/audit.

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
    return _bound(
        "epsilon",
        (scores_in, scores_out),
        epsilons(at),
        confidence=confidence,
        delta=at,
        threshold=threshold,
        share=share,
        seed=seed,
    )


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

    A test with false positive rate q and true positive rate p shows that

        mu >= PhiInv(p) - PhiInv(q)

    Guarantees:
        With probability at least ``confidence`` over trials and seed, the mechanism is not mu'-GDP
        for any mu' below the value. The epsilon that a mu has bounds that of the mechanism only
        where its trade-off function is that of a Gaussian.

    Edge cases:
        As for ``lower_epsilon``.

    Args:
        scores_in: Scores of runs in which the record took part, shape (n,); larger means "in".
        scores_out: Scores of runs without it, or with its neighbour, shape (m,).
        confidence: In (0, 1).
        threshold: As for ``lower_epsilon``.
        share: As for ``lower_epsilon``.
        seed: As for ``lower_epsilon``.

    Raises:
        ParameterError: As for ``lower_epsilon``.

    References:
        Nasr et al., "Tight auditing of differentially private machine learning", USENIX Security
        2023.

    Example:
        >>> from hockeystick import audit
        >>> found = audit.lower_mu([2.0] * 50, [0.0] * 50)
        >>> 2.0 < found.value < 3.0
        True
    """
    return _bound(
        "mu",
        (scores_in, scores_out),
        mus,
        confidence=confidence,
        delta=None,
        threshold=threshold,
        share=share,
        seed=seed,
    )


def lower_curve(
    scores_in: ArrayLike, scores_out: ArrayLike, *, confidence: float = 0.95, seed: int = 0
) -> tuple[OperatingPoint, ...]:
    """Return points below the attack's curve of true and false positives, which hold together.

    Guarantees:
        With probability at least ``confidence``, for all points at once: the false positive rate
        of the rule is at most ``fpr`` and its true positive rate at least ``tpr``, so that the best
        attack's curve passes above every point.

    Args:
        scores_in: Scores of runs in which the record took part, shape (n,); larger means "in".
        scores_out: Scores of runs without it, or with its neighbour, shape (m,).
        confidence: In (0, 1).
        seed: What orders tied scores.

    Returns:
        A point for each of the ranks 1, 3, 9, ... of both kinds of scores, by rising ``fpr``.

    Raises:
        ParameterError: As for ``lower_epsilon``.

    References:
        Clopper and Pearson 1934 with the beta law of order statistics, and Bonferroni's inequality.

    Example:
        >>> from hockeystick import audit
        >>> points = audit.lower_curve([1.0, 2.0, 3.0] * 50, [0.0, 1.0] * 75)
        >>> all(one.tpr <= 1.0 and one.fpr > 0.0 for one in points)
        True
    """
    inside, outside = _both(scores_in, scores_out)
    alpha, known = error_probability(confidence), mixed_seed(seed, inside, outside)
    rules = at_ranks(inside, outside, alpha, known, boxes=True)
    points = [rule.point(rule.region, 0) for rule in rules]
    return tuple(sorted(points, key=lambda one: (one.fpr, one.tpr)))


def _both(scores_in: ArrayLike, scores_out: ArrayLike) -> tuple[Scores, Scores]:
    """Return the scores of both kinds, or raise."""
    return checked_scores("scores_in", scores_in), checked_scores("scores_out", scores_out)


def _bound(
    quantity: AuditQuantity,
    scores: tuple[ArrayLike, ArrayLike],
    objective: Objective,
    *,
    confidence: float,
    delta: float | None,
    threshold: float | None,
    share: float,
    seed: int,
) -> LowerBound:
    """Return the largest value of an objective that a method proves."""
    both = _both(*scores)
    alpha = error_probability(confidence)
    known = mixed_seed(seed, *both)
    used, rules = rules_of(both, alpha, threshold=threshold, share=share, seed=known)
    return proven(quantity, rules, objective, float(confidence), used, delta)


def proven(
    quantity: AuditQuantity,
    rules: list[Rule],
    objective: Objective,
    confidence: float,
    method: str,
    delta: float | None,
) -> LowerBound:
    """Return the largest value of an objective that tests prove."""
    value, point = best_of(rules, objective)
    return LowerBound(
        max(value, 0.0),
        quantity,
        confidence,
        THEOREMS[method],
        method=method,
        delta=delta,
        point=point,
        trials=point.in_trials + point.out_trials,
        assumptions=ASSUMPTIONS,
    )


def rules_of(
    both: tuple[Scores, Scores], alpha: float, *, threshold: float | None, share: float, seed: int
) -> tuple[str, list[Rule]]:
    """Return the method and its tests on "in" and "out" scores, of which no score has a say."""
    weight = real("share", share, _SHARE)
    if threshold is None:
        return "simultaneous", at_ranks(*both, alpha, seed)
    known = real("threshold", threshold, _THRESHOLD)
    return "combined", [at_threshold(*both, known, quarter_ellipse(alpha, weight))]
