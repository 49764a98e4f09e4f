"""Scores from what a model says of a record: its loss, or the margin of its label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from hockeystick.audit._arrays import numbers
from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from hockeystick.audit._arrays import Array

_MOST_AXES = 8


def loss_scores(losses: ArrayLike) -> Array:
    """Return ``-loss``: a record with a small loss is said to be in.

    Yeom, Giacomelli, Fredrikson and Jha, "Privacy risk in machine learning: analyzing the
    connection to overfitting", CSF 2018, adversary 2, whose threshold is the mean training loss;
    with perplexity for the loss it is equation (4.2) of Galli, "Sense and Sensitivity", 2024. The
    score knows nothing of how hard a record is.

    Args:
        losses: The model's loss on each record, of any shape, finite.

    Returns:
        An array of the same shape; larger says "in".

    Raises:
        ParameterError: If there are none, or some are no finite numbers.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.loss_scores([0.5, 2.0])
        array([-0.5, -2. ])
    """
    return -numbers("losses", losses, "records", most=_MOST_AXES)


def logit_gaps(logits: ArrayLike, labels: Any) -> Array:
    """Return the logarithm of the odds that a classifier gives to each record's label.

        phi = ln(p_y / (1 - p_y)) = z_y - ln sum over k != y of exp(z_k)

    Over trainings it is nearly normal, which losses are not: the statistic of Carlini et al.,
    "Membership inference attacks from first principles", S&P 2022, section VI.A, without their
    subtraction of nearly equal numbers. Larger where the record was learned.

    Args:
        logits: Scores before the softmax, shape (..., n, classes) with at least two classes.
        labels: The class of each record, integers of shape (n,).

    Returns:
        An array of shape (..., n).

    Raises:
        ParameterError: If logits are no finite numbers, or labels no classes of these records.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.logit_gaps([[2.0, 0.0], [1.0, 4.0]], [0, 0])
        array([ 2., -3.])
    """
    axes = "(..., records, classes)"
    found = numbers("logits", logits, axes, fewest=2, most=_MOST_AXES)
    records, classes = found.shape[-2:]
    if classes < 2:
        raise ParameterError("logits", f"an array of shape {found.shape}", "of two classes or more")
    known = np.asarray(labels)
    if (
        known.shape != (records,)
        or known.dtype.kind not in "iu"
        or not ((known >= 0) & (known < classes)).all()
    ):
        raise ParameterError("labels", labels, f"{records} integers from 0 to {classes - 1}")
    rows = np.arange(records)
    others = found.copy()
    others[..., rows, known] = -np.inf
    gaps: Array = found[..., rows, known] - logsumexp(others, axis=-1)
    return gaps
