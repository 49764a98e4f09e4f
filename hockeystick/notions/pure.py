"""Pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.notions._amplified import amplified
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
        """The guarantee as people write it."""
        return f"{plain(self.epsilon)}-DP"

    def group(self, size: int) -> PureDP:
        """Return the guarantee for groups of g records: ``g epsilon``, rounded up.

        Args:
            size: The number g of records, an integer >= 1.

        Raises:
            ParameterError: If the size is no such integer.
        """
        return PureDP(product_up(group_size(size), self.epsilon))

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
