"""Multivariate Laplace noise to run: a sampler, the density, and how large the noise is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.multivariate_laplace import MultivariateLaplace
from hockeystick.numerics.working_precision import working_digits
from hockeystick.release._values import of_kind

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_SENSITIVITY: Final = Domain(
    symbol="Delta", low=0, high=math.inf, low_open=True, high_open=True, typical=(0.01, 100)
)
_DRAWS: Final = Domain(symbol="m", low=0, high=10**9, typical=(1, 10**6), whole=True)
_DIGITS: Final = 40


def draw_multivariate_laplace(
    mechanism: MultivariateLaplace, sensitivity: float, rng: np.random.Generator, *, draws: int = 1
) -> NDArray[np.float64]:
    """Return noise of the density ``K exp(-|z| / b)``: a length times a direction.

    The length has a Gamma distribution of shape n and scale ``b = scale * sensitivity``; the
    direction, a Gaussian vector over its length, is uniform on the sphere.

    Guarantees:
        Exact for real numbers. Floats are another matter: which of them can occur depends on the
        value that the noise is added to, and what is added leaves traces in the low bits. It is
        for simulation, and for models in which that is accepted.

    Edge cases:
        Scale 0 gives zeros. No draws give an empty array.

    Args:
        mechanism: The noise, with a finite scale.
        sensitivity: The L2 sensitivity in the units of the query, a finite number > 0.
        rng: The source of randomness.
        draws: The number of independent vectors, an integer from 0 to 10^9.

    Returns:
        An array of shape (draws, dimension).

    Raises:
        ParameterError: If an argument is none of these.

    References:
        Fernandes, Dras and McIver, "Generalised Differential Privacy for Text Document
        Processing", POST 2019 (the sampler in n dimensions).

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> from hockeystick.release import draw_multivariate_laplace
        >>> noise = hs.mechanisms.MultivariateLaplace(scale=0.5, dimension=3)
        >>> draw_multivariate_laplace(noise, 2.0, np.random.default_rng(1), draws=5).shape
        (5, 3)
    """
    scale = noise_scale(mechanism, sensitivity)
    count = _validate.count("draws", draws, _DRAWS)
    if not isinstance(rng, np.random.Generator):
        raise ParameterError("rng", rng, "a numpy.random.Generator")
    direction = rng.standard_normal((count, mechanism.dimension))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    length = rng.standard_gamma(mechanism.dimension, size=(count, 1)) * scale
    return direction * length


def multivariate_laplace_log_density(
    mechanism: MultivariateLaplace, sensitivity: float, points: ArrayLike
) -> NDArray[np.float64]:
    """Return ``ln K - |z| / b``, ``K = Gamma(n/2) / (2 pi^(n/2) Gamma(n) b^n)``, at points of R^n.

    Guarantees:
        Right to some units in the last place of the larger term, however many the dimensions.

    Args:
        mechanism: The noise, with a finite scale > 0.
        sensitivity: The L2 sensitivity in the units of the query, a finite number > 0.
        points: One vector, or an array of vectors along the last axis.

    Returns:
        The logarithms, in the shape of the other axes; an approximation to float precision.

    Raises:
        ParameterError: If an argument is none of these.

    References:
        Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group Privacy for Personalized Federated
        Learning", 2022, lemma 2.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release import multivariate_laplace_log_density
        >>> noise = hs.mechanisms.MultivariateLaplace(scale=1, dimension=2)
        >>> float(multivariate_laplace_log_density(noise, 1.0, [0.0, 0.0]))  # ln(1 / (2 pi))
        -1.8378770664093456
    """
    scale = noise_scale(mechanism, sensitivity)
    if scale == 0.0:
        raise ParameterError("scale", mechanism.scale, "> 0: without noise there is no density")
    given = np.asarray(points, dtype=np.float64)
    if given.ndim == 0 or given.shape[-1] != mechanism.dimension:
        allowed = f"vectors of {mechanism.dimension} coordinates along the last axis"
        raise ParameterError("points", points, allowed)
    length = np.linalg.norm(given, axis=-1)
    return np.asarray(_log_constant(mechanism.dimension, scale) - length / scale)


def multivariate_laplace_variance(mechanism: MultivariateLaplace, sensitivity: float) -> float:
    """Return the variance of each coordinate of the noise, ``(n + 1) b^2``.

    Guarantees:
        Exact, to float precision: ``E |z|^2 = n (n + 1) b^2``, shared by n coordinates alike.

    Edge cases:
        Scale 0 has none. In one dimension it is that of Laplace noise, ``2 b^2``.

    Args:
        mechanism: The noise, with a finite scale.
        sensitivity: The L2 sensitivity in the units of the query, a finite number > 0.

    Returns:
        The variance.

    Raises:
        ParameterError: If an argument is none of these.

    References:
        Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group Privacy for Personalized Federated
        Learning", 2022, lemma 2 (the distribution of the length).

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release import multivariate_laplace_variance
        >>> multivariate_laplace_variance(
        ...     hs.mechanisms.MultivariateLaplace(scale=2, dimension=3), 1.0
        ... )
        16.0
    """
    scale = noise_scale(mechanism, sensitivity)
    return (mechanism.dimension + 1) * scale * scale


def multivariate_laplace_length(mechanism: MultivariateLaplace, sensitivity: float) -> float:
    """Return the mean length of the noise, ``n b``.

    Guarantees:
        Exact, to float precision: the length has a Gamma distribution of shape n.

    Args:
        mechanism: The noise, with a finite scale.
        sensitivity: The L2 sensitivity in the units of the query, a finite number > 0.

    Returns:
        The mean.

    Raises:
        ParameterError: If an argument is none of these.

    References:
        Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group Privacy for Personalized Federated
        Learning", 2022, lemma 2.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release import multivariate_laplace_length
        >>> multivariate_laplace_length(
        ...     hs.mechanisms.MultivariateLaplace(scale=0.5, dimension=12), 2.0
        ... )
        12.0
    """
    scale = noise_scale(mechanism, sensitivity)
    return mechanism.dimension * scale


def noise_scale(mechanism: MultivariateLaplace, sensitivity: float) -> float:
    """Return the scale b of the noise in the units of the query, or raise."""
    of_kind(mechanism, MultivariateLaplace)
    if mechanism.scale == math.inf:
        raise ParameterError("scale", mechanism.scale, "finite: infinite noise cannot be drawn")
    return mechanism.scale * _validate.real("sensitivity", sensitivity, _SENSITIVITY)


def _log_constant(dimension: int, scale: float) -> float:
    """Return ``ln K``."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(_DIGITS):
        n = mp.mpf(dimension)
        gammas = mp.loggamma(n / 2) - mp.loggamma(n)
        return float(gammas - mp.log(2) - n / 2 * mp.log(mp.pi) - n * mp.log(mp.mpf(scale)))
