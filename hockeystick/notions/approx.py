"""Approximate differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick.mechanisms import Mechanism
from hockeystick.notions._amplified import amplified
from hockeystick.notions._groups import worst_group
from hockeystick.notions.base import Notion, Origin, checked_origin, group_size
from hockeystick.numerics import largest_reading
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import DIGITS, as_mpf, evaluated_up, float_up, product_up
from hockeystick.numerics.working_precision import working_digits

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

        Raises:
            ParameterError: If the size is no such integer.

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
            ParameterError: If the size is no such integer.
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

        Raises:
            ParameterError: If the rate is no such number.

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
