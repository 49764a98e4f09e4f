"""Means, normalisations, covariances of rows with Gaussian noise; how groups of people are treated.

A record is a row of d finite numbers. Each is taken about a public center c (``center``, a number
or d; 0 by default, or what another release found, which is charged there) and clipped to the length
``bound``, from 1e-24 to 1e24 in the rows' unit. Sums are divided by n: ``size``, a public number of
at least 1e-24, or the number of rows where it is public (zero-out, replace-one), or a noisy count;
``IncompatibleError`` says that nothing says what to divide by, or that two things do.

All is exact: clipped rows are integers, and ``k + round(N) = round(k + N)`` for integers k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

import numpy as np

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.noise.gaussian import Gaussian, JointGaussian, PrivateCovariance
from hockeystick.release._values import integers, of_kind, rows_of_length, shaped
from hockeystick.release.counting import Charged, book, checked_charge
from hockeystick.release.noise import clipped_sum
from hockeystick.release.noise.clipped_sum import UNITS, clipped_integers, noisy_integers
from hockeystick.release.samplers.bits import POSITIVE, Bits, Floats, Integers, secret_bits
from hockeystick.release.samplers.real_noise import SCALE

_SIZE: Final = _validate.Domain(symbol="n", low=1e-24, high=1e15, typical=(100, 10**6), whole=False)
_FLOOR: Final = _validate.Domain(symbol="s", low=1e-150, high=1e150, typical=(0.01, 1))
_MOST_ROWS: Final = 2**26
_SQUARED_UNITS: Final = 2**16
# With units of 2^18 for a row's length, products of entries are at most 2^36.
_LENGTH_BITS: Final = 18
_LEAST_BITS: Final = 10
# Square roots of 2 and of 1/2, rounded up.
_ROOT_2: Final = Fraction(math.nextafter(math.sqrt(2.0), math.inf))
_HALF_ROOT: Final = Fraction(math.nextafter(math.sqrt(0.5), math.inf))
_OF_MEAN: Final = "a Gaussian, or a JointGaussian of two noise multipliers: the sum's, the count's"
_OF_NORMALISATION: Final = "a JointGaussian of two noise multipliers, or of three with the count's"


class Rows(NamedTuple):
    """Rows of a data set less their public center, and what their length is clipped to."""

    centred: Floats
    center: Floats
    bound: float


def rows_of(rows: Any, bound: Any, center: Any) -> Rows:
    """Return rows less a public center, or raise; nothing of the rows is shown."""
    allowed = "an array of two axes: a row for each of at most 2^26 records"
    known = shaped(
        "rows", rows, allowed, lambda a: a.ndim == 2 and a.shape[1] and len(a) <= _MOST_ROWS
    )
    length, columns = _validate.real("bound", bound, clipped_sum.LENGTH), known.shape[1:]
    allowed = f"a number, or one for each of {known.shape[1]} columns"
    given = 0 if center is None else center
    middle = shaped("center", given, allowed, lambda one: one.shape in ((), columns))
    middle = np.broadcast_to(middle, columns)
    with np.errstate(over="ignore"):
        return Rows(known - middle, middle, length)


def _divisor(size: Any, data: Rows, adjacency: Adjacency, *, counted: bool = False) -> float | None:
    """Return what sums are divided by where it is public, or None for a noisy count."""
    if counted and size is not None:
        raise IncompatibleError("the mechanism releases the number of rows, and a size is given")
    if counted and adjacency is not Adjacency.ADD_REMOVE:
        raise IncompatibleError(f"under {adjacency} the number of rows is public, and has no noise")
    if counted:
        return None
    if size is not None:
        return _validate.real("size", size, _SIZE)
    if adjacency is Adjacency.ADD_REMOVE:
        told = "give a public size, or a mechanism of one noise multiplier more"
        raise IncompatibleError(f"under add-remove the number of rows is private: {told}")
    if len(data.centred) == 0:
        raise ParameterError("rows", "none", "at least one row where no size is given")
    return float(len(data.centred))


def _noisy_count(data: Rows, noise_multiplier: float, bits: Bits) -> float:
    total = np.array([len(data.centred)], dtype=np.int64)
    return float(max(noisy_integers(total, 1, noise_multiplier, bits)[0], 1))


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
) -> Floats:
    """Return the mean of rows with Gaussian noise on their clipped sum: d numbers.

    With c the center, C the bound and z the noise multiplier, up to ``2^21``,

        c + (sum_i clip(x_i - c, C) + N(0, (z S)^2 I)) / n,    clip(y, C) = min(1, C/|y|) y.

    One record moves the sum by at most ``S = C`` in L2 under add-remove and zero-out, and by ``S =
    2C`` under replace-one. A ``JointGaussian`` of two multipliers ``(z, z_n)`` releases n too,
    under add-remove, as ``max(1, n + round(N(0, z_n^2)))`` (Galli, PhD thesis, SNS, chapter 1).

    Example:
        >>> import hockeystick as hs
        >>> found = hs.release.mean(hs.Gaussian(5), [[0.5, 0.1]] * 1000, bound=1, size=1000)
        >>> bool(abs(found[0] - 0.5) < 0.1)
        True
    """
    neighbours = _validate.choice("adjacency", adjacency, Adjacency)
    if isinstance(mechanism, Gaussian):
        noises: tuple[float, ...] = (mechanism.noise_multiplier,)
    elif isinstance(mechanism, JointGaussian) and len(mechanism.noise_multipliers) == 2:
        noises = mechanism.noise_multipliers
    else:
        raise ParameterError("mechanism", mechanism, _OF_MEAN)
    data = rows_of(rows, bound, center)
    scale = UNITS * (2 if neighbours is Adjacency.REPLACE_ONE else 1)
    clipped_sum.check_noise(noises, scale)
    known = _divisor(size, data, neighbours, counted=len(noises) == 2)
    book(checked_charge(charge), mechanism)
    total = clipped_integers(data.centred, data.bound).sum(axis=0).astype(np.int64)
    noisy = noisy_integers(total, scale, noises[0], bits) * (data.bound / UNITS)
    return data.center + noisy / (known or _noisy_count(data, noises[-1], bits))


@final
@dataclass(frozen=True, slots=True)
class Normalisation:
    """What features are normalised by."""

    mean: Floats
    deviation: Floats

    def apply(self, rows: Any) -> Floats:
        """Return ``(x - mean) / deviation`` of rows of shape (n, d)."""
        known = rows_of_length("rows", rows, len(self.mean))
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

    With ``y_i = clip(x_i - c, C)``, released are ``s = sum y_i + N(0, (z_1 S_1)^2 I)`` and ``q =
    sum y_i^2 + N(0, (z_2 S_2)^2 I)``, entries squared; from these

        mean = c + s/n,    deviation = sqrt(max(q/n - (s/n)^2, floor^2)).

    One record moves the two by at most S_1 and S_2 in L2: under add-remove and zero-out by ``|y| <=
    C`` and ``|y^2| <= |y|^2 <= C^2``; under replace-one by 2C and by ``sqrt(2) C^2``, as squares
    are not negative. The mechanism is of ``(z_1, z_2)``, or of ``(z_1, z_2, z_n)``, which releases
    n too, under add-remove, each up to ``2^11``; a training on the normalised data is charged for
    both: ``DPSGD(..., extra=mechanism)``. The floor is the least deviation, from 1e-150 to 1e150;
    by default the square root of the noise's deviation in ``q/n`` (van Dijk and Nguyen 2023, 2.7).

    Example:
        >>> import hockeystick as hs
        >>> both = hs.mechanisms.JointGaussian((8, 8))
        >>> hs.release.normalisation(both, [[2.0, 3.0]] * 90, bound=4, size=90).mean.shape
        (2,)
    """
    noises = of_kind(mechanism, JointGaussian).noise_multipliers
    neighbours = _validate.choice("adjacency", adjacency, Adjacency)
    if len(noises) not in (2, 3):
        raise ParameterError("mechanism", mechanism, _OF_NORMALISATION)
    data = rows_of(rows, bound, center)
    least = None if floor is None else _validate.real("floor", floor, _FLOOR)
    clipped_sum.check_noise(noises, 2.0 * _SQUARED_UNITS**2)
    known = _divisor(size, data, neighbours, counted=len(noises) == 3)
    book(checked_charge(charge), mechanism)
    first, second = _noisy_sums(data, noises, neighbours, bits)
    count = known or _noisy_count(data, noises[-1], bits)
    average = first / count
    own_floor = math.sqrt(noises[1] * data.bound**2 / count) or data.bound / _SQUARED_UNITS
    variance = np.maximum(second / count - average**2, (least or own_floor) ** 2)
    return Normalisation(data.center + average, np.sqrt(variance))


def _noisy_sums(
    data: Rows, noises: tuple[float, ...], adjacency: Adjacency, bits: Bits
) -> tuple[Floats, Floats]:
    replaced, units = adjacency is Adjacency.REPLACE_ONE, _SQUARED_UNITS
    integers = clipped_integers(data.centred, data.bound, units).astype(np.int64)
    unit = data.bound / units
    first = noisy_integers(integers.sum(axis=0), units * (2 if replaced else 1), noises[0], bits)
    squares: Integers = np.square(integers).sum(axis=0)
    scale = units**2 * (_ROOT_2 if replaced else Fraction(1))
    second = noisy_integers(squares, scale, noises[1], bits)
    return np.asarray(first * unit, np.float64), np.asarray(second * unit**2, np.float64)


def covariance(
    mechanism: PrivateCovariance,
    rows: Any,
    *,
    bound: float,
    size: float | None = None,
    center: Any = None,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return the covariance of rows about a public center, with Gaussian noise, of shape (d, d).

    With c the center, R the bound, ``y_i = clip(x_i - c, R)`` and ``sigma = z R^2``,

        (sum_i y_i y_i^T + E) / n,   E symmetric, E_ii ~ N(0, sigma^2), E_ij ~ N(0, sigma^2 / 2).

    One record moves the sum by ``R^2`` in the Frobenius norm, by ``sqrt(2) R^2`` under replace-one
    (``R^2`` with one column): its square, not R, is the unit of the noise (Dwork, Talwar, Thakurta
    and Zhang, "Analyze Gauss", STOC 2014, algorithm 1; Galli, equations 1.9 to 1.11, has R: for R >
    1 that is R times too little). The mechanism has as many columns as the rows, z up to ``2^23``
    and the data's adjacency. With noise the matrix may have negative eigenvalues.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.PrivateCovariance(5, columns=2, adjacency="replace-one")
        >>> hs.release.covariance(noise, [[2.0, 0.5], [-1.0, 0.0]], bound=6).shape
        (2, 2)
    """
    own, data = of_kind(mechanism, PrivateCovariance), rows_of(rows, bound, center)
    columns = data.centred.shape[1]
    if own.columns != columns:
        raise ParameterError("mechanism", own, f"of {columns} columns, as the rows have")
    clipped_sum.check_noise((own.noise_multiplier,), 2.0 * 4.0**_LEAST_BITS)
    divisor = _divisor(size, data, own.adjacency)
    assert divisor is not None
    book(checked_charge(charge), own)
    noise, length_bits = own.noise_multiplier, _LENGTH_BITS
    while noise * 4.0**length_bits > SCALE.high / 2 and length_bits > _LEAST_BITS:
        length_bits -= 1
    units = 2**length_bits
    total = products(clipped_integers(data.centred, data.bound, units), length_bits)
    upper = np.triu_indices(columns, 1)
    diagonal = noisy_integers(np.diagonal(total).copy(), units**2, noise, bits)
    found = np.diag(diagonal.astype(np.float64))
    found[upper] = noisy_integers(total[upper], _HALF_ROOT * units**2, noise, bits)
    found.T[upper] = found[upper]
    return np.asarray(found * (data.bound / units) ** 2) / divisor


@final
@dataclass(frozen=True, slots=True)
class PrincipalComponents:
    """The directions in which rows vary most, orthonormal, the largest variance first."""

    vectors: Floats
    variances: Floats
    center: Floats

    def transform(self, rows: Any) -> Floats:
        """Return ``(x - c) V^T`` of rows of shape (n, d): private as the rows are."""
        known = rows_of_length("rows", rows, self.vectors.shape[1])
        return np.asarray((known - self.center) @ self.vectors.T)

    def restore(self, scores: Any) -> Floats:
        """Return ``c + y V``, the rows that scores of shape (n, k) stand for."""
        known = rows_of_length("scores", scores, len(self.vectors))
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
    """Return the k first eigenvectors of the noisy ``covariance`` (DP-PCA), k from 1 to d.

    Example:
        >>> import hockeystick as hs
        >>> rows, noise = [[2, 0.5], [-1, 0]], hs.mechanisms.PrivateCovariance(5, columns=2)
        >>> found = hs.release.principal_components(noise, rows, bound=3, components=1, size=2)
        >>> found.transform(rows).shape
        (2, 1)
    """
    columns = of_kind(mechanism, PrivateCovariance).columns
    count = _validate.count("components", components, POSITIVE)
    if count > columns:
        raise ParameterError("components", count, f"at most the {columns} columns")
    how: dict[str, Any] = {"bound": bound, "size": size, "center": center}
    values, vectors = np.linalg.eigh(covariance(mechanism, rows, **how, charge=charge, bits=bits))
    first, middle = np.argsort(values)[::-1][:count], 0.0 if center is None else center
    return PrincipalComponents(vectors[:, first].T, values[first], np.full(columns, middle, float))


def products(integers: Floats, length_bits: int) -> Integers:
    """Return the sum of ``m m^T`` over rows of length at most ``2^length_bits``, exactly."""
    # Every partial sum in floats is an integer below 2^53.
    at_once = 2 ** (53 - 2 * length_bits)
    total = np.zeros((integers.shape[1],) * 2, dtype=np.int64)
    for first in range(0, len(integers), at_once):
        part = integers[first : first + at_once]
        total += (part.T @ part).astype(np.int64)
    return total


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class GroupFairness:
    """Rates of a classifier's predictions for groups, or for clients, and how far they differ.

    Of counts of records by group, label and prediction, of shape (groups, 2, 2). With prediction
    Y', label Y and group S, the differences are the largest less the least over the groups of

    - ``P(Y' = 1 | S)``: demographic parity;
    - ``P(Y' = 1 | Y = 1, S)``: equal opportunity;
    - ``P(Y' = 1 | Y = y, S)``, the larger of y = 0 and y = 1: equalized odds;
    - ``P(Y' = Y | S)``: accuracy.

    Not private by itself: release ``GroupFairness.count(...)`` with noise first, by ``geometric``
    or ``discrete_gaussian``; one record is in one cell (``entries=2`` under replace-one). Counts
    below 0 count as 0. A rate of a group without such records is nan, and left out of the
    difference, which is nan with fewer than two groups (Dwork et al. 2012; Hardt, Price and Srebro
    2016; Galli, definitions 5 to 7 and equation 2.11).

    Example:
        >>> import hockeystick as hs
        >>> given = {"predictions": [1, 1, 0, 1], "labels": [1, 1, 0, 0], "groups": [0, 0, 1, 1]}
        >>> hs.release.GroupFairness.of(**given).demographic_parity
        0.5
    """

    counts: Integers

    def __init__(self, counts: Any) -> None:
        known = np.maximum(integers("counts", counts), 0)
        if known.ndim != 3 or known.shape[1:] != (2, 2):
            allowed = "of shape (groups, 2, 2): by group, label and prediction"
            raise ParameterError("counts", f"an array of shape {known.shape}", allowed)
        known.flags.writeable = False
        object.__setattr__(self, "counts", known)

    @classmethod
    def of(cls, predictions: Any, labels: Any, groups: Any) -> GroupFairness:
        """Return the read-out of records."""
        return cls(cls.count(predictions, labels, groups))

    @staticmethod
    def count(predictions: Any, labels: Any, groups: Any, number: int | None = None) -> Integers:
        """Return the records by group, label and prediction, of shape (groups, 2, 2).

        Predictions and labels are 0 or 1, groups integers from 0 below number (the largest plus 1).
        """
        given = {"predictions": predictions, "labels": labels, "groups": groups}
        rows = {name: _row(name, values) for name, values in given.items()}
        sizes = [len(row) for row in rows.values()]
        if len({*sizes}) != 1:
            raise ParameterError("predictions, labels, groups", sizes, "as many of each")
        for name in ("predictions", "labels"):
            if int(rows[name].max(initial=0)) > 1:
                raise ParameterError(name, "another number", "0 or 1 for each record")
        whose = rows["groups"]
        occurring = int(whose.max(initial=-1)) + 1
        size = occurring if number is None else _validate.count("number", number, POSITIVE)
        if size < occurring:
            raise ParameterError("groups", "a larger one", f"integers from 0 to {size - 1}")
        found = np.zeros((size, 2, 2), dtype=np.int64)
        np.add.at(found, (whose, rows["labels"], rows["predictions"]), 1)
        return found

    @property
    def positive_rates(self) -> Floats:
        """``P(Y' = 1 | S)`` of each group."""
        return _shares(self.counts[:, :, 1].sum(axis=1), self.counts.sum(axis=(1, 2)))

    @property
    def true_positive_rates(self) -> Floats:
        """``P(Y' = 1 | Y = 1, S)`` of each group."""
        return _shares(self.counts[:, 1, 1], self.counts[:, 1].sum(axis=1))

    @property
    def false_positive_rates(self) -> Floats:
        """``P(Y' = 1 | Y = 0, S)`` of each group."""
        return _shares(self.counts[:, 0, 1], self.counts[:, 0].sum(axis=1))

    @property
    def accuracies(self) -> Floats:
        """``P(Y' = Y | S)`` of each group."""
        return _shares(np.trace(self.counts, 0, 1, 2), self.counts.sum(axis=(1, 2)))

    @property
    def demographic_parity(self) -> float:
        """The difference of the rates of positive predictions."""
        return _difference(self.positive_rates)

    @property
    def equal_opportunity(self) -> float:
        """The difference of the true positive rates."""
        return _difference(self.true_positive_rates)

    @property
    def equalized_odds(self) -> float:
        """The larger of the differences of true and of false positive rates."""
        return float(np.fmax(self.equal_opportunity, _difference(self.false_positive_rates)))

    @property
    def accuracy_difference(self) -> float:
        """The difference of the accuracies."""
        return _difference(self.accuracies)


def _row(name: str, values: Any) -> Integers:
    array = np.asarray(values)
    found = integers(name, array.astype(np.int64) if array.dtype.kind == "b" else array)
    if found.ndim != 1 or bool((found < 0).any()):
        raise ParameterError(name, f"an array of shape {found.shape}", "a row of integers >= 0")
    return found


def _shares(part: Integers, whole: Integers) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(part / whole)  # nan where there is nothing to divide by


def _difference(rates: Floats) -> float:
    known = rates[~np.isnan(rates)]
    return float(known.max() - known.min()) if len(known) > 1 else math.nan
