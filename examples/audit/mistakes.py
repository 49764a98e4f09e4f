"""Planted bugs: releases with one mistake each, and how many trials it takes to refute them.

Each is made with the mistake or without it; all else, the attack too, is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from audited import CONFIDENCE, Audited, Found, certified, each, predicted, until_refuted, variation
from choice_releases import place_of_first
from click import echo
from noise_releases import ONE
from replayed_mistakes import report as report_replayed

import hockeystick as hs
from hockeystick import release
from hockeystick.adapters.loop import noisy_sum
from hockeystick.mechanisms import AboveThreshold, ReportNoisyMax, SparseVector, TreeAggregation

MOST = 51_200
RANDOM = np.random.default_rng()


@dataclass(frozen=True)
class Planted:
    """A mistake in a release.

    Args:
        name: What is wrong.
        plan: What is claimed.
        scores: ``scores(wrong)`` runs the attack on what is wrong, or on what is right.
        actual: What runs in fact, where a mechanism describes it.
        implied: What the plan implies and is tested in its place.
    """

    name: str
    plan: Any
    scores: Callable[[bool], Callable[[bool, int], Any]]
    actual: Any = None
    implied: Any = None

    def audited(self, *, wrong: bool) -> Audited:
        """Return what to audit."""
        return Audited(self.name, (), self.plan, self.scores(wrong), implied=self.implied)


def one_by_one(score: Callable[[bool, bool], Any]) -> Callable[[bool], Callable[[bool, int], Any]]:
    """Return the scores of many runs, from ``score(wrong, inside)`` of one."""
    return lambda wrong: each(lambda inside: score(wrong, inside))


def _gaussian(value: Any, noise: float = 1.0) -> Any:
    return release.gaussian(hs.Gaussian(noise), value, 1.0)


def noises() -> list[Planted]:
    """Return noise that is too small, or that is not there."""

    def too_small(wrong: bool, inside: bool) -> Any:
        return _gaussian(float(inside), 0.9 if wrong else 1.0)

    def half(wrong: bool, inside: bool) -> Any:
        return _gaussian(float(inside), 2.0 if wrong else 4.0)

    def seeded(wrong: bool, inside: bool) -> Any:
        first, again = (np.random.default_rng(7 if wrong else None) for _ in range(2))
        return (inside + first.standard_normal()) - again.standard_normal()

    def bias_bare(wrong: bool, inside: bool) -> Any:
        _, bias = _gaussian(np.full(2, inside / 2**0.5))
        return inside / 2**0.5 if wrong else bias

    def shared(wrong: bool, inside: bool) -> Any:
        noise = np.full(2, RANDOM.standard_normal()) if wrong else RANDOM.standard_normal(2)
        return float(inside) + noise[0] - noise[1]

    return [
        Planted("noise 10 % too small", ONE, one_by_one(too_small), hs.Gaussian(0.9)),
        Planted("half the noise", hs.Gaussian(4.0), one_by_one(half), hs.Gaussian(2.0)),
        Planted("one seed for two releases", ONE**2, one_by_one(seeded), hs.Gaussian(0.0)),
        Planted("bias without noise", ONE, one_by_one(bias_bare), hs.Gaussian(0.0)),
        Planted("one noise for all entries", ONE, one_by_one(shared), hs.Gaussian(0.0)),
    ]


def clips() -> list[Planted]:
    """Return sums whose clipping does not bound what a record adds."""

    def sum_of(rows: Any) -> Any:
        return np.asarray(rows).sum(axis=0) + RANDOM.standard_normal(np.shape(rows)[1])

    def one_sided(wrong: bool, inside: bool) -> Any:
        rows = np.full((int(inside), 1), -5.0)
        return -sum_of(np.minimum(rows, 1.0) if wrong else np.clip(rows, -1.0, 1.0))[0]

    def coordinates(wrong: bool, inside: bool) -> Any:
        rows = np.full((int(inside), 16), 3.0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        clipped = np.clip(rows, -1.0, 1.0) if wrong else rows / np.maximum(lengths, 1.0)
        return sum_of(clipped).sum() / 4

    def after_mean(wrong: bool, inside: bool) -> Any:
        rows = np.concatenate((np.full((3, 1), -1.0), np.full((int(inside), 1), 3.0)))
        if wrong:
            return 4 * np.clip(rows.sum() / 4, -1.0, 1.0) + RANDOM.standard_normal()
        return noisy_sum(rows, norm=1.0, noise_multiplier=1.0)[0]

    def secret_count(wrong: bool, inside: bool) -> Any:
        total = _gaussian(float(inside))
        seen = total / (1 + inside) if wrong else total
        return 0.5 * seen**2 - 2.0 * (seen - 0.5) ** 2

    return [
        Planted("clipped on one side", ONE, one_by_one(one_sided), hs.Gaussian(0.2)),
        Planted("coordinates clipped, not rows", ONE, one_by_one(coordinates), hs.Gaussian(0.25)),
        Planted("batch clipped, not records", ONE, one_by_one(after_mean), hs.Gaussian(1 / 3)),
        Planted("divided by a secret count", ONE, one_by_one(secret_count)),
    ]


def charges() -> list[Planted]:
    """Return releases that cost more than is charged."""
    step, count = hs.Gaussian(2.0), hs.DiscreteLaplace(scale=1.0)

    def uncounted(wrong: bool, inside: bool) -> Any:
        return _gaussian(np.full(5 if wrong else 4, float(inside)), 2.0).sum()

    def histogram(wrong: bool, inside: bool) -> Any:
        cells = [int(inside), int(not inside)]
        paid = count if wrong else hs.DiscreteLaplace(scale=2.0)
        one, other = release.geometric(paid, cells)
        return np.clip(one, 0, 1) - np.clip(other, 0, 1)

    def shuffled(wrong: bool, inside: bool) -> Any:
        drawn = np.arange(10) == RANDOM.integers(10) if wrong else RANDOM.random(10) < 0.1
        seen = inside * drawn + SMALL * RANDOM.standard_normal(10)
        return np.logaddexp.reduce((seen - 0.5) / SMALL**2)

    loop = hs.DPSGD(examples=10, batch_size=1, steps=10, noise_multiplier=SMALL)
    return [
        Planted("a step that is not counted", step**4, one_by_one(uncounted), step**5),
        Planted("two cells change, one is charged", count, one_by_one(histogram), count**2),
        Planted(
            "shuffled, accounted as Poisson", loop, one_by_one(shuffled), implied=variation(loop)
        ),
    ]


SMALL = 0.4


def selections() -> list[Planted]:
    """Return choices, comparisons, trees and reports with a mistake of their own."""
    best, once = ReportNoisyMax(1.0, "laplace"), AboveThreshold(1.0, 2.0)
    forever, tree = SparseVector(2.0, 4.0, positives=1), TreeAggregation(2.0, 7)
    response = hs.RandomizedResponse(math.log(3), categories=2)

    def noisy_max(wrong: bool, inside: bool) -> Any:
        noise = RANDOM.laplace(scale=1.0 if wrong else 2.0, size=2)
        return int(np.argmax(([1.0, 3.0] if inside else [0.0, 4.0]) + noise) == 0)

    def bare_queries(wrong: bool, inside: bool) -> Any:
        used = AboveThreshold(1.0, 0.0) if wrong else once
        return place_of_first(release.above_threshold(used, 2.0, 1.0), inside)

    def never_stops(wrong: bool, inside: bool) -> Any:
        threshold, answers = 0.5 + RANDOM.laplace(scale=2.0), [1.0 - inside, float(inside)] * 10
        above = [answer + RANDOM.laplace(scale=4.0) >= threshold for answer in answers]
        if not wrong:
            above = [one and not any(above[:place]) for place, one in enumerate(above)]
        return sum(above[1::2]) - sum(above[::2])

    def bare_level(wrong: bool, inside: bool) -> Any:
        if wrong:
            return float(inside)
        run = release.tree_aggregation(tree, 1, 1.0)
        return [run.add([float(inside and row == 0)])[0] for row in range(4)][3]

    def answers(wrong: bool) -> Callable[[bool, int], Any]:
        def seen(inside: bool, people: int) -> Any:
            truth = np.full(people, int(inside))
            if not wrong:
                return release.response_reports(response, truth)
            lies = RANDOM.random(people) >= 0.75
            return np.where(lies, RANDOM.integers(2, size=people), truth)

        return seen

    return [
        Planted("noisy max by the scale of counts", best, one_by_one(noisy_max)),
        Planted("threshold without noise on queries", once, one_by_one(bare_queries)),
        Planted("sparse vector that never stops", forever, one_by_one(never_stops)),
        Planted("a tree's level without noise", tree, one_by_one(bare_level), hs.Gaussian(0.0)),
        Planted("a lie may be the truth", response, answers, hs.RandomizedResponse(math.log(7), 2)),
    ]


def reached(seen: float, value: float) -> bool:
    """Return whether ``value`` plus numpy's ``laplace`` can be ``seen``, for its scale 1.

    It is ``value + log(2 U)`` or ``value - log(2 - U - U)``, in floats, of a multiple U of 2^-53:
    the few are tried that are near.
    """
    nearest = round(2.0**52 * math.exp(-abs(seen - value)))
    for part in range(max(nearest - 8, 1), nearest + 9):
        u = part / 2.0**53
        if seen < value and value + math.log(u + u) == seen:
            return True
        if seen >= value and value - math.log(2.0 - (1.0 - u) - (1.0 - u)) == seen:
            return True
    return False


def floats() -> list[Planted]:
    """Return Laplace noise as textbooks have it, added in floats."""
    plan = hs.Laplace(1.0)

    def textbook(wrong: bool, inside: bool) -> float:
        value = float(inside)
        seen = float(value + RANDOM.laplace() if wrong else release.laplace(plan, value, 1.0))
        return 10.0 * (reached(seen, 1.0) - reached(seen, 0.0)) + min(max(seen, 0.0), 1.0)

    return [Planted("textbook Laplace noise in floats", plan, one_by_one(textbook))]


def planted() -> list[Planted]:
    """Return all planted bugs."""
    return [bug for family in (noises, clips, charges, selections, floats) for bug in family()]


def caught(
    bugs: list[Planted], *, confidence: float = CONFIDENCE
) -> Iterator[tuple[Planted, Found, Found]]:
    """Yield what was found of each bug, and of the same release without it in as many trials."""
    for bug in bugs:
        found = until_refuted(bug.audited(wrong=True), MOST, confidence=confidence)
        right = bug.audited(wrong=False)
        yield bug, found, until_refuted(right, found.trials, confidence=confidence)


def report() -> None:
    """Print a table of the bugs, and of those that a replay finds."""
    echo(f"confidence {CONFIDENCE:g} over all looks of a row\n")
    echo("| planted | claimed | epsilon | predicted | trials | found, at least | without it |")
    echo("|---|---|---:|---:|---:|---:|---|")
    for bug, found, control in caught(planted()):
        needed = "" if bug.actual is None else predicted(bug.plan, bug.actual)
        took = found.trials if found.refuted else f"not in {found.trials}"
        assert found.verdict.epsilon is not None
        values = f"{certified(bug.plan):.3f} | {needed} | {took}"
        least, without = found.verdict.epsilon.value, type(control.verdict).__name__
        echo(f"| {bug.name} | {bug.plan} | {values} | {least:.3f} | {without} |")
    echo()
    report_replayed()
