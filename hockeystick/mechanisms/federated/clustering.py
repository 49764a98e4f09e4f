"""Federated learning in clusters, each client's update with multivariate Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import AnyAdjacency, Mechanism, Plan
from hockeystick.mechanisms.noise.multivariate_laplace import DIMENSION, MultivariateLaplace
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.scope import EVERYBODY_REPORTS, Fact
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

_RADIUS: Final = Domain(
    symbol="r", low=0, high=math.inf, low_open=True, high_open=True, typical=(0.01, 100)
)
_ROUNDS: Final = whole_numbers("T", 0, (1, 1000))
_PUBLIC: Final = (
    ": a bound on the update that is public and the same for all data. Noise scaled by the length "
    "of the client's own update gives no guarantee, as the size of the noise tells that length"
)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class FederatedClustering(AnyAdjacency, Plan):
    """Clients send parameters with multivariate Laplace noise; a server clusters and averages them.

    In each of its rounds a client trains the model of the cluster that fits it best, and sends the
    outcome in R^n plus noise of the density ``~ exp(-n |z| / (nu r))``, whose mean length is
    ``nu r``. Whatever the server does with it, clusters included, is post-processing.

    Guarantees:
        Protects each message of a client: two outcomes at most r apart, the radius, are told apart
        with a loss of at most ``n/nu`` in each round. In units of the parameters a round is
        ``MetricDP(n / (nu r))``; accounted is the exact loss of two outcomes at distance r. Rounds
        compose, those of one client; other clients' rounds cost this client nothing.

        The published rule takes for r the length of the client's own update. That is no
        guarantee, as the noise then depends on the data, and it is not offered. Nor is it one for
        the records on the client unless r bounds how far they move what is sent: clip the update
        to a length of r/2, or take r to be twice the bound.

    Edge cases:
        nu = 0 releases the parameters themselves; no rounds release nothing. The answer does not
        depend on the radius itself, which sets the noise.

    Args:
        noise_multiplier: The mean length nu of the noise over the radius, in [0, inf].
        dimension: The number n of parameters that a client sends, an integer >= 1.
        radius: The public radius r within which outcomes are to be indistinguishable, > 0.
        rounds: The number of rounds in which a client takes part, an integer >= 0.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group Privacy for Personalized Federated
        Learning", 2022 (algorithm 1 takes the private ``eps = n / (nu |update|)``, see above).

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.federated.FederatedClustering(
        ...     noise_multiplier=5, dimension=2, radius=1, rounds=1
        ... )
        >>> print(f"{hs.epsilon(plan, delta=0).upper:.6f}")
        0.400000
        >>> round(plan.noise_scale, 6)
        2.5
    """

    rises_with = ("dimension", "radius", "rounds")
    falls_with = ("noise_multiplier",)

    noise_multiplier: float
    dimension: int
    radius: float
    rounds: int

    def __init__(self, noise_multiplier: float, dimension: int, radius: float, rounds: int) -> None:
        if not _RADIUS.contains(radius):
            raise ParameterError("radius", radius, _RADIUS.allowed + _PUBLIC)
        set_field = object.__setattr__
        set_field(self, "noise_multiplier", _validate.real("noise_multiplier", noise_multiplier))
        set_field(self, "dimension", _validate.count("dimension", dimension, DIMENSION))
        set_field(self, "radius", _validate.real("radius", radius, _RADIUS))
        set_field(self, "rounds", _validate.count("rounds", rounds, _ROUNDS))

    @property
    def noise(self) -> MultivariateLaplace:
        """The noise of one round over the radius: of scale ``nu/n``, rounded down."""
        if self.noise_multiplier == math.inf:
            return MultivariateLaplace(math.inf, self.dimension)
        exact = decimal(self.noise_multiplier) / self.dimension
        scale = float(exact)
        while decimal(scale) > exact or Fraction(scale) > exact:
            scale = math.nextafter(scale, 0.0)
        return MultivariateLaplace(scale, self.dimension)

    @property
    def noise_scale(self) -> float:
        """The scale b of the noise that a client adds, ``nu r / n``, rounded up."""
        return math.nextafter(self.noise.scale * self.radius, math.inf)

    @property
    def mechanism(self) -> Mechanism:
        return self.noise**self.rounds

    @property
    def scope(self) -> tuple[Fact, ...]:
        """That each client sends: neighbours are two messages of one, at most the radius apart."""
        return (EVERYBODY_REPORTS,)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"In each of {self.rounds} rounds the client sends {self.dimension} parameters plus "
            "fresh noise with a density proportional to exp(-length/b), where b is "
            f"{plain(self.noise.scale)} times the radius.",
            f"The radius, {plain(self.radius)}, is public and bounds the L2 distance between what "
            "the client may have sent instead and what it sent, whatever its data.",
            "Whoever is not trusted, the server included, sees what the client sends, but nothing "
            "without the noise.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "federated clustering", (
            f"noise multiplier {self.noise_multiplier:g}",
            f"dimension {self.dimension}",
            f"radius {self.radius:g}",
            f"{self.rounds} rounds",
        )
