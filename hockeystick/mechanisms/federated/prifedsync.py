"""PriFedSync: clients that train privately on their own data, and a server that synchronises."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick import _validate
from hockeystick._validate import Domain, WordEnum, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import (
    AnyAdjacency,
    Mechanism,
    Parallel,
    Plan,
    registered,
    set_fields,
)
from hockeystick.mechanisms.federated.client_level import LocalTraining
from hockeystick.mechanisms.noise.laplace import DIMENSION, MultivariateLaplace
from hockeystick.mechanisms.scope import EVERYBODY_REPORTS, ONE_RECORD, Fact
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

_RATE: Final = Domain(symbol="p", low=0, high=1, low_open=True, typical=(0.01, 1.0))
A_CLIENT: Final = "a LocalTraining, or one for each client in a tuple"


@registered
class View(WordEnum):
    """Who attacks a client of a federation, and sees what.

    - "one-client": another client, who sees what the server pushes to it (weak federated f-DP).
    - "all-clients": all other clients together (strong federated f-DP).
    """

    ONE_CLIENT = "one-client"
    ALL_CLIENTS = "all-clients"


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class PriFedSync(Plan):
    """Federated training in which each client protects its own records by noisy local training.

    In each round the server draws clients, each with probability p; those drawn start from the
    helper model that the server pushed to them, run ``LocalTraining`` and send their model back;
    the server mixes the models, and pushes a helper model that is any function of them. Neighbours
    differ in one record of one client, and all that the server and the other clients ever see of
    it is post-processing of that client's noisy steps. So client j pays

        f_j = C_(B_j/n_j)(G_(2/noise_multiplier_j))^(tensor K_j R),

    at most, and the plan what the client pays that pays most: ``of_client(j)`` is j's own plan.

    - **Both definitions have the same f.** Weak federated f-DP is about what another client sees,
      strong federated f-DP about what all others see together; both are functions of the sequence
      of models that j sends out, to which f_j applies as a whole, and the server's view is too.
    - **The square of the rate does not amplify.** Theorem 1 counts a round for client i against
      client j with probability p^2 only, that both are drawn in it. But the server's model carries
      what j sent in earlier rounds to the round in which i is drawn: with p = 0.01 and R = 1000,
      theorem 1 claims a total variation below 0.1 whatever the noise, while the chance that i is
      drawn in or after the first round in which j is exceeds 0.999. So all K R steps count.

    Guarantees:
        Those of ``LocalTraining``, the worst over the clients, both ends those of a client that is
        drawn in every round. Who is drawn may be known to all; it must not depend on the data. On
        average over the draws a client pays less (``RevealedRound``), which is not counted.

    Args:
        clients: A ``LocalTraining`` that all clients run, or one for each client in a tuple. Where
            several federations are composed, tuples list the same clients in the same order.
        rounds: Number of rounds, an integer >= 0.
        client_rate: Probability p of a client to be drawn in a round, in (0, 1]; told in words and
            not accounted.

    References:
        Zheng, Chen, Long and Su, "Federated f-Differential Privacy", AISTATS 2021: algorithms 1
        and 2, theorem 2; theorem 1 does not hold as stated.

    Example:
        >>> import hockeystick as hs
        >>> local = hs.federated.LocalTraining(
        ...     examples=600, batch_size=16, noise_multiplier=2.0, local_steps=38
        ... )
        >>> plan = hs.federated.PriFedSync(clients=local, rounds=93)
        >>> f = hs.tradeoff(plan, view="all-clients")
        >>> f == hs.tradeoff(plan, view="one-client")
        True
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rounds", "client_rate")
    clients: LocalTraining | tuple[LocalTraining, ...]
    rounds: int = field(metadata={"domain": whole_numbers("R", 0, (1, 10_000))})
    client_rate: float = field(default=1.0, metadata={"domain": _RATE})
    adjacency = Adjacency.REPLACE_ONE
    scope: ClassVar[tuple[Fact, ...]] = (Fact("unit", ONE_RECORD),)

    def __init__(
        self,
        *,
        clients: LocalTraining | Iterable[LocalTraining],
        rounds: float,
        client_rate: float = 1.0,
    ) -> None:
        object.__setattr__(self, "clients", _clients(clients))
        set_fields(self, {"rounds": rounds, "client_rate": client_rate})

    def of_client(self, index: int) -> Mechanism:
        """Return what one client releases in all rounds, for its own answer."""
        listed = self.settings
        within = Domain(symbol="j", low=0, high=len(listed) - 1, typical=(0, 0), whole=True)
        return listed[_validate.count("index", index, within)] ** self.rounds

    @property
    def mechanism(self) -> Mechanism:
        alone = len(self.settings) == 1
        once = self.settings[0] if alone else Parallel(self.settings, split="client")
        return once**self.rounds

    @property
    def settings(self) -> tuple[LocalTraining, ...]:
        """What each client runs, one for all where they are alike."""
        return self.clients if isinstance(self.clients, tuple) else (self.clients,)

    @property
    def assumptions(self) -> tuple[str, ...]:
        same = (
            f"Another federation of {len(self.settings):,} clients in the same plan has the same "
            "clients, in the same order."
        )
        return (
            *(text for local in dict.fromkeys(self.settings) for text in local.assumptions),
            "Each record is at one client; whatever else the clients and the server compute "
            "depends on it only through the noisy sums of that client's steps.",
            "Whoever is not trusted, be it the server and all other clients together, sees the "
            "models that a client sends, but nothing without its noise: a client is trusted with "
            "its own records alone.",
            *((same,) if len(self.settings) > 1 else ()),
            f"There are {self.rounds:,} rounds, and no more. A client is drawn in each with "
            f"probability {plain(self.client_rate)}, whatever the data; the answer, its lower end "
            "too, is for one that is drawn in all of them, which is the worst that may happen.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        different = tuple(dict.fromkeys(self.settings))
        one = len(different) == 1
        name, settings = different[0]._words()
        local = settings if one else (f"{len(different)} settings of {name}", self.adjacency)
        return "PriFedSync", (
            *local[:-1],
            f"{self.rounds} rounds",
            f"client rate {self.client_rate:g}",
            local[-1],
        )


def _clients(clients: object) -> LocalTraining | tuple[LocalTraining, ...]:
    if isinstance(clients, LocalTraining):
        return clients
    listed = tuple(clients) if _validate.has_several(clients) else ()
    if not listed or not all(isinstance(one, LocalTraining) for one in listed):
        raise ParameterError("clients", clients, A_CLIENT)
    return listed


_RADIUS: Final = Domain("r", 0, math.inf, (0.01, 100), low_open=True, high_open=True)
_PUBLIC: Final = (
    ": a bound on the update that is public and the same for all data. Noise scaled by the length "
    "of the client's own update gives no guarantee, as the size of the noise tells that length"
)


@registered
@final
@dataclass(frozen=True, slots=True)
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

        The published rule takes for r the length of the client's own update, which is no guarantee,
        as the noise then depends on the data. For the records on the client, clip the update to a
        length of r/2.

    Args:
        noise_multiplier: The mean length nu of the noise over the radius, in [0, inf]: 0 releases
            the parameters themselves.
        dimension: The number n of parameters that a client sends, an integer >= 1.
        radius: The public radius r within which outcomes are to be indistinguishable, > 0; it sets
            the noise, and the answer does not depend on it.
        rounds: The number of rounds in which a client takes part, an integer >= 0.

    References:
        Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group Privacy for Personalized Federated
        Learning", 2022, algorithm 1.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.federated.FederatedClustering(5, dimension=2, radius=1, rounds=1)
        >>> print(f"{hs.epsilon(plan, delta=0).upper:.6f}")
        0.400000
    """

    rises_with: ClassVar[tuple[str, ...]] = ("dimension", "radius", "rounds")
    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    noise_multiplier: float
    dimension: int = field(metadata={"domain": DIMENSION})
    radius: float = field(metadata={"domain": _RADIUS, "besides": _PUBLIC})
    rounds: int = field(metadata={"domain": whole_numbers("T", 0, (1, 1000))})
    scope: ClassVar[tuple[Fact, ...]] = (EVERYBODY_REPORTS,)

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
