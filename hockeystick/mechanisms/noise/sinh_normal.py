"""The sinh-normal mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import NoGroupFormError, ParameterError
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import product_up, quotient_down

_RHO: Final = Domain(symbol="rho", low=0, high=math.inf, low_open=True, typical=(1e-3, 0.9))
_WIDTH: Final = Domain(
    symbol="A", low=0, high=math.inf, low_open=True, high_open=True, typical=(50, 1000)
)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class SinhNormal(AnyAdjacency):
    """A query's answer plus sinh-normal noise: Gaussian in the middle, with much lighter tails.

    M(D) = query(D) + A arsinh(N(0, 1/(2 rho)) / A), both in units of the query's sensitivity, with
    ``A = width``. Outputs beyond A are doubly exponentially rare, at about the privacy of Gaussian
    noise of the same variance ``1/(2 rho)``, to which it tends as the width grows.

    Guarantees:
        Exact for a scalar query that reaches its sensitivity, and an upper bound for every other.
        The theorem of the reference, (16 rho, A/8)-tCDP, is grossly loose and not used; its
        condition ``1/sqrt(rho) <= A`` makes the privacy loss strictly increasing in the output, so
        that the whole distribution of the loss is known. Its other condition, ``rho < 1``, is not
        needed. The cost rises with rho and falls with the width.

    Edge cases:
        rho inf releases the answer itself. Renyi divergences are finite for the orders below
        ``1 + 1/(exp(2/A) - 1)`` only.

    Args:
        rho: Half of one over the variance of the Gaussian inside, in (0, inf].
        width: Scale A of the tails, a finite number of at least 1/sqrt(rho).

    References:
        Bun, Dwork, Rothblum and Steinke, "Composable and Versatile Privacy via Truncated CDP",
        STOC 2018, section 4 (the sinh-normal noise).

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.delta(hs.mechanisms.SinhNormal(rho=0.1, width=40), epsilon=1).upper:.12f}")
        0.003370163333
    """

    rises_with = ("rho",)
    falls_with = ("width",)

    rho: float
    width: float

    def __init__(self, rho: float, width: float) -> None:
        object.__setattr__(self, "rho", _validate.real("rho", rho, _RHO))
        object.__setattr__(self, "width", _validate.real("width", width, _WIDTH))
        if self.rho == math.inf:
            return
        if decimal(self.rho) * decimal(self.width) ** 2 < 1:
            raise ParameterError("width", width, f"at least 1/sqrt(rho), for rho = {self.rho:g}")

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"Fresh sinh-normal noise (rho {plain(self.rho)}, width {plain(self.width)}) is added, "
            "in units of the scalar query's sensitivity.",
        )

    def for_group(self, size: int) -> SinhNormal:
        """Return the mechanism whose noise is ``size`` times smaller."""
        rho, width = product_up(size * size, self.rho), quotient_down(self.width, size)
        try:
            return SinhNormal(rho, width)
        except ParameterError:
            # Next to the least width, rounding may lead out of the domain.
            raise NoGroupFormError(
                f"the noise of a {self} is too narrow for groups of {size}: the width over it "
                "must be that of a sinh-normal mechanism"
            ) from None

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "sinh-normal", (f"rho {self.rho:g}", f"width {self.width:g}")
