"""Multivariate Laplace noise on vectors of real numbers, exact in floats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.multivariate_laplace import MultivariateLaplace
from hockeystick.release._values import numbers, of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.noise._grid import grid_of
from hockeystick.release.samplers import Bits, rounded_multivariate_laplace, secret_bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def multivariate_laplace(
    mechanism: MultivariateLaplace,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return a vector plus noise of the density ``~ exp(-|z|/b)``, as private in floats as in R^n.

    With S the sensitivity, n the dimension, s the mechanism's scale, and g a power of two of at
    most ``2^-20 S``, it is

        g (round(value / g) + round(Z)),  Z ~ exp(-|z|/b) on R^n,  b >= s (S / g + ceil(sqrt(n))).

    Guarantees:
        That of the mechanism, whatever floats come out, as with ``gaussian``: rounding moves two
        answers, in steps of g, by at most ``sqrt(n)`` in L2, which the noise is scaled to; a vector
        of integers plus ``round(Z)`` is a function of the mechanism's output; and ``round(Z)`` is
        drawn exactly (``samplers.rounded_multivariate_laplace``).

    Edge cases:
        Scale 0 returns the vector itself.

    Args:
        mechanism: The noise, of a finite scale and the vector's dimension.
        value: The query's answer, a vector of n numbers; see ``gaussian`` for their size.
        sensitivity: The largest L2 distance S of answers that are to be indistinguishable, in the
            answer's unit; a finite number > 0.
        charge: As for ``gaussian``.
        bits: As for ``gaussian``.

    Returns:
        An array of n floats.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Fernandes, Dras and McIver, "Generalised Differential Privacy for Text Document
        Processing", POST 2019; Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group Privacy for
        Personalized Federated Learning", 2022.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.MultivariateLaplace(scale=0.5, dimension=3)
        >>> hs.release.multivariate_laplace(noise, [1.0, 2.0, 3.0], sensitivity=1).shape
        (3,)
    """
    known, answer = of_kind(mechanism, MultivariateLaplace), numbers("value", value)
    if answer.shape != (known.dimension,):
        allowed = f"a vector of {known.dimension} numbers"
        raise ParameterError("value", f"an array of shape {answer.shape}", allowed)
    if known.scale == math.inf:
        raise ParameterError("scale", known.scale, "finite: infinite noise cannot be drawn")
    moved = math.isqrt(known.dimension - 1) + 1
    grid = grid_of(known, known.scale, sensitivity, moved)
    steps = grid.steps("value", answer)
    book(checked_charge(charge), known)
    if known.scale == 0.0:
        return answer
    return grid.floats(steps + rounded_multivariate_laplace(grid.scale, steps.size, bits=bits))
