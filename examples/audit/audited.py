"""What is audited: a claim, and how to run what is claimed on two neighbouring data sets."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import hockeystick as hs
from hockeystick import audit

DELTA, CONFIDENCE = 1e-5, 0.99
FIRST = 50


@dataclass(frozen=True)
class Audited:
    """A claim, what runs, and an attack on it.

    Args:
        name: What the table calls it.
        runs: The functions of ``hockeystick.release`` or of an adapter that it runs.
        plan: What is claimed: a mechanism or plan.
        scores: ``scores(inside, trials)`` runs it so many times with the record or without it, each
            time with fresh noise, and returns the attack's scores; larger ones mean "with".
        trials: How many trials of each kind the table has.
        implied: What the plan implies and is tested in its place, where its curve takes long.
    """

    name: str
    runs: tuple[str, ...]
    plan: Any
    scores: Callable[[bool, int], Any]
    trials: int = 20_000
    implied: Any = None

    def verdict(self, scores: Any, confidence: float) -> audit.Refuted | audit.Consistent:
        """Return whether scores of both kinds contradict the claim."""
        claim = self.plan if self.implied is None else self.implied
        return audit.falsify(claim, *scores, confidence=confidence, delta=DELTA)


def each(score: Callable[[bool], Any]) -> Callable[[bool, int], Any]:
    """Return scores of many runs, from the score of one."""

    def scores(inside: bool, trials: int) -> Any:
        return np.array([float(score(inside)) for _ in range(trials)])

    return scores


@dataclass(frozen=True)
class Found:
    """What trials say of a claim.

    Args:
        audited: What was run.
        trials: How many trials of each kind there were.
        verdict: Whether they contradict the claim.
        seconds: Processor time.
    """

    audited: Audited
    trials: int
    verdict: audit.Refuted | audit.Consistent
    seconds: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return isinstance(self.verdict, audit.Refuted)


def audits(
    rows: Sequence[Audited], share: float = 1.0, *, confidence: float = CONFIDENCE
) -> Iterator[Found]:
    """Yield what a share of each row's trials says, so that all answers hold together.

    By Bonferroni's inequality: each of n rows is audited at ``1 - (1 - confidence) / n``.
    """
    of_each = 1.0 - (1.0 - confidence) / len(rows)
    for row in rows:
        trials, started = max(math.ceil(row.trials * share), 2), time.process_time()
        scores = row.scores(True, trials), row.scores(False, trials)
        verdict = row.verdict(scores, of_each)
        yield Found(row, trials, verdict, time.process_time() - started)


def until_refuted(row: Audited, most: int, *, confidence: float = CONFIDENCE) -> Found:
    """Return what doubling numbers of trials say: the first refutation, or the last answer.

    Each look has all trials so far. The k-th one is at ``1 - (1 - confidence) 6 / (pi k)^2``: as
    ``sum 1/k^2 = pi^2/6``, by the union bound a claim that is true is refuted at any of the looks,
    however many there are, with probability at most ``1 - confidence``.
    """
    started, kept, look = time.process_time(), [np.empty(0), np.empty(0)], 0
    while True:
        look += 1
        wanted = min(FIRST * 2 ** (look - 1), most)
        kept = [
            np.concatenate((old, row.scores(inside, wanted - old.size)))
            for inside, old in zip((True, False), kept, strict=True)
        ]
        of_look = 1.0 - (1.0 - confidence) * 6.0 / (math.pi * look) ** 2
        verdict = row.verdict(kept, of_look)
        if isinstance(verdict, audit.Refuted) or wanted == most:
            return Found(row, wanted, verdict, time.process_time() - started)


def predicted(claimed: Any, actual: Any) -> int:
    """Return how many trials the best attack needs at one look, to refute in 9 of 10 audits."""
    return audit.trials_needed(claimed, actual, confidence=CONFIDENCE, power=0.9)


def variation(plan: Any) -> hs.ApproxDP:
    """Return what a plan implies of the total variation distance, which is its delta at 0."""
    return hs.ApproxDP(0.0, hs.delta(plan, 0.0).upper)


def certified(plan: Any) -> float:
    """Return the epsilon that is proven for a plan at ``DELTA``."""
    return hs.epsilon(plan, DELTA).upper
