"""What one may believe of epsilon after an audit: an interval of belief, which proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick._validate import real
from hockeystick.audit._methods import ASSUMPTIONS, THRESHOLD
from hockeystick.audit._region import Counts, epsilons, rectangle
from hockeystick.audit._rules import at_threshold, held_out
from hockeystick.audit._scores import checked_scores, error_probability, mixed_seed
from hockeystick.results import Approximate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_PRIOR: Final = 0.5
_NODES: Final = 4000
_LARGEST: Final = 64.0
_BISECTIONS: Final = 60


def credible_epsilon(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    *,
    delta: float,
    confidence: float = 0.95,
    threshold: float | None = None,
    seed: int = 0,
) -> Approximate:
    """Return the epsilon that a test shows with a stated belief: an approximation, no bound.

    Both error rates of a threshold have Jeffreys's prior ``Beta(1/2, 1/2)``, independently, so that
    after k of n errors a rate is ``Beta(k + 1/2, n - k + 1/2)``. The value is the epsilon that the
    rates exceed with posterior probability ``confidence``.

    Guarantees:
        None: how often such values exceed the truth depends on the truth. ``lower_epsilon`` has
        bounds that hold.

    Args:
        scores_in: Scores of runs in which the record took part, shape (n,); larger means "in".
        scores_out: Scores of runs without it, shape (m,).
        delta: Where epsilon is asked, in [0, 1].
        confidence: The posterior probability, in (0, 1).
        threshold: A score fixed in advance: what reaches it is called "in". Without it 30 % of the
            scores, drawn by the seed, choose one for the others.
        seed: What draws the scores held out.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Zanella-Beguelin et al., "Bayesian estimation of differential privacy", ICML 2023.

    Example:
        >>> from hockeystick import audit
        >>> print(audit.credible_epsilon([1.0] * 300, [0.0] * 300, delta=1e-5, threshold=0.5))
        epsilon ~ 6.00... at delta = 1e-05 (approximation, no guarantee; bayesian credible interval)
    """
    at = real("delta", delta)
    both = checked_scores("scores_in", scores_in), checked_scores("scores_out", scores_out)
    alpha, known = error_probability(confidence), mixed_seed(seed, *both)
    if threshold is None:
        (rule,) = held_out(*both, alpha, epsilons(at), known)
    else:
        rule = at_threshold(*both, real("threshold", threshold, THRESHOLD), rectangle(alpha))
    return Approximate(
        _exceeded(rule.counts, at, alpha),
        quantity="epsilon",
        accountant="bayesian credible interval",
        assumptions=ASSUMPTIONS,
        at=at,
    )


def _exceeded(counts: Counts, delta: float, alpha: float) -> float:
    """Return the epsilon that the posterior has at most alpha of its mass below, at least 0."""
    from scipy.special import betainc, betaincinv

    errors, hits = int(counts.errors), int(counts.hits)
    middles = (np.arange(_NODES) + 0.5) / _NODES
    q = betaincinv(errors + _PRIOR, counts.error_trials - errors + _PRIOR, middles)
    a, b = hits + _PRIOR, counts.hit_trials - hits + _PRIOR

    def mass_below(epsilon: float) -> float:
        growth = np.exp(epsilon)
        most = np.minimum(growth * q + delta, 1.0 - (1.0 - q - delta) / growth)
        return float(np.mean(betainc(a, b, np.clip(most, 0.0, 1.0))))

    low, high = 0.0, _LARGEST
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if mass_below(middle) <= alpha else (low, middle)
    return low
