"""Canaries: gradients put in place of a record's, and their trace in what a training releases.

Nasr, Hayes, Steinke, Balle, Tramer, Jagielski, Carlini and Terzis, "Tight auditing of
differentially private machine learning", USENIX Security 2023, algorithm 2: in each step the
canary's gradient c has the clipping norm's length, and whoever sees the noisy sums looks along c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from hockeystick import _validate
from hockeystick._validate import PARAMETERS, Domain, whole_numbers
from hockeystick.audit._arrays import fits, numbers
from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from hockeystick.audit._arrays import Array

_SIZE: Final = whole_numbers("d", 1, (100, 10**7))
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 2**31), whole=True)
_NORM: Final = Domain(symbol="C", low=0, high=1e150, typical=(0.1, 10), low_open=True)
_MOST_AXES: Final = 8


def dirac_direction(size: int, coordinate: int) -> Array:
    """Return the unit vector of one coordinate: a canary where other gradients are small.

    Args:
        size: The number of parameters d.
        coordinate: Which of them, from 0 to d - 1; one that other records hardly move, as the
            weights of a pixel that is always black.

    Raises:
        ParameterError: If there is no such coordinate.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.dirac_direction(3, 1)
        array([0., 1., 0.])
    """
    length = _validate.count("size", size, _SIZE)
    last = Domain(symbol="i", low=0, high=length - 1, typical=(0, 0), whole=True)
    found = np.zeros(length)
    found[_validate.count("coordinate", coordinate, last)] = 1.0
    return found


def random_direction(size: int, *, seed: int) -> Array:
    """Return a unit vector of uniform direction: nearly orthogonal to gradients that are few.

    Args:
        size: The number of parameters d.
        seed: Of numpy's generator.

    Raises:
        ParameterError: If a parameter is outside its domain.

    Example:
        >>> from hockeystick.audit import attacks
        >>> float(abs((attacks.random_direction(50, seed=0) ** 2).sum() - 1)) < 1e-12
        True
    """
    length = _validate.count("size", size, _SIZE)
    random = np.random.default_rng(_validate.count("seed", seed, _SEED))
    found = random.standard_normal(length)
    unit: Array = found / np.linalg.norm(found)
    return unit


def canary_projections(sums: ArrayLike, direction: ArrayLike, *, norm: float) -> Array:
    """Return the part of each released sum along a canary, in units of the clipping norm.

        x_t = <s_t, c> / (C |c|)

    With a canary of length C in the sum, x_t is 1 more than without; Gaussian noise of multiplier z
    moves it by ``N(0, z^2)``, and other records by their own part along c, which is not noise.

    Args:
        sums: Released noisy sums of clipped gradients (the gradient times the expected size of a
            batch), shape (..., d).
        direction: The canary c of any length above 0, shape (d,).
        norm: The clipping norm C.

    Returns:
        An array of shape (...).

    Raises:
        ParameterError: If shapes do not fit, numbers are not finite, or the direction is 0.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.canary_projections([[0.5, 3.0], [2.5, 3.0]], [1.0, 0.0], norm=2.0)
        array([0.25, 1.25])
    """
    canary = numbers("direction", direction, "parameters")
    length = float(np.linalg.norm(canary))
    if not length > 0.0:
        raise ParameterError("direction", "a vector of length 0", "a vector that is not 0")
    released = numbers("sums", sums, "(..., parameters)", most=_MOST_AXES)
    fits("sums", released, canary.shape, "(..., parameters)")
    found: Array = np.asarray(released @ (canary / length)) / _validate.real("norm", norm, _NORM)
    return found


def canary_scores(projections: ArrayLike, *, noise_multiplier: Any, rate: float = 1.0) -> Array:
    """Return the log-likelihood ratio of a canary that each step takes with some probability.

        score = sum over t of ln(1 - q + q exp((x_t - 1/2) / z_t^2))

    Guarantees:
        Where x_t is ``N(0, z_t^2)`` without the canary, and with probability q ``N(1, z_t^2)`` with
        it, independently, no score has a better ROC (Neyman-Pearson): it is the pair that the
        account of Poisson sampling is exact for, under add-remove. Other records in the same
        direction only weaken the attack.

    Args:
        projections: The part of each step along the canary in units of the clipping norm, shape
            (..., steps).
        noise_multiplier: The noise multiplier z of all steps, or of each, shape (steps,); above 0.
        rate: The probability q that a step takes the canary, in (0, 1].

    Returns:
        Scores of shape (...); larger says "in".

    Raises:
        ParameterError: If shapes do not fit, numbers are not finite, or one is outside its domain.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.canary_scores([[0.5, 1.5], [0.0, 0.0]], noise_multiplier=1.0)
        array([ 1., -1.])
    """
    steps = numbers("projections", projections, "(..., steps)", most=_MOST_AXES)
    noise = numbers("noise_multiplier", noise_multiplier, "all steps, or each", fewest=0, most=1)
    if noise.shape not in ((), (1,), steps.shape[-1:]) or not (noise > 0.0).all():
        allowed = f"one number > 0, or {steps.shape[-1]}"
        raise ParameterError("noise_multiplier", noise_multiplier, allowed)
    q = _validate.real("rate", rate, PARAMETERS["rate"])
    if q == 0.0:
        raise ParameterError("rate", rate, "a number > 0 and <= 1")
    gains = (steps - 0.5) / noise**2
    if q < 1.0:
        gains = np.logaddexp(np.log1p(-q), np.log(q) + gains)
    found: Array = gains.sum(axis=-1)
    return found
