"""Pure differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.mechanisms import Mechanism
from hockeystick.notions._amplified import amplified
from hockeystick.notions._groups import worst_group
from hockeystick.notions.base import Notion, Origin, checked_origin, group_size
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import product_up


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

    Raises:
        ParameterError: If epsilon is no such number.

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

        Raises:
            ParameterError: If the size is no such integer.
        """
        return PureDP(product_up(group_size(size), self.epsilon))

    def for_group(self, size: int) -> Mechanism:
        """Return the worst release for groups of g records, which some epsilon-DP release attains.

        It is told apart like discrete Laplace noise of scale ``1/epsilon`` at distance g: its
        epsilon at delta 0 is ``g epsilon``, as that of ``group``, and at any other delta less.

        Args:
            size: The number g of records, an integer from 1 to 50.

        Raises:
            ParameterError: If the size is no such integer.
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

        Raises:
            ParameterError: If the rate is no such number.

        References:
            Balle, Barthe and Gaboardi, "Privacy Amplification by Subsampling", 2018, theorems 8, 9.
        """
        return PureDP(amplified(self.epsilon, _validate.real("rate", rate)))
