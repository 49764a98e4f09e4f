"""Fed-SDP: the clipped changes of clients' models, summed with noise once a round."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from operator import index
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import WordEnum, whole_numbers
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.federated.client_level import ClientSampling, FedSDP
from hockeystick.release.charging import ChargedRun
from hockeystick.release.counting import Counter, OpensJournal
from hockeystick.release.federated.rounds import checked_clients, draw_clients, titles
from hockeystick.release.noise.clipped_sum import noisy_sum
from hockeystick.release.samplers import Bits, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIZE: Final = whole_numbers("d", 1, (10, 10**6))


class NoiseAt(WordEnum):
    """Who adds the noise of Fed-SDP.

    - ``SERVER`` ("server"): the server, once a round, to the sum of the clipped updates.
    - ``CLIENTS`` ("clients"): each client, in full, to its own clipped update (``noisy_update``).
    """

    SERVER = "server"
    CLIENTS = "clients"


def noisy_update(
    plan: FedSDP, update: Any, norm: float, *, bits: Bits = secret_bits
) -> NDArray[np.float64]:
    """Return a client's update, a row, clipped, with the noise of a whole round: what it may send.

    ``noisy_sum`` of this one update: a Gaussian mechanism of the plan's noise multiplier for the
    client, whoever sees it. One call a round is what the plan accounts for. Its sampling has to be
    "revealed", or all clients take part: who receives the message knows whose it is.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import noisy_update
        >>> counts = {"total_clients": 10, "clients_per_round": 5, "rounds": 3}
        >>> seen = {"sampling": "revealed", "adjacency": "zero-out"}
        >>> plan = hs.federated.FedSDP(noise_multiplier=1, **counts, **seen)
        >>> noisy_update(plan, [3.0, 4.0], norm=1.0).shape
        (2,)
    """
    _checked(plan, NoiseAt.CLIENTS)
    row = _row(update, None)
    return noisy_sum(row[None, :], norm=norm, noise_multiplier=plan.noise_multiplier, bits=bits)


@final
class ClientRounds(Counter[FedSDP]):
    """The server's part of Fed-SDP: ``draw`` a cohort, let it answer, ``release`` the noisy mean.

    Each round is counted when its cohort is drawn. Whatever the clients answer, or if they do not,
    a round releases ``(sum of [update]_C + N(0, (z C)^2 I)) / K`` with the plan's z and K; with
    noise at the clients, the sum of their messages over K.

    Guarantees:
        What runs is what the plan accounts for, under whichever adjacency it has:

        1. Cohorts have exactly the plan's distribution (``draw_clients``).
        2. One client moves the sum by at most C, or 2 C where it changes: each accepted update is
           clipped by ``noisy_sum``, which adds exact noise; a client that does not answer, or is
           refused, counts as 0, and none counts twice. An empty cohort releases noise alone: that
           nobody was drawn is not to be seen.
        3. The divisor is the planned K, never who answered.
        4. Rounds begin at most as often as planned, and are counted before anybody is asked, in the
           journal first. A run that is killed within a round has counted it, as has one whose
           ``release`` is never called.

        Who is drawn, who answers, and why an answer is refused are for the server alone, unless the
        plan's sampling is "revealed"; what is released tells nothing of them but by its sum.

    Args:
        plan: A ``FedSDP`` with finite noise; ``released`` is that of what was or may have been
            released so far.
        size: The number d of numbers in an update; None where each ``draw`` says it.
        norm: The clipping norm C.
        noise_at: "server" or "clients"; the latter only with sampling "revealed" or a plan in which
            all take part.
        journal: What keeps the count; see the module.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import ClientRounds
        >>> counts = {"total_clients": 9, "clients_per_round": 3, "rounds": 1}
        >>> plan = hs.federated.FedSDP(noise_multiplier=2, sampling="poisson", **counts)
        >>> run = ClientRounds(plan, size=2, norm=0.5)
        >>> run.draw().release().shape, run.counted
        ((2,), 1)
    """

    __slots__ = ("_bits", "_norm", "_size", "noise_at")

    def __init__(
        self,
        plan: FedSDP,
        size: int | None,
        norm: float,
        *,
        noise_at: NoiseAt | str = NoiseAt.SERVER,
        journal: str | os.PathLike[str] | OpensJournal | None = None,
        bits: Bits = secret_bits,
    ) -> None:
        self.noise_at = _validate.choice("noise_at", noise_at, NoiseAt)
        _checked(plan, self.noise_at)
        self._size = None if size is None else _validate.count("size", size, _SIZE)
        self._norm, self._bits = norm, bits
        # Raises for a norm or noise that cannot be.
        noisy_sum(np.zeros((0, 1)), norm=norm, noise_multiplier=plan.noise_multiplier)
        super().__init__(plan, journal, *titles(plan, journal, str(self.noise_at)))

    def draw(self, clients: int | None = None, *, size: int | None = None) -> Cohort:
        """Begin the next round: count it, and return its cohort.

        Clients is how many are there now; another number than the plan's with "poisson" alone, see
        ``draw_clients``. Size is the number of numbers in an update, where the run has not said it.
        ``ParameterError`` says that they are not, and nothing is counted; ``IncompatibleError``
        that all rounds have begun, or that another process began this run.
        """
        length = _validate.count("size", self._size if size is None else size, _SIZE)
        if self._size not in (None, length):
            raise ParameterError("size", size, f"that of the run, {self._size}")
        there = checked_clients(self.plan, clients)
        self.count()
        return Cohort(self, draw_clients(self.plan, there, bits=self._bits), length)

    def _released(self, rows: list[NDArray[np.float64]], size: int) -> NDArray[np.float64]:
        """Return what a round releases of its updates."""
        table = np.array(rows).reshape(-1, size)
        if self.noise_at is NoiseAt.CLIENTS:
            total = table.sum(axis=0)
        else:
            noise = self.plan.noise_multiplier
            total = noisy_sum(table, norm=self._norm, noise_multiplier=noise, bits=self._bits)
        return np.asarray(total / self.plan.clients_per_round)


@final
class Cohort(ChargedRun):
    """One round of ``ClientRounds``: who was drawn, and what they answered so far.

    It is released once, also by several threads, and not copied: two sums of the same answers with
    noise of their own would be two releases of a round that is counted once.
    """

    __slots__ = ("_answers", "_lock", "_open", "_run", "_size", "clients")

    def __init__(self, run: ClientRounds, clients: NDArray[np.int64], size: int) -> None:
        super().__init__()
        self._run, self._open, self._lock, self._size = run, True, Lock(), size
        self.clients: tuple[int, ...] = tuple(clients.tolist())
        self._answers: dict[int, NDArray[np.float64]] = {}

    @property
    def answered(self) -> tuple[int, ...]:
        """The clients whose updates were accepted."""
        return tuple(self._answers)

    def accept(self, client: int, update: Any) -> None:
        """Take a client's update: the change of its model, or its message where it adds the noise.

        An answer that is refused, by ``ParameterError``, changes nothing, and the round goes on
        without it: of a client that was not drawn or has answered, or no row of as many finite
        numbers as the run's size, which are not shown.
        """
        number, row = self._drawn(client), _row(update, self._size)
        with self._lock:
            self._check_open()
            if number in self._answers:
                raise ParameterError("client", client, "one that has not answered in this round")
            self._answers[number] = row

    def accept_all(self, answers: Iterable[tuple[int, Any]]) -> dict[int, str]:
        """Take what is right of pairs of a client and its update; return why others were refused.

        Where they are no such pairs, none is taken.
        """
        refused: dict[int, str] = {}
        for client, update in _pairs(answers):
            try:
                self.accept(client, update)
            except ParameterError as error:
                refused[client] = str(error)
        return refused

    def release(self) -> NDArray[np.float64]:
        """Return the noisy sum over the planned number of clients, and end the round.

        ``IncompatibleError`` says that it was released before: noise is drawn once.
        """
        self._check_process()
        with self._lock:
            self._check_open()
            self._open = False
        return self._run._released(list(self._answers.values()), self._size)

    def _drawn(self, client: Any) -> int:
        """Return the number of a client that was drawn, or raise.

        Numbers of some libraries are equal, but not one key of a dictionary.
        """
        number = _number(client)
        if number is None or number not in self.clients:
            raise ParameterError("client", client, "one that was drawn for this round")
        return number

    def _check_open(self) -> None:
        if not self._open:
            raise IncompatibleError("this round has been released: draw the next one")


def _number(client: Any) -> int | None:
    """Return the integer that names a client; None where none does."""
    if isinstance(client, bool | np.ndarray):
        return None
    try:
        return index(client)
    except TypeError:
        return None


def _pairs(answers: Any) -> list[tuple[int, Any]]:
    """Return pairs of a client's number and its update, or raise without showing an update."""
    allowed = "pairs of a client's number and its update"
    if not _validate.has_several(answers):
        raise ParameterError("answers", type(answers).__name__, allowed)
    pairs = list(answers)
    for one in pairs:
        if not (isinstance(one, tuple | list) and len(one) == 2):
            raise ParameterError("answers", f"one that is a {type(one).__name__}", allowed)
        if _number(one[0]) is None:
            raise ParameterError("answers", f"a client that is a {type(one[0]).__name__}", allowed)
    return [(index(client), update) for client, update in pairs]


def _row(update: Any, size: int | None) -> NDArray[np.float64]:
    """Return a copy of an update, or raise without showing it."""
    count = "one or more" if size is None else f"{size:,}"
    allowed = f"a row of {count} finite numbers"
    try:
        row = np.array(update)
    except (TypeError, ValueError):
        raise ParameterError("update", type(update).__name__, allowed) from None
    fits = row.ndim == 1 and row.dtype.kind in "fiu" and (len(row) == size if size else len(row))
    if not fits:
        raise ParameterError("update", f"{row.dtype} of shape {row.shape}", allowed)
    if not bool(np.isfinite(row).all()):
        raise ParameterError("update", "a row with NaN or infinity", allowed)
    return row.astype(np.float64)


def _checked(plan: FedSDP, noise_at: NoiseAt) -> None:
    """Raise where a plan cannot be run."""
    if not isinstance(plan, FedSDP):
        raise ParameterError("plan", plan, "an hs.federated.FedSDP")
    if plan.noise_multiplier == math.inf:
        raise ParameterError("noise_multiplier", plan.noise_multiplier, "finite")
    seen = plan.sampling is ClientSampling.REVEALED or plan.participation == 1
    if noise_at is NoiseAt.CLIENTS and not seen:
        raise IncompatibleError(
            f"sampling '{plan.sampling}' counts on who takes part being secret, but the server "
            "sees whose message it is where clients add the noise; use sampling 'revealed'"
        )
