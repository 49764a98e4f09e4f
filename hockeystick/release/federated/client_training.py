"""A client's noisy steps on its own records: Fed-CDP, Fed-alphaCDP, and PriFedSync's clients."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.federated.client_level import LocalTraining, RecordSampling
from hockeystick.mechanisms.federated.instance_level import FedAlphaCDP, FedCDP
from hockeystick.mechanisms.federated.prifedsync import PriFedSync
from hockeystick.release._values import array_of, numbers
from hockeystick.release.counting import Counter, OpensJournal, first
from hockeystick.release.federated.rounds import titles
from hockeystick.release.noise.clipped_sum import noisy_sum
from hockeystick.release.samplers import Bits, bernoulli, permutation, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

Plan = FedCDP | FedAlphaCDP | PriFedSync
Gradients = Callable[["NDArray[np.float64]", "NDArray[np.int64]"], Any]
"""Of weights and the places of records: a row for each record, of this record alone."""

_RECORDS: Final = _validate.whole_numbers("n", 0, (10, 10_000))
_ROUND: Final = _validate.whole_numbers("t", 0, (0, 1000))
_LEARNING: Final = Domain(symbol="gamma", low=0, high=1e9, typical=(0.01, 10))


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of one client in a round: how records are drawn, how many steps, the divisor."""

    coins: Fraction | None
    batch: int
    count: int
    expected: float

    def draw(self, records: int, bits: Bits) -> NDArray[np.int64]:
        """Return the places of a step's records."""
        if self.coins is not None:
            return np.flatnonzero(bernoulli(self.coins, records, bits=bits))
        return np.sort(permutation(records, bits=bits)[: self.batch])


@final
class ClientTraining(Counter[Any]):
    """One client's part of Fed-CDP, Fed-alphaCDP or PriFedSync: local steps with noise in each.

    Each of a round's local steps draws records, clips each one's gradient to C, and goes on from
    their sum + N(0, (z C)^2 I), over the expected number of records. All that leaves the client is
    computed from these sums. A batch without records is noise alone.

    Guarantees:
        What runs is what the plan accounts for: batches have exactly the plan's distribution, one
        record moves a sum by at most C (2 C where it changes), the noise is exact and has the
        plan's z of that round, there are as many steps as it says, and no round runs twice, also
        where the process was killed in the middle of one: rounds are counted before the first
        record is read, in the journal first. Who takes part in a round is ``draw_clients``' task;
        with sampling "poisson" every client runs every round and draws each record with the plan's
        rate (K/N)(B/n).

    Args:
        plan: A ``FedCDP``, ``FedAlphaCDP`` or ``PriFedSync``.
        records: How many records the client holds: with fixed-size batches at least the plan's
            number per client, for ``PriFedSync`` exactly.
        norm: The clipping norm C.
        client: The client's place in the plan, where a ``PriFedSync`` lists its clients.
        journal: What keeps the count, one for each client; see the module.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import ClientTraining
        >>> local = hs.federated.LocalTraining(
        ...     examples=20, batch_size=5, noise_multiplier=2, local_steps=3
        ... )
        >>> plan = hs.federated.PriFedSync(clients=local, rounds=2)
        >>> data = np.ones((20, 4))
        >>> client = ClientTraining(plan, len(data), norm=1.0)
        >>> model = client.train(np.zeros(4), lambda w, chosen: w - data[chosen], learning_rate=0.1)
        >>> client.counted, hs.epsilon(client.released, 1e-5).upper < hs.epsilon(plan, 1e-5).upper
        (1, True)
    """

    __slots__ = ("_bits", "_client", "_norm", "_records", "_steps")

    plan: Plan

    def __init__(
        self,
        plan: Plan,
        records: int,
        norm: float,
        *,
        client: int = 0,
        journal: str | os.PathLike[str] | OpensJournal | None = None,
        bits: Bits = secret_bits,
    ) -> None:
        if not isinstance(plan, FedCDP | FedAlphaCDP | PriFedSync):
            raise ParameterError("plan", plan, "a FedCDP, FedAlphaCDP or PriFedSync")
        self.plan, self._client, self._norm, self._bits = plan, client, norm, bits
        self._records = _validate.count("records", records, _RECORDS)
        self._steps = self._checked()
        for noise in {self._noise(index) for index in range(plan.rounds)}:
            # Raises for a norm or noise that cannot be.
            noisy_sum(np.zeros((0, 1)), norm=norm, noise_multiplier=noise)
        super().__init__(plan, journal, *titles(plan, journal, client))

    @property
    def released(self) -> Mechanism:
        """What the client's records were or may have been used for, to be accounted.

        For ``PriFedSync`` the rounds that this client ran; for the others the plan of all rounds up
        to the last one that it ran, in which drawing it or not is accounted for.
        """
        if isinstance(self.plan, PriFedSync):
            return _settings(self.plan, self._client) ** self.counted
        return first(self.plan, self.counted)

    def train(
        self,
        weights: Any,
        gradients: Gradients,
        *,
        learning_rate: float,
        round_index: int | None = None,
    ) -> NDArray[np.float64]:
        """Run one round's local steps, and return the model that the client may send.

        ``IncompatibleError`` says that the round has begun before, is beyond the plan's, or belongs
        to another process's run.

        Args:
            weights: The model to start from, which depends on this client's records only through
                what it sent before.
            gradients: Returns a row for each of the records at the places given, each computed
                from that record and the weights alone.
            learning_rate: What the noisy mean is multiplied by, public.
            round_index: The number of the round, from 0, where the server counts rounds, as in
                ``FedCDP``; otherwise the client's own next one.
        """
        model = numbers("weights", weights).copy()
        if model.ndim != 1 or model.size == 0:
            raise ParameterError("weights", f"an array of shape {model.shape}", "a row of numbers")
        if not callable(gradients):
            raise ParameterError("gradients", gradients, "a function of weights and of places")
        rate = _validate.real("learning_rate", learning_rate, _LEARNING)
        if round_index is not None:
            round_index = _validate.count("round_index", round_index, _ROUND)
        index = self._begin(round_index)
        for _ in range(self._steps.count):
            chosen = self._steps.draw(self._records, self._bits)
            rows = _checked_rows(gradients(model.copy(), chosen), len(chosen), len(model))
            noise = self._noise(index)
            total = noisy_sum(rows, norm=self._norm, noise_multiplier=noise, bits=self._bits)
            model = model - rate * total / self._steps.expected
        return model

    def _noise(self, index: int) -> float:
        """Return the noise multiplier of a round."""
        if isinstance(self.plan, FedAlphaCDP):
            return float(self.plan.noise_multipliers[index])
        if isinstance(self.plan, FedCDP):
            return self.plan.noise_multiplier
        return _settings(self.plan, self._client).noise_multiplier

    def _checked(self) -> _Steps:
        """Return the steps of a round, or raise where the client has too few records."""
        if isinstance(self.plan, PriFedSync):
            local = _settings(self.plan, self._client)
            if self._records != local.examples:
                raise ParameterError("records", self._records, f"the plan's {local.examples}")
            return _Steps(None, local.batch_size, local.local_steps, local.batch_size)
        plan = self.plan
        rates = {
            RecordSampling.POISSON: plan.rate,
            RecordSampling.TWO_STAGE_POISSON: plan.local_rate,
            RecordSampling.TWO_STAGE: None,
        }
        coins = rates[plan.sampling]
        whole = plan.local_rate == 1 and coins is None
        if coins is None and not whole and self._records < plan.examples_per_client:
            allowed = f"at least the plan's examples per client, {plan.examples_per_client}"
            raise ParameterError("records", self._records, allowed)
        batch = self._records if whole else plan.batch_size
        expected = plan.batch_size if coins is None else coins * plan.examples_per_client
        return _Steps(coins, batch, plan.local_steps, float(expected))


def _settings(plan: PriFedSync, client: int) -> LocalTraining:
    """Return what a client runs in each round of ``PriFedSync``, or raise."""
    settings = plan.settings
    if not isinstance(plan.clients, tuple):
        return settings[0]
    within = Domain(symbol="j", low=0, high=len(settings) - 1, typical=(0, 0), whole=True)
    return settings[_validate.count("client", client, within)]


def _checked_rows(rows: Any, records: int, size: int) -> NDArray[np.float64]:
    """Return the gradients of a batch, or raise without showing them."""
    allowed = f"rows of numbers, {records} of length {size}"
    table = array_of("gradients", rows, "fiu", allowed)
    if table.shape != (records, size):
        raise ParameterError("gradients", f"{table.dtype} of shape {table.shape}", allowed)
    return table.astype(np.float64)
