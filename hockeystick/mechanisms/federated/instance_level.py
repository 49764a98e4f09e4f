"""Fed-CDP and Fed-alphaCDP: federated training whose noise hides single records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from hockeystick._validate import whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import (
    STOPPED_EARLIER,
    Composed,
    Mechanism,
    Plan,
    divided_words,
    registered,
    set_fields,
)
from hockeystick.mechanisms.federated.client_level import (
    CLIENTS,
    DRAWN,
    ROUNDS,
    RecordSampling,
    RevealedRound,
    Sensitivity,
    Unit,
    refuse_more_drawn,
)
from hockeystick.mechanisms.sampling.poisson import Clipping
from hockeystick.mechanisms.scope import ONE_RECORD, Fact, Names
from hockeystick.mechanisms.training.samplings import SCHEMES, Batches, Sampling
from hockeystick.mechanisms.training.schedules import A_SCHEDULE, Schedule, factors_of
from hockeystick.numerics.numerals import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, init=False)
class LocalSteps(Plan):
    """Rounds in which each sampled client runs several noisy steps; protected is one record."""

    rises_with: ClassVar[Names] = ("clients_per_round", "batch_size", "local_steps", "rounds")
    falls_with: ClassVar[Names] = ("noise_multiplier", "total_clients", "examples_per_client")
    noise_multiplier: float
    total_clients: int = field(metadata={"domain": CLIENTS})
    clients_per_round: int = field(metadata={"domain": DRAWN})
    examples_per_client: int = field(metadata={"domain": whole_numbers("n", 1, (10, 10_000))})
    batch_size: int
    local_steps: int = field(metadata={"domain": whole_numbers("L", 1, (1, 1000))})
    rounds: int = field(metadata={"domain": ROUNDS})
    sampling: RecordSampling
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit = Unit.INSTANCE
    scope: ClassVar[tuple[Fact, ...]] = (Fact("unit", ONE_RECORD),)

    def __init__(
        self,
        *,
        noise_multiplier: float,
        total_clients: float,
        clients_per_round: float,
        examples_per_client: float,
        batch_size: float,
        local_steps: float,
        rounds: float,
        sampling: RecordSampling | str,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals())
        self._refuse_sizes()

    def _refuse_sizes(self) -> None:
        refuse_more_drawn(self)
        if self.batch_size > self.examples_per_client:
            allowed = f"at most the number of examples per client, {self.examples_per_client}"
            raise ParameterError("batch_size", self.batch_size, allowed)

    @property
    def participation(self) -> Fraction:
        """The probability of a client to take part in a round."""
        return Fraction(self.clients_per_round, self.total_clients)

    @property
    def local_rate(self) -> Fraction:
        """The probability of a record to be in a batch of its client."""
        return Fraction(self.batch_size, self.examples_per_client)

    @property
    def rate(self) -> Fraction:
        """The probability of a record to be used in a step, ``(K/N) (B/n)``."""
        return self.participation * self.local_rate

    def _composed(self, schedule: Schedule | None) -> Mechanism:
        if schedule is None or self.rounds == 0:
            (once,) = self._parts(self.noise_multiplier * factors_of(None, 1))
            return once**self.rounds
        noises = self.noise_multiplier * factors_of(schedule, self.rounds, "rounds")
        parts = tuple(self._parts(noises))
        return parts[0] if len(parts) == 1 else Composed(parts)

    def _parts(self, noise_multipliers: NDArray[np.float64]) -> Iterator[Mechanism]:
        if self.sampling is RecordSampling.POISSON:
            batches = Batches(self.adjacency, Clipping.INDIVIDUAL, self.rate, None, None, None)
            for part in SCHEMES[Sampling.POISSON].varied(batches, noise_multipliers):
                yield part**self.local_steps
            return
        noises, counts = np.unique(noise_multipliers, return_counts=True)
        for noise, count in zip(noises.tolist(), counts.tolist(), strict=True):
            yield self._round(noise) ** count

    def _round(self, noise_multiplier: float) -> Mechanism:
        coins = self.sampling is RecordSampling.TWO_STAGE_POISSON
        scheme = SCHEMES[Sampling.POISSON if coins else Sampling.FIXED_SIZE]
        sizes = self.batch_size, self.examples_per_client
        batches = Batches(self.adjacency, Clipping.INDIVIDUAL, self.local_rate, *sizes, None)
        steps = scheme.mechanism(batches, noise_multiplier) ** self.local_steps
        return steps if self.participation == 1 else RevealedRound(steps, self.participation)

    def _assumed(self, noise: str) -> tuple[str, ...]:
        """Return what must hold in the training code, whose noise is in words, as sentences."""
        return (
            Unit.INSTANCE.meaning(self.adjacency),
            "Each record is held by one client only.",
            *self._drawn(),
            "A record's gradient is clipped as one vector to the clipping norm in L2; where each "
            "of M layers is clipped on its own, the norm meant is sqrt(M) times theirs. The noise "
            "is never scaled by anything computed from the batch.",
            divided_words(self.adjacency, "the size of the drawn batch", "records"),
            f"There are {self.rounds:,} rounds of {self.local_steps:,} local steps, fixed in "
            f"advance; {STOPPED_EARLIER} Whatever is sent or published is computed from the noisy "
            "sums.",
            "Fresh Gaussian noise is added to the sum of the clipped gradients in each local step "
            f"of each client; its standard deviation is {noise} times the clipping norm.",
            self._seen(),
        )

    def _seen(self) -> str:
        if self.sampling is RecordSampling.POISSON:
            return (
                "Whoever is not trusted sees the noisy sums of all steps, and so every model, but "
                "neither whose they are nor anything without the noise: a server that knows whose "
                "update it gets is trusted."
            )
        return (
            "Whoever is not trusted, be it the server and all other clients together, sees what a "
            "client sends and who takes part, but nothing without the noise: a client is trusted "
            "with its own records alone."
        )

    def _drawn(self) -> tuple[str, ...]:
        if self.sampling is RecordSampling.POISSON:
            return (
                "Each record is used in each local step independently with probability "
                f"{float(self.rate):.6g}, afresh in each step, and nobody sees it: that steps of "
                "one round share the choice of clients is assumed away.",
            )
        every = "Every client takes part in every round."
        some = (
            f"Each round draws one of all sets of {self.clients_per_round:,} of "
            f"{self.total_clients:,} clients, equally likely and afresh; who takes part may be "
            "known."
        )
        return (every if self.participation == 1 else some, self._batches())

    def _batches(self) -> str:
        if self.local_rate == 1:
            return "Every local step uses all records of the client."
        if self.sampling is RecordSampling.TWO_STAGE_POISSON:
            return (
                "Each local step of a client uses each of its records independently with "
                f"probability {float(self.local_rate):.6g} or less, afresh in each step, and the "
                "batches stay secret."
            )
        return (
            f"Each local step of a client draws one of all sets of {self.batch_size:,} of its "
            f"{self.examples_per_client:,} records or more, equally likely and afresh, and the "
            "batches stay secret."
        )

    def _details(self, *decay: str) -> tuple[str, ...]:
        return (
            f"{Unit.INSTANCE} level",
            f"{self.sampling} sampling",
            f"{self.clients_per_round} of {self.total_clients} clients in each of {self.rounds} "
            "rounds",
            f"{self.local_steps} local steps on {self.batch_size} of {self.examples_per_client} "
            "examples",
            f"noise multiplier {self.noise_multiplier:g}",
            *decay,
            self.adjacency,
        )


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class FedCDP(LocalSteps):
    """Federated training with instance-level privacy: noise in every local step of every client.

    In each of T rounds, K of N clients are drawn; each of them takes L local steps, and each step
    uses the sum of its B records' clipped gradients + N(0, (noise_multiplier * C)^2 I). The unit of
    privacy is one record. A record is used in a step with probability ``q = (K/N) (B/n)``; but the
    L steps of a round share whether its client was drawn. So the plan says which account is meant:

    - "two-stage": clients by rounds, which is seen, batches by steps, which is not. Each round is a
      ``RevealedRound`` of rate K/N around L runs of fixed-size sampling, B of n;
      "two-stage-poisson" has L runs of Poisson sampling at the rate B/n instead.
    - "poisson": each record by a coin of its own in each of the T L steps, with probability q, as
      the published account has it. It treats the two stages as independent samples of all records,
      and is no bound for clients that are drawn by rounds.

    Guarantees:
        With "poisson" exact for who sees every noisy sum. With both "two-stage" an upper bound for
        who sees the clients' updates, as the server does, and so for who sees only the model;
        by Renyi divergences, unless a round is a single step. Its lower end is what the sum of a
        round's steps tells: some 10 % below at noise multiplier 20, half as much at 0.8. Where
        records are not spread evenly, n is the smallest client's number.

    Edge cases:
        Where all clients take part, no round is sampled; where a batch is all that a client has, no
        step is. Under replace-one a record moves a sum by 2 C.

    Args:
        noise_multiplier: Standard deviation of the noise on the sum of a batch's clipped gradients
            over the clipping norm, in [0, inf]. Where the noise is on the mean, B times its
            standard deviation is meant.
        total_clients: The number N of clients, an integer >= 1.
        clients_per_round: How many are drawn in a round, K, an integer from 1 to total_clients.
        examples_per_client: The least number n of records that a client holds, an integer >= 1.
        batch_size: B, an integer from 1 to examples_per_client.
        local_steps: The number L of a client's steps in a round, an integer >= 1.
        rounds: The number T of rounds, an integer >= 0.
        sampling: "two-stage", "two-stage-poisson" or "poisson".
        adjacency: "add-remove", "zero-out" or "replace-one", of records.

    References:
        Wei, Liu, Wu, Su and Iyengar, "Gradient-Leakage Resilient Federated Learning", ICDCS 2021;
        Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats",
        2023, section 6, but neither its theorem 5 nor its claim of client-level privacy.

    Example:
        >>> import hockeystick as hs
        >>> sizes = dict(total_clients=1000, clients_per_round=100, examples_per_client=50)
        >>> steps = dict(batch_size=5, local_steps=100, rounds=100)
        >>> plan = hs.federated.FedCDP(noise_multiplier=6, **sizes, **steps, sampling="poisson")
        >>> print(hs.epsilon(plan, delta=1e-5))
        epsilon = 0.600854 at delta = 1e-05 (proven in [0.6008..., 0.6008...]; contour, add-remove)
    """

    @property
    def mechanism(self) -> Mechanism:
        return self._composed(None)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return self._assumed(plain(self.noise_multiplier))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "Fed-CDP", self._details()


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class FedAlphaCDP(LocalSteps):
    """Fed-CDP whose noise falls from round to round: local steps with noise, records protected.

    As ``FedCDP``, with noise multiplier ``sigma_t = noise_multiplier * factor_t`` in all local
    steps of round t. The published decays, with rounds counted as t = 0, ..., T-1, are

    - ``sigma_0 (1 - g t)``: ``schedules.Linear(end)``, ``end = 1 - g (T-1)``;
    - ``sigma_0 (1 - g floor(t/w))``: ``schedules.Staircase(end, stairs)``, stairs = T/w;
    - ``sigma_0 exp(-g t)``: ``schedules.Exponential(end)``, ``end = exp(-g (T-1))``;
    - ``(sigma_0/2) (cos(pi (t mod P)/P) + 1)``, ``P = ceil(T/cycles)``: ``schedules.Cyclic``, which
      demands a floor: without one the noise falls to ``sigma_0 pi^2/(4 P^2)``, 0.0037 where it
      starts at 15 and P = 100, and nothing is left of privacy.

    Guarantees:
        As for ``FedCDP``, which it is without a schedule; the composition is of different noises,
        none of them averaged.

    Args:
        noise_multiplier: sigma_0, that of the first round, in [0, inf]. All else is as for
            ``FedCDP``.
        schedule: The factors of the rounds; None for all the same.
        sensitivity: "clipping-norm". The published "l2-max", by which noise is scaled with the
            largest norm in the private batch, is refused.

    References:
        Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats",
        2023, section 5. Its l2-max sensitivity (section 5.2) takes the sensitivity of the batch at
        hand for that of the query: neighbours then get noise of different scales, and none at all
        where all gradients vanish, so that no finite epsilon holds.

    Example:
        >>> import hockeystick as hs
        >>> sizes = dict(total_clients=1000, clients_per_round=100, examples_per_client=50)
        >>> steps = dict(batch_size=5, local_steps=100, rounds=100, sampling="poisson")
        >>> falling = hs.schedules.Linear(end=4.85 / 15)
        >>> plan = hs.federated.FedAlphaCDP(noise_multiplier=15, **sizes, **steps, schedule=falling)
        >>> 0.410 < hs.epsilon(plan, delta=1e-5).upper < 0.411
        True
    """

    schedule: Schedule | None = field(default=None, metadata={"allowed": A_SCHEDULE})
    sensitivity: Sensitivity = Sensitivity.CLIPPING_NORM

    def __init__(
        self,
        *,
        noise_multiplier: float,
        total_clients: float,
        clients_per_round: float,
        examples_per_client: float,
        batch_size: float,
        local_steps: float,
        rounds: float,
        sampling: RecordSampling | str,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        schedule: Schedule | None = None,
        sensitivity: Sensitivity | str = Sensitivity.CLIPPING_NORM,
    ) -> None:
        set_fields(self, locals())
        self._refuse_sizes()
        if self.sensitivity is Sensitivity.L2_MAX:
            raise IncompatibleError(
                "sensitivity 'l2-max' scales the noise by the largest norm in the private batch: "
                "a neighbour without that record gets noise of another scale, or none, and no "
                "finite epsilon holds; use 'clipping-norm', a public number, or release a quantile "
                "of the norms privately (hockeystick.calibration.clipping_noise)"
            )
        if schedule is not None:
            _ = self.noise_multipliers

    @property
    def noise_multipliers(self) -> NDArray[np.float64]:
        """The noise multiplier of each round."""
        return self.noise_multiplier * factors_of(self.schedule, self.rounds, "rounds")

    @property
    def mechanism(self) -> Mechanism:
        return self._composed(self.schedule)

    @property
    def assumptions(self) -> tuple[str, ...]:
        words = plain(self.noise_multiplier)
        if self.schedule is not None and self.rounds:
            noises = self.noise_multipliers
            words = (
                f"{noises[0]:g} in the first round and {noises[-1]:g} in the last, between "
                f"{noises.min():g} and {noises.max():g},"
            )
        return self._assumed(words)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        kind = type(self.schedule).__name__.lower()
        decay = () if self.schedule is None else (f"schedule {kind}",)
        return "Fed-alphaCDP", self._details(*decay)
