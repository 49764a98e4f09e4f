"""Noisy neighbours: a record's loss beside the losses of inputs near it, by one model alone.

Galli, "Sense and Sensitivity: Data Utility and User Privacy in Differentially Private Machine
Learning", PhD thesis, Scuola Normale Superiore, 2024, section 4.4; Galli, Melis and Cucinotta,
"Noisy neighbors: efficient membership inference attacks against LLMs", 2024.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.audit._arrays import fits, flags, numbers
from hockeystick.audit.attacks.rates import auc
from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from hockeystick.audit._arrays import Array

_DEVIATION: Final = Domain(symbol="sigma", low=0, high=1e150, typical=(1e-3, 1.0), low_open=True)
_COPIES: Final = whole_numbers("k", 1, (10, 100))
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 2**31), whole=True)
_MOST_AXES: Final = 8
_NEAR: Final = "(neighbours, ..., records)"
_LEVELS: Final = "(levels, neighbours, records)"


def noisy_neighbours(records: ArrayLike, deviation: float, *, copies: int, seed: int) -> Array:
    """Return each record with ``N(0, sigma^2)`` added to every coordinate, several times.

    The mean distance from a record of n coordinates is ``sigma sqrt(2) Gamma((n+1)/2)/Gamma(n/2)``;
    the ``sigma sqrt(n)`` of the thesis's equation (4.7) is the root of the mean square, and above
    it. Its (4.6) writes ``N(0, sigma I)`` for a law of deviation sigma.

    Args:
        records: Inputs, or their embeddings, shape (n, ...), finite.
        deviation: The deviation sigma of each coordinate, above 0.
        copies: The number of neighbours k of each record; the thesis takes 10.
        seed: Of numpy's generator; nothing is protected by this noise.

    Returns:
        An array of shape (k, n, ...).

    Raises:
        ParameterError: If a parameter is outside its domain.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.noisy_neighbours([[0.0, 1.0]], 0.1, copies=10, seed=0).shape
        (10, 1, 2)
    """
    known = numbers("records", records, "(records, ...)", most=_MOST_AXES)
    sigma = _validate.real("deviation", deviation, _DEVIATION)
    several = _validate.count("copies", copies, _COPIES)
    random = np.random.default_rng(_validate.count("seed", seed, _SEED))
    found: Array = known + sigma * random.standard_normal((several, *known.shape))
    return found


def neighbour_scores(losses: ArrayLike, neighbour_losses: ArrayLike) -> Array:
    """Return by how much the mean loss near a record exceeds the loss at it.

        score = (1/k) sum over i of loss(x + rho_i) - loss(x)

    Equation (4.5) of the thesis with the sign turned, so that larger says "in". The model alone
    calibrates the score: there is no shadow model, and no training.

    Args:
        losses: The loss at each record, shape (..., n).
        neighbour_losses: The losses at its neighbours, shape (k, ..., n).

    Returns:
        Scores of the shape of losses.

    Raises:
        ParameterError: If shapes do not fit, or numbers are not finite.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.neighbour_scores([1.0, 2.0], [[2.0, 2.0], [4.0, 3.0]])
        array([2. , 0.5])
    """
    at = numbers("losses", losses, "(..., records)", most=_MOST_AXES)
    near = numbers("neighbour_losses", neighbour_losses, _NEAR, most=_MOST_AXES)
    if near.shape[1:] != at.shape:
        allowed = f"losses of several neighbours, of shape (k, {', '.join(map(str, at.shape))})"
        raise ParameterError("neighbour_losses", f"an array of shape {near.shape}", allowed)
    found: Array = near.mean(axis=0) - at
    return found


def deviation_scan(losses: ArrayLike, neighbour_losses: ArrayLike, included: Any) -> Array:
    """Return the AUC of noisy neighbours at each noise level.

    The thesis finds one peak over the levels, and searches for it (its figure 4.2). Choose the
    level on other records than those that are scored with it: the best of several on the same
    trials is a choice that no confidence of theirs covers.

    Args:
        losses: The loss at each record, shape (n,).
        neighbour_losses: The losses at its neighbours, shape (levels, k, n).
        included: Whether each record was in training, shape (n,); some were, and some not.

    Returns:
        The AUC of each level, shape (levels,).

    Raises:
        ParameterError: If shapes do not fit, numbers are not finite, or all records are of one
            kind.

    Example:
        >>> from hockeystick.audit import attacks
        >>> near = [[[1.0, 1.0]], [[3.0, 2.5]]]
        >>> attacks.deviation_scan([1.0, 2.0], near, [True, False])
        array([1., 1.])
    """
    at = numbers("losses", losses, "records")
    levels = numbers("neighbour_losses", neighbour_losses, _LEVELS, fewest=3)
    fits("neighbour_losses", levels, at.shape, _LEVELS)
    inside = flags("included", included, at.shape)
    if inside.all() or not inside.any():
        raise ParameterError("included", "records of one kind", "of records in and records out")
    scores = [neighbour_scores(at, near) for near in levels]
    return np.array([auc(one[inside], one[~inside]) for one in scores])
