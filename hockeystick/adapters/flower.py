"""Flower with proven accounts: an accountant, a strategy, and private clients."""

from __future__ import annotations

import logging
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import PARAMETERS, Domain, WordEnum, whole_numbers
from hockeystick.accountants.base import TOLERANCE
from hockeystick.adapters import missing
from hockeystick.adapters.loop import affordable, bits, checked_seed, refusal
from hockeystick.adjacency import Adjacency
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.ledger import LedgerCharge
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.mechanisms import FixedSizeSubsampled, Gaussian, Mechanism, PoissonSubsampled
from hockeystick.release.federated import ClientRounds, Cohort
from hockeystick.release.noise.clipped_sum import NOISE, NORM

try:
    from flwr import app, serverapp
    from flwr.serverapp import GaussianPrivacyEvent, PrivacyConfig, SamplingMethod
    from flwr.serverapp.strategy import Result, Strategy
except ModuleNotFoundError as _error:
    raise missing(_error, "flwr", "flower") from _error

__all__ = ["HockeystickAccountant", "PrivateFedAvg", "train_locally"]

_NAME: Final = "hockeystick"
_VERSION: Final = 1
# Flower's own, whose states have the same events.
_READABLE: Final = (_NAME, "rdp")
_COUNT: Final = whole_numbers("n", 1, (1, 1000))
_LIMIT: Final = Domain(symbol="eps", low=0, high=float("inf"), low_open=True, typical=(0.1, 20))
_Events = Counter[GaussianPrivacyEvent]


class Cohorts(WordEnum):
    """Whether those whom the guarantee is against see who takes part in a round."""

    SECRET = "secret"
    SEEN = "seen"


_ADJACENCY: Final[Mapping[serverapp.NeighboringRelation, Adjacency]] = {
    serverapp.NeighboringRelation.ADD_OR_REMOVE_ONE: Adjacency.ADD_REMOVE,
    serverapp.NeighboringRelation.REPLACE_ONE: Adjacency.REPLACE_ONE,
}
_CLIENT: Final = (
    "What is protected is a client with all that it holds, which is one node; metrics that clients "
    "send, evaluations among them, are released without noise, and are not covered."
)
_POISSON: Final = (
    "Each client takes part in each round independently, and the noisy sum is divided by the "
    "expected size of a cohort; Flower's own strategies draw and divide otherwise."
)
_OF_FIXED_SIZE: Final = (
    "A cohort has a fixed size and is averaged, so that a client that joins displaces another one: "
    "the clipped sum moves by twice the norm, against which the noise on the sum counts half.",
    "All clients of the cohort answer, or whether they do does not depend on their data: Flower "
    "gives up a round with an answer missing, with an error or with unequal weights, which shows.",
    "Each update is clipped as one vector, by the server or by clients that do as they are told, "
    "and none is zero or undefined: Flower's clipping stops at a zero, and lets NaN through.",
    "Flower adds in floats, numpy's global generator draws the noise, and Python's the cohorts: "
    "nobody seeds them or sees their state, and what rounding tells is not covered.",
)
_ANY_COHORT: Final = (
    "A client may be in every cohort: who takes part is not taken to be random or secret."
)
_CONNECTED: Final = (
    "In each round all clients of the population are connected: Flower draws from those that are, "
    "and of fewer it draws each one more often."
)


@final
class HockeystickAccountant:
    """Flower's ``PrivacyAccountant`` whose answers are the upper ends of proven intervals.

    It takes the place of ``RdpAccountant`` wherever a strategy of Flower's has an ``accountant``.
    Those draw ``sample_size`` of the connected clients, add ``N(0, (z C)^2)`` to the sum of their
    clipped updates and divide by ``sample_size``. Another client takes the place of one that is
    missing, so that the sum moves by 2 C under add-or-remove as under replace: a round is
    ``FixedSizeSubsampled`` of a Gaussian with noise multiplier z / 2. Where each client is drawn on
    its own (``SamplingMethod.POISSON``), and sums are divided by the expected size, it is
    ``PoissonSubsampled`` with z. Answers are those of ``account``, on what ``spent`` assumes.

    Args:
        config: Flower's: delta, population, neighbours, sampling, and the limit if there is one.
        cohorts: "secret" if nobody but the server learns who takes part in a round; "seen" is for
            a client that is in every cohort: nothing is amplified, whoever draws and is connected.
        tolerance: The relative width that is asked of the interval, from 1e-10 to 0.1.

    Example:
        >>> from flwr.serverapp import GaussianPrivacyEvent, PrivacyConfig
        >>> from flwr.serverapp import NeighboringRelation, SamplingMethod
        >>> from hockeystick.adapters.flower import HockeystickAccountant
        >>> config = PrivacyConfig(
        ...     1e-5, 10, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION
        ... )
        >>> for cohorts in ("secret", "seen"):
        ...     accountant = HockeystickAccountant(config, cohorts=cohorts)
        ...     accountant.compose(GaussianPrivacyEvent(4.0, 9, 10), 20)
        ...     print(f"{cohorts:7}{accountant.get_epsilon(1e-5):.3f}")
        secret 10.326
        seen   11.480
    """

    def __init__(
        self,
        config: PrivacyConfig,
        *,
        cohorts: Cohorts | str = Cohorts.SECRET,
        tolerance: float = TOLERANCE,
    ) -> None:
        if not isinstance(config, PrivacyConfig):
            raise ParameterError("config", config, "a PrivacyConfig of flwr.serverapp")
        self.config: Final = config
        self._cohorts = _validate.choice("cohorts", cohorts, Cohorts)
        self._tolerance = _validate.real("tolerance", tolerance, PARAMETERS["tolerance"])
        self._composed = _Events()
        self._is_as_loaded, self._run = True, secrets.token_hex(16)

    @property
    def num_releases(self) -> int:
        return self._composed.total()

    @property
    def account(self) -> hs.Accountant:
        """What is composed as an ``hs.Accountant``."""
        return self._account(self._composed)

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        events = self._checked(event, count)
        self._is_as_loaded = False
        self._composed += events

    def get_epsilon(self, delta: float) -> float:
        return float(self.spent(delta).upper)

    def get_delta(self, epsilon: float) -> float:
        at = _validate.one("epsilon", epsilon)
        return float(self.account.delta(at, tolerance=self._tolerance).upper)

    def get_privacy_spent(self, delta: float | None = None) -> serverapp.PrivacySpent:
        at = self.config.target_delta if delta is None else delta
        return serverapp.PrivacySpent(self.get_epsilon(at), at, self.num_releases, _NAME)

    def spent(self, delta: float | None = None) -> hs.Certified:
        """Return epsilon as a proven interval, with all that must hold in Flower for it."""
        given = self.config.target_delta if delta is None else delta
        answer = self.account.epsilon(_validate.one("delta", given), tolerance=self._tolerance)
        name, more = answer.accountant, [_CLIENT, _POISSON]
        if self.config.sampling_method is not SamplingMethod.POISSON:
            drawn = _CONNECTED if self._cohorts is Cohorts.SECRET else _ANY_COHORT
            name, more = f"{name} in real arithmetic", [_CLIENT, drawn, *_OF_FIXED_SIZE]
        return replace(answer, accountant=name, assumptions=(*answer.assumptions, *more))

    def would_exceed(
        self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        limit = self.config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise ParameterError("max_epsilon", None, "given, here or in the config")
        limit = _validate.real("max_epsilon", limit, _LIMIT)
        then = self._account(self._composed + self._checked(event, count))
        epsilon = then.epsilon(self.config.target_delta, tolerance=self._tolerance)
        return bool(epsilon.upper > limit)

    def state_dict(self) -> dict[str, object]:
        composed = self._composed.items()
        return {
            "schema_version": _VERSION,
            "backend": _NAME,
            "config": _to_json(self.config),
            "run": self._run,
            "compositions": [{"event": asdict(one), "count": count} for one, count in composed],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state, also of ``RdpAccountant``, where nothing is composed yet.

        Later, an earlier state of this very accountant changes nothing, and another is refused;
        later states of a run that was taken over are read while nothing was composed since. A state
        does not know of later rounds: write one after each, before the model leaves the server.
        """
        found = self._read(state)
        known = state.get("run") == self._run
        if not self._composed:
            self._composed, self._run = found, str(state.get("run", self._run))
        elif known and self._is_as_loaded and found >= self._composed:
            self._composed = found
        elif not (known and self._composed >= found):
            raise IncompatibleError(
                f"of the {self.num_releases} releases that are composed here the state may not "
                "have all: loading it would forget them; load it into a new accountant, before its "
                "first one"
            )

    def _account(self, composed: _Events) -> hs.Accountant:
        made = hs.Accountant()
        for event, count in composed.items():
            made.step(self._as_mechanism(event), count=count)
        return made

    def _as_mechanism(self, event: GaussianPrivacyEvent) -> Mechanism:
        drawn, clients = event.sample_size, event.population_size
        if self.config.sampling_method is SamplingMethod.POISSON:
            return PoissonSubsampled(Gaussian(event.noise_multiplier), Fraction(drawn, clients))
        displaced = Gaussian(event.noise_multiplier / 2)
        if self._cohorts is Cohorts.SEEN:
            return displaced
        adjacency = _ADJACENCY[self.config.neighboring_relation]
        return FixedSizeSubsampled(displaced, drawn, clients, adjacency)

    def _checked(self, event: object, count: object) -> _Events:
        if not isinstance(event, GaussianPrivacyEvent):
            raise ParameterError("event", event, "a GaussianPrivacyEvent of flwr.serverapp")
        if event.population_size != self.config.population_size:
            allowed = f"the population size of the config, {self.config.population_size}"
            raise ParameterError("population_size", event.population_size, allowed)
        return _Events({event: _validate.count("count", count, _COUNT)})

    def _read(self, state: object) -> _Events:
        if not isinstance(state, Mapping) or state.get("schema_version") != _VERSION:
            raise ParameterError("state", state, f"a state_dict with schema_version {_VERSION}")
        config = _to_json(self.config)
        for name, known in (("backend", _READABLE), ("config", (config,))):
            if state.get(name) not in known:
                raise ParameterError(name, state.get(name), " or ".join(map(repr, known)))
        entries: Any = state.get("compositions")
        found = _Events()
        for entry in entries if isinstance(entries, list | tuple) else [entries]:
            try:
                event, count = GaussianPrivacyEvent(**entry["event"]), entry["count"]
            except (KeyError, TypeError, ValueError) as error:
                allowed = "a list of events with counts, as state_dict has them"
                raise ParameterError("compositions", entry, allowed) from error
            found += self._checked(event, count)
        return found


def _to_json(config: PrivacyConfig) -> dict[str, object]:
    return {name: getattr(value, "value", value) for name, value in asdict(config).items()}


# The strategy of a server.

Vector = NDArray[np.float64]
_ARRAYS: Final = "a flwr.app.ArrayRecord of floating-point arrays, one at least"
_LOG: Final = logging.getLogger("flwr")
_ETA: Final = Domain(symbol="eta", low=0, high=float("inf"), high_open=True, typical=(0.1, 2))
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
        were not asked, count as 0, and the log says so. The server is trusted: it sees the updates,
        and who takes part. What clients send beside weights is left out.

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
        key: What the run is called there: see ``hs.ledger.ReservedRun``.
        not_private: A seed, for tests alone, as whoever knows it can subtract the noise: epsilon is
            inf, and there is neither journal nor ledger.

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
        if not isinstance(plan, hs.federated.FedSDP):
            raise ParameterError("plan", plan, "an hs.federated.FedSDP")
        if plan.sampling != "poisson":
            allowed = "'poisson': each client has its own coin"
            raise ParameterError("sampling", plan.sampling, allowed)
        _validate.real("noise_multiplier", plan.noise_multiplier, NOISE)
        self.plan: hs.federated.FedSDP = plan
        self.clipping_norm: float = _validate.real("clipping_norm", clipping_norm, NORM)
        self.learning_rate: float = _validate.real("learning_rate", learning_rate, _ETA)
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
        grid: serverapp.Grid,
        initial_arrays: app.ArrayRecord,
        num_rounds: int | None = None,
        *arguments: Any,
        **options: Any,
    ) -> Result:
        """Run rounds, as Flower's ``Strategy.start`` does; by default all that are left."""
        self._check()
        _Weights.of(initial_arrays)
        rounds = self.left if num_rounds is None else num_rounds
        if type(rounds) is not int or not 0 <= rounds <= self.left:
            allowed = f"an integer from 0 to {self.left}, which plan and budget have left"
            raise ParameterError("num_rounds", rounds, allowed)
        return super().start(grid, initial_arrays, rounds, *arguments, **options)

    def configure_train(
        self,
        server_round: int,
        arrays: app.ArrayRecord,
        config: app.ConfigRecord,
        grid: serverapp.Grid,
    ) -> Iterable[app.Message]:
        """Count a round, draw its cohort, and return what to send to each of its clients."""
        self._check()
        weights, nodes = _Weights.of(arrays), sorted(set(grid.get_node_ids()))
        # From here on a kill leaves a round that is counted, whether or not it was released.
        cohort = self._rounds.draw(len(nodes), size=len(weights.numbers))
        self._asked = _Asked(server_round, weights, cohort, nodes)
        told = app.ConfigRecord({**config, "server-round": server_round})
        record = app.RecordDict({"arrays": arrays, "config": told})
        _LOG.info("configure_train: drew %d of %d clients", len(cohort.clients), len(nodes))
        return [
            app.Message(record, nodes[place], app.MessageType.TRAIN) for place in cohort.clients
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[app.Message]
    ) -> tuple[app.ArrayRecord | None, app.MetricRecord | None]:
        """Return the weights after the round; raise if no cohort was drawn for it, or was used."""
        asked, self._asked = self._asked, None
        if asked is None or asked.server_round != server_round:
            told = "each round draws its own by configure_train, and uses it once"
            raise IncompatibleError(f"no cohort waits for round {server_round}: {told}")
        for node, why in asked.accept(replies):
            _LOG.warning("aggregate_train: an answer of node %d counts as 0: %s", node, why)
        return asked.weights.moved(self.learning_rate * asked.cohort.release()), None

    def configure_evaluate(self, *_: Any, **__: Any) -> Iterable[app.Message]:
        """Ask nobody: what clients would say of their own data has no noise."""
        return []

    def aggregate_evaluate(self, *_: Any, **__: Any) -> None:
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


@final
@dataclass(frozen=True, slots=True)
class _Weights:
    """The arrays of a model by name, and their numbers one after the other."""

    arrays: dict[str, NDArray[Any]]
    numbers: Vector

    @classmethod
    def of(cls, record: object) -> Self:
        if not isinstance(record, app.ArrayRecord) or not record:
            raise ParameterError("arrays", record, _ARRAYS)
        found = {name: array.numpy() for name, array in record.items()}
        for name, array in found.items():
            if array.dtype.kind != "f":
                raise ParameterError("arrays", f"{name!r} of {array.dtype}", _ARRAYS)
        numbers = np.concatenate([array.ravel().astype(np.float64) for array in found.values()])
        if not np.isfinite(numbers).all():
            raise ParameterError("arrays", "weights that are infinite or undefined", "finite")
        return cls(found, numbers)

    def changed(self, record: app.ArrayRecord) -> Vector:
        """Return the change that leads to a client's arrays; raise if they are another model's."""
        found = {name: array.numpy() for name, array in record.items()}
        of_numbers = all(array.dtype.kind in "fiu" for array in found.values())
        if not of_numbers or _shapes(found) != _shapes(self.arrays):
            raise ValueError("no numbers with the names and shapes of the weights")
        numbers = [found[name].ravel().astype(np.float64) for name in self.arrays]
        return np.concatenate(numbers) - self.numbers

    def moved(self, change: Vector) -> app.ArrayRecord:
        ends = np.cumsum([array.size for array in self.arrays.values()])
        parts = zip(self.arrays.items(), np.split(self.numbers + change, ends), strict=False)
        with np.errstate(over="ignore"):
            moved = {name: part.reshape(one.shape).astype(one.dtype) for (name, one), part in parts}
        return app.ArrayRecord({name: app.Array(one) for name, one in moved.items()})


def _shapes(arrays: dict[str, NDArray[Any]]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}


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

    def accept(self, replies: Iterable[app.Message]) -> list[tuple[int, str]]:
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

    def _read(self, reply: app.Message) -> Vector:
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
    return " ".join(str(text).split())[:160]


# A client that trains privately on its own records.

_CLIENTS_LOG: Final = logging.getLogger("hockeystick")
_STEPS: Final = whole_numbers("steps", 1, (1, 100))


def train_locally(
    message: app.Message,
    *,
    model: Any,
    optimizer: Any,
    dataset: Any,
    plan: hs.DPSGD,
    loss_fn: Any,
    steps: int,
    journal: str | os.PathLike[str],
    **options: Any,
) -> app.Message:
    """Return a client's answer to a round: the weights after a few private steps on its records.

    The weights that came are loaded, ``make_private`` runs the next steps of the plan, and what
    leaves is the new weights and the *plan's* number of examples, by which ``FedAvg`` weighs them.
    Which steps are the next is read from the journal: an app of Flower's is made anew for each
    round, in any process.

    Guarantees:
        All that the client ever sends has the guarantee of ``plan`` for each of its records,
        against the server and the other clients, as ``make_private`` has it: a client that is
        killed, asked twice or by a second process at once releases nothing that is not counted.

    Edge cases:
        Where fewer steps are left than are asked for, those run. Whatever fails in training leaves
        as its kind alone, since an error's text may show records; its text goes to this client's
        log (``logging``, of the name ``hockeystick``). That it failed is told, and not accounted.

    Args:
        message: What the server sent: one record of arrays, the state of the model.
        model: As for ``make_private``.
        optimizer: A fresh one in each round.
        dataset: The client's records.
        plan: An ``hs.DPSGD`` for all rounds together, of this client's records.
        loss_fn: As for the loop's ``step``.
        steps: How many steps of the plan a round runs, an integer >= 1.
        journal: The file in which this client's steps are counted, one for each client.
        **options: Further arguments of ``make_private``, as ``clipping``, or ``counting`` with a
            budget or a ledger, which reserves the plan in the first round; this counts in full.

    Returns:
        The answer: "arrays", and "metrics" with "num-examples" and the number of counted "steps".
    """
    from hockeystick.adapters.torch import Counting, _checks, make_private

    wanted = _validate.count("steps", steps, _STEPS)
    records = list(message.content.array_records.values())
    if len(records) != 1:
        raise ParameterError("message", f"{len(records)} records of arrays", "one with one record")
    model.load_state_dict(records[0].to_torch_state_dict())
    _checks.forget(model)
    counting = replace(options.pop("counting", Counting()), journal=journal)
    try:
        private = make_private(model, optimizer, dataset, plan, counting=counting, **options)
        try:
            private.loader.account.check()  # which raises where no step is left
            for batch in islice(private.loader, min(wanted, private.left)):
                private.step(loss_fn, batch)
        finally:
            private.close(final=False)  # the next round goes on with it
        metrics = app.MetricRecord(
            {"num-examples": int(plan.examples or 1), "steps": private.steps}
        )
    except BudgetExhausted:
        raise
    except Exception as error:  # what it says would be sent to the server
        _CLIENTS_LOG.exception("training on this client failed")
        raise IncompatibleError(
            f"training on this client failed, by {type(error).__name__}: what it says may show "
            "records, and is in this client's log only"
        ) from None
    arrays = app.ArrayRecord(model.state_dict())
    return app.Message(app.RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
