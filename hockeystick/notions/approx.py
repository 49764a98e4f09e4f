"""Pure and approximate differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick.errors import NoGroupFormError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions.base import Notion, Origin, checked_origin, group_size
from hockeystick.notions.fdp import FDP
from hockeystick.numerics import ULP, largest_reading
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import (
    DIGITS,
    as_mpf,
    evaluated_up,
    float_up,
    fraction_of,
    product_up,
)
from hockeystick.numerics.working_precision import working_digits
from hockeystick.tradeoffs.operations.group import approximate_group


def amplified(epsilon: float, rate: float) -> float:
    """Return ``ln(1 + q (e^epsilon - 1))``, rounded up but not above epsilon."""
    if rate in (0.0, 1.0) or epsilon in (0.0, math.inf):
        return epsilon if rate > 0.0 else 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        largest, often = as_mpf(largest_reading(epsilon)), as_mpf(largest_reading(rate))
        value = mp.log1p(often * mp.expm1(largest))
        return min(evaluated_up(value), epsilon)


# The largest group, whose polygon has up to twice as many sides, and the largest loss of one.
_MOST: Final = 50
_LARGEST: Final = 600.0


def worst_group(one: Notion, epsilon: float, delta: float, size: int) -> FDP:
    """Return the guarantee of a group of at least 2, which is attained, or raise.

    Args:
        one: The guarantee for one record.
        epsilon: Its epsilon, finite.
        delta: Its delta, below 1.
        size: How many records are in the group.
    """
    g = group_size(size)
    if g > _MOST or (g + 1) * epsilon > _LARGEST:
        raise NoGroupFormError(
            f"what a {one} costs groups of {g:,} is not computed exactly beyond groups of {_MOST} "
            f"and (g + 1) epsilon {_LARGEST:g}; .group({g}) has a bound: {one.group(g)}"
        )
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        power = mp.exp(as_mpf(largest_reading(epsilon)))
        # Above what 40 digits lose.
        above = fraction_of(power * (1 + mp.mpf(10) ** (3 - DIGITS)))
    growth = above if epsilon else Fraction(1)
    error = 8.0 * ULP * (1.0 + g * (1.0 + epsilon))
    return FDP(approximate_group(growth, largest_reading(delta), g, relative_error=error))


@final
@dataclass(frozen=True, slots=True, init=False)
class PureDP(Notion):
    """epsilon-DP: no outcome is more than e^epsilon times as likely without the record.

    ``P(M(D) in S) <= e^epsilon P(M(D') in S)`` for all neighbours D, D' and all S.

    Guarantees:
        Any function of the output is epsilon-DP too. As part of a plan it costs what randomized
        response of that epsilon costs, which no epsilon-DP release exceeds: exact for the class.

    Edge cases:
        epsilon 0 releases nothing; inf may release everything.

    Args:
        epsilon: In [0, inf].
        origin: How a conversion came to it.

    References:
        Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data
        Analysis", 2006; Kairouz, Oh and Viswanath, "The Composition Theorem for Differential
        Privacy", 2017, theorem 2.

    Example:
        >>> import hockeystick as hs
        >>> hs.PureDP(epsilon=0.5).group(3)
        PureDP(epsilon=1.5)
    """

    rises_with = ("epsilon",)

    epsilon: float

    def __init__(self, epsilon: float, *, origin: Origin | None = None) -> None:
        object.__setattr__(self, "epsilon", _validate.real("epsilon", epsilon))
        object.__setattr__(self, "origin", checked_origin(origin))

    @property
    def _guarantee(self) -> str:
        return f"{plain(self.epsilon)}-DP"

    def group(self, size: int) -> PureDP:
        """Return the guarantee for groups of g records: ``g epsilon``, rounded up.

        Args:
            size: The number g of records, an integer >= 1.
        """
        return PureDP(product_up(group_size(size), self.epsilon))

    def for_group(self, size: int) -> Mechanism:
        """Return the worst release for groups of g records, which some epsilon-DP release attains.

        It is told apart like discrete Laplace noise of scale ``1/epsilon`` at distance g: its
        epsilon at delta 0 is ``g epsilon``, as that of ``group``, and at any other delta less.

        Args:
            size: The number g of records, an integer from 1 to 50.

        Raises:
            NoGroupFormError: If the group is larger, or ``(g + 1) epsilon`` above 600.

        References:
            Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, theorem 2.14.

        Example:
            >>> import hockeystick as hs
            >>> grown = hs.PureDP(0.1).for_group(4)
            >>> print(f"{hs.delta(grown, epsilon=0.2).upper:.7f}")
            0.0951626
        """
        if group_size(size) == 1 or self.epsilon in (0.0, math.inf):
            return self
        return worst_group(self, self.epsilon, 0.0, size)

    def subsample(self, rate: float) -> PureDP:
        """Return the guarantee on a secret random sample: ``ln(1 + q (e^epsilon - 1))``.

        It holds for Poisson sampling with probability q under add-remove, and for a sample of m of
        n records, q = m/n, under replace-one; for the same neighbours as the guarantee itself.

        Args:
            rate: The sampling probability q, in [0, 1].

        Returns:
            The guarantee, rounded up.

        References:
            Balle, Barthe and Gaboardi, "Privacy Amplification by Subsampling", 2018, theorems 8, 9.
        """
        return PureDP(amplified(self.epsilon, _validate.real("rate", rate)))


# Beyond this exponent even the least float times the power of e is above 1.
_LARGEST_EXPONENT: Final = 800.0


@final
@dataclass(frozen=True, slots=True, init=False)
class ApproxDP(Notion):
    """(epsilon, delta)-DP: epsilon-DP but for a probability of delta.

    ``P(M(D) in S) <= e^epsilon P(M(D') in S) + delta`` for all neighbours D, D' and all S.

    Guarantees:
        Any function of the output is (epsilon, delta)-DP too. As part of a plan it costs what a
        release costs that reveals everything with probability delta and is randomized response of
        that epsilon otherwise, which no (epsilon, delta)-DP release exceeds: exact for the class.

    Edge cases:
        delta 0 is epsilon-DP; delta 1 or epsilon inf may release everything.

    Args:
        epsilon: In [0, inf].
        delta: In [0, 1].
        origin: How a conversion came to it.

    Raises:
        ParameterError: If a parameter is no number of its domain.

    References:
        Dwork, Kenthapadi, McSherry, Mironov and Naor, "Our Data, Ourselves", 2006; Kairouz, Oh and
        Viswanath, "The Composition Theorem for Differential Privacy", 2017, theorem 2.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.ApproxDP(epsilon=1, delta=1e-6).group(3))
        (3, 1.1107337927389697e-05)-DP release
    """

    rises_with = ("epsilon", "delta")

    epsilon: float
    delta: float

    def __init__(self, epsilon: float, delta: float, *, origin: Origin | None = None) -> None:
        object.__setattr__(self, "epsilon", _validate.real("epsilon", epsilon))
        object.__setattr__(self, "delta", _validate.real("delta", delta))
        object.__setattr__(self, "origin", checked_origin(origin))

    @property
    def _guarantee(self) -> str:
        return f"({plain(self.epsilon)}, {plain(self.delta)})-DP"

    def group(self, size: int) -> ApproxDP:
        """Return the guarantee for groups of g records, rounded up.

        ``(g epsilon, delta (e^(g epsilon) - 1) / (e^epsilon - 1))``: delta times
        ``1 + e^epsilon + ... + e^((g-1) epsilon)``. The looser ``g e^((g-1) epsilon) delta`` holds
        too; the ``g e^(g-1) delta`` printed in some lecture notes does not: epsilon = 2 and g = 2
        need ``(e^2 + 1) delta = 8.39 delta``, and it says ``5.44 delta``.

        Args:
            size: The number g of records, an integer >= 1.

        References:
            Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, theorem
            2.2; Dong, Roth and Su 2022, theorem 2.14, whose ``1 - (1 - f)^og`` has this delta.
        """
        g = group_size(size)
        return ApproxDP(product_up(g, self.epsilon), self._group_delta(g))

    def for_group(self, size: int) -> Mechanism:
        """Return the worst release for groups of g records, which some such release attains.

        It is ``(g epsilon, delta')``-DP with the delta' of ``group``, at any other epsilon less
        than that would allow, and never more than everything.

        Args:
            size: The number g of records, an integer from 1 to 50.

        Raises:
            NoGroupFormError: If the group is larger, or ``(g + 1) epsilon`` above 600.

        References:
            Dong, Roth and Su 2022, theorem 2.14.

        Example:
            >>> import hockeystick as hs
            >>> grown = hs.ApproxDP(epsilon=1, delta=1e-10).for_group(4)
            >>> print(f"{hs.delta(grown, epsilon=4).upper:.3e}")
            3.119e-09
        """
        if group_size(size) == 1 or self.epsilon == math.inf or self.delta == 1.0:
            return self
        return worst_group(self, self.epsilon, self.delta, size)

    def subsample(self, rate: float) -> ApproxDP:
        """Return the guarantee on a secret random sample: ``(ln(1 + q (e^epsilon - 1)), q delta)``.

        It holds for Poisson sampling with probability q under add-remove, and for a sample of m of
        n records, q = m/n, under replace-one; for the same neighbours as the guarantee itself.

        Args:
            rate: The sampling probability q, in [0, 1].

        Returns:
            The guarantee, rounded up.

        References:
            Balle, Barthe and Gaboardi, "Privacy Amplification by Subsampling", 2018, theorems 8, 9.
        """
        q = _validate.real("rate", rate)
        return ApproxDP(
            amplified(self.epsilon, q), float_up(largest_reading(q) * largest_reading(self.delta))
        )

    def _group_delta(self, g: int) -> float:
        """Return delta times the sum of the powers of e^epsilon, rounded up."""
        if self.delta == 0.0 or g == 1:
            return self.delta
        if self.epsilon == 0.0:
            return min(product_up(g, self.delta), 1.0)
        if (g - 1) * self.epsilon > _LARGEST_EXPONENT or self.epsilon == math.inf:
            return 1.0
        from hockeystick.numerics.multiprecision import mp

        with working_digits(DIGITS):
            epsilon = as_mpf(largest_reading(self.epsilon))
            value = as_mpf(largest_reading(self.delta)) * mp.expm1(g * epsilon) / mp.expm1(epsilon)
            return min(evaluated_up(value), 1.0)
