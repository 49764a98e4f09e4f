"""The multivariate Laplace mechanism: noise whose density falls with the Euclidean distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import quotient_down

DIMENSION: Final = whole_numbers("n", 1, (2, 10**6))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
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

    Edge cases:
        Scale 0 releases the answer itself; inf releases nothing. In one dimension it is
        ``Laplace``. Other than the Laplace mechanism in several coordinates it goes by the L2
        distance.

    Args:
        scale: The noise's scale b over the sensitivity, in [0, inf].
        dimension: The number n of coordinates, an integer >= 1.

    Raises:
        ParameterError: If a parameter is outside its domain.

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

    falls_with = ("scale", "dimension")

    scale: float
    dimension: int

    def __init__(self, scale: float, dimension: int) -> None:
        object.__setattr__(self, "scale", _validate.real("scale", scale))
        object.__setattr__(self, "dimension", _validate.count("dimension", dimension, DIMENSION))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"Fresh noise in {self.dimension} coordinates, with a density proportional to "
            f"exp(-length/b), is added; b is {plain(self.scale)} times the query's L2 sensitivity, "
            "a bound that holds for all data and does not depend on them.",
        )

    def for_group(self, size: int) -> MultivariateLaplace:
        """Return the mechanism whose noise is ``size`` times smaller."""
        return MultivariateLaplace(quotient_down(self.scale, size), self.dimension)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        details = (f"scale {self.scale:g}", f"dimension {self.dimension}")
        return "multivariate Laplace", details
