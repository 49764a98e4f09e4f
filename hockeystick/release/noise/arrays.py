"""Noise on arrays of numbers, exact in floats, and on integers.

Real numbers are released on a grid: with S the sensitivity, d the number of entries, and the step g
a power of two of at most ``2^-20 S``, which depends on S, z and d alone, never on the data,

1. rounding moves each entry by at most ``g / 2``, so that the rounded answers on two neighbouring
   data sets, in steps of g, are at most ``S / g + sqrt(d)`` from each other in L2, ``S / g + d`` in
   L1. The noise is scaled to that distance;
2. for integers k, ``k + round(N) = round(k + N)``: what is released is a function of ``k + N``,
   the mechanism with at least its own noise;
3. ``round(N)`` is drawn exactly. Scaling by g, and rounding above ``2^53`` g, is post-processing.

Rounding costs at most ``2^-16`` of the noise; noise beyond ``2^23`` S or so makes g larger, and the
noise with it. Noise is finite, S a finite number > 0 in the answer's unit; values are integers up
to ``2^53`` or floats, each up to ``2^62 g`` in size (some ``10^12`` S for a single number), of any
shape; without noise they are returned as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
from mpmath import libmp

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Gaussian, Laplace, Mechanism, MultivariateLaplace, SinhNormal
from hockeystick.mechanisms.noise.integer_noise import DiscreteGaussian, DiscreteLaplace, Skellam
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.numerics.multiprecision import interval_bits, iv, mp, working_digits
from hockeystick.numerics.rounding import float_up
from hockeystick.privacy_loss.noise.sinh_normal import (
    sinh_normal_divergences as sinh_normal_divergences,
)
from hockeystick.release import _values, samplers
from hockeystick.release._values import Draw, Grid, grid_of, numbers, of_kind, released, root_up
from hockeystick.release.counting import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, NoisyNumber, RealNoise, secret_bits
from hockeystick.release.samplers.bits import POSITIVE, Floats, Integers, words_from
from hockeystick.release.samplers.real_noise import SCALE
from hockeystick.release.samplers.tables import VARIANCE

_IntegerNoise = DiscreteGaussian | DiscreteLaplace | Skellam
_GUARD: Final = 128


def gaussian(
    mechanism: Gaussian,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return an array plus Gaussian noise, as private in floats as the mechanism is in reals.

    With S the sensitivity, z the noise multiplier, d entries and g as the module has it, it is

        g (round(value / g) + round(N)),  N ~ N(0, s^2 I),  s >= z (S / g + ceil(sqrt(d))).

    S bounds the L2 distance of the *floats* given on neighbouring data sets, all entries together.
    A sum of clipped floats, summed as floats, may move further than the clipping norm: sum integers
    or multiples of a power of two, or add to S what the sum may round (Mironov, CCS 2012;
    Casacuberta, Shoemate, Vadhan and Wagaman, CCS 2022).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.gaussian(hs.Gaussian(noise_multiplier=2), [3.25, -1.0], sensitivity=1).shape
        (2,)
    """
    known, answer = of_kind(mechanism, Gaussian), numbers("value", value)
    grid = grid_of(known, known.noise_multiplier, sensitivity, root_up(answer.size))
    return released(grid, answer, known, charge, samplers.rounded_gaussian, bits)


def laplace(
    mechanism: Laplace,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return an array plus Laplace noise, as private in floats as the mechanism is in reals.

    With b the mechanism's scale, S the largest *L1* distance of answers, and all else as for
    ``gaussian`` (Dwork, McSherry, Nissim and Smith, TCC 2006), it is

        g (round(value / g) + round(L)),  L_i ~ Laplace(s) independently,  s >= b (S / g + d).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.laplace(hs.Laplace(scale=2), [120, 80], sensitivity=1).shape
        (2,)
    """
    known, answer = of_kind(mechanism, Laplace), numbers("value", value)
    grid = grid_of(known, known.scale, sensitivity, max(answer.size, 1))
    return released(grid, answer, known, charge, samplers.rounded_laplace, bits)


def multivariate_laplace(
    mechanism: MultivariateLaplace,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return a vector plus noise of the density ``~ exp(-|z|/b)``, as private in floats as in R^n.

    With n the dimension, s the mechanism's scale, S the largest L2 distance of answers that are to
    be indistinguishable, and all else as for ``gaussian`` (Fernandes, Dras and McIver 2019), it is

        g (round(value / g) + round(Z)),  Z ~ exp(-|z|/b) on R^n,  b >= s (S / g + ceil(sqrt(n))).

    Example:
        >>> import hockeystick as hs
        >>> place, noise = [48.85, 2.35], hs.mechanisms.MultivariateLaplace(2, dimension=2)
        >>> hs.release.multivariate_laplace(noise, place, sensitivity=0.01).shape
        (2,)
    """
    known = of_kind(mechanism, MultivariateLaplace)
    answer = _values.row_of("value", value, known.dimension)
    grid = grid_of(known, known.scale, sensitivity, root_up(known.dimension))
    return released(grid, answer, known, charge, samplers.rounded_multivariate_laplace, bits)


def multivariate_laplace_log_density(
    mechanism: MultivariateLaplace, sensitivity: float, points: Any
) -> Floats:
    """Return ``ln K - |z| / b``, ``K = Gamma(n/2) / (2 pi^(n/2) Gamma(n) b^n)``, at points of R^n.

    b is the mechanism's scale, > 0, times the L2 sensitivity; points are vectors along the last
    axis. Right to some units in the last place (Galli et al. 2022, lemma 2).

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.MultivariateLaplace(2, dimension=1)  # of the density 1/4 at 0
        >>> print(hs.release.multivariate_laplace_log_density(noise, 1.0, [[0.0]]))
        [-1.38629436]
    """
    scale = _scale(mechanism, sensitivity)
    if scale == 0.0:
        raise ParameterError("scale", mechanism.scale, "> 0: without noise there is no density")
    given = np.asarray(points, dtype=np.float64)
    if given.ndim == 0 or given.shape[-1] != mechanism.dimension:
        allowed = f"vectors of {mechanism.dimension} coordinates along the last axis"
        raise ParameterError("points", points, allowed)
    length = np.linalg.norm(given, axis=-1)
    with working_digits(40):
        n = mp.mpf(mechanism.dimension)
        gammas = mp.loggamma(n / 2) - mp.loggamma(n)
        constant = gammas - mp.log(2) - n / 2 * mp.log(mp.pi) - n * mp.log(mp.mpf(scale))
    return np.asarray(float(constant) - length / scale)


def multivariate_laplace_variance(mechanism: MultivariateLaplace, sensitivity: float) -> float:
    """Return the variance of each coordinate of the noise, ``(n + 1) b^2``, to float precision.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.multivariate_laplace_variance(hs.mechanisms.MultivariateLaplace(2, 3), 1.0)
        16.0
    """
    scale = _scale(mechanism, sensitivity)
    return (mechanism.dimension + 1) * scale * scale


def multivariate_laplace_length(mechanism: MultivariateLaplace, sensitivity: float) -> float:
    """Return the mean length of the noise, ``n b``: a Gamma distribution of shape n.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.multivariate_laplace_length(hs.mechanisms.MultivariateLaplace(2, 3), 1.0)
        6.0
    """
    return _scale(mechanism, sensitivity) * mechanism.dimension


def _scale(mechanism: MultivariateLaplace, sensitivity: float) -> float:
    scale = of_kind(mechanism, MultivariateLaplace).scale
    if scale == math.inf:
        raise ParameterError("scale", scale, "finite")
    _values.sensitivity_of(sensitivity)
    return scale * float(sensitivity)


def discrete_gaussian(
    mechanism: DiscreteGaussian,
    value: Any,
    *,
    entries: int = 1,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Integers:
    """Return integers plus discrete Gaussian noise, independently in each.

    ``P(k)`` is proportional to ``exp(-k^2 / (2 sigma^2))``, sigma up to ``2^44``, the integers up
    to ``2^62`` in size; floats are refused. Neighbouring data sets differ in one of the integers,
    by at most ``mechanism.sensitivity``: a single count, or a histogram under add-remove; with
    ``entries=k`` in k, each by so much, as a histogram's two under replace-one, and ``mechanism **
    k`` is charged (Canonne, Kamath and Steinke, NeurIPS 2020).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.discrete_gaussian(hs.DiscreteGaussian(sigma=2), [12, 0, 7], entries=2).shape
        (3,)
    """
    return _with_integers(of_kind(mechanism, DiscreteGaussian), value, entries, charge, bits)


def geometric(
    mechanism: DiscreteLaplace,
    value: Any,
    *,
    entries: int = 1,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Integers:
    """Return integers plus two-sided geometric noise (discrete Laplace), as ``discrete_gaussian``.

    ``P(k)`` is proportional to ``exp(-|k| / scale)``, the scale <= ``2^44`` (Ghosh et al., 2009).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.geometric(hs.DiscreteLaplace(scale=2), [120, 80]).dtype
        dtype('int64')
    """
    return _with_integers(of_kind(mechanism, DiscreteLaplace), value, entries, charge, bits)


def skellam(
    mechanism: Skellam,
    value: Any,
    *,
    entries: int = 1,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Integers:
    """Return integers plus Skellam noise, the difference of two Poisson numbers, in each.

    These have the mean ``variance / 2``, the variance up to ``2^31``. Parties whose variances sum
    up to it add up to one release (Agarwal et al. 2021). All else is as for ``discrete_gaussian``.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.skellam(hs.mechanisms.Skellam(variance=8), [[120, 80], [7, 0]]).shape
        (2, 2)
    """
    return _with_integers(of_kind(mechanism, Skellam), value, entries, charge, bits)


def _with_integers(
    mechanism: _IntegerNoise, value: Any, entries: int, charge: Any, bits: Bits
) -> Integers:
    """Return integers plus noise, once a mechanism is charged for each that may differ."""
    noise, answer = integer_noise(mechanism, bits), _values.integers("value", value)
    book(checked_charge(charge), _cost(mechanism, entries))
    return answer + noise(answer.size).reshape(answer.shape)


def _cost(mechanism: Mechanism, entries: int) -> Mechanism:
    changed = _validate.count("entries", entries, POSITIVE)
    return mechanism if changed == 1 else mechanism**changed


def integer_noise(mechanism: _IntegerNoise, bits: Bits) -> Callable[[int], Integers]:
    """Return what draws a mechanism's noise, at the larger reading of its parameter."""
    sampler: Draw
    if isinstance(mechanism, Skellam):
        name, domain, sampler = "variance", VARIANCE, samplers.skellam
    elif isinstance(mechanism, DiscreteLaplace):
        name, domain, sampler = "scale", SCALE, samplers.discrete_laplace
    else:
        name, domain, sampler = "sigma", SCALE, samplers.discrete_gaussian
    parameter = getattr(mechanism, name)
    if parameter == 0.0:
        return lambda size: np.zeros(size, dtype=np.int64)
    scale = float_up(largest_reading(_validate.real(name, parameter, domain)))
    return lambda size: sampler(scale, size, bits=bits)


def sinh_normal(
    mechanism: SinhNormal,
    value: Any,
    sensitivity: float,
    *,
    entries: int = 1,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return numbers plus sinh-normal noise, independently in each.

    With S how far a number moves between neighbours, all else as for ``gaussian``, each number is

        g (round(value / g) + round(c arsinh(Z / a))),
        Z ~ N(0, 1),  a = A sqrt(2 rho),  c = A (S / g + 1).

    Rho is at least ``2^-87`` or so, ``entries`` as for ``discrete_gaussian``. Bits of Z are drawn
    until intervals leave one integer (Bun, Dwork, Rothblum and Steinke, STOC 2018, section 4).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.sinh_normal(hs.mechanisms.SinhNormal(0.1, 10), [3.25, -1.0], 1).shape
        (2,)
    """
    own, answer = of_kind(mechanism, SinhNormal), numbers("value", value)
    grid = _grid(own, sensitivity, 1)
    return released(grid, answer, _cost(own, entries), charge, _noise(own, grid), bits)


def sinh_normal_vector(
    mechanism: SinhNormal,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return a vector plus sinh-normal noise in each entry, independently.

    With S the largest L2 distance of answers and d entries it is as ``sinh_normal`` says, with ``c
    = A (S / g + ceil(sqrt(d)))`` (van Dijk and Nguyen 2023, who propose it for the sums of DP-SGD).
    What it costs, and is charged, is ``sinh_normal_divergences(mechanism)``.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.sinh_normal_vector(hs.mechanisms.SinhNormal(0.1, 10), [0.6, 0.8], 1).shape
        (2,)
    """
    cost, answer = sinh_normal_divergences(mechanism), numbers("value", value)
    grid = _grid(mechanism, sensitivity, root_up(answer.size))
    return released(grid, answer, cost, charge, _noise(mechanism, grid), bits)


def _grid(mechanism: SinhNormal, sensitivity: object, moved: int) -> Grid:
    return grid_of(mechanism, math.sqrt(0.5) / math.sqrt(mechanism.rho), sensitivity, moved)


def _noise(mechanism: SinhNormal, grid: Grid) -> Draw:
    def draw(_: float, size: int, *, bits: Bits) -> Integers:
        width = largest_reading(mechanism.width)
        square, exact = 2 * least_reading(mechanism.rho) * width**2, width * grid.sensitivity
        return np.array([_rounded_arsinh(exact, square, bits) for _ in range(size)], dtype=np.int64)

    return draw


def _rounded_arsinh(scale: Fraction, square: Fraction, bits: Bits) -> int:
    """Return ``round(scale arsinh(Z / sqrt(square)))`` for one Gaussian Z."""
    word = int(words_from(bits, 1)[0])
    number = NoisyNumber(Fraction(0), RealNoise.GAUSSIAN, Fraction(1), word, bits)
    while True:
        ends = [_around(end, scale, square) for end in number.bounds()]
        if ends[0][0] == ends[1][1]:
            return ends[0][0]
        number.refine()


def _around(z: Fraction, scale: Fraction, square: Fraction) -> tuple[int, int]:
    """Return integers around ``round(scale ln(y + sqrt(y^2 + 1)))``, ``y^2 = z^2 / square``."""
    ratio = z * z / square
    with interval_bits(scale.numerator.bit_length() + ratio.denominator.bit_length() + _GUARD):
        y = iv.mpf(ratio.numerator) / ratio.denominator
        size = iv.log(iv.sqrt(y) + iv.sqrt(y + 1)) * scale.numerator / scale.denominator
        low, high = ((size if z > 0 else -size) + iv.mpf(0.5))._mpi_
    return libmp.to_int(low, "f"), libmp.to_int(high, "f")
