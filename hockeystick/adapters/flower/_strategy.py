"""A strategy of Flower's that does what a plan of Fed-SDP says."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self, final

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adapters.loop import affordable, bits, checked_seed, refusal
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.release.federated import ClientRounds, Cohort
from hockeystick.release.noise.clipped_sum import NOISE, NORM

Vector = NDArray[np.float64]
_ARRAYS: Final = "a flwr.app.ArrayRecord of floating-point arrays, one at least"
_LOG: Final = logging.getLogger("flwr")
_RATE: Final = Domain(symbol="eta", low=0, high=float("inf"), high_open=True, typical=(0.1, 2))
_ONE_NODE: Final = (
    "A client is one node of the federation. What the server holds and writes to its log (who was "
    "asked, who answered, what was ignored, how long a round took) stays there."
)


@final
class PrivateFedAvg(Strategy):  # type: ignore[misc]  # theirs may have no types
    """Federated averaging with client-level privacy whose sampling amplifies what it says it does.

    Each round asks every connected client with probability q = clients_per_round / total_clients,
    by exact coins, clips what each one changed in the model as one vector to C, and adds exact
    noise to the sum:

        weights <- weights + eta (sum_i clip(w_i - weights, C) + N(0, (z C)^2 I)) / (q N),

    with N and the expected cohort q N of the plan. ``Strategy.start`` runs it, as any of Flower's.

    Guarantees:
        The weights after each round have the guarantee of ``plan``, and after fewer rounds that of
        ``spent``, as the machine computes them: each round is one of
        ``hockeystick.release.federated.ClientRounds``, counted before anybody is asked. Nothing
        that a client sends, and no silence, moves the sum by more than C or stops the round: late,
        doubled, misshapen, infinite, undefined and unreadable answers, and those of clients that
        were not asked, count as 0, and the log says so.

        The server is trusted: it sees the updates, and who takes part. What clients send beside
        weights is left out, and they are not asked to evaluate: nothing of it is noisy.

    Edge cases:
        A round in which nobody is drawn or answers releases pure noise. Clients may come and go:
        rates and divisor are the plan's. A round that is broken off is counted, and not run again.

    Args:
        plan: An ``hs.federated.FedSDP`` with Poisson sampling.
        clipping_norm: The L2 norm C that a client's update is clipped to, at least 1e-24.
        budget: What may be spent, if less than the plan: as many rounds run as it provably covers.
        learning_rate: The server's rate eta, a finite number >= 0.
        journal: A file that counts the rounds durably, for a process that may be killed; locked.
        ledger: ``hs.Ledger`` whose neighbours are clients, or its ``charging(by=, note=)``: it
            reserves all rounds before the first one, durably, and is told at the end what ran, by
            ``close`` or at the normal end of ``with PrivateFedAvg(...) as strategy``.
        key: What the run is called there: see ``hs.ledger.ReservedRun``, also for who goes on
            after a kill, and what is raised.
        not_private: A seed, for tests alone, as whoever knows it can subtract the noise. Epsilon is
            inf, and there is no journal: what it would count is not private.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.flower import PrivateFedAvg
        >>> sizes = {"total_clients": 10, "clients_per_round": 5, "rounds": 20}
        >>> plan = hs.federated.FedSDP(noise_multiplier=4, **sizes, sampling="poisson")
        >>> strategy = PrivateFedAvg(plan, clipping_norm=1.0)
        >>> print(f"{strategy.spent(1e-5):.2f} of {hs.epsilon(plan, 1e-5):.2f}")
        0.00 of 2.41
    """

    def __init__(
        self,
        plan: hs.federated.FedSDP,
        *,
        clipping_norm: float,
        budget: hs.ApproxDP | None = None,
        learning_rate: float = 1.0,
        journal: str | os.PathLike[str] | None = None,
        ledger: hs.Ledger | LedgerCharge | None = None,
        key: str | None = None,
        not_private: int | None = None,
    ) -> None:
        self.plan = _checked(plan)
        self.clipping_norm = _validate.real("clipping_norm", clipping_norm, NORM)
        self.learning_rate = _validate.real("learning_rate", learning_rate, _RATE)
        if budget is not None and not isinstance(budget, hs.ApproxDP):
            raise ParameterError("budget", budget, "an hs.ApproxDP or None")
        counting = journal if ledger is None else ledger
        self._seed, self._budget = checked_seed(not_private, budget), budget
        if self._seed is not None and counting is not None:
            raise IncompatibleError("a journal or a ledger counts private rounds, a seed has none")
        self._limit = affordable(self.plan, budget)
        self._rounds = ClientRounds(
            self.plan,
            None,
            self.clipping_norm,
            journal=on_ledger(ledger, key, journal, most=self._limit),
            bits=bits(self._seed, "rounds", 0),
        )
        self._asked: _Asked | None = None

    @property
    def counted(self) -> int:
        """The number of rounds that were or may have been released."""
        return self._rounds.counted

    @property
    def left(self) -> int:
        """The number of rounds that plan and budget still cover."""
        return max(self._limit - self.counted, 0)

    @property
    def released(self) -> hs.federated.FedSDP:
        """The plan of the rounds that are counted, to be accounted for in any way."""
        counted = self._rounds.released
        return counted if self._seed is None else replace(counted, noise_multiplier=0)

    def spent(self, delta: float) -> hs.Certified:
        """Return the epsilon of the rounds that are counted, if it was planned to stop there.

        Whoever stops because of what was released has that of the whole plan, or the budget's.
        """
        answer = hs.epsilon(self.released, _validate.one("delta", delta))
        return replace(answer, assumptions=(*answer.assumptions, _ONE_NODE))

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int | None = None,
        *arguments: Any,
        **options: Any,
    ) -> Result:
        """Run rounds, as Flower's ``Strategy.start`` does; by default all that are left.

        No round runs where plan and budget do not cover so many, or weights are no floats.
        """
        self._check()
        _Weights.of(initial_arrays)
        rounds = self.left if num_rounds is None else num_rounds
        if type(rounds) is not int or not 0 <= rounds <= self.left:
            allowed = f"an integer from 0 to {self.left}, which plan and budget have left"
            raise ParameterError("num_rounds", rounds, allowed)
        return super().start(grid, initial_arrays, rounds, *arguments, **options)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Count a round, draw its cohort, and return what to send to each of its clients."""
        self._check()
        weights, nodes = _Weights.of(arrays), sorted(set(grid.get_node_ids()))
        # From here on a kill leaves a round that is counted, whether or not it was released.
        cohort = self._rounds.draw(len(nodes), size=len(weights.numbers))
        self._asked = _Asked(server_round, weights, cohort, nodes)
        told = ConfigRecord({**config, "server-round": server_round})
        record = RecordDict({"arrays": arrays, "config": told})
        _LOG.info("configure_train: drew %d of %d clients", len(cohort.clients), len(nodes))
        return [
            Message(content=record, message_type=MessageType.TRAIN, dst_node_id=nodes[place])
            for place in cohort.clients
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Return the weights after the round; raise if no cohort was drawn for it, or was used."""
        asked, self._asked = self._asked, None
        if asked is None or asked.server_round != server_round:
            told = "each round draws its own by configure_train, and uses it once"
            raise IncompatibleError(f"no cohort waits for round {server_round}: {told}")
        for node, why in asked.accept(replies):
            _LOG.warning("aggregate_train: an answer of node %d counts as 0: %s", node, why)
        return asked.weights.moved(self.learning_rate * asked.cohort.release()), None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask nobody: what clients would say of their own data has no noise."""
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        return None

    def summary(self) -> None:
        _LOG.info("%s: %d rounds counted, %d left", self.plan, self.counted, self.left)

    def close(self, *, final: bool = True) -> None:
        """Count no more, leave the journal to others, and commit unless another goes on."""
        self._rounds.close(final=final)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(final=kind is None)

    def _check(self) -> None:
        if self.left == 0:
            raise refusal(self.plan, self.counted, self._limit, self._budget, "rounds")


def _checked(plan: object) -> hs.federated.FedSDP:
    if not isinstance(plan, hs.federated.FedSDP):
        raise ParameterError("plan", plan, "an hs.federated.FedSDP")
    if plan.sampling != "poisson":
        raise ParameterError("sampling", plan.sampling, "'poisson': each client has its own coin")
    _validate.real("noise_multiplier", plan.noise_multiplier, NOISE)
    return plan


@final
@dataclass(frozen=True, slots=True)
class _Weights:
    """The arrays of a model: their names, shapes, types, and numbers one after the other."""

    layout: tuple[tuple[str, tuple[int, ...], str], ...]
    numbers: Vector

    @classmethod
    def of(cls, record: object) -> Self:
        if not isinstance(record, ArrayRecord) or not record:
            raise ParameterError("arrays", record, _ARRAYS)
        found = {name: array.numpy() for name, array in record.items()}
        for name, array in found.items():
            if array.dtype.kind != "f":
                raise ParameterError("arrays", f"{name!r} of {array.dtype}", _ARRAYS)
        numbers = np.concatenate([array.ravel().astype(np.float64) for array in found.values()])
        if not np.isfinite(numbers).all():
            raise ParameterError("arrays", "weights that are infinite or undefined", "finite")
        layout = tuple((name, array.shape, array.dtype.str) for name, array in found.items())
        return cls(layout, numbers)

    def changed(self, record: ArrayRecord) -> Vector:
        """Return the change that leads to a client's arrays; raise if they are another model's."""
        arrays = {name: array.numpy() for name, array in record.items()}
        shapes = {name: array.shape for name, array in arrays.items()}
        of_numbers = all(array.dtype.kind in "fiu" for array in arrays.values())
        if not of_numbers or shapes != {name: shape for name, shape, _ in self.layout}:
            raise ValueError("no numbers with the names and shapes of the weights")
        found = [arrays[name].ravel().astype(np.float64) for name, _, _ in self.layout]
        return np.concatenate(found) - self.numbers

    def moved(self, change: Vector) -> ArrayRecord:
        numbers = self.numbers + change
        arrays, start = {}, 0
        for name, shape, dtype in self.layout:
            stop = start + math.prod(shape)
            with np.errstate(over="ignore"):
                arrays[name] = Array(numbers[start:stop].reshape(shape).astype(dtype))
            start = stop
        return ArrayRecord(arrays)


@final
@dataclass(frozen=True, slots=True)
class _Asked:
    """The clients of a round, the weights that they were sent, and what they answered.

    Nothing in an answer stops the round: a failure because of what a client holds would tell that.
    """

    server_round: int
    weights: _Weights
    cohort: Cohort
    nodes: Sequence[int]

    def accept(self, replies: Iterable[Message]) -> list[tuple[int, str]]:
        """Take what is right of the answers; return nodes and why an answer of theirs is not."""
        places = {self.nodes[place]: place for place in self.cohort.clients}
        refused = list[tuple[int, str]]()
        for reply in replies:
            node = reply.metadata.src_node_id
            try:
                self.cohort.accept(places.get(node, -1), self._read(reply))
            except ParameterError as error:
                refused.append((node, _line(error)))
        silent = set(places) - {node for node, _ in refused}
        silent -= {self.nodes[place] for place in self.cohort.answered}
        return refused + [(node, "there is none") for node in sorted(silent)]

    def _read(self, reply: Message) -> Vector:
        try:
            if reply.has_error():
                raise ValueError(reply.error.reason)
            (record,) = reply.content.array_records.values()
            with np.errstate(all="ignore"):
                return self.weights.changed(record)
        except Exception as error:  # whatever a client sends: the round goes on without it
            found = f"{type(error).__name__}: {_line(error)}"
            raise ParameterError("answer", found, "one update that can be read") from error


def _line(text: object) -> str:
    """Return a text that a client may have written as one short line."""
    return " ".join(str(text).split())[:160]
