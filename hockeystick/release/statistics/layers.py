"""Sums of gradients that are clipped layer by layer, each with a norm and noise of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.joint_gaussian import JointGaussian
from hockeystick.release._values import of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.statistics._data import check_finite
from hockeystick.release.statistics.clipped import LENGTH, UNITS, gradient_rows, noisy_clipped_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray


def layered_sum(
    mechanism: JointGaussian,
    layers: Any,
    *,
    norms: Any,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> list[NDArray[np.float64]]:
    """Return for each layer the sum of its clipped gradients, with noise in units of its norm.

        G_l = sum_i clip(g_il, C_l) + N(0, (z_l C_l)^2 I),    l = 1..M.

    One example moves each sum by at most its C_l, and all M of them: together they are
    ``JointGaussian((z_1, ..., z_M))``, one Gaussian of ``z^-2 = sum z_l^-2``. The same z in each
    layer costs what ``z / sqrt(M)`` does in one: layers whose noise is in units of their own norms
    are no M separate guarantees of z, nor one.

    Guarantees:
        That of the mechanism under add-remove and zero-out, floats included, as of ``mean``.

    Edge cases:
        No examples give pure noise. A row without a finite length counts as 0.

    Args:
        mechanism: The joint Gaussian, with a noise multiplier for each layer, each up to ``2^21``.
        layers: For each layer the gradients, of shape (n, d_l), of one example a row.
        norms: The clipping norm C_l of each layer, from 1e-24 to 1e24.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn. A batch of a training is counted by whoever trains.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        For each layer d_l floats, to be divided by a public number.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.

    References:
        McMahan, Ramage, Talwar and Zhang, "Learning Differentially Private Recurrent Language
        Models", ICLR 2018, section 3 (per-layer clipping).

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> both = hs.mechanisms.JointGaussian((2, 4))
        >>> weights, biases = np.ones((32, 10)), np.ones((32, 3))
        >>> found = hs.release.layered_sum(both, [weights, biases], norms=[1.0, 0.1])
        >>> [one.shape for one in found]
        [(10,), (3,)]
    """
    own = of_kind(mechanism, JointGaussian)
    parts = _layers(layers, len(own.noise_multipliers))
    lengths = _validate.reals("norms", norms, LENGTH)
    if len(lengths) != len(parts):
        raise ParameterError("norms", norms, f"one for each of {len(parts)} layers")
    check_finite(own.noise_multipliers, UNITS)
    book(checked_charge(charge), own)
    of_each = zip(parts, lengths, own.noise_multipliers, strict=True)
    return [noisy_clipped_sum(rows, norm, noise, bits) for rows, norm, noise in of_each]


def _layers(layers: Any, count: int) -> list[NDArray[np.float64]]:
    """Return each layer's gradients, of the same examples, or raise."""
    allowed = f"{count} arrays, one for each noise multiplier of the mechanism"
    if not isinstance(layers, list | tuple) or len(layers) != count:
        raise ParameterError("layers", type(layers).__name__, f"a list of {allowed}")
    found = [gradient_rows("layers", one) for one in layers]
    if len({len(one) for one in found}) != 1:
        raise ParameterError("layers", [len(one) for one in found], "rows of the same examples")
    return found
