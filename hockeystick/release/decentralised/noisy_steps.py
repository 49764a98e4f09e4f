"""One pass of projected noisy gradient steps, of which the last model is released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick.mechanisms.decentralised.iterated import NoisyIterations
from hockeystick.release._values import of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.decentralised._projected import (
    Gradient,
    checked_gradient,
    model_size,
    projected_steps,
)
from hockeystick.release.samplers import Bits, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray


def noisy_iterations(
    mechanism: NoisyIterations,
    start: Any,
    gradient: Gradient,
    *,
    lipschitz: float,
    radius: float,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Run projected noisy gradient steps, one record each, and return the last model.

    Guarantees:
        That of the mechanism, rounding included, for gradients in floats that are within
        ``2^-30 L`` of those of a convex, smooth loss as the mechanism assumes. What the rounding of
        the steps that nobody sees may add to two models' distance, the noise is larger by, at most
        a thousandth. A gradient that is longer than L, is not finite or has another shape ends the
        run with an error, and nothing is released; clipping it would not be a contraction.

    Edge cases:
        No steps return the start. Noise multiplier 0 runs the steps as they are.

    Args:
        mechanism: The mechanism, which has the number and the size of the steps, and the noise.
        start: The first model, chosen without the data, a row within the radius.
        gradient: ``gradient(model, t)`` of the record of step t = 0, 1, ..., alone.
        lipschitz: The bound L of the gradients' norms, a number > 0.
        radius: That of the ball around 0 in which the models stay, a number > 0.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the first step.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The last model.

    Raises:
        ParameterError: If an argument is outside its domain, or a gradient is; for a gradient the
            charge stays.
        IncompatibleError: If rounding would take more noise than that; nothing is charged.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Feldman, Mironov, Talwar and Thakurta, "Privacy Amplification by Iteration", 2018,
        algorithm 1 (PNSGD).

    Example:
        >>> import hockeystick as hs
        >>> run = hs.mechanisms.NoisyIterations(2.0, 50, step_size=0.1, smoothness=1)
        >>> found = hs.release.noisy_iterations(
        ...     run, [0.0], lambda w, t: (w - 0.5) / 4, lipschitz=1, radius=2
        ... )
        >>> found.shape
        (1,)
    """
    known = of_kind(mechanism, NoisyIterations)
    size = model_size(start)
    steps = projected_steps(known, size, known.steps, lipschitz, radius)
    model, step = steps.start(start), checked_gradient(gradient)
    book(checked_charge(charge), known)
    for place in range(known.steps):
        found = steps.checked(step(model.copy(), place), size)
        model = steps.stepped(model, found, bits)
    return model
