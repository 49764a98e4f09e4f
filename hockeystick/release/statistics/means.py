"""The mean of rows of numbers with Gaussian noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.noise.joint_gaussian import JointGaussian
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.statistics._data import (
    check_count,
    check_entries,
    check_finite,
    noisy_count,
    public_size,
    rows_of,
)
from hockeystick.release.statistics.clipped import UNITS, clipped_integers, noisy_integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALLOWED: Final = "a Gaussian, or a JointGaussian of two noise multipliers: the sum's, the count's"


def mean(
    mechanism: Gaussian | JointGaussian,
    rows: Any,
    *,
    bound: float,
    size: float | None = None,
    center: Any = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return the mean of rows with Gaussian noise on their clipped sum.

    With c the center, C the bound and z the noise multiplier,

        c + (sum_i clip(x_i - c, C) + N(0, (z S)^2 I)) / n,    clip(y, C) = min(1, C/|y|) y.

    One record moves the sum by at most ``S = C`` in L2 under add-remove and zero-out, where its
    term comes or goes, and by ``S = 2C`` under replace-one, where one clipped row is exchanged for
    another; opposite rows reach it.

    Guarantees:
        That of the mechanism, floats included: clipped rows are integers in units of ``2^-22 C``,
        each of squared length at most ``2^44``, so that their sum is exact and moves by at most
        S, and for integers ``k + round(N) = round(k + N)``.

        n is public with a ``Gaussian``: ``size``, or the number of rows under zero-out and
        replace-one. A ``JointGaussian`` of two multipliers ``(z, z_n)`` releases it under
        add-remove beside the sum, as ``max(1, n + round(N(0, z_n^2)))``.

    Edge cases:
        Noise multiplier 0 returns the mean of the clipped rows itself. No rows give pure noise
        where the size is given or released. Rows that are not finite are refused.

    Args:
        mechanism: ``Gaussian(z)`` or ``JointGaussian((z, z_n))``, z up to ``2^21``.
        rows: The data, of shape (n, d), finite.
        bound: The length C that a centred row is clipped to, in the rows' unit, from 1e-24 to 1e24.
        size: The public number that the sum is divided by, at least 1e-24.
        center: A public center c, one number or d; 0 by default.
        adjacency: Whose neighbours the sensitivity is for.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        d floats, in the rows' unit.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        IncompatibleError: If nothing says what to divide by, or two things do.
        BudgetExhausted: If the filter refuses; nothing is drawn then.

    References:
        Galli, "Sense and Sensitivity: Data Utility and User Privacy in Differentially Private
        Machine Learning" (PhD thesis, Scuola Normale Superiore), chapter 1 (the clipped mean).

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> account, rows = hs.Accountant(), np.full((1000, 3), 0.5)
        >>> found = hs.release.mean(hs.Gaussian(5), rows, bound=1, size=1000, charge=account)
        >>> bool(np.abs(found - 0.5).max() < 0.1)
        True
        >>> print(account.plan)
        Gaussian (noise multiplier 5)
    """
    neighbours = _validate.choice("adjacency", adjacency, Adjacency)
    noises = _noises(mechanism)
    data = rows_of(rows, bound, center)
    scale = UNITS * (2 if neighbours is Adjacency.REPLACE_ONE else 1)
    check_finite(noises, scale)
    if len(noises) == 2:
        check_count(size, neighbours)
    known = None if len(noises) == 2 else public_size(size, data, neighbours)
    book(checked_charge(charge), mechanism)
    total = clipped_integers(data.centred, data.bound).sum(axis=0).astype(np.int64)
    noisy = noisy_integers(total, scale, noises[0], bits) * (data.bound / UNITS)
    return data.center + noisy / (known or noisy_count(data, noises[-1], bits))


def _noises(mechanism: Any) -> tuple[float, ...]:
    """Return the noise multipliers of the sum and perhaps of the count, or raise."""
    if isinstance(mechanism, Gaussian):
        return (mechanism.noise_multiplier,)
    if not isinstance(mechanism, JointGaussian):
        raise ParameterError("mechanism", mechanism, _ALLOWED)
    check_entries(mechanism, (2,), _ALLOWED)
    return mechanism.noise_multipliers
