"""The cost of a plan, and the one walk over its tree that adds it up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import singledispatch
from typing import Final, TypeAlias, final

from hockeystick.errors import UnsupportedError
from hockeystick.losses import GaussianSequenceLoss, Loss, NoAnalysisError, losses_of
from hockeystick.mechanisms import (
    Composed,
    Gaussian,
    GaussianSequence,
    Mechanism,
    Plan,
    PoissonSubsampled,
    Repeated,
)
from hockeystick.mechanisms.gaussian_sequence import FEW_LEVELS
from hockeystick.notions import FDP

Counted: TypeAlias = tuple[tuple[Loss, int], ...]

# Sequences of more levels than these are not taken apart again.
_MOST_APART: Final = 400


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """What a plan costs: the losses of its runs with their counts, one list per direction.

    ``removing`` and ``adding`` are composed separately, to the very end.
    """

    removing: Counted
    adding: Counted

    @staticmethod
    def composed(costs: Iterable[Cost]) -> Cost:
        """Return the cost of all."""
        listed = list(costs)
        return Cost(
            _merged(cost.removing for cost in listed), _merged(cost.adding for cost in listed)
        )

    def repeat(self, count: int) -> Cost:
        """Return the cost of so many runs."""
        if count == 0:
            return FREE
        return Cost(
            tuple((loss, runs * count) for loss, runs in self.removing),
            tuple((loss, runs * count) for loss, runs in self.adding),
        )

    @property
    def directions(self) -> tuple[Counted, ...]:
        """The lists that differ: one where both directions cost the same."""
        return (self.removing,) if self.removing == self.adding else (self.removing, self.adding)


FREE: Final = Cost((), ())


def apart(terms: Counted) -> Counted:
    """Return sequences of runs as the runs themselves, but for those of very many."""
    return _merged(_runs(loss, count) for loss, count in terms)


def _runs(loss: Loss, count: int) -> Counted:
    """Return so many sequences of few runs as the runs themselves; anything else as it is."""
    if isinstance(loss, GaussianSequenceLoss) and loss.levels.runs <= _MOST_APART:
        return tuple((one, runs * count) for one, runs in loss.runs)
    return ((loss, count),)


def largest_loss(terms: Counted) -> float:
    """Return an upper bound of what the losses of a direction can add up to; -inf for none."""
    if not terms:
        return -math.inf
    return math.fsum(count * loss.supremum for loss, count in terms) * (1.0 + 2.0**-50)


def attained(terms: Counted) -> Counted:
    """Return the losses that some data surely reach, those of which nothing is known left out."""
    known = ((loss.attained, count) for loss, count in terms)
    return tuple((loss, count) for loss, count in known if loss is not None)


def cost_of(mechanism: Mechanism, accountant: str) -> Cost:
    """Return the cost of a mechanism.

    Raises:
        UnsupportedError: Naming the part of the plan for which no loss is known.
    """
    return _walk(mechanism, accountant, "plan")


def assumptions_of(mechanism: Mechanism) -> tuple[str, ...]:
    """Return what must hold for a mechanism's description to apply, without repetitions."""
    return tuple(dict.fromkeys(mechanism.assumptions))


@singledispatch
def _walk(mechanism: Mechanism, accountant: str, path: str) -> Cost:
    """Return the cost of a leaf of the tree: one run."""
    return _leaf(mechanism, accountant, path)


def _leaf(mechanism: Mechanism, accountant: str, path: str) -> Cost:
    """Return the cost of one run of a mechanism that has a pair of losses."""
    try:
        pair = losses_of(mechanism)
    except NoAnalysisError as error:
        raise UnsupportedError(accountant, f"{path} ({mechanism})", str(error)) from None
    return Cost(_once(pair.removing), _once(pair.adding))


@_walk.register
def _(mechanism: Composed, accountant: str, path: str) -> Cost:
    return Cost.composed(
        _walk(part, accountant, f"{path}.parts[{index}]")
        for index, part in enumerate(mechanism.parts)
    )


@_walk.register
def _(mechanism: Repeated, accountant: str, path: str) -> Cost:
    return _walk(mechanism.inner, accountant, f"{path}.inner").repeat(mechanism.count)


@_walk.register
def _(mechanism: GaussianSequence, accountant: str, path: str) -> Cost:
    # Few levels of noise are composed one by one; many have one loss together.
    levels = Counter(mechanism.noise_multipliers)
    if 0 < mechanism.rate < 1 and len(levels) > FEW_LEVELS:
        return _leaf(mechanism, accountant, path)
    return Cost.composed(
        _leaf(PoissonSubsampled(Gaussian(noise), mechanism.rate), accountant, path).repeat(runs)
        for noise, runs in levels.items()
    )


@_walk.register
def _(mechanism: Plan, accountant: str, path: str) -> Cost:
    return _walk(mechanism.mechanism, accountant, path)


@_walk.register
def _(mechanism: FDP, accountant: str, path: str) -> Cost:
    # The trade-off function of a plan stands for the plan.
    release = mechanism.tradeoff.release
    if isinstance(release, Mechanism):
        return _walk(release, accountant, f"{path}.tradeoff.release")
    return _leaf(mechanism, accountant, path)


def _once(loss: Loss | None) -> Counted:
    """Return one run of a loss, nothing where there is none."""
    return () if loss is None else ((loss, 1),)


def _merged(lists: Iterable[Counted]) -> Counted:
    """Return lists as one, equal losses counted together."""
    counts: dict[Loss, int] = {}
    for counted in lists:
        for loss, runs in counted:
            counts[loss] = counts.get(loss, 0) + runs
    return tuple(counts.items())
