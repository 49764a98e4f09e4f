"""Who takes part in a round, drawn exactly as the plan says."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.federated.client_level import CLIENTS, FedSDP
from hockeystick.mechanisms.federated.instance_level import FedAlphaCDP, FedCDP
from hockeystick.mechanisms.federated.prifedsync import PriFedSync
from hockeystick.mechanisms.federated.units import ClientSampling, RecordSampling
from hockeystick.release.samplers import Bits, bernoulli, permutation, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_THERE: Final = _validate.whole_numbers("n", 0, (100, 10_000))


def draw_clients(
    plan: FedSDP | FedCDP | FedAlphaCDP | PriFedSync,
    clients: int | None = None,
    *,
    bits: Bits = secret_bits,
) -> NDArray[np.int64]:
    """Return the numbers of the clients of a round, drawn by exact coins or exact random sets.

    Guarantees:
        Exactly the plan's distribution if the bits are ideal: ``FedSDP`` with "poisson" flips a
        coin of probability K/N for each client, with "fixed-size" and "revealed" draws one of all
        sets of K; ``FedCDP`` and ``FedAlphaCDP`` with both "two-stage" draw a set of K, and with
        "poisson", where each record has a coin of its own, all clients; ``PriFedSync`` flips a coin
        of its client rate for each.

    Args:
        plan: The plan that is accounted.
        clients: How many there are; the plan's number where not given. Where each client has a
            coin of its own it may be any: rates are the plan's, and one that is not there is one
            that does not answer. Elsewhere it is the plan's.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        Numbers from 0 to clients - 1, rising.

    Raises:
        ParameterError: If the plan draws no clients, or there are more or fewer than it says.
        OSError: If the operating system has no random bits to give.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.release.federated import draw_clients
        >>> plan = hs.federated.FedSDP(
        ...     noise_multiplier=6,
        ...     total_clients=1000,
        ...     clients_per_round=100,
        ...     rounds=100,
        ...     sampling="fixed-size",
        ... )
        >>> len(draw_clients(plan))
        100
    """
    for kind, draw in _DRAWN:
        if isinstance(plan, kind):
            return draw(plan, clients, bits)
    raise ParameterError("plan", plan, "a FedSDP, FedCDP, FedAlphaCDP or PriFedSync")


def _of_sdp(plan: FedSDP, clients: int | None, bits: Bits) -> NDArray[np.int64]:
    """Return the clients of a round of Fed-SDP."""
    poisson = plan.sampling is ClientSampling.POISSON
    count = checked_clients(plan, clients)
    if poisson or plan.participation == 1:
        return _by_coins(plan.participation, count, bits)
    return _of_one_size(plan.clients_per_round, count, bits)


def _of_cdp(plan: FedCDP | FedAlphaCDP, clients: int | None, bits: Bits) -> NDArray[np.int64]:
    """Return the clients of a round of Fed-CDP."""
    count = _equal("clients", clients, plan.total_clients)
    if plan.sampling is RecordSampling.POISSON or plan.participation == 1:
        return np.arange(count)
    return _of_one_size(plan.clients_per_round, count, bits)


def _of_prifedsync(plan: PriFedSync, clients: int | None, bits: Bits) -> NDArray[np.int64]:
    """Return the clients of a round of PriFedSync."""
    if isinstance(plan.clients, tuple):
        count = _equal("clients", clients, len(plan.clients))
    elif clients is None:
        raise ParameterError("clients", clients, "given where the plan is the same for all")
    else:
        count = _validate.count("clients", clients, CLIENTS)
    return _by_coins(Fraction(plan.client_rate), count, bits)


def _by_coins(rate: Fraction, clients: int, bits: Bits) -> NDArray[np.int64]:
    """Return each client with the same probability, independently."""
    return np.flatnonzero(bernoulli(rate, clients, bits=bits))


def _of_one_size(drawn: int, clients: int, bits: Bits) -> NDArray[np.int64]:
    """Return one of all sets of a size."""
    return np.sort(permutation(clients, bits=bits)[:drawn])


def checked_clients(plan: FedSDP, clients: int | None) -> int:
    """Return the number of clients, or raise where it is not the plan's and must be."""
    poisson = plan.sampling is ClientSampling.POISSON
    if poisson and clients is not None:
        return _validate.count("clients", clients, _THERE)
    return _equal("clients", clients, plan.total_clients)


def _equal(name: str, given: int | None, planned: int) -> int:
    """Return the planned number, or raise where another is given."""
    if given is not None and given != planned:
        raise ParameterError(name, given, f"the plan's number, {planned}")
    return planned


_Draw = Callable[[Any, "int | None", Bits], "NDArray[np.int64]"]
_DRAWN: Final[tuple[tuple[type[Any], _Draw], ...]] = (
    (FedSDP, _of_sdp),
    (FedCDP, _of_cdp),
    (FedAlphaCDP, _of_cdp),
    (PriFedSync, _of_prifedsync),
)
