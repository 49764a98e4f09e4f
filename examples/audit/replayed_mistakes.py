"""Planted bugs of a training loop that an attack would need very many runs to see."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from audited import CONFIDENCE, predicted
from click import echo

import hockeystick as hs
from hockeystick.adapters.loop import Sampler
from hockeystick.audit import PlainLoop, record

EXAMPLES, WIDTH = 100, 8
PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=20, noise_multiplier=2.0)
DATA = np.random.default_rng(1).standard_normal((EXAMPLES, WIDTH))


@dataclass(frozen=True)
class Replayed:
    """A loop with a mistake.

    Args:
        name: What is wrong.
        rule: The name under which a replay reports it.
        loop: ``loop(wrong)`` is the loop, with the mistake or without it.
        actual: What runs in fact, where a mechanism describes it.
        options: What ``record`` is asked for.
    """

    name: str
    rule: str
    loop: Callable[[bool], PlainLoop]
    actual: Any
    options: dict[str, int]


def _released(norm: float, deviation: float) -> Callable[[Any, Any, int | None], Any]:
    def release(data: Any, places: Any, seed: int | None) -> Any:
        rows = data[places]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        finite = np.isfinite(lengths)
        clipped = np.where(finite, rows, 0.0) * np.where(
            finite, norm / np.maximum(lengths, norm), 0.0
        )
        return clipped.sum(axis=0) + deviation * np.random.default_rng(seed).standard_normal(WIDTH)

    return release


def _shuffled() -> Callable[[int], Any]:
    """Return batches that go through a shuffled data set, anew in each epoch."""
    order = np.arange(EXAMPLES)

    def draw(step: int) -> Any:
        place = step % 10
        if place == 0:
            np.random.default_rng().shuffle(order)
        return order[10 * place : 10 * place + 10].copy()

    return draw


def replayed() -> list[Replayed]:
    """Return the loops."""
    too_long = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=20, noise_multiplier=2.0 / 1.01)
    too_small = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=20, noise_multiplier=1.96)

    def loop(norm: float = 1.0, deviation: float = 2.0, draw: Any = None) -> PlainLoop:
        return PlainLoop(PLAN, DATA, _released(norm, deviation), norm=1.0, draw=draw)

    return [
        Replayed(
            "clipping norm 1 % too large",
            "sensitivity",
            lambda wrong: loop(norm=1.01 if wrong else 1.0),
            too_long,
            {"records": 3},
        ),
        Replayed(
            "noise 2 % too small",
            "noise-too-small",
            lambda wrong: loop(deviation=1.96 if wrong else 2.0),
            too_small,
            {"trials": 20_000},
        ),
        Replayed(
            "shuffled, noise multiplier 2",
            "batches-avoid-one-another",
            lambda wrong: loop(draw=_shuffled() if wrong else Sampler(PLAN, EXAMPLES).draw),
            None,
            {"draws": 400},
        ),
    ]


def tested(one: Replayed, *, wrong: bool, confidence: float) -> Any:
    """Return the self-test of a loop."""
    return record(one.loop(wrong), confidence=confidence, **one.options)


def results() -> Iterator[tuple[Replayed, Any, Any, float]]:
    """Yield for each loop its self-test with the mistake, that without it, and seconds."""
    for one in replayed():
        started = time.process_time()
        found = tested(one, wrong=True, confidence=CONFIDENCE)
        seconds = time.process_time() - started
        yield one, found, tested(one, wrong=False, confidence=CONFIDENCE), seconds


def report() -> None:
    """Print what replays find, beside the number of trials that the best attack needs."""
    echo("| planted in DP-SGD | trials of an attack | asked | seconds | found | without it |")
    echo("|---|---:|---|---:|---|---|")
    for one, found, right, seconds in results():
        needed = "" if one.actual is None else predicted(PLAN, one.actual)
        asked = ", ".join(f"{name} {value}" for name, value in one.options.items())
        names, without = ", ".join(found.names), ", ".join(right.names) or "consistent"
        echo(f"| {one.name} | {needed} | {asked} | {seconds:.1f} | {names} | {without} |")
