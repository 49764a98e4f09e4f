"""Records read off a gradient: the input of a first layer, and which of several candidates.

The gradients that leak in Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient
Leakage Threats", 2023, section 3: of a client's whole round at the server (type 0) or at the client
(type 1), or of one record in a local step (type 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick.audit._arrays import fits, numbers
from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from hockeystick.audit._arrays import Array

_MOST_AXES: Final = 8


def first_layer_input(weight_gradient: ArrayLike, bias_gradient: ArrayLike) -> Array:
    """Return the input of a linear layer, by least squares from the layer's gradients.

    For the loss of one record and a layer ``u = W x + b``, with e the gradient of u,

        dL/dW = e x^T,    dL/db = e,    so that    x = (dL/dW)^T e / |e|^2

    Exact (up to rounding) for one record, and unchanged by clipping, which scales both; for several
    records it is a mixture of them. Phong, Aono, Hayashi, Wang and Moriai, "Privacy-preserving deep
    learning via additively homomorphic encryption", TIFS 2018, section III; Geiping, Bauermeister,
    Droge and Moeller, "Inverting gradients", NeurIPS 2020, proposition 3.1.

    Args:
        weight_gradient: The gradient of the weights, shape (outputs, inputs).
        bias_gradient: The gradient of the biases, shape (outputs,), not all 0.

    Returns:
        The input, shape (inputs,).

    Raises:
        ParameterError: If shapes do not fit, numbers are not finite, or no bias has a gradient.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.first_layer_input([[1.0, 2.0], [-2.0, -4.0]], [0.5, -1.0])
        array([2., 4.])
    """
    errors = numbers("bias_gradient", bias_gradient, "outputs")
    weights = numbers("weight_gradient", weight_gradient, "(outputs, inputs)", fewest=2)
    if len(weights) != len(errors):
        allowed = f"numbers for ({len(errors)} outputs, inputs)"
        raise ParameterError("weight_gradient", f"an array of shape {weights.shape}", allowed)
    largest = np.abs(errors).max()
    if not largest > 0.0:
        raise ParameterError("bias_gradient", "0 for every output", "a gradient that is not 0")
    shares = errors / largest
    found: Array = (shares @ weights) / (shares @ shares) / largest
    return found


def nearest_candidate(observed: ArrayLike, candidates: ArrayLike) -> NDArray[np.intp]:
    """Return which of several possible gradients is nearest to each that was observed.

    Under Gaussian noise of one deviation in all coordinates it is the likeliest candidate, and with
    a uniform prior over N of them no attack is right more often.

    Guarantees:
        Let f be the trade-off function of the release under add-remove. Any attack that names the
        record, drawn uniformly among N, is right with probability at most ``1 - f(1/N)``: without
        the record it would be right with probability 1/N, and ``1 - f`` is concave (Hayes,
        Mahloujifar and Balle, "Bounding training data reconstruction in DP-SGD", NeurIPS 2023).

    Args:
        observed: Observed gradients, shape (..., d).
        candidates: The gradient of each candidate, clipped as the release clips it, shape (N, d).

    Returns:
        The number of the candidate, from 0, an array of shape (...); the first of equals.

    Raises:
        ParameterError: If shapes do not fit, or numbers are not finite.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.nearest_candidate([[0.9, 0.2], [-1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]])
        array([0, 1])
    """
    known = numbers("candidates", candidates, "(candidates, parameters)", fewest=2)
    seen = numbers("observed", observed, "(..., parameters)", most=_MOST_AXES)
    fits("observed", seen, known.shape[1:], "(..., parameters)")
    closeness = seen @ known.T - 0.5 * (known**2).sum(axis=1)
    return np.asarray(np.argmax(closeness, axis=-1))
