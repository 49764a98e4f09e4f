"""Federated training: units of privacy, client-level plans, and one client alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

from hockeystick._validate import WordEnum, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import (
    STOPPED_EARLIER,
    Mechanism,
    Plan,
    divided_words,
    registered,
    set_fields,
)
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.sampling.fixed_size import FixedSizeSubsampled, twice_moved
from hockeystick.mechanisms.sampling.poisson import Clipping, OnRevealedSample, RevealedSample
from hockeystick.mechanisms.scope import ONE_CLIENT, ONE_RECORD, Fact
from hockeystick.mechanisms.training.samplings import SCHEMES, Batches, Sampling
from hockeystick.numerics.numerals import plain


@registered
class Unit(WordEnum):
    """What two neighbouring data sets differ by.

    - "client": all the records of one client.
    - "instance": one record of one client.
    """

    CLIENT = "client"
    INSTANCE = "instance"

    def meaning(self, adjacency: Adjacency) -> str:
        """Return what neighbouring data sets are, as a sentence for a reviewer."""
        return f"{_PROTECTED[self]} {_CHANGES[adjacency].format(_THINGS[self])}"


_PROTECTED = {
    Unit.CLIENT: "What is protected is a client with all its records (client level):",
    Unit.INSTANCE: "What is protected is one record of one client (instance level):",
}
_THINGS = {Unit.CLIENT: "client's data", Unit.INSTANCE: "record"}
_CHANGES = {
    Adjacency.ADD_REMOVE: "neighbouring data sets differ by one {} added or removed.",
    Adjacency.REPLACE_ONE: "neighbouring data sets differ by one {} with other values.",
    Adjacency.ZERO_OUT: "neighbouring data sets differ by one {} that contributes zero.",
}


@registered
class ClientSampling(WordEnum):
    """How clients are drawn, and who sees it.

    - "poisson": each client in each round by a coin of its own, and nobody sees it.
    - "fixed-size": a random set of a fixed size in each round; nobody sees it.
    - "revealed": the same, and the set is seen by whom the plan protects against, as
      a server sees who takes part.
    """

    POISSON = "poisson"
    FIXED_SIZE = "fixed-size"
    REVEALED = "revealed"


@registered
class RecordSampling(WordEnum):
    """How the records of a local step are drawn.

    - "two-stage": clients are drawn for a round, which is seen; each of them then
      draws a random set of a fixed size of its own records for each local step, which is not.
    - "two-stage-poisson": the same, but a client draws each of its records by a coin of its own.
    - "poisson": each record in each local step by a coin of its own, with the same
      chance on average; nobody sees any of it.
    """

    TWO_STAGE = "two-stage"
    TWO_STAGE_POISSON = "two-stage-poisson"
    POISSON = "poisson"


@registered
class Sensitivity(WordEnum):
    """What the noise of a local step is scaled by.

    - "clipping-norm": the clipping norm, a public number.
    - ``L2_MAX`` ("l2-max"): the largest norm in the private batch; it has no guarantee at all.
    """

    CLIPPING_NORM = "clipping-norm"
    L2_MAX = "l2-max"


CLIENTS: Final = whole_numbers("N", 1, (100, 10_000))
DRAWN: Final = whole_numbers("K", 1, (5, 1000))
ROUNDS: Final = whole_numbers("T", 0, (3, 1000))
_SECRET: Final = "who takes part stays secret, from the server too if it is not trusted"


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class FedSDP(Plan):
    """DP-FedAvg: federated training with client-level (user-level) privacy, noise in every round.

    In each round some of the clients are drawn, each trains on its own data as it likes, and the
    change of its model is clipped as one vector to the clipping norm C. What is released is their
    sum + N(0, (noise_multiplier * C)^2 I), once a round. The unit of privacy is a client with all
    that it holds: nothing is said about how it trains, and nothing hides a record from a client.
    DP-FedSGD is the same with one step of training.

    With "fixed-size" another client takes the place of one that is missing, under add-remove too,
    so that the sum moves by up to 2 C: about as costly as "poisson" with half the noise.

    Clients that drop out of a round cost nothing: each counts as a change of zero, with "poisson"
    as a smaller probability of taking part; also where one drops out because of its own data,
    unless it may be seen who takes part, but not where another client takes its place. Where each
    party adds a share of the noise, one that drops out takes its share away.

    With adaptive clipping (Andrew et al.), which releases in each round also how many changes were
    clipped, noise z on the sum and z_b on that count, each over its own sensitivity, are together
    ``JointGaussian([z, z_b])``: here ``noise_multiplier = (z**-2 + z_b**-2)**-0.5``.

    Guarantees:
        With sampling "poisson" and "revealed" exact, with "fixed-size" the ends of
        ``FixedSizeSubsampled``. "revealed" is also an upper bound for who does not see who takes
        part. Noise that each client adds on its own before anything is sent is covered, where it
        is ``noise_multiplier * C`` for every single one, by "revealed".

    Args:
        noise_multiplier: Standard deviation of the noise on the sum over the clipping norm, in
            [0, inf].
        total_clients: The number N of clients, an integer >= 1.
        clients_per_round: How many are drawn in a round, an integer from 1 to total_clients; with
            "poisson", on average.
        rounds: The number T of rounds, an integer >= 0.
        sampling: "poisson" (each client by a coin of its own), "fixed-size" (every choice of
            exactly clients_per_round equally likely) or "revealed" (the same, and whoever sees the
            releases may know who took part).
        adjacency: "add-remove", "zero-out" or "replace-one", of clients; not "add-remove" with
            "revealed", where the list of those who take part itself shows that a client exists.
            Under replace-one a client moves the sum by up to 2 C, which is accounted.

    References:
        Geyer, Klein and Nabi, "Differentially Private Federated Learning: A Client Level
        Perspective", 2017; McMahan, Ramage, Talwar and Zhang, "Learning Differentially Private
        Recurrent Language Models", ICLR 2018. Andrew, Thakkar, McMahan and Ramaswamy,
        "Differentially Private Learning with Adaptive Clipping", NeurIPS 2021, theorem 1. Wei, Liu,
        Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023, call
        it Fed-SDP.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.federated.FedSDP(
        ...     noise_multiplier=6,
        ...     total_clients=1000,
        ...     clients_per_round=100,
        ...     rounds=100,
        ...     sampling="poisson",
        ... )
        >>> print(hs.epsilon(plan, delta=1e-5))
        epsilon = 0.615679 at delta = 1e-05 (proven in [0.6156..., 0.6156...]; contour, add-remove)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("clients_per_round", "rounds")
    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier", "total_clients")
    noise_multiplier: float
    total_clients: int = field(metadata={"domain": CLIENTS})
    clients_per_round: int = field(metadata={"domain": DRAWN})
    rounds: int = field(metadata={"domain": ROUNDS})
    sampling: ClientSampling
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit = Unit.CLIENT
    scope: ClassVar[tuple[Fact, ...]] = (Fact("unit", ONE_CLIENT),)

    def __init__(
        self,
        *,
        noise_multiplier: float,
        total_clients: float,
        clients_per_round: float,
        rounds: float,
        sampling: ClientSampling | str,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals())
        refuse_more_drawn(self)
        if self.sampling is ClientSampling.REVEALED and self.adjacency is Adjacency.ADD_REMOVE:
            raise IncompatibleError(
                "sampling 'revealed' has no analysis under add-remove, where the list of those "
                "who take part shows that a client exists; use adjacency zero-out or replace-one"
            )

    @property
    def participation(self) -> Fraction:
        """The probability of a client to take part in a round."""
        return Fraction(self.clients_per_round, self.total_clients)

    @property
    def mechanism(self) -> Mechanism:
        return self._round**self.rounds

    @property
    def _round(self) -> Mechanism:
        rate, sizes = self.participation, (self.clients_per_round, self.total_clients)
        batches = Batches(self.adjacency, Clipping.INDIVIDUAL, rate, *sizes, None)
        if self.sampling is not ClientSampling.REVEALED:
            return SCHEMES[Sampling(self.sampling)].mechanism(batches, self.noise_multiplier)
        moved = 2 if self.adjacency is Adjacency.REPLACE_ONE else 1
        whole = Gaussian(self.noise_multiplier / moved)
        return whole if rate == 1 else RevealedSample(whole, rate)

    @property
    def assumptions(self) -> tuple[str, ...]:
        # Noise that each client adds in full is covered only where it may be seen who takes part.
        revealed = self.sampling is ClientSampling.REVEALED
        also = " and who takes part" if revealed else ""
        added = "each client adds all of this noise to its own change, or " if revealed else ""
        return (
            self.unit.meaning(self.adjacency),
            drawn_words(self),
            "The change of a client's model is clipped as one vector to the clipping norm in L2; "
            "where each of M layers is clipped on its own, the norm meant is sqrt(M) times theirs.",
            "Fresh Gaussian noise is added to the sum of the clipped changes in each round; its "
            f"standard deviation is {plain(self.noise_multiplier)} times the clipping norm. Where "
            "each client or other party adds a share of it, one that drops out takes its share "
            "away: the shares that arrive must make up all of it.",
            divided_words(self.adjacency, "how many clients took part", "clients"),
            f"The number of rounds is fixed in advance, {self.rounds:,}, and every release counts "
            f"as one; {STOPPED_EARLIER}",
            f"Whoever is not trusted sees the noisy sums of all rounds{also}, and so every model, "
            "but nothing without the noise: the server is trusted, as it sees each client's "
            f"change, unless {added}secure aggregation shows it noisy sums alone.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "Fed-SDP", (
            f"{self.unit} level",
            f"{self.sampling} sampling",
            f"noise multiplier {self.noise_multiplier:g}",
            f"{self.clients_per_round} of {self.total_clients} clients in each of {self.rounds} "
            "rounds",
            self.adjacency,
        )


def refuse_more_drawn(plan: Any) -> None:
    """Raise where a round draws more clients than there are."""
    if plan.clients_per_round > plan.total_clients:
        allowed = f"at most the number of clients, {plan.total_clients}"
        raise ParameterError("clients_per_round", plan.clients_per_round, allowed)


def drawn_words(plan: FedSDP) -> str:
    """Return the description of the sampling of clients, and who may drop out, a sentence or two.

    By coins, a client that takes part with probability p <= q, given all that happened before, has
    ``(1 - p) P + p Q``, which is ``(1 - q) P + q Q`` with some of its releases drawn anew from P: p
    may depend on its own data, as P does not. Of sets of a fixed size, one that drops out has a
    change of zero, which is within the clipping norm.
    """
    if plan.participation == 1:
        return (
            "Every client takes part in every round; one that drops out, though not because of "
            "its data where that is seen, counts as a change of zero."
        )
    if plan.sampling is ClientSampling.POISSON:
        return (
            "Each client takes part in each round independently with probability at most "
            f"{float(plan.participation):.6g}: one that drops out, even because of its own data, "
            "only lowers its own, as long as this changes nothing for the others; and "
            f"{_SECRET}."
        )
    drawn = (
        f"Each round draws exactly {plan.clients_per_round:,} of {plan.total_clients:,} clients, "
        "every choice of that many equally likely and made afresh; "
    )
    if plan.sampling is ClientSampling.REVEALED:
        return (
            f"{drawn}who takes part may be known. One that is drawn and drops out, though not "
            "because of its data, counts as a change of zero, as long as no other takes its place."
        )
    return (
        f"{drawn}{_SECRET}. One that is drawn and drops out, by chance or because of its own data, "
        "counts as a change of zero, as long as no other takes its place."
        f"{twice_moved(plan.adjacency, 'client')}"
    )


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class LocalTraining(Plan):
    """One round of noisy gradient descent on one client's own examples.

    Each of ``local_steps`` steps draws one of the sets of ``batch_size`` of the client's examples,
    clips each gradient to C, and releases their sum + N(0, (noise_multiplier * C)^2 I). Under
    replace-one the sum moves by up to 2C, so that a step is

        FixedSizeSubsampled(Gaussian(noise_multiplier / 2), batch_size, examples).

    Guarantees:
        Those of ``FixedSizeSubsampled`` under replace-one: the upper end of many steps composes
        ``C_q(G_(2/noise_multiplier))``, q = batch_size / examples; the lower end is what data
        reach whose other gradients are all alike. Momentum, Adam and any other use of the noisy
        sums is post-processing.

    Args:
        examples: How many examples the client has, an integer >= 1.
        batch_size: Size of each batch, an integer from 1 to examples.
        noise_multiplier: Standard deviation of the noise over the clipping norm, in [0, inf]; 0 has
            an analysis only for batches of all examples. Papers that add N(0, 4 C^2 sigma^2) have
            sigma = noise_multiplier / 2.
        local_steps: Steps of a round, an integer >= 0.

    References:
        Zheng, Chen, Long and Su, "Federated f-Differential Privacy", AISTATS 2021, algorithm 2.

    Example:
        >>> import hockeystick as hs
        >>> local = hs.federated.LocalTraining(
        ...     examples=600, batch_size=16, noise_multiplier=2.0, local_steps=38
        ... )
        >>> print(local.mechanism)
        fixed-size-subsampled Gaussian (noise multiplier 1, 16 of 600, replace-one) x 38
    """

    rises_with: ClassVar[tuple[str, ...]] = ("batch_size", "local_steps")
    falls_with: ClassVar[tuple[str, ...]] = ("examples", "noise_multiplier")
    examples: int
    batch_size: int
    noise_multiplier: float
    local_steps: int = field(metadata={"domain": whole_numbers("K", 0, (1, 1000))})
    adjacency = Adjacency.REPLACE_ONE
    scope: ClassVar[tuple[Fact, ...]] = (Fact("unit", ONE_RECORD),)

    def __init__(
        self, *, examples: float, batch_size: float, noise_multiplier: float, local_steps: float
    ) -> None:
        set_fields(self, locals())
        if self.batch_size > self.examples:
            allowed = f"at most the number of examples, {self.examples}"
            raise ParameterError("batch_size", batch_size, allowed)

    @property
    def rate(self) -> Fraction:
        """The chance of an example to be in a batch."""
        return Fraction(self.batch_size, self.examples)

    @property
    def mechanism(self) -> Mechanism:
        noise = Gaussian(self.noise_multiplier / 2.0)
        return FixedSizeSubsampled(noise, self.batch_size, self.examples) ** self.local_steps

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning,
            f"Each of {self.local_steps:,} steps of a round draws one of all sets of "
            f"{self.batch_size:,} of the client's {self.examples:,} examples, equally likely, "
            "afresh in each step, and kept secret.",
            "Each example's gradient is clipped, and fresh Gaussian noise is added to their sum in "
            f"each step; its standard deviation is {plain(self.noise_multiplier)} times the "
            "clipping norm.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "local training", (
            f"{self.batch_size} of {self.examples} examples",
            f"noise multiplier {self.noise_multiplier:g}",
            f"{self.local_steps} steps a round",
            self.adjacency,
        )


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class RevealedRound(OnRevealedSample):
    """Runs that share one coin: with some probability all of them happen, and all see whether.

    In a round of federated training a client is drawn or not; where it is, it runs ``inner``, which
    may be many local steps. The coin is seen, and is the same for all of them:

        delta(eps) = rate * delta_inner(eps),    K(c) = ln(1 + rate (e^(K_inner(c)) - 1)),

    with K the cumulant generating function of the privacy loss, in each direction. Steps that share
    their coin are not sampled independently: n of them cost more than n runs of
    ``RevealedSample``, which flips one for each.

    Guarantees:
        An upper bound for whoever sees who takes part, by Renyi divergences of all orders; exact
        where ``inner`` is one run, or nothing but Gaussians. The lower end of runs of a sampled
        Gaussian is that of the sum of their outputs, which whoever sees them can form: close by
        where the noise is large, half as much where it is small. Elsewhere it is that of a single
        run inside, and far below.

    Args:
        inner: What is run with the client's data, one run or a composition.
        rate: Probability of the client to be drawn in one round, in [0, 1].

    References:
        Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
        Function", AISTATS 2022, theorem 10, for the adaptive composition inside; that a choice
        which is seen averages hockey-stick divergences is their definition.

    Example:
        >>> import hockeystick as hs
        >>> local = hs.FixedSizeSubsampled(hs.Gaussian(3.0), 5, 500) ** 100
        >>> print(hs.federated.RevealedRound(local, rate=0.1) ** 60)
        revealed round (rate 0.1, fixed-size-subsampled Gaussian (noise multiplier 3, 5 of 500, \
replace-one) x 100) x 60
    """

    def _drawn(self) -> str:
        return (
            f"A client takes part in each round with probability {float(self.rate):g}, "
            "independently of the other rounds and of the data; who takes part may be known."
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "revealed round", (f"rate {float(self.rate):g}", str(self.inner))
