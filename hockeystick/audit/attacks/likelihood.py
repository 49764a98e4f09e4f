"""Likelihood-ratio scores from shadow models, with and without models that saw the record.

Carlini, Chien, Nasr, Song, Terzis and Tramer, "Membership inference attacks from first principles",
S&P 2022, algorithm 1 (online) and section V.C (offline).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick import _validate
from hockeystick.audit._arrays import fits, flags, numbers
from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from hockeystick.audit._arrays import Array

_VARIANCES: Final = ("per-record", "pooled")
_FEWEST: Final = 2
_MOST_AXES: Final = 8


def lira_online(
    observed: ArrayLike, shadow: ArrayLike, included: Any, *, variance: str = "per-record"
) -> Array:
    """Return the log-likelihood ratio of normal laws fitted to shadow models with and without.

        score = ln N(x; mu_in, v_in) - ln N(x; mu_out, v_out)

    The mean and variance of each record's statistic x are those of the shadow models that trained
    on it, and of those that did not.

    Guarantees:
        Where x is normal with these moments, no score has a better ROC (Neyman-Pearson); with k
        models on each side the moments are known to some ``1/sqrt(k)``. Scores of target models
        are independent if the models are, given the shadow models, which must not be targets.

    Args:
        observed: The statistic of the target models on each record, shape (..., n).
        shadow: The statistic of the shadow models, shape (models, n); as of ``logit_gaps``.
        included: Whether each shadow model trained on each record, shape (models, n); at least two
            models with and two without each record.
        variance: "per-record", or "pooled": the mean over records, for few shadow models (the paper
            below some 64; its program takes the variance over records and models instead).

    Returns:
        Scores of the shape of observed; larger says "in".

    Raises:
        ParameterError: If shapes do not fit, numbers are not finite, a record has too few models,
            or all of its statistics are equal.

    Example:
        >>> from hockeystick.audit import attacks
        >>> shadow = [[1.0], [3.0], [-1.0], [-3.0]]
        >>> attacks.lira_online([0.0], shadow, [[1], [1], [0], [0]])
        array([0.])
        >>> attacks.lira_online([[1.0], [-2.0]], shadow, [[1], [1], [0], [0]]).ravel()
        array([ 4., -8.])
    """
    known, inside = _shadows(shadow, included)
    targets = _targets(observed, known)
    mean_in, variance_in = _moments(known, inside, variance)
    mean_out, variance_out = _moments(known, ~inside, variance)
    found: Array = 0.5 * (
        (targets - mean_out) ** 2 / variance_out
        - (targets - mean_in) ** 2 / variance_in
        + np.log(variance_out / variance_in)
    )
    return found


def lira_offline(
    observed: ArrayLike, shadow: ArrayLike, included: Any = None, *, variance: str = "per-record"
) -> Array:
    """Return how far a statistic lies above those of shadow models without the record.

        score = (x - mu_out) / sqrt(v_out)

    The paper's score is Phi of it, the probability that a model without the record has a smaller
    statistic: the same order, but 1 for every score above 8. Records never seen in training need
    no model of their own. It is a test against one law alone, and so weaker than ``lira_online``
    where the record changes the variance.

    Args:
        observed: The statistic of the target models on each record, shape (..., n).
        shadow: The statistic of the shadow models, shape (models, n); larger where learned.
        included: Whether each shadow model trained on each record, shape (models, n): those that
            did are left out. None where none did.
        variance: "per-record", or "pooled": the mean over records.

    Returns:
        Scores of the shape of observed; larger says "in".

    Raises:
        ParameterError: If shapes do not fit, numbers are not finite, a record has fewer than two
            models without it, or all of its statistics are equal.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.lira_offline([2.0], [[-1.0], [-3.0]])
        array([4.])
    """
    known = numbers("shadow", shadow, "(models, records)", fewest=2)
    seen = np.zeros(known.shape) if included is None else included
    known, inside = _shadows(known, seen)
    targets = _targets(observed, known)
    mean, spread = _moments(known, ~inside, variance)
    found: Array = (targets - mean) / np.sqrt(spread)
    return found


def _shadows(shadow: Any, included: Any) -> tuple[Array, NDArray[np.bool_]]:
    """Return the shadow statistics and who was included, or raise."""
    known = numbers("shadow", shadow, "(models, records)", fewest=2)
    return known, flags("included", included, known.shape)


def _targets(observed: Any, known: Array) -> Array:
    """Return the statistics under attack, or raise."""
    found = numbers("observed", observed, "(..., records)", most=_MOST_AXES)
    return fits("observed", found, known.shape[1:], "(..., records)")


def _moments(known: Array, taken: NDArray[np.bool_], variance: str) -> tuple[Array, Array]:
    """Return each record's mean and variance over the models that are taken."""
    _validate.one_of("variance", variance, _VARIANCES)
    counts = taken.sum(axis=0)
    if (counts < _FEWEST).any():
        record = int(np.argmin(counts))
        told = f"{int(counts[record])} models on one side of record {record}"
        raise ParameterError("included", told, "two models or more with, and without, each record")
    means = np.where(taken, known, 0.0).sum(axis=0) / counts
    spreads = np.where(taken, (known - means) ** 2, 0.0).sum(axis=0) / counts
    if variance == "pooled":
        spreads = np.full_like(spreads, spreads.mean())
    if (spreads <= 0.0).any():
        told = f"equal statistics of record {int(np.argmin(spreads))}"
        raise ParameterError("shadow", told, "statistics that differ between models")
    return means, spreads
