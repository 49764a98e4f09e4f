"""Epochs that divide the data at random, and reports that are shuffled."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from tests.judge import noises
from tests.judge.cases import Case, Family, of_terms
from tests.judge.noises import Noise
from tests.judge.outcomes import Outcomes, union
from tests.judge.profiles import Real, failing, gaussian, listed, mp, number
from tests.judge.samplings import Sampling, batch_clipped, mixed_shifts


def allocation(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    """A record moves k of the t steps, which ones is secret."""
    steps, times = int(values[0]), int(values[1])
    if group > 1 or not isinstance(noise, noises.Gaussian):
        return Family(())
    square = 1 / number(noise.deviation) ** 2
    total = of_terms(gaussian(mp.mpf(times) ** 2 / steps * square))
    known = of_terms(gaussian(times * square))
    if times in (0, steps):
        return Family((known,), known)
    if times > 1:
        return Family((total, _reads_one_step(noise, times / steps)), known)
    lists = tuple(lambda above=above: _mean_ratio(noise, steps, above) for above in (False, True))
    return Family((total, Case(None, lists[0], lists[1])), Case(None, lists[0], lists[1]))


def _reads_one_step(noise: Noise, rate: float) -> Case:
    """One step alone, which the record is in with some probability."""
    return mixed_shifts(noise, [(0.0, 1.0 - rate), (1.0, rate)], [(0.0, 1.0)])


def _mean_ratio(noise: Noise, steps: int, above: bool) -> Outcomes:
    return _mean_of([noise.dominating(1.0) if above else noise.dominated(1.0)] * steps, above=above)


def _mean_of(ratios: list[Outcomes], *, above: bool) -> Outcomes:
    """The mean of independent likelihood ratios, each merged or split: both keep its mean.

    Outcomes have the mass q without the record and q times the sum of the ratios. Replacing one
    step's ratio by its mean, or by a spread of it, moves the mean over all steps the same way in
    the convex order.
    """
    shown = 0.0
    whole_q, whole_s = np.ones(1), np.zeros(1)
    for one in ratios:
        shown += float(one.p[one.q == 0.0].sum())
        keep = one.q > 0.0
        q, s = one.q[keep], one.p[keep]
        new_q = np.outer(whole_q, q).ravel()
        new_s = (np.outer(whole_s, q) + np.outer(whole_q, s)).ravel()
        smaller = Outcomes(new_s, new_q, above).fewer()
        extra = smaller.q == 0.0
        shown += float(smaller.p[extra].sum())
        whole_q, whole_s = smaller.q[~extra], smaller.p[~extra]
    p = np.append(whole_s / len(ratios), shown / len(ratios) if above else 0.0)
    return Outcomes(p, np.append(whole_q, 0.0), above)


def shuffled(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    """The largest batch of data whose other records all pull one way."""
    steps, clipping = int(values[0]), str(values[1])
    if group > 1 or not isinstance(noise, noises.Gaussian):
        return Family(())
    s = noise.deviation
    twice = adjacency == "replace-one" or clipping == "batch"
    square = ((2 if twice else 1) / number(s)) ** 2
    known = of_terms(gaussian(square))
    if steps == 1:
        return Family((known,), known)
    other = 0.0 if twice else 1.0

    def low() -> Outcomes:
        edges = np.linspace(-6.0 * s, 2.0 + 14.0 * s, 700)
        laws = [noises.maximum_masses(edges, s, steps, shift) for shift in (2.0, other)]
        return Outcomes(laws[0], laws[1], False)

    total = of_terms(gaussian(square / steps))
    return Family((Case(None, low, None), total), known)


@lru_cache(maxsize=64)
def _reports(epsilon: float, categories: int, users: int) -> tuple[Case, ...]:
    """Counts of the reports, for all that the other users may hold."""
    true = mp.exp(number(epsilon))
    chance = [1 / (true + categories - 1)] * categories
    laws = []
    for own in range(categories):
        law = list(chance)
        law[own] = true * chance[own]
        laws.append(law)
    cases = []
    for held in combinations_with_replacement(range(categories), users - 1):
        counts: dict[tuple[int, ...], Real] = {(0,) * categories: mp.mpf(1)}
        for one in held:
            counts = _with_report(counts, laws[one])
        first, second = (_with_report(counts, laws[own]) for own in (0, 1))
        keys = sorted(set(first) | set(second))
        cases.append(of_terms(listed([first[k] for k in keys], [second[k] for k in keys])))
    return tuple(cases)


def _with_report(
    counts: dict[tuple[int, ...], Real], law: list[Real]
) -> dict[tuple[int, ...], Real]:
    found: dict[tuple[int, ...], Real] = Counter()
    for key, mass in counts.items():
        for place, chance in enumerate(law):
            more = (*key[:place], key[place] + 1, *key[place + 1 :])
            found[more] = found.get(more, mp.mpf(0)) + mass * chance
    return found


def shuffled_reports(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    epsilon, categories, users = float(values[0]), int(values[1]), int(values[2])
    if group > 1:
        return Family(())
    cases = _reports(epsilon, categories, users)
    plain = of_terms(failing(number(epsilon), mp.mpf(0)))
    return Family(cases, cases[0] if len(cases) == 1 else plain, cases)


def allocated_batches(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    """Batches of an epoch whose sums are clipped to 1, of a stated number of records.

    The record is in one of them; where others are in it too, it turns -1 into 1, else 0 into 1.
    Telling which batches the others are in costs no less.
    """
    steps, examples = (int(one) for one in values)
    if group > 1 or not isinstance(noise, noises.Gaussian):
        return Family(())
    one_step = batch_clipped((1.0 / steps, examples), adjacency, inner, noise, group)
    if steps == 1:
        return one_step
    if steps > 4:
        return Family(one_step.attacks, of_terms(gaussian((2 / number(noise.deviation)) ** 2)))

    def high() -> Outcomes:
        near, far = (noise.dominating(shift) for shift in (1.0, 2.0))
        chances = _occupied(steps, examples - 1)
        return union(
            [
                (w, _mean_of([far] * full + [near] * (steps - full), above=True))
                for full, w in chances.items()
            ]
        )

    return Family(one_step.attacks, Case(None, None, high))


def _occupied(steps: int, others: int) -> dict[int, float]:
    """How many of the batches hold some of the other records."""
    chances = {0: 1.0}
    for _ in range(others):
        after: dict[int, float] = {}
        for full, w in chances.items():
            after[full] = after.get(full, 0.0) + w * full / steps
            if full < steps:
                after[full + 1] = after.get(full + 1, 0.0) + w * (1.0 - full / steps)
        chances = after
    return {full: w for full, w in chances.items() if w > 0.0}


EPOCHS: dict[str, Sampling] = {
    "RandomAllocation": allocation,
    "Shuffled": shuffled,
    "ShuffledReports": shuffled_reports,
    "AllocatedBatches": allocated_batches,
}
