"""Fed-CDP and Fed-alphaCDP: federated training whose noise hides single records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.federated._local_steps import LocalSteps
from hockeystick.mechanisms.federated.units import RecordSampling, Sensitivity
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.training.schedules import A_SCHEDULE, Schedule, factors_of
from hockeystick.numerics.numerals import plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class FedCDP(LocalSteps):
    """Federated training with instance-level privacy: noise in every local step of every client.

    In each of T rounds, K of N clients are drawn; each of them takes L local steps, and each step
    uses the sum of its B records' clipped gradients + N(0, (noise_multiplier * C)^2 I). The
    unit of privacy is one record. A record is used in a step with probability ``q = (K/N) (B/n)``;
    but the L steps of a round share whether its client was drawn. So the plan says which account
    is meant:

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
        No rounds cost nothing. Where all clients take part, no round is sampled; where a batch is
        all that a client has, no step is. Under replace-one a record moves a sum by 2 C.

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

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Wei, Liu, Wu, Su and Iyengar, "Gradient-Leakage Resilient Federated Learning", ICDCS 2021;
        Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats",
        2023, section 6. Its theorem 5 calls the density ``exp(-beta ||mu||)`` Gaussian, which it
        is not, and bounds a minimiser's change under strong convexity: nothing here rests on it.
        Its claim of client-level privacy by adding up a record's is not made here either.

    Example:
        >>> import hockeystick as hs
        >>> sizes = dict(total_clients=1000, clients_per_round=100, examples_per_client=50)
        >>> plan = hs.federated.FedCDP(
        ...     noise_multiplier=6,
        ...     **sizes,
        ...     batch_size=5,
        ...     local_steps=100,
        ...     rounds=100,
        ...     sampling="poisson",
        ... )
        >>> print(hs.epsilon(plan, delta=1e-5))
        epsilon = 0.600854 at delta = 1e-05 (proven in [0.6008..., 0.6008...]; contour, add-remove)
        >>> plan.unit, float(plan.rate)
        ('instance', 0.01)
    """

    @property
    def mechanism(self) -> Mechanism:
        return self._composed(None)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the plan to apply, as sentences."""
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
        As for ``FedCDP``; the composition is of different noises, none of them averaged.

    Edge cases:
        As for ``FedCDP``. Without a schedule it is ``FedCDP``.

    Args:
        noise_multiplier: sigma_0, that of the first round, in [0, inf].
        total_clients: As for ``FedCDP``.
        clients_per_round: As for ``FedCDP``.
        examples_per_client: As for ``FedCDP``.
        batch_size: As for ``FedCDP``.
        local_steps: As for ``FedCDP``.
        rounds: As for ``FedCDP``.
        sampling: "two-stage", "two-stage-poisson" or "poisson".
        adjacency: "add-remove", "zero-out" or "replace-one", of records.
        schedule: The factors of the rounds; None for all the same.
        sensitivity: "clipping-norm". The published "l2-max", by which noise is scaled with the
            largest norm in the private batch, is refused.

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: If the sensitivity is "l2-max".

    References:
        Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats",
        2023, section 5. Its l2-max sensitivity (section 5.2) takes the sensitivity of the batch at
        hand for that of the query: neighbours then get noise of different scales, whose densities
        have an unbounded ratio, and none at all where all gradients vanish, so that no finite
        epsilon holds at any delta below the chance to tell the two. Smooth sensitivity or
        propose-test-release would be needed, or a norm released privately (``clipping_noise``).
        Also it is a maximum over layers, where M layers together move by sqrt(M) as much.
        Table VIII does not reproduce on MNIST: with 100 local steps at rate 0.01, noise from 15
        down to 4.85 costs 0.579 (linear) and 0.642 (exponential, both with t from 1 to T) after 100
        rounds by the accountant of the time, not 0.823 after 95 and 96.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.federated.FedAlphaCDP(
        ...     noise_multiplier=15,
        ...     total_clients=1000,
        ...     clients_per_round=100,
        ...     examples_per_client=50,
        ...     batch_size=5,
        ...     local_steps=100,
        ...     rounds=100,
        ...     sampling="poisson",
        ...     schedule=hs.schedules.Linear(end=4.85 / 15),
        ... )
        >>> 0.410 < hs.epsilon(plan, delta=1e-5).upper < 0.411
        True
    """

    schedule: Schedule | None = None
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
        LocalSteps.__init__(
            self,
            noise_multiplier=noise_multiplier,
            total_clients=total_clients,
            clients_per_round=clients_per_round,
            examples_per_client=examples_per_client,
            batch_size=batch_size,
            local_steps=local_steps,
            rounds=rounds,
            sampling=sampling,
            adjacency=adjacency,
        )
        if schedule is not None and not isinstance(schedule, Schedule):
            raise ParameterError("schedule", schedule, A_SCHEDULE)
        object.__setattr__(self, "schedule", schedule)
        object.__setattr__(self, "sensitivity", _public(sensitivity))
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
        """What must hold in the training code for the plan to apply, as sentences."""
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


def _public(sensitivity: object) -> Sensitivity:
    """Return what noise is scaled by, or raise where it is private."""
    chosen = _validate.choice("sensitivity", sensitivity, Sensitivity)
    if chosen is Sensitivity.L2_MAX:
        raise IncompatibleError(
            "sensitivity 'l2-max' scales the noise by the largest norm in the private batch: "
            "a neighbour without that record gets noise of another scale, or none, and no finite "
            "epsilon holds; use 'clipping-norm', a public number, or release a quantile of the "
            "norms privately (hockeystick.calibration.clipping_noise)"
        )
    return chosen
