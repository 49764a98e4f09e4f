"""Means and deviations of features with Gaussian noise, to normalise data before a training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.joint_gaussian import JointGaussian
from hockeystick.release._values import numbers, of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.statistics._data import (
    ROOT_2,
    Rows,
    check_count,
    check_entries,
    check_finite,
    noisy_count,
    public_size,
    rows_of,
)
from hockeystick.release.statistics.clipped import clipped_integers, noisy_integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOOR: Final = Domain(symbol="s", low=1e-150, high=1e150, typical=(0.01, 1))
_UNITS: Final = 2**16
_ALLOWED: Final = "a JointGaussian of two noise multipliers, or of three with the count's"


@final
@dataclass(frozen=True, slots=True)
class Normalisation:
    """What features are normalised by: released numbers, the same for every record.

    Args:
        mean: What is taken off each feature, d numbers.
        deviation: What each is then divided by, d numbers > 0.
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    def apply(self, rows: Any) -> NDArray[np.float64]:
        """Return ``(x - mean) / deviation`` of rows of shape (n, d), each by itself."""
        known = numbers("rows", rows)
        if known.ndim != 2 or known.shape[1] != len(self.mean):
            allowed = f"rows of {len(self.mean)} numbers"
            raise ParameterError("rows", f"an array of shape {known.shape}", allowed)
        return np.asarray((known - self.mean) / self.deviation)


def normalisation(
    mechanism: JointGaussian,
    rows: Any,
    *,
    bound: float,
    size: float | None = None,
    center: Any = None,
    floor: float | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Normalisation:
    """Return the mean and the standard deviation of each feature, of noisy sums.

    With ``y_i = clip(x_i - c, C)``, released are ``s = sum y_i + N(0, (z_1 S_1)^2 I)`` and
    ``q = sum y_i^2 + N(0, (z_2 S_2)^2 I)``, entries squared; from these

        mean = c + s/n,    deviation = sqrt(max(q/n - (s/n)^2, floor^2)).

    One record moves the two by at most S_1 and S_2 in L2: under add-remove and zero-out by
    ``|y| <= C`` and ``|y^2| <= |y|^2 <= C^2``; under replace-one by 2C and by ``sqrt(2) C^2``, as
    squares are not negative, so that ``|y^2 - x^2|^2 <= |y^2|^2 + |x^2|^2``. Both queries are
    asked of the same records: one ``JointGaussian``.

    Guarantees:
        That of the mechanism, floats included: clipped rows are integers in units of ``2^-16 C``,
        their sums and sums of squares are exact, and for integers
        ``k + round(N) = round(k + N)``. A training on the normalised data is charged for both:
        ``DPSGD(..., extra=mechanism)``, or a composition.

    Edge cases:
        A feature without variance is divided by the floor. Batch normalisation, whose statistics
        are the batch's own, is another matter: with it no gradient is one record's alone.

    Args:
        mechanism: ``JointGaussian((z_1, z_2))``, or of ``(z_1, z_2, z_n)``, which releases n too,
            under add-remove, each up to ``2^11``.
        rows: The data, of shape (n, d), finite.
        bound: The length C that a centred row is clipped to, in the rows' unit, from 1e-24 to 1e24.
        size: The public number n, at least 1e-24; the number of rows where that is public.
        center: A public center c, one number or d; 0 by default.
        floor: The least deviation, from 1e-150 to 1e150, in the rows' unit; by default the square
            root of the noise's deviation in ``q/n``, which is public as n or its release is.
        adjacency: Whose neighbours the sensitivity is for.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The normalisation, for these rows and for others.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        IncompatibleError: If nothing says what to divide by, or two things do.
        BudgetExhausted: If the filter refuses; nothing is drawn then.

    References:
        van Dijk and Nguyen, "Considerations on the Theory of Training Models with Differential
        Privacy", 2023, section 2.7.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> rows = np.random.default_rng(1).normal(size=(5000, 2)) * [1, 0.1] + [2, 3]
        >>> both = hs.mechanisms.JointGaussian((8, 8))
        >>> found = hs.release.normalisation(both, rows, bound=4, size=5000, center=[2, 3])
        >>> bool(abs(found.deviation[0] - 1) < 0.1)
        True
        >>> plan = hs.DPSGD(rate=0.01, steps=500, noise_multiplier=1, extra=both)
        >>> print(plan.mechanism)
        Poisson-subsampled Gaussian (noise multiplier 1, rate 0.01) x 500 \
and joint Gaussian (noise multipliers 8 and 8)
    """
    own = of_kind(mechanism, JointGaussian)
    neighbours = _validate.choice("adjacency", adjacency, Adjacency)
    check_entries(own, (2, 3), _ALLOWED)
    data, noises = rows_of(rows, bound, center), own.noise_multipliers
    least = None if floor is None else _validate.real("floor", floor, _FLOOR)
    check_finite(noises, 2.0 * _UNITS**2)
    if len(noises) == 3:
        check_count(size, neighbours)
    known = None if len(noises) == 3 else public_size(size, data, neighbours)
    book(checked_charge(charge), own)
    first, second = _noisy_sums(data, noises, neighbours, bits)
    count = known or noisy_count(data, noises[-1], bits)
    average = first / count
    own_floor = math.sqrt(noises[1] * data.bound**2 / count) or data.bound / _UNITS
    variance = np.maximum(second / count - average**2, (least or own_floor) ** 2)
    return Normalisation(data.center + average, np.sqrt(variance))


def _noisy_sums(
    data: Rows, noises: tuple[float, ...], adjacency: Adjacency, bits: Bits
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the noisy sums of the clipped rows and of their entries' squares."""
    replaced = adjacency is Adjacency.REPLACE_ONE
    integers = clipped_integers(data.centred, data.bound, _UNITS).astype(np.int64)
    unit = data.bound / _UNITS
    first = noisy_integers(integers.sum(axis=0), _UNITS * (2 if replaced else 1), noises[0], bits)
    scale = _UNITS**2 * (ROOT_2 if replaced else Fraction(1))
    squares: NDArray[np.int64] = np.square(integers).sum(axis=0)
    second = noisy_integers(squares, scale, noises[1], bits)
    return np.asarray(first * unit, np.float64), np.asarray(second * unit**2, np.float64)
