"""Sums of clipped gradients of which some coordinates are sent: random ones, or the largest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.numerics import decimal
from hockeystick.release._values import of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, permutation, secret_bits
from hockeystick.release.statistics._data import check_finite
from hockeystick.release.statistics.clipped import (
    UNITS,
    gradient_rows,
    length_of,
    noisy_clipped_sum,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEEP: Final = Domain(symbol="k", low=0, high=1, low_open=True, typical=(0.1, 0.9))


def randomly_pruned_sum(
    mechanism: Gaussian,
    gradients: Any,
    *,
    norm: float,
    keep: float,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return the noisy sum of clipped gradients in randomly chosen coordinates, zeros elsewhere.

    With a random set K of ``ceil(keep d)`` coordinates, ``sum_i clip(g_iK, C) + N(0, (z C)^2 I)``
    in K. What is clipped is what is kept, so that one example moves the sum by at most C.

    Guarantees:
        That of the mechanism under add-remove and zero-out, floats included, as of ``mean``. K is
        drawn before any gradient is looked at; it may be known. Pruning makes a message shorter
        and clips less; it is no privacy by itself, and none is accounted.

    Edge cases:
        No examples give pure noise. A row without a finite length counts as 0.

    Args:
        mechanism: The Gaussian mechanism, of a noise multiplier z up to ``2^21``.
        gradients: A row for each example, of this example alone; of shape (n, d).
        norm: The clipping norm C of what is kept, from 1e-24 to 1e24.
        keep: The share of coordinates that is kept, in (0, 1].
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn. A batch of a training is counted by whoever trains.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        d floats, to be divided by a public number.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.

    References:
        Wei et al., "Securing Distributed SGD against Gradient Leakage Threats", 2023, section 4.1.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> found = hs.release.randomly_pruned_sum(
        ...     hs.Gaussian(1), np.ones((8, 10)), norm=1, keep=0.25
        ... )
        >>> int(np.count_nonzero(found))
        3
    """
    rows, length, count = _checked(mechanism, gradients, norm, keep)
    book(checked_charge(charge), mechanism)
    kept = permutation(rows.shape[1], bits=bits)[:count]
    found = np.zeros(rows.shape[1])
    found[kept] = noisy_clipped_sum(rows[:, kept], length, mechanism.noise_multiplier, bits)
    return found


def selective_sum(
    mechanism: Gaussian,
    gradients: Any,
    *,
    norm: float,
    keep: float,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return the largest coordinates of the noisy sum of clipped gradients, zeros elsewhere.

    Of ``sum_i clip(g_i, C) + N(0, (z C)^2 I)`` the ``ceil(keep d)`` entries that are largest in
    size: post-processing. Selective SGD as published chooses by the gradients themselves and
    noises the chosen values; which ones are chosen then shows without any noise, and for no epsilon
    is that private: one example decides surely between two sets.

    Guarantees:
        That of the mechanism under add-remove and zero-out, floats included, as of ``mean``.

    Args:
        mechanism: As for ``randomly_pruned_sum``.
        gradients: As for ``randomly_pruned_sum``.
        norm: The clipping norm C of a whole gradient, from 1e-24 to 1e24.
        keep: The share of coordinates that is kept, in (0, 1].
        charge: As for ``randomly_pruned_sum``.
        bits: As for ``randomly_pruned_sum``.

    Returns:
        d floats, to be divided by a public number.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.

    References:
        Shokri and Shmatikov, "Privacy-Preserving Deep Learning", CCS 2015 (distributed selective
        SGD); Wei et al. 2023, section 4.1.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.selective_sum(hs.Gaussian(0), [[0.3, 0.0, -0.4]], norm=1, keep=0.5).round(3)
        array([ 0.3,  0. , -0.4])
    """
    rows, length, count = _checked(mechanism, gradients, norm, keep)
    book(checked_charge(charge), mechanism)
    whole = noisy_clipped_sum(rows, length, mechanism.noise_multiplier, bits)
    found = np.zeros(len(whole))
    largest = np.argsort(-np.abs(whole), kind="stable")[:count]
    found[largest] = whole[largest]
    return found


def _checked(
    mechanism: Any, gradients: Any, norm: Any, keep: Any
) -> tuple[NDArray[np.float64], float, int]:
    """Return the gradients, the norm and how many coordinates are kept, or raise."""
    known, rows = of_kind(mechanism, Gaussian), gradient_rows("gradients", gradients)
    share = decimal(_validate.real("keep", keep, _KEEP))
    check_finite((known.noise_multiplier,), UNITS)
    return rows, length_of("norm", norm), math.ceil(share * rows.shape[1])
