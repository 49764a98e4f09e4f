"""Laplace noise, on vectors too, and the staircase mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, final

from hockeystick._validate import Domain, whole_numbers
from hockeystick.mechanisms.base import AnyAdjacency, registered
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import quotient_down


@registered
@final
@dataclass(frozen=True, slots=True)
class Laplace(AnyAdjacency):
    """A query's answer plus Laplace noise.

    M(D) = query(D) + Lap(scale * sensitivity), independently in each coordinate, with the density
    ``exp(-|x| / b) / (2 b)`` at ``b = scale * sensitivity``; the sensitivity is the largest L1
    distance between the query's answers on two neighbouring data sets. It is 1/scale-DP.

    Guarantees:
        The accounting is exact for a query with one coordinate that reaches its sensitivity, and
        an upper bound for every other.

    Args:
        scale: The noise's scale over the sensitivity, in [0, inf]: 0 releases the answer itself,
            inf nothing.

    References:
        Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data
        Analysis", TCC 2006.

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.delta(hs.Laplace(scale=1), epsilon=0.5).upper:.12f}")
        0.221199216929
    """

    falls_with: ClassVar[tuple[str, ...]] = ("scale",)
    scale: float

    @property
    def assumptions(self) -> tuple[str, ...]:
        noise = f"{plain(self.scale)} times the query's L1 sensitivity"
        return (f"Fresh Laplace noise is added to each coordinate; its scale is {noise}.",)

    def for_group(self, size: int) -> Laplace:
        return Laplace(quotient_down(self.scale, size))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "Laplace", (f"scale {self.scale:g}",)


DIMENSION: Final = whole_numbers("n", 1, (2, 10**6))


@registered
@final
@dataclass(frozen=True, slots=True)
class MultivariateLaplace(AnyAdjacency):
    """A vector's true value plus noise whose density falls with the Euclidean length.

    M(D) = query(D) + Z with the density ``K exp(-|z| / b)`` on R^n at ``b = scale * sensitivity``
    and ``K = Gamma(n/2) / (2 pi^(n/2) Gamma(n) b^n)``; the sensitivity is the largest Euclidean
    distance between the query's answers on two neighbouring data sets. It is 1/scale-DP, and in
    units of the query ``MetricDP(1/b)``: two data sets whose answers lie at distance d are
    distinguished with a privacy loss of at most d/b.

    Guarantees:
        Exact for a query that reaches its sensitivity, and an upper bound for every other: the
        divergence of two answers rises with their distance. One run has a closed form, the
        privacy profile ``P(L > eps) - e^eps Q(L > eps)`` of a privacy loss whose density is known;
        for runs on end the loss is composed as it is, which for many coordinates costs far less
        than 1/scale each: about what a Gaussian of ``mu = 1/(scale sqrt(n))`` costs.

    Args:
        scale: The noise's scale b over the sensitivity, in [0, inf]: 0 releases the answer itself,
            inf nothing.
        dimension: The number n of coordinates, an integer >= 1; with one it is ``Laplace``.

    References:
        Chatzikokolakis, Andres, Bordenabe and Palamidessi, "Broadening the Scope of Differential
        Privacy Using Metrics", PETS 2013 (the plane); Galli, Biswas, Jung, Cucinotta and
        Palamidessi, "Group Privacy for Personalized Federated Learning", 2022 (R^n).

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.MultivariateLaplace(scale=3 / 11, dimension=11)
        >>> print(f"{hs.delta(noise, epsilon=1).upper:.12f}")
        0.163208702402
    """

    falls_with: ClassVar[tuple[str, ...]] = ("scale", "dimension")
    scale: float
    dimension: int = field(metadata={"domain": DIMENSION})

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"Fresh noise in {self.dimension} coordinates, with a density proportional to "
            f"exp(-length/b), is added; b is {plain(self.scale)} times the query's L2 sensitivity, "
            "a bound that holds for all data and does not depend on them.",
        )

    def for_group(self, size: int) -> MultivariateLaplace:
        return MultivariateLaplace(quotient_down(self.scale, size), self.dimension)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "multivariate Laplace", (f"scale {self.scale:g}", f"dimension {self.dimension}")


_GAMMA: Final = Domain(symbol="gamma", low=0, high=1, low_open=True, typical=(0.05, 0.95))


@registered
@final
@dataclass(frozen=True, slots=True)
class Staircase(AnyAdjacency):
    """A number plus staircase noise, which among all that is epsilon-DP errs the least.

    The density of the noise is ``a`` where ``|x| < gamma``, in units of the query's sensitivity,
    and falls by the factor ``e^-epsilon`` at gamma, 1 + gamma, 2 + gamma, ..., with
    ``a = (1 - e^-epsilon) / (2 (gamma + e^-epsilon (1 - gamma)))``. It is epsilon-DP.

    Guarantees:
        Exact for a scalar query that reaches its sensitivity: neighbours at that distance cost the
        most at every epsilon. Its cost is below that of randomized response with the same epsilon,
        unless gamma is 1/2, where the two are the same.

    Edge cases:
        Epsilon 0 releases nothing. With epsilon inf the noise is uniform between -gamma and gamma;
        by default it is none.

    Args:
        epsilon: Logarithm of the ratio of two neighbouring steps, in [0, inf].
        gamma: Half the width of the highest step, in (0, 1]; None for ``1/(1 + e^(epsilon/2))``,
            with which the mean absolute error is the least.

    References:
        Geng and Viswanath, "The Optimal Mechanism in Differential Privacy", ISIT 2014 (definition
        and, for the absolute error, gamma).

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.delta(hs.mechanisms.Staircase(epsilon=2.0), epsilon=1).upper:.12f}")
        0.515848479861
    """

    rises_with: ClassVar[tuple[str, ...]] = ("epsilon",)
    unordered: ClassVar[tuple[str, ...]] = ("gamma",)
    epsilon: float
    gamma: float | None = field(default=None, metadata={"domain": _GAMMA})

    @property
    def assumptions(self) -> tuple[str, ...]:
        steps = "1/(1 + e^(epsilon/2))" if self.gamma is None else plain(self.gamma)
        return (
            f"Fresh staircase noise (epsilon {plain(self.epsilon)}, gamma {steps}) is added, in "
            "units of the scalar query's sensitivity.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        shape = () if self.gamma is None else (f"gamma {self.gamma:g}",)
        return "staircase", (f"epsilon {self.epsilon:g}", *shape)
