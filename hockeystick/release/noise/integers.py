"""Discrete noise on integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.noise.integer_noise import DiscreteGaussian, DiscreteLaplace, Skellam
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release import samplers
from hockeystick.release._values import integers, of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.samplers.rounded import SCALE
from hockeystick.release.samplers.tables import VARIANCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENTRIES: Final = whole_numbers("k", 1, (1, 100))


def discrete_gaussian(
    mechanism: DiscreteGaussian,
    value: Any,
    *,
    entries: int = 1,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.int64]:
    """Return integers plus discrete Gaussian noise, independently in each.

    ``M(D)_i = value_i + k_i`` with ``P(k)`` proportional to ``exp(-k^2 / (2 sigma^2))``, sigma up
    to ``2^44`` in units of the integers, each of these up to ``2^62`` in size; floats are refused.

    Guarantees:
        The mechanism's where neighbouring data sets differ in one of the integers, by at most
        ``mechanism.sensitivity``: a single count, or a histogram under add-remove. Where they may
        differ in k integers, each by so much, as a histogram's two under replace-one, it is that
        of ``mechanism ** k``: say ``entries=k``, and that is charged.

    References:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020.

    Example:
        >>> import hockeystick as hs
        >>> account = hs.Accountant()
        >>> noise = hs.DiscreteGaussian(sigma=2)
        >>> hs.release.discrete_gaussian(noise, [12, 0, 7], entries=2, charge=account).shape
        (3,)
        >>> print(account.plan)
        discrete Gaussian (sigma 2) x 2
    """
    own = of_kind(mechanism, DiscreteGaussian)
    noise = _noise("sigma", own.sigma, SCALE, samplers.discrete_gaussian, bits)
    return _released(own, value, entries, charge, noise)


def geometric(
    mechanism: DiscreteLaplace,
    value: Any,
    *,
    entries: int = 1,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.int64]:
    """Return integers plus two-sided geometric noise (discrete Laplace), independently in each.

    ``P(k)`` is proportional to ``exp(-|k| / scale)``, the scale up to ``2^44`` in units of the
    integers. Values, entries and guarantee are as for ``discrete_gaussian``.

    References:
        Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms",
        STOC 2009.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.geometric(hs.DiscreteLaplace(scale=2), [12, 0]).dtype
        dtype('int64')
    """
    own = of_kind(mechanism, DiscreteLaplace)
    noise = _noise("scale", own.scale, SCALE, samplers.discrete_laplace, bits)
    return _released(own, value, entries, charge, noise)


def skellam(
    mechanism: Skellam,
    value: Any,
    *,
    entries: int = 1,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> NDArray[np.int64]:
    """Return integers plus Skellam noise, the difference of two Poisson numbers, in each.

    The Poisson numbers have the mean ``variance / 2``, the variance up to ``2^31`` in units of the
    integers squared. Parties whose noises' variances sum up to the mechanism's add up to one
    release of it. Values, entries and guarantee are as for ``discrete_gaussian``. The first draw of
    a variance makes a table of some 20 entries per standard deviation, of some microseconds each.

    References:
        Agarwal, Kairouz and Liu, "The Skellam Mechanism for Differentially Private Federated
        Learning", NeurIPS 2021.

    Example:
        >>> import hockeystick as hs
        >>> hs.release.skellam(hs.mechanisms.Skellam(variance=30), [12, 0]).shape
        (2,)
    """
    own = of_kind(mechanism, Skellam)
    noise = _noise("variance", own.variance, VARIANCE, samplers.skellam, bits)
    return _released(own, value, entries, charge, noise)


_Noise = Callable[[int], "NDArray[np.int64]"]


def _noise(
    name: str, parameter: float, domain: Domain, sampler: Callable[..., Any], bits: Bits
) -> _Noise | None:
    """Return what draws noise of a parameter, or of the decimal above it; None without noise."""
    if parameter == 0.0:
        return None
    scale = float_up(largest_reading(_validate.real(name, parameter, domain)))
    return lambda size: sampler(scale, size, bits=bits)


def _released(
    mechanism: Mechanism, value: Any, entries: int, charge: Any, noise: _Noise | None
) -> NDArray[np.int64]:
    """Return integers plus noise, once a mechanism is charged for each that may differ."""
    answer, changed = integers("value", value), _validate.count("entries", entries, ENTRIES)
    book(checked_charge(charge), mechanism if changed == 1 else mechanism**changed)
    return answer if noise is None else answer + noise(answer.size).reshape(answer.shape)
