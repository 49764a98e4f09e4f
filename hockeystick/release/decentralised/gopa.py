"""One round of GOPA: what the parties publish, and the mean of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.decentralised.gopa import GOPA, checked_parties
from hockeystick.numerics import decimal
from hockeystick.release._values import of_kind, yes_or_no
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.decentralised._interval import Steps, steps_of
from hockeystick.release.samplers import Bits, rounded_gaussian, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

# All noise is larger by this, which covers that pairwise noise has steps.
_WIDER: Final = Fraction(1, 2**20)


@final
@dataclass(frozen=True, slots=True)
class GopaRound:
    """What a round of GOPA made public.

    Args:
        mechanism: What the round was charged as: those who dropped out hide nobody.
        parties: Those who published, in order.
        published: What each of them published, noise included.
        mean: The mean of what was published: of the values, with the parties' own noise alone.
    """

    mechanism: GOPA
    parties: tuple[int, ...]
    published: tuple[float, ...]
    mean: float


def gopa_round(
    mechanism: GOPA,
    values: Any,
    *,
    interval: tuple[float, float] = (0.0, 1.0),
    dropouts: Iterable[int] = (),
    rollback: bool = True,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> GopaRound:
    """Run a round of GOPA on the values of all parties, some of whom may drop out.

    Every two neighbours draw noise that one adds and the other subtracts, each party draws its own;
    then those who have not dropped out publish. With ``rollback`` the neighbours of those who did
    leave out the noise shared with them, so that the rest cancels; without, it stays in the mean.

    Guarantees:
        That of the mechanism in the result, for what is published and all that colluders know. With
        ``rollback`` this is GOPA where those who dropped out collude: their noise hides nobody.
        Without, fewer publish than were charged for.

        The values are integers k from 0 to ``2^b``, one party's own noise is ``round(N)`` and
        pairwise noise is ``round(D)``. As ``k + round(N) + m = round(k + N + m)`` for integers m,
        all that is published is a function of the N and the round(D). A change of k is covered by
        moving N by a and the D of each edge by an *integer* f; ``round(D) + f = round(D + f)``, so
        that this costs ``mu^2 = |a|^2 / s^2 + |f|^2 / t^2``. Rounding the best f moves each entry
        by at most 1/2, and the quadratic by at most ``(sum_v d_v^2 / s^2 + E / t^2) / 4``, which
        the noise exceeds: it is ``1 + 2^-20`` times what the mechanism says.

    Edge cases:
        Values outside the interval count as its nearer end. If all but one drop out, the one
        publishes its value with its own noise. Rounds whose dropouts differ are charged for
        different colluders, and no account takes both: keep one account for each, and compose
        ``hs.convert(round.mechanism, hs.GDP)``, which hold for all who are honest in every round.

    Args:
        mechanism: The mechanism; both noises finite, in units of the interval's width.
        values: A finite number for each party; those of parties that drop out are not used.
        interval: The interval's lower and upper end.
        dropouts: The parties who publish nothing, after they shared noise; not all.
        rollback: Whether their neighbours leave out the noise shared with them.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        What was published, its mean, and the mechanism that was charged.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        IncompatibleError: If noise is so small, or the graph so large, that the steps tell more;
            or nobody honest is left.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Sabater, Bellet and Ramon, Machine Learning 2022, algorithm 1 (the round), section 6 (those
        who drop out).

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.mechanisms.GOPA(0.5, 10.0, hs.mechanisms.Graph.complete(50))
        >>> found = hs.release.gopa_round(plan, [0.25] * 50, dropouts=[3])
        >>> len(found.published), abs(found.mean - 0.25) < 1
        (49, True)
    """
    known = of_kind(mechanism, GOPA)
    gone = checked_parties("dropouts", dropouts, known.graph.parties, fewest=0)
    charged = _without(known, gone) if yes_or_no("rollback", rollback) else known
    for name in ("noise_multiplier", "pairwise_multiplier"):
        if getattr(known, name) == math.inf:
            raise ParameterError(name, math.inf, "finite where noise is drawn")
    steps = steps_of(interval, known.noise_multiplier, known.pairwise_multiplier)
    _check_steps(known, steps)
    start = steps.of(values, known.graph.parties)
    book(checked_charge(charge), charged)
    noisy = start + _noise(known, steps, gone if rollback else frozenset(), bits)
    left = tuple(party for party in range(known.graph.parties) if party not in gone)
    total = sum(int(noisy[party]) for party in left)
    published = tuple(steps.value(Fraction(int(noisy[party]))) for party in left)
    return GopaRound(charged, left, published, steps.value(Fraction(total, len(left))))


def _without(mechanism: GOPA, gone: frozenset[int]) -> GOPA:
    """Return the mechanism of those who are left, whom the others' noise does not hide."""
    graph, hidden = mechanism.graph, mechanism.colluders | gone
    if len(hidden) == graph.parties:
        raise IncompatibleError("nobody who is honest is left to publish anything")
    if not gone:
        return mechanism
    return GOPA(mechanism.noise_multiplier, mechanism.pairwise_multiplier, graph, hidden)


def _noise(mechanism: GOPA, steps: Steps, gone: frozenset[int], bits: Bits) -> NDArray[np.int64]:
    """Return each party's noise in steps: its own, and what it shares with those who stay."""
    graph = mechanism.graph
    total = np.zeros(graph.parties, dtype=np.int64)
    if mechanism.noise_multiplier:
        own = steps.scale(mechanism.noise_multiplier, _WIDER)
        total += rounded_gaussian(own, graph.parties, bits=bits)
    if mechanism.pairwise_multiplier:
        shared = steps.scale(mechanism.pairwise_multiplier, _WIDER)
        drawn = rounded_gaussian(shared, graph.size, bits=bits)
        pairs = graph.pairs
        drawn[np.isin(pairs, sorted(gone)).any(axis=1)] = 0
        np.add.at(total, pairs[:, 0], drawn)
        np.subtract.at(total, pairs[:, 1], drawn)
    return total


def _check_steps(mechanism: GOPA, steps: Steps) -> None:
    """Raise where steps are too coarse: ``mu^2 >= 1 / (n s^2)``, against what they may add to it.

    Both in units of ``1 / s^2``, for a change of ``2^b`` steps.
    """
    graph = mechanism.graph
    if not mechanism.noise_multiplier or not mechanism.pairwise_multiplier:
        return
    degrees = np.bincount(graph.pairs.ravel(), minlength=graph.parties)
    ratio = (decimal(mechanism.noise_multiplier) / decimal(mechanism.pairwise_multiplier)) ** 2
    added = (sum(int(degree) ** 2 for degree in degrees) + graph.size * ratio) / 4
    if added * graph.parties > 2 * _WIDER * 4**steps.bits:
        raise IncompatibleError(
            "pairwise noise in steps of "
            f"2^-{steps.bits} tells more of these {graph.parties:,} parties than real numbers do: "
            "its deviation is too small beside the parties' own, or either is too large"
        )
