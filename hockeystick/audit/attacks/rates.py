"""What scores find: rates at every threshold, area, and the rate of true positives at few false."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.audit._scores import checked_scores

if TYPE_CHECKING:
    from hockeystick.audit._arrays import Array

_FPR: Final = Domain(symbol="alpha", low=0, high=1, typical=(1e-3, 0.1))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ROC:
    """The empirical rates of "in where score >= threshold", one point per distinct score.

    Args:
        thresholds: Decreasing; the first, inf, is above all scores, infinite ones too: nobody is
            called in there.
        fpr: The share of scores_out at or above each threshold, from 0 to 1.
        tpr: The share of scores_in at or above each threshold, from 0 to 1.
    """

    thresholds: Array
    fpr: Array
    tpr: Array


def roc(scores_in: ArrayLike, scores_out: ArrayLike) -> ROC:
    """Return the receiver operating characteristic of scores, of which a larger one says "in".

    Guarantees:
        Rates are counts over numbers of trials, rounded once; equal scores share one point, so that
        the curve has no point that a threshold does not reach. They are observations: no bound on
        the rates of the attack, which ``audit.lower_epsilon`` gives.

    Args:
        scores_in: Scores of trials in which the record took part, shape (n,).
        scores_out: Scores of trials in which it did not, shape (m,).

    Raises:
        ParameterError: If there are no scores, or some are no numbers.

    Example:
        >>> from hockeystick.audit import attacks
        >>> found = attacks.roc([3.0, 2.0, 2.0], [2.0, 1.0])
        >>> found.thresholds.tolist(), found.fpr.tolist()
        ([inf, 3.0, 2.0, 1.0], [0.0, 0.0, 0.5, 1.0])
    """
    inside = checked_scores("scores_in", scores_in)
    outside = checked_scores("scores_out", scores_out)
    thresholds, true, false = _counts(inside, outside)
    return ROC(
        _kept(np.concatenate(([np.inf], thresholds))),
        _kept(np.concatenate(([0.0], false / len(outside)))),
        _kept(np.concatenate(([0.0], true / len(inside)))),
    )


def auc(scores_in: ArrayLike, scores_out: ArrayLike) -> float:
    """Return the area under the ROC: how often a score in is above one out, half for equals.

        AUC = (#{s > t} + #{s = t}/2) / (n m),    s of scores_in, t of scores_out

    The Mann-Whitney statistic, counted in integers and rounded once. An average case: an attack
    that is sure of a few records has an AUC near 1/2 (Carlini et al. 2022, section IV).

    Args:
        scores_in: Scores of trials in which the record took part, shape (n,).
        scores_out: Scores of trials in which it did not, shape (m,).

    Raises:
        ParameterError: If there are no scores, or some are no numbers.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.auc([3.0, 2.0, 2.0], [2.0, 1.0])
        0.8333333333333334
    """
    inside = checked_scores("scores_in", scores_in)
    ordered = np.sort(checked_scores("scores_out", scores_out))
    below = np.searchsorted(ordered, inside, side="left")
    no_higher = np.searchsorted(ordered, inside, side="right")
    return int(np.sum(below + no_higher)) / (2 * len(inside) * len(ordered))


def tpr_at(scores_in: ArrayLike, scores_out: ArrayLike, *, fpr: float) -> float:
    """Return the largest observed TPR among thresholds whose observed FPR is at most this.

    No threshold is drawn at random: between two points of the curve the lower one counts. With m
    scores out, an fpr below 1/m asks for no false positive at all.

    Args:
        scores_in: Scores of trials in which the record took part, shape (n,).
        scores_out: Scores of trials in which it did not, shape (m,).
        fpr: The most false positives allowed, a share in [0, 1]; compared with ``k/m`` as a float.

    Raises:
        ParameterError: If there are no scores, some are no numbers, or fpr is no rate.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.tpr_at([4.0, 3.0, 2.0, 0.0], [3.0, 1.0], fpr=0.1)
        0.25
    """
    allowed = _validate.real("fpr", fpr, _FPR)
    found = roc(scores_in, scores_out)
    return float(found.tpr[found.fpr <= allowed][-1])


def _counts(inside: Array, outside: Array) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct scores, falling, and how many of each kind are at least as large."""
    thresholds = np.unique(np.concatenate((inside, outside)))[::-1]
    true = len(inside) - np.searchsorted(np.sort(inside), thresholds, side="left")
    false = len(outside) - np.searchsorted(np.sort(outside), thresholds, side="left")
    return thresholds, true, false


def _kept(array: Array) -> Array:
    """Return an array that cannot be written to."""
    array.setflags(write=False)
    return array
