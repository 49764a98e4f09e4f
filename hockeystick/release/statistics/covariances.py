"""Covariances with Gaussian noise, and what is computed from them: principal components."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.private_covariance import PrivateCovariance
from hockeystick.release._values import numbers, of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.samplers.rounded import SCALE
from hockeystick.release.statistics._data import Rows, check_finite, public_size, rows_of
from hockeystick.release.statistics.clipped import clipped_integers, noisy_integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COMPONENTS: Final = whole_numbers("k", 1, (2, 100))
# With units of 2^18 for a row's length, products of entries are at most 2^36.
_LENGTH_BITS: Final = 18
_LEAST_BITS: Final = 10
_HALF_ROOT: Final = Fraction(math.nextafter(math.sqrt(0.5), math.inf))


def covariance(
    mechanism: PrivateCovariance,
    rows: Any,
    *,
    bound: float,
    size: float | None = None,
    center: Any = None,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return the covariance of rows about a public center, with Gaussian noise.

    With c the center, R the bound, ``y_i = clip(x_i - c, R)`` and ``sigma = z R^2``,

        (sum_i y_i y_i^T + E) / n,   E symmetric, E_ii ~ N(0, sigma^2), E_ij ~ N(0, sigma^2 / 2).

    One record moves the sum by ``R^2`` in the Frobenius norm, by ``sqrt(2) R^2`` under replace-one
    (``R^2`` with one column), as ``PrivateCovariance`` derives: its square, not R, is the unit of
    the noise. A center that another release found is public too, and charged there.

    Guarantees:
        That of the mechanism, floats included. Clipped rows are integers of length at most
        ``u = 2^18`` (fewer for a z above 2^7), so that sums of products are exact integers, and
        for integers ``k + round(N) = round(k + N)``.

    Edge cases:
        Noise multiplier 0 returns the moments themselves. With noise the matrix may have negative
        eigenvalues.

    Args:
        mechanism: The mechanism, with as many columns as the rows, z up to ``2^23``; its adjacency
            is the data's.
        rows: The data, of shape (n, d), finite.
        bound: The length R that a centred row is clipped to, in the rows' unit, from 1e-24 to 1e24.
        size: The public number n that the sum is divided by, at least 1e-24; the number of rows
            where it is public (zero-out, replace-one) and no size is given.
        center: A public center c, one number or d; 0 by default.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        A symmetric array of shape (d, d), in the rows' unit squared.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        IncompatibleError: If nothing says what to divide by.
        BudgetExhausted: If the filter refuses; nothing is drawn then.

    References:
        Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss", STOC 2014, algorithm 1. Galli, "Sense
        and Sensitivity" (PhD thesis), equations 1.9 to 1.11, noises it in units of R: for R > 1
        that is R times too little.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.PrivateCovariance(5, columns=2, adjacency="replace-one")
        >>> rows = np.random.default_rng(1).normal(size=(2000, 2)) * [2, 0.5]
        >>> found = hs.release.covariance(noise, rows, bound=6)
        >>> bool(2 < found[0, 0] < 5), bool(found[0, 1] == found[1, 0])
        (True, True)
    """
    own, data, divisor = _checked(mechanism, rows, bound, size, center)
    book(checked_charge(charge), own)
    return _noisy(own, data, bits) / divisor


@final
@dataclass(frozen=True, slots=True)
class PrincipalComponents:
    """The directions in which rows vary most, by a noisy covariance; post-processing of it.

    Args:
        vectors: One orthonormal direction a row, of shape (k, d), the largest variance first.
        variances: The variances along them, k numbers; noise may make the least ones negative.
        center: What is taken off rows before they are projected, d numbers.
    """

    vectors: NDArray[np.float64]
    variances: NDArray[np.float64]
    center: NDArray[np.float64]

    def transform(self, rows: Any) -> NDArray[np.float64]:
        """Return ``(x - c) V^T`` of rows of shape (n, d): private as the rows are."""
        known = numbers("rows", rows)
        if known.ndim != 2 or known.shape[1] != self.vectors.shape[1]:
            allowed = f"rows of {self.vectors.shape[1]} numbers"
            raise ParameterError("rows", f"an array of shape {known.shape}", allowed)
        return np.asarray((known - self.center) @ self.vectors.T)

    def restore(self, scores: Any) -> NDArray[np.float64]:
        """Return ``c + y V``, the rows that scores of shape (n, k) stand for."""
        known = numbers("scores", scores)
        if known.ndim != 2 or known.shape[1] != len(self.vectors):
            allowed = f"rows of {len(self.vectors)} numbers"
            raise ParameterError("scores", f"an array of shape {known.shape}", allowed)
        return np.asarray(self.center + known @ self.vectors)


def principal_components(
    mechanism: PrivateCovariance,
    rows: Any,
    *,
    bound: float,
    components: int,
    size: float | None = None,
    center: Any = None,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> PrincipalComponents:
    """Return the k first eigenvectors of the noisy ``covariance`` (DP-PCA).

    Guarantees:
        Those of ``covariance``: eigenvectors are computed from what it releases.

    Args:
        mechanism: As for ``covariance``.
        rows: As for ``covariance``.
        bound: As for ``covariance``.
        components: The number k of directions, from 1 to d.
        size: As for ``covariance``; eigenvectors do not depend on it.
        center: As for ``covariance``.
        charge: As for ``covariance``.
        bits: As for ``covariance``.

    Returns:
        The directions, their variances and the center.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        IncompatibleError: If nothing says what to divide by.
        BudgetExhausted: If the filter refuses; nothing is drawn then.

    References:
        Dwork, Talwar, Thakurta and Zhang 2014, algorithm 1.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.PrivateCovariance(5, columns=3, adjacency="replace-one")
        >>> rows = np.random.default_rng(1).normal(size=(5000, 3)) * [0.3, 2, 0.3]
        >>> found = hs.release.principal_components(noise, rows, bound=5, components=1)
        >>> bool(abs(found.vectors[0, 1]) > 0.98)
        True
    """
    own, data, divisor = _checked(mechanism, rows, bound, size, center)
    count = _validate.count("components", components, _COMPONENTS)
    if count > data.columns:
        raise ParameterError("components", count, f"at most the {data.columns} columns")
    book(checked_charge(charge), own)
    values, vectors = np.linalg.eigh(_noisy(own, data, bits) / divisor)
    first = np.argsort(values)[::-1][:count]
    return PrincipalComponents(vectors[:, first].T, values[first], data.center)


def _checked(
    mechanism: Any, rows: Any, bound: Any, size: Any, center: Any
) -> tuple[PrivateCovariance, Rows, float]:
    """Return the mechanism, the rows less their center and what to divide by, or raise."""
    own, data = of_kind(mechanism, PrivateCovariance), rows_of(rows, bound, center)
    if own.columns != data.columns:
        raise ParameterError("mechanism", own, f"of {data.columns} columns, as the rows have")
    check_finite((own.noise_multiplier,), 2.0 * 4.0**_LEAST_BITS)
    return own, data, public_size(size, data, own.adjacency)


def _noisy(mechanism: PrivateCovariance, data: Rows, bits: Bits) -> NDArray[np.float64]:
    """Return the sum of products with noise, in the rows' unit squared."""
    noise, length_bits = mechanism.noise_multiplier, _LENGTH_BITS
    while noise * 4.0**length_bits > SCALE.high / 2 and length_bits > _LEAST_BITS:
        length_bits -= 1
    units = 2**length_bits
    total = products(clipped_integers(data.centred, data.bound, units), length_bits)
    upper = np.triu_indices(len(total), 1)
    diagonal = noisy_integers(np.diagonal(total).copy(), units**2, noise, bits)
    above = noisy_integers(total[upper], _HALF_ROOT * units**2, noise, bits)
    found = np.diag(diagonal.astype(np.float64))
    found[upper] = above
    found.T[upper] = above
    return np.asarray(found * (data.bound / units) ** 2)


def products(integers: NDArray[np.float64], length_bits: int) -> NDArray[np.int64]:
    """Return the sum of ``m m^T`` over rows of length at most ``2^length_bits``, exactly.

    Rows are taken so many at a time that every partial sum is an integer below ``2^53``, a float.
    """
    at_once = 2 ** (53 - 2 * length_bits)
    total = np.zeros((integers.shape[1],) * 2, dtype=np.int64)
    for first in range(0, len(integers), at_once):
        part = integers[first : first + at_once]
        total += (part.T @ part).astype(np.int64)
    return total
