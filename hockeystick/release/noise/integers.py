"""Discrete noise on integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.noise.discrete_gaussian import DiscreteGaussian
from hockeystick.mechanisms.noise.discrete_laplace import DiscreteLaplace
from hockeystick.mechanisms.noise.skellam import Skellam
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release import samplers
from hockeystick.release._values import integers, of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.samplers.poisson import VARIANCE
from hockeystick.release.samplers.rounded import SCALE

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

    ``M(D)_i = value_i + k_i`` with ``P(k)`` proportional to ``exp(-k^2 / (2 sigma^2))``, sigma in
    units of the integers, as in the mechanism.

    Guarantees:
        That of the mechanism, where neighbouring data sets differ in one of the integers, by at
        most ``mechanism.sensitivity``: a single count, or a histogram under add-remove. Where they
        may differ in k integers, each by so much, as a histogram's two under replace-one, it is
        that of ``mechanism ** k``: say ``entries=k``, and that is charged. Noise is drawn exactly
        if the bits are ideal, so that nothing depends on floats; sigma is the larger one of the
        float and the decimal that it prints as.

    Edge cases:
        Sigma 0 returns the integers themselves. An empty array is charged as any other.

    Args:
        mechanism: The discrete Gaussian mechanism, of a sigma of at most ``2^44``.
        value: The query's answer, integers of any shape, each up to ``2^62`` in size. Floats are
            refused, whole ones too.
        entries: The largest number k of integers in which neighbouring data sets differ.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of 64-bit integers of the value's shape.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

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

    ``M(D)_i = value_i + k_i`` with ``P(k)`` proportional to ``exp(-|k| / scale)``, the scale in
    units of the integers, as in the mechanism.

    Guarantees:
        That of the mechanism, as for ``discrete_gaussian``: where neighbouring data sets differ in
        one of the integers, by at most ``mechanism.sensitivity``; that of ``mechanism ** k`` with
        ``entries=k``.

    Edge cases:
        Scale 0 returns the integers themselves.

    Args:
        mechanism: The discrete Laplace mechanism, of a scale of at most ``2^44``.
        value: As for ``discrete_gaussian``.
        entries: As for ``discrete_gaussian``.
        charge: As for ``discrete_gaussian``.
        bits: As for ``discrete_gaussian``.

    Returns:
        An array of 64-bit integers of the value's shape.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

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

    ``M(D)_i = value_i + a_i - b_i`` with Poisson numbers of mean ``variance / 2``, in units of the
    integers squared, as in the mechanism. Parties that add noise of variances that sum up to the
    mechanism's add up to one release of it.

    Guarantees:
        That of the mechanism, as for ``discrete_gaussian``: where neighbouring data sets differ in
        one of the integers, by at most ``mechanism.sensitivity``; that of ``mechanism ** k`` with
        ``entries=k``.

    Edge cases:
        Variance 0 returns the integers themselves. The first draw of a variance makes a table of
        some 20 entries per standard deviation, of some microseconds each.

    Args:
        mechanism: The Skellam mechanism, of a variance of at most ``2^31``.
        value: As for ``discrete_gaussian``.
        entries: As for ``discrete_gaussian``.
        charge: As for ``discrete_gaussian``.
        bits: As for ``discrete_gaussian``.

    Returns:
        An array of 64-bit integers of the value's shape.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

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
