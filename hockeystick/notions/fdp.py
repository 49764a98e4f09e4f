"""f-DP, and its Gaussian case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions.base import MU, Notion, Origin, checked_origin, group_size
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import product_up
from hockeystick.tradeoffs import TradeOff


@final
@dataclass(frozen=True, slots=True, init=False)
class GDP(Notion):
    """mu-GDP: no easier to tell from neighbours than N(0, 1) from N(mu, 1).

    ``T(M(D), M(D')) >= G_mu`` with ``G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)``.

    Guarantees:
        Any function of the output is mu-GDP too. As part of a plan it costs what the Gaussian
        mechanism with noise multiplier 1/mu costs: exact for the class.

    Edge cases:
        mu 0 releases nothing; inf may release everything.

    Args:
        mu: In [0, inf].
        origin: How a conversion came to it.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, definition 2.6.

    Example:
        >>> import hockeystick as hs
        >>> hs.GDP(mu=0.5).group(3)
        GDP(mu=1.5)
    """

    rises_with = ("mu",)

    mu: float

    def __init__(self, mu: float, *, origin: Origin | None = None) -> None:
        object.__setattr__(self, "mu", _validate.real("mu", mu, MU))
        object.__setattr__(self, "origin", checked_origin(origin))

    @property
    def _guarantee(self) -> str:
        return f"{plain(self.mu)}-GDP"

    def group(self, size: int) -> GDP:
        """Return the guarantee for groups of g records: ``g mu``, rounded up.

        Args:
            size: The number g of records, an integer >= 1.

        References:
            Dong, Roth and Su 2022, theorem 2.14 and what follows it.
        """
        return GDP(product_up(group_size(size), self.mu))

    def for_group(self, size: int) -> GDP:
        """Return the guarantee for a group: it is attained."""
        return self.group(size)


@final
@dataclass(frozen=True, slots=True, init=False)
class FDP(Notion):
    """f-DP: no test of the output misses less often than f allows.

    ``T(M(D), M(D')) >= f`` for all neighbours D, D' in both orders.

    Guarantees:
        Any function of the output is f-DP too. An asymmetric f is for one order of each two
        neighbours, always the same, and its inverse for the other.

    A mechanism of your own, by the probabilities p and q of its outcomes under two neighbours, is
    ``FDP(tradeoffs.discrete_tradeoff(p, q))``; by its (epsilon, delta) pairs,
    ``FDP(tradeoffs.tradeoff_of_deltas(pairs))``.

    Args:
        tradeoff: The trade-off function f.
        origin: How a conversion came to it.

    Raises:
        ParameterError: If it is no trade-off function.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, definition 2.3.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.FDP(hs.tradeoffs.GaussianTradeOff(1)).group(2))
        f-DP release (GaussianTradeOff)
    """

    tradeoff: TradeOff

    def __init__(self, tradeoff: TradeOff, *, origin: Origin | None = None) -> None:
        if not isinstance(tradeoff, TradeOff):
            raise ParameterError("tradeoff", tradeoff, "a trade-off function")
        object.__setattr__(self, "tradeoff", tradeoff)
        object.__setattr__(self, "origin", checked_origin(origin))

    @property
    def expanded(self) -> Mechanism:
        """The plan whose trade-off function it is; itself where none is known."""
        release = self.tradeoff.release
        return release if isinstance(release, Mechanism) else self

    @property
    def _guarantee(self) -> str:
        return f"f-DP with f a {type(self.tradeoff).__name__}"

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "f-DP release", (type(self.tradeoff).__name__,)

    def group(self, size: int) -> FDP:
        """Return the guarantee for groups of g records: ``1 - (1 - f)^og``, from below.

        An asymmetric f is symmetrized first, since of a group some records may come and others go.

        Args:
            size: The number g of records, an integer >= 1.

        References:
            Dong, Roth and Su 2022, theorem 2.14.
        """
        return FDP(self.tradeoff.symmetrize().group(group_size(size)))

    def for_group(self, size: int) -> Mechanism:
        """Return the guarantee for a group, which some f-DP release attains; a plan's for its own.

        Raises:
            ParameterError: If the size is no integer >= 1.
        """
        if group_size(size) == 1:
            return self
        release = self.expanded
        return self.group(size) if release is self else release.for_group(size)

    def subsample(self, rate: float) -> FDP:
        """Return the guarantee on a secret sample of fixed size: ``C_q(f)``.

        It holds under replace-one, q the part of the records that is in the sample.

        Args:
            rate: The sampling probability q, in [0, 1].

        References:
            Dong, Roth and Su 2022, theorem 4.2.
        """
        return FDP(self.tradeoff.subsample(rate))
