"""Loops in numpy with one bug each, which the self-test names, and sound ones, which pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.adapters.loop import Sampler, noisy_sum
from hockeystick.audit import PlainLoop, Rule, SelfTest, record
from hockeystick.audit.recording import Neighbour, Run
from hockeystick.audit.recording.checks import binomial_at_least
from hockeystick.errors import ParameterError

EXAMPLES, WIDTH = 40, 6
PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=8, noise_multiplier=2)
DATA = np.random.default_rng(1).standard_normal((EXAMPLES, WIDTH))
Release = Callable[[Any, Any, int | None], Any]


def _clipped(rows: Any, norm: float = 1.0) -> Any:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    finite = np.isfinite(lengths)
    return np.where(finite, rows, 0.0) * np.where(finite, norm / np.maximum(lengths, norm), 0.0)


def _noise(seed: int | None, deviation: float = 2.0) -> Any:
    return deviation * np.random.default_rng(seed).standard_normal(WIDTH)


def _sound(data: Any, places: Any, seed: int | None) -> Any:
    return _clipped(data[places]).sum(axis=0) + _noise(seed)


def _poisson(step: int) -> Any:
    return np.flatnonzero(np.random.default_rng().random(EXAMPLES) < 0.25)


def _tested(release: Release = _sound, draw: Any = None, plan: Any = PLAN, **options: Any) -> Any:
    return record(PlainLoop(plan, DATA, release, norm=1.0, draw=draw), **options)


def _clips_by_largest(data: Any, places: Any, seed: int | None) -> Any:
    rows = np.nan_to_num(data[places])
    longest = np.linalg.norm(rows, axis=1).max(initial=1.0)
    return (rows / longest).sum(axis=0) + _noise(seed)


def _noise_by_largest(data: Any, places: Any, seed: int | None) -> Any:
    rows = _clipped(data[places])
    longest = np.linalg.norm(rows, axis=1).max(initial=0.0)
    return rows.sum(axis=0) + _noise(seed, 2 * longest)


def _noise_for_each(data: Any, places: Any, seed: int | None) -> Any:
    source = np.random.default_rng(seed)
    return sum((row + source.standard_normal(WIDTH) for row in _clipped(data[places])), np.zeros(6))


def _without_noise(data: Any, places: Any, seed: int | None) -> Any:
    return _clipped(data[places]).sum(axis=0)


def _too_small(data: Any, places: Any, seed: int | None) -> Any:
    return _clipped(data[places]).sum(axis=0) + _noise(seed, 1.8)


class _Moving:
    """Noise that is an average of that of this step and of the last."""

    def __init__(self, *, stays: bool) -> None:
        self.last, self.stays, self.calls = np.zeros(WIDTH), stays, 0

    def __call__(self, data: Any, places: Any, seed: int | None) -> Any:
        fresh, self.calls = _noise(seed), self.calls + 1
        if seed is None and self.stays and self.calls % 2:
            fresh = self.last
        mixed = fresh if seed is not None or self.stays else (fresh + self.last) / 2**0.5
        self.last = fresh
        return _clipped(data[places]).sum(axis=0) + mixed


def _sum(rows: Any) -> Any:
    return np.nan_to_num(rows).sum(axis=0)


BUGS: dict[str, tuple[Release, Rule]] = {
    "no clipping": (lambda d, p, seed: _sum(d[p]) + _noise(seed), Rule.SENSITIVITY),
    "coordinates are clipped": (
        lambda d, p, seed: _sum(d[p].clip(-1, 1)) + _noise(seed),
        Rule.SENSITIVITY,
    ),
    "scaled by the largest of the batch": (_clips_by_largest, Rule.MIXED),
    "mean of the batch before the noise": (
        lambda d, p, seed: _sum(_clipped(d[p])) / max(len(p), 1) + _noise(seed),
        Rule.MIXED,
    ),
    "divided by the size of the batch": (
        lambda d, p, seed: _sound(d, p, seed) * 10 / max(len(p), 1),
        Rule.SCALE,
    ),
    "divided by the number of examples": (
        lambda d, p, seed: _sound(d, p, seed) * EXAMPLES / len(d),
        Rule.SCALE,
    ),
    "noise by the largest of the batch": (_noise_by_largest, Rule.SCALE),
    "noise for each record": (_noise_for_each, Rule.NOISE_DEPENDS),
    "noise seeded by the data": (
        lambda d, p, seed: _sum(_clipped(d[p])) + _noise(hash(d.tobytes()) % 2**32 + (seed or 0)),
        Rule.NOISE_DEPENDS,
    ),
    "undefined records": (lambda d, p, seed: d[p].sum(axis=0) + _noise(seed), Rule.NOT_FINITE),
    "empty batches fail": (lambda d, p, seed: p[0] * 0.0 + _sound(d, p, seed), Rule.FAILS),
    "no noise": (_without_noise, Rule.NO_NOISE),
    "a coordinate without noise": (
        lambda d, p, seed: _sum(_clipped(d[p])) + _noise(seed) * (np.arange(WIDTH) < 5),
        Rule.NO_NOISE,
    ),
    "one number for all coordinates": (
        lambda d, p, seed: _sum(_clipped(d[p])) + _noise(seed)[0],
        Rule.SHARED,
    ),
    "one seed for all runs": (
        lambda d, p, seed: _sound(d, p, 7 if seed is None else seed),
        Rule.REPEATS,
    ),
    "deviation is 10 % too small": (_too_small, Rule.TOO_SMALL),
    "Laplace noise": (
        lambda d, p, seed: (
            _sum(_clipped(d[p])) + np.random.default_rng(seed).laplace(scale=2**0.5, size=WIDTH)
        ),
        Rule.NOT_GAUSSIAN,
    ),
    "noise that is used twice": (_Moving(stays=True), Rule.REUSED),
    "noise that is correlated": (_Moving(stays=False), Rule.CORRELATED),
}


BY_CHANCE = {Rule.TOO_SMALL, Rule.NOT_GAUSSIAN, Rule.CORRELATED}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_named(bug: str) -> None:
    release, rule = BUGS[bug]
    # What many numbers alone show is asked of so many that chance does not hide it.
    found = _tested(release, trials=1500 if rule in BY_CHANCE else None)
    assert rule in found.names
    assert not found.consistent


_ORDER = np.random.default_rng(3)
_ONE_ORDER = np.random.default_rng(3).permutation(EXAMPLES)


def _shuffled(step: int) -> Any:
    return _ONE_ORDER[10 * (step % 4) : 10 * (step % 4) + 10]


def _no_empty(step: int) -> Any:
    while not len(found := np.flatnonzero(_ORDER.random(EXAMPLES) < 0.02)):
        pass
    return found


def _rarely(step: int) -> Any:
    return np.flatnonzero(_ORDER.random(EXAMPLES) < 0.02)


RARE = hs.DPSGD(examples=EXAMPLES, rate=0.02, steps=1000, noise_multiplier=2)


@pytest.mark.parametrize(
    ("draw", "plan", "rule"),
    [
        (lambda step: np.flatnonzero(_ORDER.random(EXAMPLES) < 0.28), PLAN, Rule.RATE),
        (lambda step: np.append(_poisson(step), 0), PLAN, Rule.RATE),
        (lambda step: np.append(_rarely(step), [3, 3]), RARE, Rule.TWICE),
        (_shuffled, PLAN, Rule.FIXED),
        (_shuffled, PLAN, Rule.SHUFFLED),
        (lambda step: np.arange(10), PLAN, Rule.BATCHES_REPEAT),
        (_no_empty, RARE, Rule.NO_EMPTY),
    ],
)
def test_batches_that_are_not_the_plans_are_named(draw: Any, plan: Any, rule: Rule) -> None:
    assert rule in _tested(draw=draw, plan=plan, draws=1000).names


@pytest.mark.parametrize(
    ("fields", "draw", "rule"),
    [
        ({"sampling": "fixed-size", "batch_size": 10}, _poisson, Rule.SIZE),
        ({"batch_cap": 8, "batch_size": 10}, _poisson, Rule.SIZE),
        ({"sampling": "full-batch"}, _poisson, Rule.SIZE),
        ({"sampling": "shuffle", "batch_size": 10, "adjacency": "zero-out"}, _poisson, Rule.EPOCH),
        ({"sampling": "random-allocation", "batch_size": 10}, _poisson, Rule.EPOCH),
        (
            {"sampling": "shuffle", "batch_size": 10, "adjacency": "zero-out"},
            _shuffled,
            Rule.BATCHES_REPEAT,
        ),
        ({"sampling": "random-allocation", "batch_size": 10}, _shuffled, Rule.FIXED),
    ],
)
def test_other_samplings_have_rules_of_their_own(
    fields: dict[str, Any], draw: Any, rule: Rule
) -> None:
    plan = hs.DPSGD(examples=EXAMPLES, noise_multiplier=2, steps=8, **fields)
    assert rule in _tested(draw=draw, plan=plan, draws=400).names


SAMPLINGS: list[dict[str, Any]] = [
    {"batch_size": 10},
    {"batch_size": 10, "batch_cap": 12},
    {"batch_size": 10, "adjacency": "replace-one"},
    {"sampling": "fixed-size", "batch_size": 10},
    {"sampling": "with-replacement", "batch_size": 10, "adjacency": "replace-one"},
    {"sampling": "shuffle", "batch_size": 10, "adjacency": "zero-out"},
    {"sampling": "random-allocation", "batch_size": 10},
    {"sampling": "full-batch"},
    {"batch_size": 10, "batch_schedule": hs.schedules.Values([1.0, 2.0] * 4)},
    {"batch_size": 10, "schedule": hs.schedules.Values([1.0] * 8)},
]


@pytest.mark.parametrize("fields", SAMPLINGS, ids=str)
def test_our_own_sampler_and_sum_pass_under_each_sampling(fields: dict[str, Any]) -> None:
    plan = hs.DPSGD(examples=EXAMPLES, noise_multiplier=2, steps=8, **fields)
    epochs: list[Sampler] = []

    def draw(step: int) -> Any:
        if step == 0:
            epochs.append(Sampler(plan, EXAMPLES))
        return epochs[-1].draw(step)

    def release(data: Any, places: Any, seed: int | None) -> Any:
        source = {} if seed is None else {"bits": np.random.Philox(seed).random_raw}
        return noisy_sum(data[places], norm=1, noise_multiplier=2, **source)

    found = _tested(release, draw, plan, confidence=1 - 1e-9)
    assert found.names == ()
    assert dict(found.measured)["sensitivity"] <= 2


def test_a_sound_loop_fails_no_more_often_than_the_confidence_says() -> None:
    """Of 300 sound loops at confidence 0.9 no more than 30 fail, up to 1 in 10^4 simulations."""
    failed = sum(
        not _tested(draw=_poisson, confidence=0.9, records=1, trials=30, draws=40).consistent
        for _ in range(300)
    )
    assert binomial_at_least(failed, 300, 0.1) > 1e-4


def test_a_sound_loop_has_a_result_that_says_how_sure_it_is() -> None:
    found = _tested(draw=_poisson, trials=20, draws=30, confidence=1 - 1e-9)
    assert isinstance(found, SelfTest)
    assert json.loads(json.dumps(found.as_dict()))["consistent"] is True


def test_a_loop_that_fails_on_a_neighbour_alone_is_named_and_tested_further() -> None:
    def refuses(data: Any, places: Any, seed: int | None) -> Any:
        if not np.isfinite(data).all():
            raise ValueError("undefined data")
        return _too_small(data, places, seed)

    found = _tested(refuses)
    assert {Rule.FAILS, Rule.TOO_SMALL} <= set(found.names)
    assert "undefined data" in found.violations[0].where


def test_a_loop_that_fails_on_its_own_data_raises_what_it_raises() -> None:
    def fails(data: Any, places: Any, seed: int | None) -> Any:
        raise ZeroDivisionError("always")

    with pytest.raises(ZeroDivisionError, match="always"):
        _tested(fails)


def test_a_plan_without_noise_has_its_sums_tested_alone() -> None:
    plan = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=8, noise_multiplier=0)
    assert _tested(_without_noise, plan=plan).names == ()
    assert Rule.MIXED in _tested(_clips_by_largest, plan=plan).names


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (lambda: _tested(confidence=1.0), "confidence"),
        (lambda: _tested(records=0), "records"),
        (lambda: _tested(trials=1), "trials"),
        (lambda: _tested(seed=-1), "seed"),
        (lambda: record(lambda: None), "loop"),
        (lambda: PlainLoop(PLAN, DATA[:1], _sound, norm=1.0), "data"),
        (lambda: PlainLoop(PLAN, DATA, _sound, norm=0.0), "norm"),
        (lambda: PlainLoop(hs.Gaussian(1.0), DATA, _sound, norm=1.0), "plan"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_such_argument_is_named(asked: Callable[[], object], name: str) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} must be"):
        asked()


Altered = Callable[[Run, Neighbour | None], Run]


class Told:
    """The replays of a sound loop, which tell something else beside."""

    def __init__(self, altered: Altered, copies: int = 1) -> None:
        self.inner = PlainLoop(PLAN, DATA, _sound, norm=1.0)
        self.altered, self.most = altered, copies

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def as_replay(self) -> Told:
        return self

    def copies(self) -> int:
        return self.most

    def run(self, neighbour: Neighbour | None, *given: Any, **options: Any) -> Run:
        return self.altered(self.inner.run(neighbour, *given, **options), neighbour)


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
    assert record(Told(altered, copies), confidence=1 - 1e-9, trials=20).names == names


def test_a_record_that_is_drawn_more_often_than_others_is_named() -> None:
    """Record 7 is in half of the batches, and the others in fewer, so that all together fit."""
    source = np.random.default_rng(2)
    rates = np.full(EXAMPLES, 9.5 / 39)
    rates[7] = 0.5

    def draw(step: int) -> Any:
        return np.flatnonzero(source.random(EXAMPLES) < rates)

    found = _tested(draw=draw, draws=400, confidence=1 - 1e-9)
    assert [(one.name, one.where) for one in found.violations] == [(Rule.RATE, "one record")]
