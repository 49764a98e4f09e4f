"""Replays on neighbouring data with the same randomness: what one record moves, and must not.

Both replays use the same random numbers and go on with the same releases, so that their difference
is what the record itself changes. A second key for the noise tells the sum from the noise: the
difference of sums is the same under both keys, and whatever differs is noise that depends on data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from hockeystick.audit.recording.noise import check_counts
from hockeystick.audit.recording.replay import Kind, Neighbour, Places, Replay, Run, Step, Vector
from hockeystick.audit.recording.verdicts import Notes
from hockeystick.audit.recording.violations import Rule
from hockeystick.mechanisms.sampling.clipping import Clipping

KEYS: Final = (1, 2)
# What single gradients may differ by beside others, as libraries round them otherwise there.
_BESIDE: Final = 1e-3
_RATIO: Final = 1e-4
_ROUNDINGS: Final = 8


@final
@dataclass(frozen=True, slots=True)
class Pair:
    """Batches of data with a record, and of data where it is missing or another one."""

    neighbour: Neighbour
    more: tuple[Places, ...]
    less: tuple[Places, ...]

    @property
    def sides(self) -> tuple[Neighbour | None, Neighbour | None]:
        """The data of both sides: None is the loop's own."""
        if self.neighbour.kind is Kind.ADDED:
            return self.neighbour, None
        return None, None if self.neighbour.kind is Kind.ZEROED else self.neighbour


def pair_of(neighbour: Neighbour, others: Sequence[Places]) -> Pair:
    """Return a record's batches, each beside other records; and those without it."""
    place = neighbour.place
    beside = [one[one != place] for one in others]
    more = tuple(np.sort(np.append(one, place)) for one in beside)
    if neighbour.kind is Kind.REPLACED:
        return Pair(neighbour, more, more)
    if neighbour.kind is Kind.WITHOUT:
        beside = [np.where(one > place, one - 1, one) for one in beside]
    return Pair(neighbour, more, tuple(beside))


def compare(replay: Replay, neighbour: Neighbour, others: Sequence[Places], notes: Notes) -> None:
    """Note what is wrong between the loop's data and a neighbour, in a few steps."""
    whole = pair_of(neighbour, [*others, np.array([], dtype=np.int64)])
    pairs: list[tuple[Run, Run]] = []
    try:
        pairs = _replayed(replay, whole)
    except Exception as error:
        # Whatever fails on a batch that has one record or none is told by its failing.
        notes.certain(Rule.FAILS, 1, 0, where=f"{neighbour.name}: {type(error).__name__}: {error}")
        pairs = _replayed_beside(replay, neighbour, others)
    if not pairs:
        return
    for more, less in pairs:
        for run in (more, less):
            check_counts(run, notes)
        if len(more.steps) != len(less.steps):
            found = abs(len(more.steps) - len(less.steps))
            notes.certain(Rule.STEPS_DEPEND, found, 0, where=neighbour.name)
    same_noise = _compare_steps(replay, neighbour, pairs, notes)
    _compare_states(neighbour, pairs[0], notes)
    if same_noise and replay.plan.clipping is Clipping.INDIVIDUAL:
        _compare_contributions(replay, neighbour, others, notes)


def _replayed_beside(
    replay: Replay, neighbour: Neighbour, others: Sequence[Places]
) -> list[tuple[Run, Run]]:
    """Return runs on batches of several records alone, or none where a neighbour fails on these.

    What fails on the loop's own data is an error of the loop, and raised.
    """
    replay.run(None, others, key=KEYS[0])
    try:
        return _replayed(replay, pair_of(neighbour, others))
    except Exception:  # that has been noted
        return []


def _replayed(replay: Replay, pair: Pair) -> list[tuple[Run, Run]]:
    """Return both sides' runs under both keys, all of which go on with the same releases."""
    first, second = pair.sides
    free = replay.run(first, pair.more, key=KEYS[0])
    frozen = [one.released for one in free.steps]
    return [
        (
            replay.run(first, pair.more, key=key, frozen=frozen),
            replay.run(second, pair.less, key=key, frozen=frozen),
        )
        for key in KEYS
    ]


def allowed(replay: Replay, neighbour: Neighbour) -> int:
    """Return how many clipping norms a neighbour may move a sum by."""
    by_batch = replay.plan.clipping is Clipping.BATCH
    return 2 if by_batch or neighbour.kind is Kind.REPLACED else 1


def rounding(replay: Replay, *vectors: Vector) -> float:
    """Return how far the differences of released numbers may be rounded."""
    lengths = sum(float(np.linalg.norm(one)) for one in vectors)
    return replay.slack + _ROUNDINGS * replay.precision * lengths


def _compare_steps(
    replay: Replay, neighbour: Neighbour, pairs: list[tuple[Run, Run]], notes: Notes
) -> bool:
    """Compare the releases of each step, and return whether all had the same noise."""
    same_noise = True
    columns = zip(*(run.steps for pair in pairs for run in pair), strict=False)
    for place, (more, less, again, again_less) in enumerate(columns):
        found = [one.released for one in (more, less, again, again_less)]
        if not all(bool(np.isfinite(one).all()) for one in found):
            notes.certain(Rule.NOT_FINITE, np.inf, 0, step=place, where=neighbour.name)
            continue
        if _noise_depends(replay, neighbour, place, found, notes):
            same_noise = False
            continue
        moved = min(
            float(np.linalg.norm(found[0] - found[1])), float(np.linalg.norm(found[2] - found[3]))
        )
        notes.measure("sensitivity", moved)
        limit = allowed(replay, neighbour)
        if moved > limit + rounding(replay, *found[:2]):
            notes.certain(Rule.SENSITIVITY, moved, limit, step=place, where=neighbour.name)
    return same_noise


def _noise_depends(
    replay: Replay, neighbour: Neighbour, place: int, found: list[Vector], notes: Notes
) -> bool:
    """Return whether the noise of two keys differs otherwise on one side than on the other."""
    own, other = found[0] - found[2], found[1] - found[3]
    apart = float(np.linalg.norm(own - other))
    if apart <= 2 * rounding(replay, *found):
        return False
    length = float(own @ own)
    ratio = float(own @ other) / length if length else np.inf
    rest = float(np.linalg.norm(other - ratio * own)) if length else np.inf
    if len(own) > 1 and rest <= _RATIO * apart + 2 * rounding(replay, *found):
        notes.certain(Rule.SCALE, ratio, 1, step=place, where=neighbour.name)
    else:
        notes.certain(Rule.NOISE_DEPENDS, apart, 0, step=place, where=neighbour.name)
    return True


def _compare_states(neighbour: Neighbour, pair: tuple[Run, Run], notes: Notes) -> None:
    """Compare what the steps begin with and what they leave, as both released the same."""
    more, less = ([*(step.before for step in run.steps), run.after] for run in pair)
    for place, (one, other) in enumerate(zip(more, less, strict=False)):
        if one != other:
            notes.certain(Rule.STATE, 1, 0, step=place, where=neighbour.name)
            return


def _compare_contributions(
    replay: Replay, neighbour: Neighbour, others: Sequence[Places], notes: Notes
) -> None:
    """Compare what a record adds in the first step beside some records, and beside others."""
    found: list[Vector] = []
    room = 0.0
    first, second = pair_of(neighbour, ()).sides
    for beside in others:
        pair = pair_of(neighbour, [beside])
        steps = (
            _first(replay.run(first, pair.more, key=KEYS[0])),
            _first(replay.run(second, pair.less, key=KEYS[0])),
        )
        if steps[0] is None or steps[1] is None:
            return
        found.append(steps[0].released - steps[1].released)
        room = max(room, rounding(replay, steps[0].released, steps[1].released))
    if not all(bool(np.isfinite(one).all()) for one in found):
        return
    apart = max(float(np.linalg.norm(one - found[0])) for one in found)
    notes.measure("dependence on others", apart)
    if apart > _BESIDE + 2 * room:
        notes.certain(Rule.MIXED, apart, 0, step=0, where=neighbour.name)


def _first(run: Run) -> Step | None:
    """Return a run's first step, if it has one."""
    return run.steps[0] if run.steps else None
