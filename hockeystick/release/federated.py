"""What makes federated training private: cohorts, noisy sums of clients, noisy steps of a client.

Any engine may carry what is sent. Each run is made from the plan that is accounted, which decides
who is drawn, how much noise is added and how often. A ``journal`` is a file that counts rounds, a
round that was killed too, or an ``hs.ledger.ReservedRun``, which reserves all rounds first.

>>> import numpy as np
>>> import hockeystick as hs
>>> from hockeystick.release.federated import ClientRounds
>>> counts = {"total_clients": 10, "clients_per_round": 5, "rounds": 3}
>>> plan = hs.federated.FedSDP(noise_multiplier=2, sampling="poisson", **counts)
>>> run, weights = ClientRounds(plan, size=4, norm=1.0), np.zeros(4)
>>> for _ in range(plan.rounds):
...     cohort = run.draw()
...     for client in cohort.clients:
...         cohort.accept(client, np.ones(4) - weights)
...     weights += cohort.release()
>>> run.released == plan
True
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
from collections.abc import Callable, Iterable
from fractions import Fraction
from threading import Lock
from typing import Any, Final, TypeVar, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import ClientSampling, FedSDP, LocalTraining, Mechanism, RecordSampling
from hockeystick.mechanisms.federated.client_level import CLIENTS
from hockeystick.mechanisms.federated.instance_level import FedAlphaCDP, FedCDP, LocalSteps
from hockeystick.mechanisms.federated.prifedsync import FederatedClustering, PriFedSync
from hockeystick.release import counting
from hockeystick.release._values import row_of, rows_of_length, shaped
from hockeystick.release.counting import Charged, ChargedRun, Counter, OpensJournal
from hockeystick.release.noise.arrays import multivariate_laplace
from hockeystick.release.noise.clipped_sum import gradient_rows, noisy_sum
from hockeystick.release.samplers import Bits, bernoulli, permutation, secret_bits
from hockeystick.release.samplers.bits import COUNT, POSITIVE, Floats, Integers

__all__ = [
    "ClientRounds",
    "ClientTraining",
    "Cohort",
    "draw_clients",
    "first_rounds",
    "lloyd_step",
    "noisy_update",
    "sanitized",
]

_KIND: Final = "hockeystick.release.federated"
_LEARNING: Final = _validate.Domain(symbol="gamma", low=0, high=1e9, typical=(0.01, 10))
# Room for the rounding of lengths, so that none is beyond the bound.
_ROOM: Final = 1 - 2.0**-40
_Plan = TypeVar("_Plan", bound=Mechanism)
Plan = FedCDP | FedAlphaCDP | PriFedSync
Gradients = Callable[["Floats", "Integers"], Any]
"""Of weights and the places of records: a row for each record, of this record alone."""


def first_rounds(plan: _Plan, rounds: int) -> _Plan:
    """Return the plan of the first rounds, at most all, of a federated plan."""
    planned = counting.length_of(plan)
    within = _validate.Domain(symbol="t", low=0, high=planned, typical=(0, planned), whole=True)
    return counting.first(plan, _validate.count("rounds", rounds, within))


def titles(plan: Mechanism, journal: object, *who: object) -> tuple[str, str]:
    """Return what a count of rounds is called in a journal, and what it was called earlier."""
    shown = "" if journal is None else counting.fingerprint(plan)
    earlier = hashlib.sha256(repr((plan, *who)).encode()).hexdigest()
    return " ".join((f"{_KIND} 2 {shown}", *map(repr, who))), f"{_KIND} 1 {earlier}"


def draw_clients(
    plan: FedSDP | Plan, clients: int | None = None, *, bits: Bits = secret_bits
) -> Integers:
    """Return the numbers of the clients of a round, rising from 0, drawn exactly as the plan says.

    ``FedSDP`` with "poisson" flips a coin of probability K/N for each client, ``PriFedSync`` one of
    its client rate: of any number of clients, as one that is not there does not answer. Elsewhere
    there are as many as the plan says: ``FedCDP`` and ``FedAlphaCDP`` with "poisson" take all
    clients, as each record has a coin; all others draw one of all sets of K.
    """
    if isinstance(plan, FedSDP):
        count = checked_clients(plan, clients)
        drawn = None if plan.sampling is ClientSampling.POISSON else plan.clients_per_round
        return _drawn(plan.participation, count, drawn, bits)
    if isinstance(plan, LocalSteps):
        count = _equal(clients, plan.total_clients)
        if plan.sampling is RecordSampling.POISSON or plan.participation == 1:
            return np.arange(count)
        return _drawn(plan.participation, count, plan.clients_per_round, bits)
    if not isinstance(plan, PriFedSync):
        raise ParameterError("plan", plan, "a FedSDP, FedCDP, FedAlphaCDP or PriFedSync")
    if isinstance(plan.clients, tuple):
        count = _equal(clients, len(plan.clients))
    elif clients is None:
        raise ParameterError("clients", clients, "given where the plan is the same for all")
    else:
        count = _validate.count("clients", clients, CLIENTS)
    return _drawn(Fraction(plan.client_rate), count, None, bits)


def _drawn(rate: Fraction | None, count: int, number: int | None, bits: Bits) -> Integers:
    """Return one of all sets of a number of places, or, without a number, each with a rate."""
    if rate is not None and (number is None or rate == 1):
        return np.flatnonzero(bernoulli(rate, count, bits=bits))
    return np.sort(permutation(count, bits=bits)[:number])


def checked_clients(plan: FedSDP, clients: int | None) -> int:
    """Return the number of clients, or raise where it is not the plan's and must be."""
    if plan.sampling is ClientSampling.POISSON and clients is not None:
        return _validate.count("clients", clients, COUNT)
    return _equal(clients, plan.total_clients)


def _equal(given: Any, planned: int) -> int:
    if given is not None and given != planned:
        raise ParameterError("clients", given, f"the plan's number, {planned}")
    return planned


def noisy_update(plan: FedSDP, update: Any, norm: float, *, bits: Bits = secret_bits) -> Floats:
    """Return a client's update, a row, clipped, with the noise of a whole round: what it may send.

    ``noisy_sum`` of this one update, once a round, with ``ClientRounds(noise_at="clients")``: a
    Gaussian mechanism of the plan's noise multiplier for the client, whoever sees it.
    """
    _check_plan(plan, at_clients=True)
    row = _row(update, None)
    return noisy_sum(row[None, :], norm=norm, noise_multiplier=plan.noise_multiplier, bits=bits)


@final
class ClientRounds(Counter[FedSDP]):
    """The server's part of Fed-SDP: ``draw`` a cohort, let it answer, ``release`` the noisy mean.

    A round releases ``(sum of [update]_C + N(0, (z C)^2 I)) / K`` with the plan's z and K; with
    noise at the clients, the sum of their messages over K. The module has an example.

    Guarantees:
        What runs is what the plan accounts for, under whichever adjacency it has:

        1. Cohorts have exactly the plan's distribution (``draw_clients``).
        2. One client moves the sum by at most C, or 2 C where it changes: each accepted update is
           clipped by ``noisy_sum``, which adds exact noise; a client that does not answer, or is
           refused, counts as 0, and none counts twice. An empty cohort releases noise alone.
        3. The divisor is the planned K, never who answered.
        4. Rounds begin at most as often as planned, and are counted before anybody is asked.

        Who is drawn or answers, and why not, is the server's alone, unless sampling is "revealed".

    The plan has finite noise, an update ``size`` numbers, where no ``draw`` says it; norm is C.
    Noise is at the "server", or at the "clients" where sampling is "revealed" or all take part.
    """

    __slots__ = ("_bits", "_norm", "_size", "noise_at")

    def __init__(
        self,
        plan: FedSDP,
        size: int | None,
        norm: float,
        *,
        noise_at: str = "server",
        journal: str | os.PathLike[str] | OpensJournal | None = None,
        bits: Bits = secret_bits,
    ) -> None:
        self.noise_at: str = _validate.one_of("noise_at", noise_at, ("server", "clients"))
        _check_plan(plan, at_clients=self.noise_at == "clients")
        self._size = None if size is None else _validate.count("size", size, POSITIVE)
        self._norm, self._bits = norm, bits
        # Raises for a norm or noise that cannot be.
        noisy_sum(np.zeros((0, 1)), norm=norm, noise_multiplier=plan.noise_multiplier)
        super().__init__(plan, journal, *titles(plan, journal, self.noise_at))

    def draw(self, clients: int | None = None, *, size: int | None = None) -> Cohort:
        """Begin the next round: count it, and return its cohort.

        Clients is as for ``draw_clients``; size, how many numbers an update has where the run has
        not said it. Nothing is counted where they are refused; ``IncompatibleError`` says that all
        rounds have begun, or that another process began this run.
        """
        length = _validate.count("size", self._size if size is None else size, POSITIVE)
        if self._size not in (None, length):
            raise ParameterError("size", size, f"that of the run, {self._size}")
        there = checked_clients(self.plan, clients)
        self.count()
        return Cohort(self, draw_clients(self.plan, there, bits=self._bits), length)

    def _released(self, rows: list[Floats], size: int) -> Floats:
        table = np.array(rows).reshape(-1, size)
        if self.noise_at == "clients":
            total = table.sum(axis=0)
        else:
            noise = self.plan.noise_multiplier
            total = noisy_sum(table, norm=self._norm, noise_multiplier=noise, bits=self._bits)
        return np.asarray(total / self.plan.clients_per_round)


@final
class Cohort(ChargedRun):
    """One round of ``ClientRounds``, released once, also by several threads."""

    __slots__ = ("_answers", "_lock", "_open", "_run", "_size", "clients")

    def __init__(self, run: ClientRounds, clients: Integers, size: int) -> None:
        super().__init__()
        self._run, self._open, self._lock, self._size = run, True, Lock(), size
        self.clients: tuple[int, ...] = tuple(clients.tolist())
        self._answers: dict[int, Floats] = {}

    @property
    def answered(self) -> tuple[int, ...]:
        """The clients whose updates were accepted."""
        return tuple(self._answers)

    def accept(self, client: int, update: Any) -> None:
        """Take a client's update: the change of its model, or its message where it adds the noise.

        An answer that is refused, by ``ParameterError``, changes nothing, and the round goes on.
        """
        # Numbers of some libraries are equal, but not one key of a dictionary.
        number, row = _number(client), _row(update, self._size)
        if number is None or number not in self.clients:
            raise ParameterError("client", client, "one that was drawn for this round")
        with self._lock:
            self._check_open()
            if number in self._answers:
                raise ParameterError("client", client, "one that has not answered in this round")
            self._answers[number] = row

    def accept_all(self, answers: Iterable[tuple[int, Any]]) -> dict[int, str]:
        """Take what is right of pairs of a client and its update; return why others are not."""
        pairs: Any = list(answers) if _validate.has_several(answers) else [answers]
        for one in pairs:
            pair = isinstance(one, tuple | list) and len(one) == 2
            if not pair or _number(one[0]) is None:
                allowed = "pairs of a client's number and its update"
                raise ParameterError("answers", f"one that is a {type(one).__name__}", allowed)
        refused: dict[int, str] = {}
        for client, update in pairs:
            try:
                self.accept(client, update)
            except ParameterError as error:
                refused[operator.index(client)] = str(error)
        return refused

    def release(self) -> Floats:
        """Return the noisy sum over the planned number of clients, and end the round, once."""
        self._check_process()
        with self._lock:
            self._check_open()
            self._open = False
        return self._run._released(list(self._answers.values()), self._size)

    def _check_open(self) -> None:
        if not self._open:
            raise IncompatibleError("this round has been released: draw the next one")


def _number(client: Any) -> int | None:
    if isinstance(client, bool | np.ndarray):
        return None
    try:
        return operator.index(client)
    except TypeError:
        return None


def _row(update: Any, size: int | None) -> Floats:
    """Return a copy of an update, or raise without showing it."""
    allowed = f"a row of {'one or more' if size is None else f'{size:,}'} finite numbers"
    return shaped("update", update, allowed, lambda a: a.ndim == 1 and a.size == (size or a.size))


def _check_plan(plan: FedSDP, *, at_clients: bool) -> None:
    if not isinstance(plan, FedSDP):
        raise ParameterError("plan", plan, "an hs.federated.FedSDP")
    if plan.noise_multiplier == math.inf:
        raise ParameterError("noise_multiplier", plan.noise_multiplier, "finite")
    seen = plan.sampling is ClientSampling.REVEALED or plan.participation == 1
    if at_clients and not seen:
        told = "the server sees who takes part where clients add the noise; use 'revealed'"
        raise IncompatibleError(f"sampling '{plan.sampling}' counts on their being secret: {told}")


@final
class ClientTraining(Counter[Any]):
    """One client's part of Fed-CDP, Fed-alphaCDP or PriFedSync: local steps with noise in each.

    Each of a round's local steps draws records, clips each one's gradient to C, and goes on from
    their sum + N(0, (z C)^2 I), over the expected number of records. What runs is what the plan
    accounts for: batches have exactly the plan's distribution, one record moves a sum by at most C
    (2 C where it changes), the noise is exact and has the plan's z of that round, there are as many
    steps as it says, and no round runs twice: rounds are counted before the first record is read.
    ``draw_clients`` says who takes part; if "poisson" all do, and draw records at rate (K/N)(B/n).

    The client has a place, where a ``PriFedSync`` lists its clients, a journal of its own, and so
    many records: with fixed-size batches at least the plan's number, for ``PriFedSync`` exactly.

    Example:
        >>> import numpy as np
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import ClientTraining
        >>> sizes = {"examples": 20, "batch_size": 5, "local_steps": 3}
        >>> local = hs.federated.LocalTraining(noise_multiplier=2, **sizes)
        >>> client = ClientTraining(hs.federated.PriFedSync(clients=local, rounds=2), 20, 1.0)
        >>> client.train([0.0], lambda w, at: np.ones((len(at), 1)), learning_rate=0.1).shape
        (1,)
    """

    __slots__ = ("_batch", "_bits", "_coins", "_expected", "_local", "_norm", "_records")

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
        self.plan, self._norm, self._bits = plan, norm, bits
        self._local = _settings(plan, client) if isinstance(plan, PriFedSync) else plan
        self._records = _validate.count("records", records, COUNT)
        self._coins, self._batch, self._expected = _batches(self._local, self._records)
        for noise in {self._noise(index) for index in range(plan.rounds)}:
            # Raises for a norm or noise that cannot be.
            noisy_sum(np.zeros((0, 1)), norm=norm, noise_multiplier=noise)
        super().__init__(plan, journal, *titles(plan, journal, client))

    @property
    def released(self) -> Mechanism:
        """What the client's records were or may have been used for, to be accounted.

        For ``PriFedSync`` the rounds that this client ran; for the others all rounds up to the last
        one, in which drawing it or not is accounted for.
        """
        if isinstance(self.plan, PriFedSync):
            return self._local**self.counted
        return counting.first(self.plan, self.counted)

    def train(
        self,
        weights: Any,
        gradients: Gradients,
        *,
        learning_rate: float,
        round_index: int | None = None,
    ) -> Floats:
        """Run one round's local steps, and return the model that the client may send.

        ``IncompatibleError`` says that the round has begun, is no round, or another process's.

        Weights are the model to start from, which knows of the client's records only what it sent
        before; gradients returns a row for each of the records at the places given, computed from
        that record and the weights alone; the learning rate is public; the round, from 0, is by
        default the client's next one.
        """
        model = shaped("weights", weights, "a row of numbers", lambda a: a.ndim == 1 and a.size)
        if not callable(gradients):
            raise ParameterError("gradients", gradients, "a function of weights and of places")
        rate = _validate.real("learning_rate", learning_rate, _LEARNING)
        if round_index is not None:
            round_index = _validate.count("round_index", round_index, COUNT)
        index = self._begin(round_index)
        for _ in range(self._local.local_steps):
            chosen = _drawn(self._coins, self._records, self._batch, self._bits)
            rows = gradient_rows("gradients", gradients(model.copy(), chosen), len(model))
            if len(rows) != len(chosen):
                raise ParameterError("gradients", f"{len(rows)} rows", f"{len(chosen)} rows")
            noise = self._noise(index)
            total = noisy_sum(rows, norm=self._norm, noise_multiplier=noise, bits=self._bits)
            model = model - rate * total / self._expected
        return model

    def _noise(self, index: int) -> float:
        if isinstance(self._local, FedAlphaCDP):
            return float(self._local.noise_multipliers[index])
        return self._local.noise_multiplier


def _batches(
    plan: FedCDP | FedAlphaCDP | LocalTraining, records: int
) -> tuple[Fraction | None, int | None, float]:
    """Return each record's rate or how many are drawn, and what sums are divided by; or raise."""
    size = float(plan.batch_size)
    if isinstance(plan, LocalTraining):
        if records != plan.examples:
            raise ParameterError("records", records, f"the plan's {plan.examples}")
        return None, plan.batch_size, size
    if plan.sampling is not RecordSampling.TWO_STAGE:
        coins = plan.rate if plan.sampling is RecordSampling.POISSON else plan.local_rate
        return coins, None, float(coins * plan.examples_per_client)
    if plan.local_rate == 1:
        return None, records, size
    if records < plan.examples_per_client:
        allowed = f"at least the plan's examples per client, {plan.examples_per_client}"
        raise ParameterError("records", records, allowed)
    return None, plan.batch_size, size


def _settings(plan: PriFedSync, client: int) -> LocalTraining:
    settings = plan.settings
    if not isinstance(plan.clients, tuple):
        return settings[0]
    within = _validate.Domain(symbol="j", low=0, high=len(settings) - 1, typical=(0, 0), whole=True)
    return settings[_validate.count("client", client, within)]


def sanitized(
    plan: FederatedClustering,
    parameters: Any,
    center: Any,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return a client's parameters as it may send them: clipped about a center, with noise.

        center + [parameters - center]_(r/2) + Z,  Z of the density ``~ exp(-n |z| / (nu r))``

    for the plan's n, r and finite noise (Galli, Biswas, Jung, Cucinotta and Palamidessi, "Group
    Privacy for Personalized Federated Learning", 2022, algorithm 2, which scales the noise by the
    length of the client's own update, and has no guarantee).

    Guarantees:
        **Where the center is public**, the same for all the client's data, any two of its data sets
        send vectors at most r apart: the plan's account holds whatever the data, with exact noise.

        Where the center is the hypothesis that fits the client best, as published, two data sets
        whose messages, before noise, are d apart are told apart with a loss of at most ``n d / (nu
        r)``, and r bounds d only for data that choose the same hypothesis.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import sanitized
        >>> plan = hs.federated.FederatedClustering(5, dimension=2, radius=4.0, rounds=1)
        >>> sanitized(plan, [3.0, 1.0], center=[0.0, 0.0]).shape
        (2,)
    """
    if not isinstance(plan, FederatedClustering):
        raise ParameterError("plan", plan, "an hs.federated.FederatedClustering")
    middle = row_of("center", center, plan.dimension)
    sent = row_of("parameters", parameters, plan.dimension)
    # In units of a power of two in which the radius is about 1, so that no square underflows.
    radius, exponent = math.frexp(plan.radius)
    with np.errstate(over="ignore", under="ignore"):
        offset = np.ldexp(sent - middle, -exponent)
        length = math.hypot(*offset.tolist())
    if not math.isfinite(length):
        allowed = "so near the center that its distance over the radius is a finite float"
        raise ParameterError("parameters", "a longer vector", allowed)
    most = _ROOM * radius / 2
    if length > most:
        offset = offset * (_ROOM * most / length)
    noisy = multivariate_laplace(plan.noise, offset, radius, charge=charge, bits=bits)
    with np.errstate(over="ignore", under="ignore"):
        noisy = np.ldexp(noisy, exponent)
    return np.asarray(middle + noisy)


def lloyd_step(points: Any, centers: Any) -> tuple[Floats, Integers]:
    """Return the centers after one step of Lloyd's algorithm, and each point's center before it.

    Each point goes to the nearest center, the first of those alike; one without points stays.

    Example:
        >>> from hockeystick.release.federated import lloyd_step
        >>> moved, nearest = lloyd_step([[0.0], [1.0], [9.0]], [[0.0], [10.0], [50.0]])
        >>> moved.ravel().tolist(), nearest.tolist()
        ([0.5, 9.0, 50.0], [0, 0, 1])
    """
    means = shaped("centers", centers, "one or more rows", lambda a: a.ndim == 2 and len(a))
    given = rows_of_length("points", points, means.shape[1])
    gaps = np.linalg.norm(given[:, None, :] - means[None, :, :], axis=2)
    nearest = np.argmin(gaps, axis=1)
    moved = means.copy()
    for place in np.unique(nearest):
        moved[place] = given[nearest == place].mean(axis=0)
    return moved, nearest.astype(np.int64)
