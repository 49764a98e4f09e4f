"""What Fed-CDP and Fed-alphaCDP have in common: rounds of local steps with noise in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms._divisor import divided_words
from hockeystick.mechanisms._stopping import STOPPED_EARLIER
from hockeystick.mechanisms.base import Composed, Mechanism, Plan
from hockeystick.mechanisms.federated.client_level import of_clients
from hockeystick.mechanisms.federated.revealed_round import RevealedRound
from hockeystick.mechanisms.federated.units import RecordSampling, Unit
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.sampling.clipping import Clipping
from hockeystick.mechanisms.sampling.fixed_size import FixedSizeSubsampled
from hockeystick.mechanisms.sampling.poisson import PoissonSubsampled
from hockeystick.mechanisms.scope import ONE_RECORD, Fact
from hockeystick.mechanisms.training.batches import Batches, Sampling
from hockeystick.mechanisms.training.samplings import SCHEMES
from hockeystick.mechanisms.training.schedules import Schedule, factors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXAMPLES: Final = whole_numbers("n", 1, (10, 10_000))
_STEPS: Final = whole_numbers("L", 1, (1, 1000))


@dataclass(frozen=True, slots=True, init=False)
class LocalSteps(Plan):
    """Rounds in which each sampled client runs several noisy steps on batches of its records.

    What is protected is one record.
    """

    rises_with = ("clients_per_round", "batch_size", "local_steps", "rounds")
    falls_with = ("noise_multiplier", "total_clients", "examples_per_client")

    noise_multiplier: float
    total_clients: int
    clients_per_round: int
    examples_per_client: int
    batch_size: int
    local_steps: int
    rounds: int
    sampling: RecordSampling
    adjacency: Adjacency = Adjacency.ADD_REMOVE

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
        checked = {
            "noise_multiplier": _validate.real("noise_multiplier", noise_multiplier),
            **of_clients(total_clients, clients_per_round, rounds),
            "examples_per_client": _validate.count(
                "examples_per_client", examples_per_client, _EXAMPLES
            ),
            "batch_size": _validate.count("batch_size", batch_size),
            "local_steps": _validate.count("local_steps", local_steps, _STEPS),
            "sampling": _validate.choice("sampling", sampling, RecordSampling),
            "adjacency": _validate.choice("adjacency", adjacency, Adjacency),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.batch_size > self.examples_per_client:
            allowed = f"at most the number of examples per client, {self.examples_per_client}"
            raise ParameterError("batch_size", batch_size, allowed)

    @property
    def unit(self) -> Unit:
        """An instance, one record: what is protected."""
        return Unit.INSTANCE

    @property
    def scope(self) -> tuple[Fact, ...]:
        return (Fact("unit", ONE_RECORD),)

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
        """Return the rounds as one mechanism."""
        if schedule is None or self.rounds == 0:
            (once,) = self._parts(self.noise_multiplier * factors_of(None, 1))
            return once**self.rounds
        noises = self.noise_multiplier * factors_of(schedule, self.rounds, "rounds")
        parts = tuple(self._parts(noises))
        return parts[0] if len(parts) == 1 else Composed(parts)

    def _parts(self, noise_multipliers: NDArray[np.float64]) -> Iterator[Mechanism]:
        """Return the rounds with these noises, those that are alike together."""
        if self.sampling is RecordSampling.POISSON:
            batches = Batches(self.adjacency, Clipping.INDIVIDUAL, self.rate, None, None, None)
            for part in SCHEMES[Sampling.POISSON].varied(batches, noise_multipliers):
                yield part**self.local_steps
            return
        noises, counts = np.unique(noise_multipliers, return_counts=True)
        for noise, count in zip(noises.tolist(), counts.tolist(), strict=True):
            yield self._round(noise) ** count

    def _round(self, noise_multiplier: float) -> Mechanism:
        """Return one round, seen to be one in which a client takes part or not."""
        steps = self._step(noise_multiplier) ** self.local_steps
        return steps if self.participation == 1 else RevealedRound(steps, self.participation)

    def _step(self, noise_multiplier: float) -> Mechanism:
        """Return one local step of a client that takes part."""
        alone, changed = Gaussian(noise_multiplier), Gaussian(noise_multiplier / 2)
        if self.local_rate == 1:
            return changed if self.adjacency is Adjacency.REPLACE_ONE else alone
        if self.sampling is RecordSampling.TWO_STAGE_POISSON:
            return PoissonSubsampled(alone, self.local_rate, self.adjacency)
        # Another record takes the place of one that is missing.
        sizes = self.batch_size, self.examples_per_client
        clipped = self.adjacency is Adjacency.ZERO_OUT
        return FixedSizeSubsampled(changed, *sizes, self.adjacency, clipped)

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
            _noise_added(noise),
            self._seen(),
        )

    def _seen(self) -> str:
        """Return who is trusted, a sentence."""
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
        """Return the description of the sampling of records."""
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
        """Return a participating client's sampling of records."""
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
        """Return what an accountant needs to know; how the noise falls is given."""
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


def _noise_added(words: str) -> str:
    """Return what must hold of the noise."""
    return (
        "Fresh Gaussian noise is added to the sum of the clipped gradients in each local step of "
        f"each client; its standard deviation is {words} times the clipping norm."
    )
