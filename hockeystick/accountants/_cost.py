"""The cost of a plan, and the one walk over its tree that adds it up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Final, TypeAlias, final

from hockeystick.errors import UnsupportedError
from hockeystick.losses import Loss, NoAnalysisError, losses_of
from hockeystick.mechanisms import Composed, Mechanism, Plan, Repeated
from hockeystick.notions import FDP

Counted: TypeAlias = tuple[tuple[Loss, int], ...]


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """What a plan costs: the losses of its runs with their counts, one list per direction.

    ``removing`` and ``adding`` are composed separately, to the very end.
    """

    removing: Counted
    adding: Counted

    def compose(self, other: Cost) -> Cost:
        """Return the cost of both."""
        return Cost(_merge(self.removing, other.removing), _merge(self.adding, other.adding))

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


def largest_loss(terms: Counted) -> float:
    """Return an upper bound of what the losses of a direction can add up to; -inf for none."""
    if not terms:
        return -math.inf
    return math.fsum(count * loss.supremum for loss, count in terms) * (1.0 + 2.0**-50)


def cost_of(mechanism: Mechanism, accountant: str) -> Cost:
    """Return the cost of a mechanism.

    Raises:
        UnsupportedError: Naming the part of the plan for which no loss is known.
    """
    return _walk(mechanism, accountant, "plan")


def assumptions_of(mechanism: Mechanism) -> tuple[str, ...]:
    """Return what must hold for a mechanism's description to apply, without repetitions."""
    return tuple(dict.fromkeys(_sentences(mechanism)))


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
    cost = FREE
    for index, part in enumerate(mechanism.parts):
        cost = cost.compose(_walk(part, accountant, f"{path}.parts[{index}]"))
    return cost


@_walk.register
def _(mechanism: Repeated, accountant: str, path: str) -> Cost:
    return _walk(mechanism.inner, accountant, f"{path}.inner").repeat(mechanism.count)


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


@singledispatch
def _sentences(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the assumptions of a leaf or a plan."""
    return mechanism.assumptions


@_sentences.register
def _(mechanism: Composed) -> tuple[str, ...]:
    return tuple(text for part in mechanism.parts for text in _sentences(part))


@_sentences.register
def _(mechanism: Repeated) -> tuple[str, ...]:
    runs = f"There are {mechanism.count:,} runs of this, and no more: {mechanism.inner}."
    return (*_sentences(mechanism.inner), runs)


def _once(loss: Loss | None) -> Counted:
    """Return one run of a loss, nothing where there is none."""
    return () if loss is None else ((loss, 1),)


def _merge(first: Counted, second: Counted) -> Counted:
    """Return both lists as one, equal losses counted together."""
    counts = dict(first)
    for loss, runs in second:
        counts[loss] = counts.get(loss, 0) + runs
    return tuple(counts.items())
