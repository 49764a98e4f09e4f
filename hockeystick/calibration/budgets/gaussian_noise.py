"""The least Gaussian noise for one (epsilon, delta), and what the classical formula asks for."""

from __future__ import annotations

import math
from typing import Final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.accountants import delta as delta_of
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Gaussian
from hockeystick.numerics import least_reading
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import DIGITS, as_mpf, evaluated_up
from hockeystick.numerics.working_precision import working_digits

_EPSILON: Final = Domain(symbol="eps", low=0, high=1e15, typical=(0.01, 20))
_OPEN_DELTA: Final = Domain(
    symbol="delta", low=0, high=1, low_open=True, high_open=True, typical=(1e-12, 1e-4)
)
_BELOW_ONE: Final = Domain(
    symbol="eps", low=0, high=1, low_open=True, high_open=True, typical=(0.01, 0.9)
)
_WHY: Final = (
    "; the theorem is proven for these alone, and fails for large epsilons: at delta = 1e-5 from "
    "8.42 on. gaussian_noise(epsilon, delta) holds for all, with less noise"
)
_TOLERANCE: Final = 2.0**-52
_LARGEST_LOG_NOISE: Final = 700.0
_LEAST_FLOAT: Final = 5e-324


def gaussian_noise(epsilon: float, delta: float) -> float:
    """Return the least noise multiplier for which Gaussian noise is (epsilon, delta)-DP.

    With ``mu = 1 / noise_multiplier`` it is where ``Phi(mu/2 - epsilon/mu) - e^epsilon
    Phi(-mu/2 - epsilon/mu) = delta``.

    Guarantees:
        ``hs.Gaussian(gaussian_noise(epsilon, delta))`` is proven to be (epsilon, delta)-DP: rounded
        up, by some units in the last place.

    Edge cases:
        delta = 0 takes infinite noise, and delta = 1 none. epsilon = 0 is allowed.

    Args:
        epsilon: In [0, 10^15].
        delta: In [0, 1].

    Returns:
        The standard deviation of the noise over the L2 sensitivity, an upper bound of the least.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018,
        theorem 8.

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.calibration.gaussian_noise(1, 1e-5):.6f}")
        3.730632
    """
    eps = _validate.real("epsilon", epsilon, _EPSILON)
    target = _validate.real("delta", delta)
    if target == 0.0:
        return math.inf
    if target == 1.0:
        return 0.0

    def excess(log_noise: float) -> float:
        found = _delta(math.exp(log_noise), eps)
        # A delta that is rounded up to the least float there is says nothing of the noise.
        known = found > max(target * 1e-300, _LEAST_FLOAT)
        return math.log(target / found) if known else math.inf

    noise = math.exp(
        increasing_root(excess, 0.0, tolerance=_TOLERANCE, farthest=_LARGEST_LOG_NOISE)
    )
    slack = 2.0**-52
    noise *= 1.0 - 8.0 * slack
    while _delta(noise, eps) > target:
        noise, slack = noise * (1.0 + slack), 1.25 * slack
    return noise


def classical_gaussian_noise(epsilon: float, delta: float) -> float:
    """Return the noise multiplier that the classical theorem asks for.

    ``sqrt(2 ln(1.25/delta)) / epsilon``, for epsilon below 1.

    Guarantees:
        ``hs.Gaussian`` with this noise is (epsilon, delta)-DP; it is more noise than
        ``gaussian_noise`` asks for: 4.85 rather than 3.74 just below epsilon = 1 at delta = 1e-5.
        Rounded up.

    Edge cases:
        epsilon >= 1 is refused: the theorem is proven below 1, although it is often stated without
        the condition. At delta = 1e-5 the noise is enough up to epsilon = 8.41977 and too little
        beyond: at epsilon = 10 its delta is 2.265e-5.

    Args:
        epsilon: In (0, 1).
        delta: In (0, 1).

    Returns:
        The standard deviation of the noise over the L2 sensitivity.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, theorem A.1.

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.calibration.classical_gaussian_noise(0.5, 1e-5):.6f}")
        9.689611
    """
    if not _BELOW_ONE.contains(epsilon):
        raise ParameterError("epsilon", epsilon, _BELOW_ONE.allowed + _WHY)
    eps = _validate.real("epsilon", epsilon, _BELOW_ONE)
    target = _validate.real("delta", delta, _OPEN_DELTA)
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        ratio = mp.mpf("1.25") / as_mpf(least_reading(target))
        return evaluated_up(mp.sqrt(2 * mp.log(ratio)) / as_mpf(least_reading(eps)))


def _delta(noise: float, epsilon: float) -> float:
    """Return the upper end of delta of Gaussian noise."""
    return delta_of(Gaussian(noise), epsilon=epsilon, accountant="closed-form").upper
