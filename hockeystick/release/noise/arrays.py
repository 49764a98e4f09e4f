"""Noise on arrays of numbers, exact in floats, and on integers.

Real numbers are released on a grid: with S the sensitivity, d the number of entries, and the step g
a power of two of at most ``2^-20 S``, which depends on S, z and d alone, never on the data,

1. rounding moves each entry by at most ``g / 2``, so that the rounded answers on two neighbouring
   data sets, in steps of g, are at most ``S / g + sqrt(d)`` from each other in L2, ``S / g + d`` in
   L1. The noise is scaled to that distance;
2. for integers k, ``k + round(N) = round(k + N)``: what is released is a function of ``k + N``,
   the mechanism with at least its own noise;
3. ``round(N)`` is drawn exactly. Scaling by g, and rounding to a float above ``2^53`` g, is
   post-processing.

Rounding costs at most ``2^-16`` of the noise; noise beyond ``2^23`` S or so makes g larger, and the
noise with it. Float and decimal readings of the scale and of S are both covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.noise.integer_noise import DiscreteGaussian, DiscreteLaplace, Skellam
from hockeystick.mechanisms.noise.laplace import Laplace, MultivariateLaplace
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.numerics.working_precision import working_digits
from hockeystick.release import samplers
from hockeystick.release._values import (
    grid_of,
    integers,
    numbers,
    of_kind,
    released,
    root_up,
    row_of,
    sensitivity_of,
)
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.samplers.bits import Floats, Integers
from hockeystick.release.samplers.rounded import SCALE
from hockeystick.release.samplers.tables import VARIANCE

ENTRIES: Final = whole_numbers("k", 1, (1, 100))


def gaussian(
    mechanism: Gaussian,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return an array plus Gaussian noise, as private in floats as the mechanism is in reals.

    With S the sensitivity, z the noise multiplier, d the number of entries, and g a power of two of
    at most ``2^-20 S``, it is

        g (round(value / g) + round(N)),  N ~ N(0, s^2 I),  s >= z (S / g + ceil(sqrt(d))).

    (Mironov, "On Significance of the Least Significant Bits for Differential Privacy", CCS 2012;
    Casacuberta, Shoemate, Vadhan and Wagaman, CCS 2022 (sums).)

    Guarantees:
        That of the mechanism, whatever floats come out: the module has the proof. S bounds the
        distance of the *floats* given. A sum of clipped floats, summed as floats, may move further
        than the clipping norm: sum integers or multiples of a power of two, or add to S what the
        sum may round.

    Args:
        mechanism: Of a finite noise multiplier; 0 returns the array itself.
        value: Numbers of any shape: integers up to ``2^53`` or floats, each up to ``2^62 g`` in
            size (some ``10^12`` S for a single number).
        sensitivity: The largest L2 distance S of answers on neighbouring data sets, all entries
            together, in the answer's unit; a finite number > 0.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.gaussian(hs.Gaussian(noise_multiplier=2), [3.25, -1.0], sensitivity=1).shape
        (2,)
    """
    known, answer = of_kind(mechanism, Gaussian), numbers("value", value)
    grid = grid_of(known, known.noise_multiplier, sensitivity, root_up(answer.size))
    draw = samplers.rounded_gaussian if known.noise_multiplier else None
    return released(grid, answer, known, charge, draw, bits)


def laplace(
    mechanism: Laplace,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return an array plus Laplace noise, as private in floats as the mechanism is in reals.

    With b the mechanism's finite scale, S the largest *L1* distance of answers, and all else as for
    ``gaussian``, it is

        g (round(value / g) + round(L)),  L_i ~ Laplace(s) independently,  s >= b (S / g + d),

    with a smaller g for more than 16 entries (Dwork, McSherry, Nissim and Smith, TCC 2006).
    """
    known, answer = of_kind(mechanism, Laplace), numbers("value", value)
    grid = grid_of(known, known.scale, sensitivity, max(answer.size, 1))
    draw = samplers.rounded_laplace if known.scale else None
    return released(grid, answer, known, charge, draw, bits)


def multivariate_laplace(
    mechanism: MultivariateLaplace,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return a vector plus noise of the density ``~ exp(-|z|/b)``, as private in floats as in R^n.

    With n the dimension, s the mechanism's finite scale, S the largest L2 distance of answers that
    are to be indistinguishable, and all else as for ``gaussian``, it is

        g (round(value / g) + round(Z)),  Z ~ exp(-|z|/b) on R^n,  b >= s (S / g + ceil(sqrt(n))).

    (Fernandes, Dras and McIver, POST 2019; Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group
    Privacy for Personalized Federated Learning", 2022.)
    """
    known = of_kind(mechanism, MultivariateLaplace)
    answer = row_of("value", value, known.dimension)
    scale = _finite_scale(known)
    grid = grid_of(known, scale, sensitivity, root_up(known.dimension))
    draw = samplers.rounded_multivariate_laplace if scale else None
    return released(grid, answer, known, charge, draw, bits)


def multivariate_laplace_log_density(
    mechanism: MultivariateLaplace, sensitivity: float, points: Any
) -> Floats:
    """Return ``ln K - |z| / b``, ``K = Gamma(n/2) / (2 pi^(n/2) Gamma(n) b^n)``, at points of R^n.

    b is the mechanism's scale, > 0, times the L2 sensitivity; points are vectors along the last
    axis. Right to some units in the last place, however many the dimensions (Galli et al. 2022,
    lemma 2).

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.MultivariateLaplace(scale=1, dimension=2)
        >>> float(hs.release.multivariate_laplace_log_density(noise, 1.0, [0.0, 0.0]))
        -1.8378770664093456
    """
    from hockeystick.numerics.multiprecision import mp

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

    b is the scale times the L2 sensitivity; ``E |z|^2 = n (n + 1) b^2``, shared by n coordinates.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.MultivariateLaplace(scale=2, dimension=3)
        >>> hs.release.multivariate_laplace_variance(noise, 1.0)
        16.0
        >>> hs.release.multivariate_laplace_length(noise, 1.0)
        6.0
    """
    scale = _scale(mechanism, sensitivity)
    return (mechanism.dimension + 1) * scale * scale


def multivariate_laplace_length(mechanism: MultivariateLaplace, sensitivity: float) -> float:
    """Return the mean length of the noise, ``n b``: a Gamma distribution of shape n."""
    return _scale(mechanism, sensitivity) * mechanism.dimension


def _finite_scale(mechanism: MultivariateLaplace) -> float:
    if mechanism.scale == math.inf:
        raise ParameterError("scale", mechanism.scale, "finite: infinite noise cannot be drawn")
    return mechanism.scale


def _scale(mechanism: MultivariateLaplace, sensitivity: float) -> float:
    """Return the scale b of the noise in the units of the query, or raise."""
    scale = _finite_scale(of_kind(mechanism, MultivariateLaplace))
    sensitivity_of(sensitivity)
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

    ``M(D)_i = value_i + k_i`` with ``P(k)`` proportional to ``exp(-k^2 / (2 sigma^2))``, sigma up
    to ``2^44`` in units of the integers, each of these up to ``2^62`` in size; floats are refused
    (Canonne, Kamath and Steinke, NeurIPS 2020).

    Guarantees:
        The mechanism's where neighbouring data sets differ in one of the integers, by at most
        ``mechanism.sensitivity``: a single count, or a histogram under add-remove. Where they may
        differ in k integers, each by so much, as a histogram's two under replace-one, it is that
        of ``mechanism ** k``: say ``entries=k``, and that is charged.

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
    """Return integers plus two-sided geometric noise (discrete Laplace), independently in each.

    ``P(k)`` is proportional to ``exp(-|k| / scale)``, the scale up to ``2^44`` in units of the
    integers (Ghosh, Roughgarden and Sundararajan, STOC 2009). All else is as for
    ``discrete_gaussian``.
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

    The Poisson numbers have the mean ``variance / 2``, the variance up to ``2^31`` in units of the
    integers squared. Parties whose noises' variances sum up to the mechanism's add up to one
    release of it (Agarwal, Kairouz and Liu, NeurIPS 2021). All else is as for
    ``discrete_gaussian``.
    """
    return _with_integers(of_kind(mechanism, Skellam), value, entries, charge, bits)


def _with_integers(
    mechanism: DiscreteGaussian | DiscreteLaplace | Skellam,
    value: Any,
    entries: int,
    charge: Any,
    bits: Bits,
) -> Integers:
    """Return integers plus noise, once a mechanism is charged for each that may differ."""
    noise = integer_noise(mechanism, bits)
    answer, changed = integers("value", value), _validate.count("entries", entries, ENTRIES)
    whole: Mechanism = mechanism if changed == 1 else mechanism**changed
    book(checked_charge(charge), whole)
    return answer + noise(answer.size).reshape(answer.shape)


def integer_noise(
    mechanism: DiscreteGaussian | DiscreteLaplace | Skellam, bits: Bits
) -> Callable[[int], Integers]:
    """Return what draws a mechanism's noise, at the larger reading of its parameter."""
    sampler: Callable[..., Integers]
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
