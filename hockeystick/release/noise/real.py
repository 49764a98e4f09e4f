"""Gaussian and Laplace noise on arrays of real numbers, exact in floats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.noise.laplace import Laplace, MultivariateLaplace
from hockeystick.numerics.working_precision import working_digits
from hockeystick.release._values import grid_of, numbers, of_kind, released, root_up, sensitivity_of
from hockeystick.release.charging import Charged
from hockeystick.release.samplers import (
    Bits,
    rounded_gaussian,
    rounded_laplace,
    rounded_multivariate_laplace,
    secret_bits,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


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
        3. ``round(N)`` is drawn exactly (``samplers.rounded_gaussian``). Scaling by g, and rounding
           to a float above ``2^53`` g, is post-processing.

        The step g depends on S, z and d, never on the data. Rounding costs at most ``2^-16`` of the
        noise; a multiplier above ``2^23`` or so makes g larger, and the noise with it. Float and
        decimal readings of z and S are both covered.

        S bounds the distance of the *floats* given. A sum of clipped floats, summed as floats, may
        move further than the clipping norm: sum integers or multiples of a power of two, or add
        to S what the sum may round.

    Args:
        mechanism: Of a finite noise multiplier; 0 returns the array itself.
        value: The query's answer, numbers of any shape in its own unit: integers up to ``2^53`` or
            floats, each up to ``2^62 g`` in size (some ``10^12`` S for a single number).
        sensitivity: The largest L2 distance S of answers on neighbouring data sets, all entries
            together, in the answer's unit; a finite number > 0.

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
    noise = known.noise_multiplier
    grid = grid_of(known, noise, sensitivity, root_up(answer.size))

    def draw(size: int) -> NDArray[np.int64]:
        return rounded_gaussian(grid.scale, size, bits=bits)

    return released(grid, answer, known, charge, draw if noise else None)


def laplace(
    mechanism: Laplace,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return an array plus Laplace noise, as private in floats as the mechanism is in reals.

    With b the mechanism's finite scale, S the largest *L1* distance of answers, and all else as for
    ``gaussian``, it is

        g (round(value / g) + round(L)),  L_i ~ Laplace(s) independently,  s >= b (S / g + d).

    Rounding to the grid moves the L1 distance of neighbouring answers by at most ``g d``, to which
    the noise is scaled; g is smaller for more than 16 entries. Scale 0 returns the array itself.

    References:
        Dwork, McSherry, Nissim and Smith, TCC 2006; Mironov 2012 (the attack on floats).

    Example:
        >>> import hockeystick as hs
        >>> float(hs.release.laplace(hs.Laplace(scale=2), 41.5, sensitivity=1)) != 41.5
        True
    """
    known, answer = of_kind(mechanism, Laplace), numbers("value", value)
    grid = grid_of(known, known.scale, sensitivity, max(answer.size, 1))

    def draw(size: int) -> NDArray[np.int64]:
        return rounded_laplace(grid.scale, size, bits=bits)

    return released(grid, answer, known, charge, draw if known.scale else None)


def multivariate_laplace(
    mechanism: MultivariateLaplace,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.float64]:
    """Return a vector plus noise of the density ``~ exp(-|z|/b)``, as private in floats as in R^n.

    With n the dimension, s the mechanism's finite scale, S the largest L2 distance of answers that
    are to be indistinguishable, and all else as for ``gaussian``, it is

        g (round(value / g) + round(Z)),  Z ~ exp(-|z|/b) on R^n,  b >= s (S / g + ceil(sqrt(n))).

    ``round(Z)`` is drawn exactly (``samplers.rounded_multivariate_laplace``). Scale 0 returns the
    vector itself.

    References:
        Fernandes, Dras and McIver, "Generalised Differential Privacy for Text Document
        Processing", POST 2019; Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group Privacy for
        Personalized Federated Learning", 2022.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.MultivariateLaplace(scale=0.5, dimension=3)
        >>> hs.release.multivariate_laplace(noise, [1.0, 2.0, 3.0], sensitivity=1).shape
        (3,)
    """
    known, answer = of_kind(mechanism, MultivariateLaplace), numbers("value", value)
    if answer.shape != (known.dimension,):
        allowed = f"a vector of {known.dimension} numbers"
        raise ParameterError("value", f"an array of shape {answer.shape}", allowed)
    _finite_scale(known)
    grid = grid_of(known, known.scale, sensitivity, root_up(known.dimension))

    def draw(size: int) -> NDArray[np.int64]:
        return rounded_multivariate_laplace(grid.scale, size, bits=bits)

    return released(grid, answer, known, charge, draw if known.scale else None)


def multivariate_laplace_log_density(
    mechanism: MultivariateLaplace, sensitivity: float, points: ArrayLike
) -> NDArray[np.float64]:
    """Return ``ln K - |z| / b``, ``K = Gamma(n/2) / (2 pi^(n/2) Gamma(n) b^n)``, at points of R^n.

    b is the mechanism's scale, > 0, times the L2 sensitivity; points are vectors along the last
    axis. Right to some units in the last place of the larger term, however many the dimensions.

    References:
        Galli, Biswas, Jung, Cucinotta and Palamidessi 2022, lemma 2.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release import multivariate_laplace_log_density
        >>> noise = hs.mechanisms.MultivariateLaplace(scale=1, dimension=2)
        >>> float(multivariate_laplace_log_density(noise, 1.0, [0.0, 0.0]))  # ln(1 / (2 pi))
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
    """
    scale = _scale(mechanism, sensitivity)
    return (mechanism.dimension + 1) * scale * scale


def multivariate_laplace_length(mechanism: MultivariateLaplace, sensitivity: float) -> float:
    """Return the mean length of the noise, ``n b``: a Gamma distribution of shape n.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.MultivariateLaplace(scale=0.5, dimension=12)
        >>> hs.release.multivariate_laplace_length(noise, 2.0)
        12.0
    """
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
