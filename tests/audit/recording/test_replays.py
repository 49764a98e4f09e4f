"""What a replay says beside its releases: states, counts, batches, copies; each is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.audit import PlainLoop, Replay, Rule, record
from hockeystick.audit.recording import Kind, Neighbour, Run
from hockeystick.audit.recording.checks import sides_of

EXAMPLES = 40
PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=8, noise_multiplier=2)
Altered = Callable[[Run, Neighbour | None], Run]


def _release(data: Any, places: Any, seed: int | None) -> Any:
    rows = np.nan_to_num(data[places])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    total = (rows / np.maximum(lengths, 1)).sum(axis=0)
    return total + 2 * np.random.default_rng(seed).standard_normal(5)


class Told:
    """The replays of a sound loop, which tell something else beside."""

    def __init__(self, altered: Altered, copies: int = 1) -> None:
        data = np.random.default_rng(1).standard_normal((EXAMPLES, 5))
        self.inner = PlainLoop(PLAN, data, _release, norm=1.0)
        self.altered, self.most = altered, copies
        self.plan, self.examples, self.assumptions = PLAN, EXAMPLES, ("One.",)
        self.precision, self.slack, self.blocks = 2.0**-53, 1e-4, (("weights", 5),)

    def neighbours(self, places: Sequence[int]) -> tuple[Neighbour, ...]:
        return self.inner.neighbours(places)

    def copies(self) -> int:
        return self.most

    def draws(self, count: int) -> tuple[Any, ...]:
        return self.inner.draws(count)

    def run(
        self,
        neighbour: Neighbour | None,
        batches: Sequence[Any],
        *,
        key: int | None,
        frozen: Sequence[Any] | None = None,
    ) -> Run:
        found = self.inner.run(neighbour, batches, key=key, frozen=frozen)
        return self.altered(found, neighbour)


def _same(run: Run, neighbour: Neighbour | None) -> Run:
    return replace(run, counted=len(run.steps), after="state")


def _begun(run: Run, of: Neighbour | None) -> Run:
    return replace(run, steps=tuple(replace(one, before=str(of)) for one in run.steps))


def _fewer(run: Run, of: Neighbour | None) -> Run:
    steps = run.steps if of is None else run.steps[:-1]
    return replace(run, steps=steps, given=len(steps))


ALTERED: list[tuple[Altered, int, tuple[str, ...]]] = [
    (_same, 1, ()),
    (lambda run, of: replace(run, after=str(of)), 1, (Rule.STATE,)),
    (_begun, 1, (Rule.STATE,)),
    (lambda run, of: replace(run, counted=len(run.steps) - 1), 1, (Rule.COUNT,)),
    (lambda run, of: replace(run, counted=len(run.steps) + 1), 1, ()),
    (lambda run, of: replace(run, given=len(run.steps) + 1), 1, (Rule.LEFT_OUT,)),
    (_fewer, 1, (Rule.STEPS_DEPEND,)),
    (_same, 3, (Rule.COPIES,)),
]


@pytest.mark.parametrize(("altered", "copies", "names"), ALTERED)
def test_what_a_replay_tells_beside_its_releases_is_compared(
    altered: Altered, copies: int, names: tuple[str, ...]
) -> None:
    assert isinstance(Told(altered), Replay)
    assert record(Told(altered, copies), confidence=1 - 1e-9, trials=20).names == names


def test_a_record_that_is_drawn_more_often_than_others_is_named() -> None:
    """Record 7 is in half of the batches, and the others in fewer, so that all together fit."""
    source = np.random.default_rng(2)
    rates = np.full(EXAMPLES, 9.5 / 39)
    rates[7] = 0.5

    def draw(step: int) -> Any:
        return np.flatnonzero(source.random(EXAMPLES) < rates)

    data = np.random.default_rng(1).standard_normal((EXAMPLES, 5))
    loop = PlainLoop(PLAN, data, _release, norm=1.0, draw=draw)
    found = record(loop, draws=400, confidence=1 - 1e-9)
    assert [(one.name, one.where) for one in found.violations] == [(Rule.RATE, "one record")]


@pytest.mark.parametrize(
    ("kind", "place", "more", "less"),
    [
        (Kind.WITHOUT, 3, [[1, 3, 5], [3]], [[1, 4], []]),
        (Kind.ADDED, 40, [[1, 3, 5, 40], [40]], [[1, 3, 5], []]),
        (Kind.ZEROED, 3, [[1, 3, 5], [3]], [[1, 5], []]),
        (Kind.REPLACED, 3, [[1, 3, 5], [3]], [[1, 3, 5], [3]]),
    ],
)
def test_batches_of_both_sides_have_the_same_other_records(
    kind: Kind, place: int, more: list[list[int]], less: list[list[int]]
) -> None:
    others = [np.array([1, 3, 5]), np.array([], dtype=np.int64)]
    (first, beside), (second, without) = sides_of(Neighbour("one", kind, place), others)
    assert [one.tolist() for one in beside] == more
    assert [one.tolist() for one in without] == less
    assert (first is None, second is None) == (kind is not Kind.ADDED, kind in ("added", "zeroed"))
