"""Fed-SDP, also DP-FedAvg: federated training whose noise hides clients (user-level privacy)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms._divisor import divided_words
from hockeystick.mechanisms._stopping import STOPPED_EARLIER
from hockeystick.mechanisms._trusted import seen_of_clients
from hockeystick.mechanisms.base import Mechanism, Plan
from hockeystick.mechanisms.federated.units import ClientSampling, Unit
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling._fixed_sizes import twice_moved
from hockeystick.mechanisms.sampling.fixed_size import FixedSizeSubsampled
from hockeystick.mechanisms.sampling.poisson import PoissonSubsampled
from hockeystick.mechanisms.sampling.revealed_sample import RevealedSample
from hockeystick.mechanisms.scope import ONE_CLIENT, Fact
from hockeystick.numerics.numerals import plain

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

    How clients are drawn:

    - "poisson": each client by a coin of its own, so that the number that takes part varies.
    - "fixed-size": exactly ``clients_per_round``, every choice of that many equally likely, as a
      server does that picks K of N at random. Under add-remove too another client takes the place
      of one that is missing, so that the sum moves by up to 2 C: about as costly as "poisson" with
      half the noise.
    - "revealed": exactly that many, and whoever sees the releases may know who took part.

    Clients that drop out of a round cost nothing: each counts as a change of zero, with "poisson"
    as a smaller probability of taking part. This holds also where a client drops out because of
    its own data, unless it may be seen who takes part, but not where another client takes its
    place. What does matter is the noise: where clients or other parties each add a share of it,
    one that drops out takes its share away. With 10 % of equal shares lost, noise 1.5 counts as
    ``1.5 * sqrt(0.9)``, which is 1.423.

    With adaptive clipping (Andrew et al.), which releases in each round also how many changes were
    clipped, noise z on the sum and z_b on that count, each over its own sensitivity, are together
    ``JointGaussian([z, z_b])``: here ``noise_multiplier = (z**-2 + z_b**-2)**-0.5``.

    Guarantees:
        With sampling "poisson" and "revealed" exact, with "fixed-size" the ends of
        ``FixedSizeSubsampled``. "revealed" is also an upper bound for who does not see who takes
        part. Noise that each client adds on its own before anything is sent is covered, where it
        is ``noise_multiplier * C`` for every single one, by "revealed".

    Edge cases:
        No rounds cost nothing. Where all clients are drawn, the sampling does not matter. Under
        replace-one a client moves the sum by up to 2 C, which is accounted.

    Args:
        noise_multiplier: Standard deviation of the noise on the sum over the clipping norm, in
            [0, inf].
        total_clients: The number N of clients, an integer >= 1.
        clients_per_round: How many are drawn in a round, an integer from 1 to total_clients; with
            "poisson", on average.
        rounds: The number T of rounds, an integer >= 0.
        sampling: "poisson" (each client by a coin of its own), "fixed-size" (exactly
            clients_per_round, at random) or "revealed" (it may be known who takes part).
        adjacency: "add-remove", "zero-out" or "replace-one", of clients; not "add-remove" with
            "revealed", where the list of those who take part itself shows that a client exists.

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: If the sampling has no analysis under the adjacency.

    References:
        Geyer, Klein and Nabi, "Differentially Private Federated Learning: A Client Level
        Perspective", 2017; McMahan, Ramage, Talwar and Zhang, "Learning Differentially Private
        Recurrent Language Models", ICLR 2018. Andrew, Thakkar, McMahan and Ramaswamy,
        "Differentially Private Learning with Adaptive Clipping", NeurIPS 2021, theorem 1. Wei, Liu,
        Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023, call
        it Fed-SDP; their figures for it are those of Poisson sampling and one round more than is
        stated.

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
        >>> plan.unit
        'client'
    """

    rises_with = ("clients_per_round", "rounds")
    falls_with = ("noise_multiplier", "total_clients")

    noise_multiplier: float
    total_clients: int
    clients_per_round: int
    rounds: int
    sampling: ClientSampling
    adjacency: Adjacency = Adjacency.ADD_REMOVE

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
        fields = {
            "noise_multiplier": _validate.real("noise_multiplier", noise_multiplier),
            **of_clients(total_clients, clients_per_round, rounds),
            "sampling": _validate.choice("sampling", sampling, ClientSampling),
            "adjacency": _validate.choice("adjacency", adjacency, Adjacency),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if self.sampling is ClientSampling.REVEALED and self.adjacency is Adjacency.ADD_REMOVE:
            raise IncompatibleError(
                "sampling 'revealed' has no analysis under add-remove, where the list of those "
                "who take part shows that a client exists; use adjacency zero-out or replace-one"
            )

    @property
    def unit(self) -> Unit:
        """A client: what is protected."""
        return Unit.CLIENT

    @property
    def participation(self) -> Fraction:
        """The probability of a client to take part in a round."""
        return Fraction(self.clients_per_round, self.total_clients)

    @property
    def mechanism(self) -> Mechanism:
        return self._round**self.rounds

    @property
    def _round(self) -> Mechanism:
        """One round."""
        changed = Gaussian(self.noise_multiplier / 2)
        whole = changed if self.adjacency is Adjacency.REPLACE_ONE else self._noise
        if self.participation == 1:
            return whole
        if self.sampling is ClientSampling.REVEALED:
            return RevealedSample(whole, self.participation)
        if self.sampling is ClientSampling.POISSON:
            return PoissonSubsampled(self._noise, self.participation, self.adjacency)
        # Another client takes the place of one that is missing.
        sizes = self.clients_per_round, self.total_clients
        clipped = self.adjacency is Adjacency.ZERO_OUT
        return FixedSizeSubsampled(changed, *sizes, self.adjacency, clipped)

    @property
    def _noise(self) -> Gaussian:
        """The noise in units of the clipping norm."""
        return Gaussian(self.noise_multiplier)

    @property
    def scope(self) -> tuple[Fact, ...]:
        return (Fact("unit", ONE_CLIENT),)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the plan to apply, as sentences."""
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
            seen_of_clients(drawn_seen=self.sampling is ClientSampling.REVEALED),
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


def of_clients(total_clients: float, clients_per_round: float, rounds: float) -> dict[str, int]:
    """Return the numbers that every federated plan has, or raise."""
    every = _validate.count("total_clients", total_clients, CLIENTS)
    drawn = _validate.count("clients_per_round", clients_per_round, DRAWN)
    if drawn > every:
        allowed = f"at most the number of clients, {every}"
        raise ParameterError("clients_per_round", clients_per_round, allowed)
    return {
        "total_clients": every,
        "clients_per_round": drawn,
        "rounds": _validate.count("rounds", rounds, ROUNDS),
    }


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
