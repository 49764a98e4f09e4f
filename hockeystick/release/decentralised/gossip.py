"""Gossip averaging run on values: every message, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.decentralised.gossip import (
    GossipAveraging,
    gossip_matrix,
    is_sent_to_observers,
    observed_span,
)
from hockeystick.release._values import of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.decentralised._interval import Steps, steps_of
from hockeystick.release.samplers import Bits, rounded_gaussian, secret_bits

# The noise is larger by this, which covers that it has steps.
_WIDER: Final = Fraction(1, 2**16)
_MOST_ROUNDS: Final = 10_000


@final
@dataclass(frozen=True, slots=True)
class GossipRun:
    """What a run of gossip averaging left with the parties.

    Args:
        mechanism: What was charged.
        averages: Each party's value at the end.
        seen: For each round what the observers were sent: the senders' values, by sender, as
            exact fractions of the interval's width above its lower end.
    """

    mechanism: GossipAveraging
    averages: tuple[float, ...]
    seen: tuple[Mapping[int, Fraction], ...]


def gossip_average(
    mechanism: GossipAveraging,
    values: Any,
    *,
    interval: tuple[float, float] = (0.0, 1.0),
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> GossipRun:
    """Run gossip averaging on the values of all parties, in exact arithmetic.

    Guarantees:
        That of the mechanism, for its party against its observers, though all is in steps. The
        values are integers from 0 to ``2^b``, the noise is ``round(N)``, the messages are computed
        without rounding: functions of the integers ``k + round(N) = round(k + N)``. The observers
        see M times these. A change d of k is covered by moving N by an integer a with
        ``M (d + a) = 0``, which costs ``|a|``: ``d + a`` is to be an integer vector of the
        complement, near the projection of d. Those that span it have lengths l_j, so that one is
        within ``sum l_j / 2``. The noise is ``1 + 2^-16`` times what the mechanism says, which
        covers that where ``sum l_j / 2 <= 2^-16 |P d|``; elsewhere the run is refused: **in exact
        arithmetic the last digits of the messages would tell more than the mechanism says**.

    Edge cases:
        Values outside the interval count as its nearer end. Other parties and observers of the same
        run have the guarantees of their own mechanisms where these are not refused, and that of
        ``Gaussian(noise_multiplier)`` everywhere.

    Args:
        mechanism: The mechanism; noise finite, in units of the interval's width; at most 10^4
            rounds.
        values: A finite number for each party.
        interval: The interval's lower and upper end.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        Each party's last value, and what the observers saw.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        IncompatibleError: If exact messages tell more than the mechanism says; nothing is charged.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Cyffers, Even, Bellet and Massoulie, "Muffliato", NeurIPS 2022, algorithm 1 without
        acceleration.

    Example:
        >>> import hockeystick as hs
        >>> hub = hs.mechanisms.Graph(6, [(0, 1), (1, 2), (1, 3), (1, 4), (1, 5)])
        >>> plan = hs.mechanisms.GossipAveraging(0.5, hub, rounds=40, party=2, observers=[0])
        >>> found = hs.release.gossip_average(plan, [0.5] * 6)
        >>> max(found.averages) - min(found.averages) < 0.1
        True
    """
    known = of_kind(mechanism, GossipAveraging)
    if known.noise_multiplier == math.inf:
        raise ParameterError("noise_multiplier", math.inf, "finite where noise is drawn")
    if known.rounds > _MOST_ROUNDS:
        raise ParameterError("rounds", known.rounds, f"at most {_MOST_ROUNDS:,} where they run")
    steps = steps_of(interval, known.noise_multiplier)
    _check_steps(known, steps)
    noisy = steps.of(values, known.graph.parties)
    book(checked_charge(charge), known)
    if known.noise_multiplier:
        scale = steps.scale(known.noise_multiplier, _WIDER)
        noisy += rounded_gaussian(scale, known.graph.parties, bits=bits)
    return _run(known, noisy.astype(object), steps)


def _run(mechanism: GossipAveraging, held: Any, steps: Steps) -> GossipRun:
    """Run the rounds on integers, whose denominator grows by the matrix's in each."""
    matrix = gossip_matrix(mechanism.graph, mechanism.weights)
    near = {one for party in mechanism.observers for one in matrix.neighbours[party]}
    senders = sorted(near - mechanism.observers)
    denominator, seen = 2**steps.bits, []
    for _ in range(mechanism.rounds):
        seen.append({party: Fraction(int(held[party]), denominator) for party in senders})
        held, denominator = matrix.times(held), denominator * matrix.denominator
    unit = Fraction(2**steps.bits, denominator)
    averages = tuple(steps.value(int(one) * unit) for one in held)
    return GossipRun(mechanism, averages, tuple(seen))


def _check_steps(mechanism: GossipAveraging, steps: Steps) -> None:
    """Raise where exact messages in steps tell more than they do of real numbers."""
    if is_sent_to_observers(mechanism):
        return
    observers = mechanism.observers
    span = observed_span(mechanism.graph, mechanism.weights, mechanism.rounds, observers)
    if span is not None:
        least, most = span.squared_projection(mechanism.party)
        if least == most and least in (0, 1):
            return
        away = sum(span.kernel_lengths())
        if away * away <= 4 * _WIDER**2 * least * 4**steps.bits:
            return
    raise IncompatibleError(
        f"in steps of 2^-{steps.bits} exact messages may tell these observers more of party "
        f"{mechanism.party} than the mechanism says, by their last digits; take fewer "
        "rounds, or account for the party as having published, Gaussian(noise_multiplier)"
    )
