"""The seven guarantees: pure, approximate, Gaussian, f-, concentrated and Renyi privacy.

Each is a frozen value, and a release of which nothing else is known.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, Self, final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import IncompatibleError, NoGroupFormError, ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import AnyAdjacency, set_fields
from hockeystick.numerics import ULP, largest_reading
from hockeystick.numerics.multiprecision import working_digits
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import (
    DIGITS,
    as_mpf,
    evaluated_down,
    evaluated_up,
    float_up,
    fraction_of,
    product_up,
    quotient_down,
)
from hockeystick.tradeoffs import TradeOff
from hockeystick.tradeoffs.operations.group import approximate_group

MU: Final = Domain(symbol="mu", low=0, high=math.inf, typical=(0.01, 10))
RHO: Final = Domain(symbol="rho", low=0, high=math.inf, typical=(1e-3, 10))
OMEGA: Final = Domain(symbol="omega", low=1, high=math.inf, low_open=True, typical=(2, 1000))
_SIZE: Final = whole_numbers("g", 1, (1, 100))
_OF_THE_WORST: Final = (
    "A lower end is for the worst release within the guarantee: a mechanism that has it may cost "
    "less."
)


@final
@dataclass(frozen=True, slots=True)
class Origin:
    """How a guarantee came about: by an exact conversion or by a bound, and by which theorem.

    Args:
        kind: "exact" or "bound".
        theorem: Why it holds.
        lower: What ``hockeystick.conversions.lower_ends`` says, where an accountant's interval is
            it; empty otherwise.
    """

    kind: Literal["exact", "bound"]
    theorem: str
    lower: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Notion(AnyAdjacency):
    """A privacy guarantee, which is also a mechanism: a release of which only that is known.

    It composes with everything else. What is accounted is the worst release with the guarantee;
    any function of the output of a release has the release's guarantee too (post-processing).
    Parameters of 0 release nothing; of inf they may release everything. ``origin`` says how a
    conversion came to it; it is not compared and not shown, and None where it was stated.
    """

    origin: Origin | None = field(
        default=None,
        kw_only=True,
        compare=False,
        repr=False,
        metadata={"allowed": "an Origin or None"},
    )

    @property
    def assumptions(self) -> tuple[str, ...]:
        known = f"The release is {self._guarantee}: nothing else is known of it. "
        return (known + _OF_THE_WORST,)

    @property
    @abstractmethod
    def _guarantee(self) -> str:
        """The guarantee as people write it, such as "1-DP"."""

    @abstractmethod
    def group(self, size: int) -> Notion:
        """Return the guarantee for neighbours that differ in g records, rounded up.

        Args:
            size: The number g of records, an integer >= 1.
        """

    def because(self, origin: Origin) -> Self:
        """Return the same guarantee with how it came about."""
        return replace(self, origin=origin)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return f"{self._guarantee} release", ()


def group_size(size: object) -> int:
    """Return the size of a group, or raise."""
    return _validate.count("size", size, _SIZE)


def _amplified(epsilon: float, rate: float) -> float:
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


def _worst_group(one: Notion, epsilon: float, delta: float, size: int) -> FDP:
    """Return what groups cost of a guarantee of finite epsilon and delta < 1, or raise."""
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
@dataclass(frozen=True, slots=True)
class PureDP(Notion):
    """epsilon-DP: no outcome is more than e^epsilon times as likely without the record.

    ``P(M(D) in S) <= e^epsilon P(M(D') in S)`` for all neighbours D, D' and all S.

    Guarantees:
        As part of a plan it costs what randomized response of that epsilon costs, which no
        epsilon-DP release exceeds: exact for the class.

    Args:
        epsilon: In [0, inf].

    References:
        Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data
        Analysis", 2006; Kairouz, Oh and Viswanath, "The Composition Theorem for Differential
        Privacy", 2017, theorem 2.

    Example:
        >>> import hockeystick as hs
        >>> hs.PureDP(epsilon=0.5).group(3)
        PureDP(epsilon=1.5)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("epsilon",)
    epsilon: float

    @property
    def _guarantee(self) -> str:
        return f"{plain(self.epsilon)}-DP"

    def group(self, size: int) -> PureDP:
        """Return ``g epsilon``-DP, rounded up."""
        return PureDP(product_up(group_size(size), self.epsilon))

    def for_group(self, size: int) -> Mechanism:
        """Return the worst release for groups of up to 50, which some epsilon-DP release attains.

        It is told apart like discrete Laplace noise of scale ``1/epsilon`` at distance g: its
        epsilon at delta 0 is ``g epsilon``, as that of ``group``, and at any other delta less.
        With ``(g + 1) epsilon`` above 600 it is refused (Dong, Roth and Su 2022, theorem 2.14).

        Example:
            >>> import hockeystick as hs
            >>> grown = hs.PureDP(0.1).for_group(4)
            >>> print(f"{hs.delta(grown, epsilon=0.2).upper:.7f}")
            0.0951626
        """
        if group_size(size) == 1 or self.epsilon in (0.0, math.inf):
            return self
        return _worst_group(self, self.epsilon, 0.0, size)

    def subsample(self, rate: float) -> PureDP:
        """Return the guarantee on a secret sample, rounded up: ``ln(1 + q (e^epsilon - 1))``.

        It holds for Poisson sampling with probability q under add-remove, and for a sample of m of
        n records, q = m/n, under replace-one; for the same neighbours as the guarantee itself.

        Args:
            rate: The sampling probability q, in [0, 1].

        References:
            Balle, Barthe and Gaboardi, "Privacy Amplification by Subsampling", 2018, theorems 8, 9.
        """
        return PureDP(_amplified(self.epsilon, _validate.real("rate", rate)))


# Beyond this exponent even the least float times the power of e is above 1.
_LARGEST_EXPONENT: Final = 800.0


@final
@dataclass(frozen=True, slots=True)
class ApproxDP(Notion):
    """(epsilon, delta)-DP: epsilon-DP but for a probability of delta.

    ``P(M(D) in S) <= e^epsilon P(M(D') in S) + delta`` for all neighbours D, D' and all S.

    Guarantees:
        As part of a plan it costs what a release costs that reveals everything with probability
        delta and is randomized response of that epsilon otherwise, which no (epsilon, delta)-DP
        release exceeds: exact for the class.

    Args:
        epsilon: In [0, inf].
        delta: In [0, 1]: 0 is epsilon-DP, 1 may release everything.

    References:
        Dwork, Kenthapadi, McSherry, Mironov and Naor, "Our Data, Ourselves", 2006; Kairouz, Oh and
        Viswanath, "The Composition Theorem for Differential Privacy", 2017, theorem 2.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.ApproxDP(epsilon=1, delta=1e-6).group(3))
        (3, 1.1107337927389697e-05)-DP release
    """

    rises_with: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    epsilon: float
    delta: float

    @property
    def _guarantee(self) -> str:
        return f"({plain(self.epsilon)}, {plain(self.delta)})-DP"

    def group(self, size: int) -> ApproxDP:
        """Return the guarantee for groups of g records, rounded up.

        ``(g epsilon, delta (e^(g epsilon) - 1) / (e^epsilon - 1))``: delta times
        ``1 + e^epsilon + ... + e^((g-1) epsilon)``. The looser ``g e^((g-1) epsilon) delta`` holds
        too; the ``g e^(g-1) delta`` printed in some lecture notes does not: epsilon = 2 and g = 2
        need ``(e^2 + 1) delta = 8.39 delta``, and it says ``5.44 delta``.

        References:
            Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, theorem
            2.2; Dong, Roth and Su 2022, theorem 2.14, whose ``1 - (1 - f)^og`` has this delta.
        """
        g = group_size(size)
        return ApproxDP(product_up(g, self.epsilon), self._group_delta(g))

    def for_group(self, size: int) -> Mechanism:
        """Return the worst release for groups, for those that ``PureDP`` takes: it is attained.

        It is ``(g epsilon, delta')``-DP with the delta' of ``group``, at any other epsilon less
        than that would allow, and never more than everything.
        """
        if group_size(size) == 1 or self.epsilon == math.inf or self.delta == 1.0:
            return self
        return _worst_group(self, self.epsilon, self.delta, size)

    def subsample(self, rate: float) -> ApproxDP:
        """Return ``(ln(1 + q (e^epsilon - 1)), q delta)``-DP; all else as for ``PureDP``."""
        q = _validate.real("rate", rate)
        return ApproxDP(
            _amplified(self.epsilon, q), float_up(largest_reading(q) * largest_reading(self.delta))
        )

    def _group_delta(self, g: int) -> float:
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


@final
@dataclass(frozen=True, slots=True)
class GDP(Notion):
    """mu-GDP: no easier to tell from neighbours than N(0, 1) from N(mu, 1).

    ``T(M(D), M(D')) >= G_mu`` with ``G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)``.

    Guarantees:
        As part of a plan it costs what the Gaussian mechanism with noise multiplier 1/mu costs:
        exact for the class.

    Args:
        mu: In [0, inf].

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, definition 2.6.

    Example:
        >>> import hockeystick as hs
        >>> hs.GDP(mu=0.5).group(3)
        GDP(mu=1.5)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("mu",)
    mu: float = field(metadata={"domain": MU})

    @property
    def _guarantee(self) -> str:
        return f"{plain(self.mu)}-GDP"

    def group(self, size: int) -> GDP:
        """Return ``g mu``-GDP, rounded up (Dong, Roth and Su 2022, after theorem 2.14)."""
        return GDP(product_up(group_size(size), self.mu))

    def for_group(self, size: int) -> GDP:
        return self.group(size)


@final
@dataclass(frozen=True, slots=True)
class FDP(Notion):
    """f-DP: no test of the output misses less often than f allows.

    ``T(M(D), M(D')) >= f`` for all neighbours D, D' in both orders.

    Guarantees:
        An asymmetric f is for one order of each two
        neighbours, always the same, and its inverse for the other.

    A mechanism of your own, by the probabilities p and q of its outcomes under two neighbours, is
    ``FDP(tradeoffs.discrete_tradeoff(p, q))``; by its (epsilon, delta) pairs,
    ``FDP(tradeoffs.tradeoff_of_deltas(pairs))``.

    Args:
        tradeoff: The trade-off function f.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, definition 2.3.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.FDP(hs.tradeoffs.GaussianTradeOff(1)).group(2))
        f-DP release (GaussianTradeOff)
    """

    tradeoff: TradeOff = field(metadata={"allowed": "a trade-off function"})

    @property
    def expanded(self) -> Mechanism:
        release = self.tradeoff.release
        return release if isinstance(release, Mechanism) else self

    @property
    def _guarantee(self) -> str:
        return f"f-DP with f a {type(self.tradeoff).__name__}"

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "f-DP release", (type(self.tradeoff).__name__,)

    def group(self, size: int) -> FDP:
        """Return the guarantee for groups of g records: ``1 - (1 - f)^og``, from below.

        An asymmetric f is symmetrized first, since of a group some records may come and others go
        (Dong, Roth and Su 2022, theorem 2.14).
        """
        return FDP(self.tradeoff.symmetrize().group(group_size(size)))

    def for_group(self, size: int) -> Mechanism:
        if group_size(size) == 1:
            return self
        release = self.expanded
        return self.group(size) if release is self else release.for_group(size)

    def subsample(self, rate: float) -> FDP:
        """Return the guarantee on a secret sample of fixed size: ``C_q(f)``.

        It holds under replace-one, the rate q in [0, 1] being the part of the records that is in
        the sample (Dong, Roth and Su 2022, theorem 4.2).
        """
        return FDP(self.tradeoff.subsample(rate))


@final
@dataclass(frozen=True, slots=True)
class ZCDP(Notion):
    """rho-zCDP: a Renyi divergence of at most ``rho alpha`` at every order ``alpha > 1``.

    Guarantees:
        As part of a plan it costs at most what its Renyi divergences allow, and at least what a
        Gaussian mechanism with ``mu = sqrt(2 rho)`` costs, which is rho-zCDP. The converse does
        not hold: rho-zCDP need not be sqrt(2 rho)-GDP.

    Args:
        rho: In [0, inf].

    References:
        Bun and Steinke, "Concentrated Differential Privacy", TCC 2016, definition 1.1.

    Example:
        >>> import hockeystick as hs
        >>> hs.ZCDP(rho=0.5).group(3)
        ZCDP(rho=4.5)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rho",)
    rho: float = field(metadata={"domain": RHO})

    @property
    def _guarantee(self) -> str:
        return f"{plain(self.rho)}-zCDP"

    def group(self, size: int) -> ZCDP:
        """Return ``g^2 rho``-zCDP, rounded up (Bun and Steinke 2016, proposition 1.9)."""
        return ZCDP(product_up(group_size(size) ** 2, self.rho))

    def for_group(self, size: int) -> ZCDP:
        # Gaussian noise has the largest divergences allowed.
        return self.group(size)


@final
@dataclass(frozen=True, slots=True)
class TCDP(Notion):
    """(rho, omega)-tCDP: a Renyi divergence of at most ``rho alpha`` at orders in (1, omega).

    Guarantees:
        As part of a plan it costs at most what its Renyi divergences allow, and at least what a
        Gaussian mechanism with ``mu = sqrt(2 rho)`` costs.

    Args:
        rho: In [0, inf].
        omega: A number > 1, or inf, with which it is rho-zCDP.

    References:
        Bun, Dwork, Rothblum and Steinke, "Composable and Versatile Privacy via Truncated CDP",
        STOC 2018, definition 1.

    Example:
        >>> import hockeystick as hs
        >>> hs.TCDP(rho=0.1, omega=50).group(2)
        TCDP(rho=0.4, omega=25.0)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rho",)
    falls_with: ClassVar[tuple[str, ...]] = ("omega",)
    rho: float = field(metadata={"domain": RHO})
    omega: float = field(metadata={"domain": OMEGA})

    @property
    def _guarantee(self) -> str:
        return f"({plain(self.rho)}, {plain(self.omega)})-tCDP"

    def group(self, size: int) -> TCDP:
        """Return the guarantee for groups of g records: ``(g^2 rho, omega / g)``, rounded outward.

        The induction of Bun and Steinke 2016, proposition 1.9, for order alpha reads the divergence
        of one record at orders up to ``g alpha``: g must be below omega.
        """
        g = group_size(size)
        omega = quotient_down(self.omega, g)
        if omega <= 1.0:
            raise NoGroupFormError(
                f"{self._guarantee} says nothing of groups of {g}: no order above 1 is left of "
                "omega; the size must be below omega"
            )
        return TCDP(product_up(g * g, self.rho), omega)

    def for_group(self, size: int) -> TCDP:
        return self.group(size)


ORDER: Final = Domain("alpha", 1, math.inf, (1.5, 256), low_open=True, high_open=True)
DIVERGENCE: Final = Domain(symbol="tau", low=0, high=math.inf, typical=(1e-3, 10))
_SHOWN: Final = 8
_ALLOWED: Final = "a mapping from orders > 1 to divergences >= 0, or pairs of such"
_OF_A_PLAN: Final = "; those of a plan are convert(plan, RenyiDP, orders=[2, 4, 8])"


@final
@dataclass(frozen=True, slots=True, init=False)
class RenyiDP(Notion):
    """(alpha, tau)-RDP at one or more orders: Renyi divergences of at most tau.

    ``D_alpha(M(D) || M(D')) = ln E_M(D')[(dM(D)/dM(D'))^alpha] / (alpha - 1) <= tau`` for all
    neighbours and both orders of each two.

    Guarantees:
        As part of a plan it costs at most what convexity makes of them between the orders given,
        and at least what the Gaussian mechanism costs that has no larger ones.

    Edge cases:
        A divergence of 0 at one order means that nothing is released; inf says nothing. Of an
        order given twice the smaller divergence counts.

    Args:
        divergences: A mapping from orders, finite and > 1, to divergences in [0, inf], or an
            iterable of such pairs; at least one. Kept as a tuple of pairs in order.

    References:
        Mironov, "Renyi Differential Privacy", CSF 2017, definition 4.

    Example:
        >>> import hockeystick as hs
        >>> hs.RenyiDP({2: 0.5, 10: 1})
        RenyiDP(divergences=((2.0, 0.5), (10.0, 1.0)))
    """

    divergences: tuple[tuple[float, float], ...]

    def __init__(
        self,
        divergences: Mapping[float, float] | Mapping[int, float] | Iterable[tuple[float, float]],
        *,
        origin: Origin | None = None,
    ) -> None:
        object.__setattr__(self, "divergences", _sorted(divergences))
        set_fields(self, {"origin": origin})

    @property
    def _guarantee(self) -> str:
        if len(self.divergences) == 1:
            ((order, divergence),) = self.divergences
            return f"({plain(order)}, {plain(divergence)})-RDP"
        if len(self.divergences) <= _SHOWN:
            pairs = (f"{plain(order)}: {plain(size)}" for order, size in self.divergences)
            return f"RDP {{{', '.join(pairs)}}}"
        orders = f"{plain(self.divergences[0][0])} to {plain(self.divergences[-1][0])}"
        return f"RDP of {len(self.divergences)} orders from {orders}"

    def group(self, size: int) -> RenyiDP:
        """Return the guarantee for groups of g records, rounded outward.

        With ``r = 1 - 1/alpha``, a divergence of tau at order alpha becomes
        ``tau (alpha - 1) (r^-g - 1)`` at order ``1 / (1 - r^g) >= alpha / g``. It is the weak
        triangle inequality ``D_b(P||R) <= (b - 1/p)/(b - 1) D_pb(P||Q) + D_(pb-1)/(p-1)(Q||R)``
        iterated with ``p = alpha / b``, so that every divergence read is that of order alpha; for
        Gaussian curves it loses next to nothing, where halving the order loses a factor of 3/2.
        A group so large that no order above 1 is left is refused.

        References:
            Mironov 2017, proposition 11 (the inequality) and proposition 2 (the coarser form).
        """
        g = group_size(size)
        if g == 1:
            return RenyiDP(self.divergences)
        found = [_for_group(order, divergence, g) for order, divergence in self.divergences]
        left = [(order, divergence) for order, divergence in found if order > 1.0]
        if not left:
            raise IncompatibleError(
                f"{self._guarantee} says nothing of groups of {g}: no order above 1 is left"
            )
        return RenyiDP(left)

    def for_group(self, size: int) -> RenyiDP:
        # What ``group`` says of them is a bound, which need not be attained.
        if group_size(size) == 1:
            return self
        raise NoGroupFormError(
            f"what a {self} costs groups of {size} is known by bounds alone: use "
            f".group({size}), its guarantee for them"
        )


def _sorted(divergences: object) -> tuple[tuple[float, float], ...]:
    pairs: Any = divergences.items() if isinstance(divergences, Mapping) else divergences
    if isinstance(pairs, str | bytes):
        raise ParameterError("divergences", divergences, _ALLOWED)
    try:
        listed = [pair if isinstance(pair, str) else tuple(pair) for pair in pairs]
    except TypeError:
        raise ParameterError("divergences", divergences, _ALLOWED + _OF_A_PLAN) from None
    least: dict[float, float] = {}
    for pair in listed:
        if len(pair) != 2:
            raise ParameterError("divergences", divergences, _ALLOWED)
        order = _validate.real("order", pair[0], ORDER)
        divergence = _validate.real("divergence", pair[1], DIVERGENCE)
        least[order] = min(divergence, least.get(order, math.inf))
    if not least:
        raise ParameterError("divergences", divergences, _ALLOWED)
    return tuple(sorted(least.items()))


def _for_group(order: float, divergence: float, g: int) -> tuple[float, float]:
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        exponent = -g * mp.log1p(-1 / mp.mpf(order))
        new = evaluated_down(-1 / mp.expm1(-exponent))
        if divergence in (0.0, math.inf):
            return new, divergence
        return new, evaluated_up(divergence * (mp.mpf(order) - 1) * mp.expm1(exponent))
