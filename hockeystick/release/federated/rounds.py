"""The rounds of a federated plan: who takes part in one, and how a journal names their count."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.federated.client_level import (
    CLIENTS,
    ClientSampling,
    FedSDP,
    RecordSampling,
)
from hockeystick.mechanisms.federated.instance_level import FedAlphaCDP, FedCDP
from hockeystick.mechanisms.federated.prifedsync import PriFedSync
from hockeystick.release.counting import fingerprint, first, length_of
from hockeystick.release.samplers import Bits, bernoulli, permutation, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KIND: Final = "hockeystick.release.federated"
_THERE: Final = _validate.whole_numbers("n", 0, (100, 10_000))


_Plan = TypeVar("_Plan", bound=Mechanism)


def first_rounds(plan: _Plan, rounds: int) -> _Plan:
    """Return the plan of the first rounds, at most all, of a federated plan.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import first_rounds
        >>> plan = hs.federated.FederatedClustering(5, dimension=2, radius=1, rounds=8)
        >>> first_rounds(plan, 3).rounds
        3
    """
    planned = length_of(plan)
    within = Domain(symbol="t", low=0, high=planned, typical=(0, planned), whole=True)
    return first(plan, _validate.count("rounds", rounds, within))


def titles(plan: Mechanism, journal: object, *who: object) -> tuple[str, str]:
    """Return what a count of rounds is called in a journal, and what it was called earlier."""
    shown = "" if journal is None else fingerprint(plan)
    earlier = hashlib.sha256(repr((plan, *who)).encode()).hexdigest()
    return " ".join((f"{_KIND} 2 {shown}", *map(repr, who))), f"{_KIND} 1 {earlier}"


def draw_clients(
    plan: FedSDP | FedCDP | FedAlphaCDP | PriFedSync,
    clients: int | None = None,
    *,
    bits: Bits = secret_bits,
) -> NDArray[np.int64]:
    """Return the numbers of the clients of a round, rising from 0, drawn exactly as the plan says.

    ``FedSDP`` with "poisson" flips a coin of probability K/N for each client, with "fixed-size" and
    "revealed" draws one of all sets of K; ``FedCDP`` and ``FedAlphaCDP`` with both "two-stage" draw
    a set of K, and with "poisson", where each record has a coin of its own, all clients;
    ``PriFedSync`` flips a coin of its client rate for each.

    There are as many clients as the plan says. Where each client has a coin of its own there may be
    any number: rates are the plan's, and one that is not there is one that does not answer.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import draw_clients
        >>> counts = {"total_clients": 1000, "clients_per_round": 100, "rounds": 100}
        >>> plan = hs.federated.FedSDP(noise_multiplier=6, sampling="fixed-size", **counts)
        >>> len(draw_clients(plan))
        100
    """
    if isinstance(plan, FedSDP):
        count = checked_clients(plan, clients)
        drawn = None if plan.sampling is ClientSampling.POISSON else plan.clients_per_round
        return _drawn(plan.participation, count, drawn, bits)
    if isinstance(plan, FedCDP | FedAlphaCDP):
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


def _drawn(rate: Fraction, clients: int, number: int | None, bits: Bits) -> NDArray[np.int64]:
    """Return one of all sets of a number of clients, or each with a rate, independently."""
    if number is None or rate == 1:
        return np.flatnonzero(bernoulli(rate, clients, bits=bits))
    return np.sort(permutation(clients, bits=bits)[:number])


def checked_clients(plan: FedSDP, clients: int | None) -> int:
    """Return the number of clients, or raise where it is not the plan's and must be."""
    if plan.sampling is ClientSampling.POISSON and clients is not None:
        return _validate.count("clients", clients, _THERE)
    return _equal(clients, plan.total_clients)


def _equal(given: Any, planned: int) -> int:
    """Return the planned number of clients, or raise where another is given."""
    if given is not None and given != planned:
        raise ParameterError("clients", given, f"the plan's number, {planned}")
    return planned
