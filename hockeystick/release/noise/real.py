"""Gaussian and Laplace noise on arrays of real numbers, exact in floats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.noise.laplace import Laplace
from hockeystick.release._values import numbers, of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.noise._grid import grid_of
from hockeystick.release.samplers import Bits, rounded_gaussian, rounded_laplace, secret_bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def gaussian(
    mechanism: Gaussian,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return an array plus Gaussian noise, as private in floats as the mechanism is in reals.

    With S the sensitivity, z the noise multiplier, d the number of entries, and g a power of two of
    at most ``2^-20 S``, it is

        g (round(value / g) + round(N)),  N ~ N(0, s^2 I),  s >= z (S / g + ceil(sqrt(d))).

    Guarantees:
        That of the mechanism, whatever floats come out:

        1. Rounding moves each entry by at most ``g / 2``, so that the rounded answers on two
           neighbouring data sets, in steps of g, are at most ``S / g + sqrt(d)`` from each other
           in L2. The noise is scaled to that distance.
        2. For integers k, ``k + round(N) = round(k + N)``: what is released is a function of
           ``k + N``, which is the Gaussian mechanism with a multiplier of at least z.
        3. ``round(N)`` is drawn with exactly its probabilities if the bits are ideal (see
           ``samplers.rounded_gaussian``). Scaling by g, and rounding to a float above ``2^53`` g,
           is post-processing.

        The step g depends on S, z and d, never on the data. Rounding costs at most ``2^-16`` of the
        noise. Float and decimal readings of z and S are both covered.

        S bounds the distance of the *floats* given. A sum of clipped floats, summed as floats, may
        move further than the clipping norm: sum integers or multiples of a power of two, or add
        to S what the sum may round.

    Edge cases:
        Noise multiplier 0 returns the array itself. A multiplier above ``2^23`` or so makes g
        larger, and the noise with it. An empty array is charged as any other.

    Args:
        mechanism: The Gaussian mechanism, of a finite noise multiplier.
        value: The query's answer, numbers of any shape in its own unit: integers up to ``2^53`` or
            floats, each up to ``2^62 g`` in size (some ``10^12`` S for a single number).
        sensitivity: The largest L2 distance S of answers on neighbouring data sets, all entries
            together, in the answer's unit; a finite number > 0.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of floats of the value's shape.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Mironov, "On Significance of the Least Significant Bits for Differential Privacy", CCS 2012
        (the attack, and noise on a grid); Casacuberta, Shoemate, Vadhan and Wagaman, "Widespread
        Underestimation of Sensitivity in Differentially Private Libraries", CCS 2022 (sums).

    Example:
        >>> import hockeystick as hs
        >>> account = hs.Accountant()
        >>> noise = hs.Gaussian(noise_multiplier=2)
        >>> hs.release.gaussian(noise, [3.25, -1.0], sensitivity=1, charge=account).shape
        (2,)
        >>> print(account.plan)
        Gaussian (noise multiplier 2)
    """
    known, answer = of_kind(mechanism, Gaussian), numbers("value", value)
    moved = math.isqrt(max(answer.size, 1) - 1) + 1
    grid = grid_of(known, known.noise_multiplier, sensitivity, moved)
    steps = grid.steps("value", answer)
    book(checked_charge(charge), known)
    if known.noise_multiplier == 0.0:
        return answer
    return grid.floats(
        steps + rounded_gaussian(grid.scale, steps.size, bits=bits).reshape(steps.shape)
    )


def laplace(
    mechanism: Laplace,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return an array plus Laplace noise, as private in floats as the mechanism is in reals.

    With S the sensitivity, b the mechanism's scale, d the number of entries, and g a power of two
    of at most ``2^-20 S``, it is

        g (round(value / g) + round(L)),  L_i ~ Laplace(s) independently,  s >= b (S / g + d).

    Guarantees:
        That of the mechanism, for every float that can come out, as with ``gaussian``: rounding to
        the grid moves the L1 distance of neighbouring answers by at most ``g d``, to which the
        noise is scaled; ``k + round(L) = round(k + L)`` for integers k, which is a function of the
        Laplace mechanism's output; ``round(L)`` is drawn exactly.

    Edge cases:
        Scale 0 returns the array itself. A scale above ``2^23`` or so makes g larger.

    Args:
        mechanism: The Laplace mechanism, of a finite scale.
        value: As for ``gaussian``; g is smaller for more than 16 entries.
        sensitivity: The largest L1 distance S of answers on neighbouring data sets, all entries
            together, in the answer's unit; a finite number > 0.
        charge: As for ``gaussian``.
        bits: As for ``gaussian``.

    Returns:
        An array of floats of the value's shape.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Dwork, McSherry, Nissim and Smith, TCC 2006; Mironov 2012 (the attack on floats).

    Example:
        >>> import hockeystick as hs
        >>> float(hs.release.laplace(hs.Laplace(scale=2), 41.5, sensitivity=1)) != 41.5
        True
    """
    known, answer = of_kind(mechanism, Laplace), numbers("value", value)
    grid = grid_of(known, known.scale, sensitivity, max(answer.size, 1))
    steps = grid.steps("value", answer)
    book(checked_charge(charge), known)
    if known.scale == 0.0:
        return answer
    return grid.floats(
        steps + rounded_laplace(grid.scale, steps.size, bits=bits).reshape(steps.shape)
    )
