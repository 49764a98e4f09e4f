"""Mechanisms on random parts of the data, and reports that are shuffled."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from tests.judge import noises
from tests.judge.cases import Case, Family, exactly, of_terms
from tests.judge.noises import Noise
from tests.judge.outcomes import Outcomes
from tests.judge.profiles import Real, Terms, failing, gathered, gaussian, listed, mp, number


@dataclass(frozen=True)
class Drawn:
    """How records are drawn, what is run on them, and its noise if that is known."""

    values: tuple[Any, ...]
    adjacency: str
    inner: Family | None
    noise: Noise | None


def rate_of(rate: Any) -> Real:
    if isinstance(rate, Fraction):
        return mp.mpf(rate.numerator) / rate.denominator
    return number(rate)


def mixed_shifts(
    noise: Noise, first: list[tuple[float, float]], second: list[tuple[float, float]]
) -> Case:
    """Two mixtures of shifts of one noise, each a list of (shift, weight), seen as cells."""

    def low() -> Outcomes:
        shifts = [shift for shift, _ in (*first, *second)]
        edges = noise.cells(min(shifts), max(shifts))
        laws = [sum(w * noise.masses(edges, c) for c, w in one) for one in (first, second)]
        return Outcomes(np.asarray(laws[0]), np.asarray(laws[1]))

    return Case(None, low)


def poisson(of: Drawn) -> Family:
    rate, exact = float(of.values[0]), rate_of(of.values[0])
    if of.adjacency == "replace-one":
        return Family(()) if of.noise is None else _replaced(of.noise, rate)
    assert of.inner is not None
    top = of.inner.dominating
    return Family(
        tuple(one.sampled(rate, exact) for one in of.inner.attacks),
        None if top is None else top.sampled(rate, exact),
        tuple(one.sampled(rate, exact) for one in of.inner.once),
    )


def _replaced(noise: Noise, rate: float) -> Family:
    """A record that moves the sum by 1, or is replaced by one that moves it back."""
    with_it, without = [(0.0, 1.0 - rate), (1.0, rate)], [(0.0, 1.0 - rate), (-1.0, rate)]
    attacks = (mixed_shifts(noise, with_it, without), mixed_shifts(noise, with_it, [(0.0, 1.0)]))
    if not isinstance(noise, noises.Gaussian):
        return Family(attacks)
    whole = gaussian((2 / number(noise.deviation)) ** 2)
    if rate == 1.0:
        return exactly(of_terms(whole))
    # Telling when the record is drawn: a Gaussian that moves by 2.
    return Family(attacks, of_terms(whole.revealed(number(rate))))


def fixed_size(of: Drawn) -> Family:
    """One of all sets of m of n records; another one takes the place of one that is missing."""
    size, examples = (int(one) for one in of.values)
    rate, inner = Fraction(size, examples), of.inner
    assert inner is not None
    if of.adjacency == "zero-out":
        found = _zeroed(rate, inner, of.noise)
        return replace(found, attacks=(*found.attacks, *_counted(float(rate), of.noise)))
    if of.adjacency == "add-remove" and size == examples:
        return _all_of_them(of.noise)
    share, exact = float(rate), rate_of(rate)
    attacks = tuple(one.sampled(share, exact) for one in inner.attacks)
    top = inner.dominating
    if of.adjacency == "add-remove":
        return Family(attacks, None if top is None else top.sampled(share, exact))
    mirrored = tuple(
        _reversed(one).sampled(share, exact)
        for one in inner.attacks
        if one.profile is None or isinstance(one.profile, Terms)
    )
    once = () if top is None else tuple(one.sampled(share, exact) for one in (top, _reversed(top)))
    return Family((*attacks, *mirrored), None, once)


def _counted(rate: float, noise: Noise | None) -> tuple[Case, ...]:
    """Counts: a record that is zeroed moves one as far as one that is replaced, from 0 to 1."""
    if not isinstance(noise, noises.Gaussian):
        return ()
    return (mixed_shifts(noise, [(0.0, 1.0 - rate), (1.0, rate)], [(0.0, 1.0)]),)


def clipped_batch(of: Drawn) -> Family:
    """One of all sets of m of n records, each a vector of norm 1/2 at most, one of them zeroed."""
    size, examples = (int(one) for one in of.values)
    assert of.inner is not None
    if size == examples:
        return _all_of_them(of.noise)
    return _zeroed(Fraction(size, examples), of.inner, of.noise)


def _all_of_them(noise: Noise | None) -> Family:
    """A sample of all records has one fewer without the record: a sum moves by half as much."""
    if not isinstance(noise, noises.Gaussian):
        return Family(())
    return exactly(of_terms(gaussian(1 / (2 * number(noise.deviation)) ** 2)))


def _reversed(case: Case) -> Case:
    profile = None if case.profile is None else case.profile.swapped()

    def low() -> Outcomes:
        return case.low.swapped()

    return Case(profile, low)


def _zeroed(rate: Fraction, inner: Family, noise: Noise | None) -> Family:
    """A record that is zeroed is drawn as before; the others may all pull one way.

    In units of a replacement, samples with the record are at 1/2, with it zeroed at 0, and without
    it where the other that takes its place is, from -1/2 to 1/2.
    """
    share = float(rate)
    attacks: tuple[Case, ...] = ()
    if isinstance(noise, noises.Gaussian):
        attacks = tuple(
            mixed_shifts(
                noise, [(place, 1.0 - share), (0.5, share)], [(place, 1.0 - share), (0.0, share)]
            )
            for place in (0.0, -0.5, 0.5, 0.25)
        )
    top = inner.dominating
    exact = rate_of(rate)
    once = () if top is None else tuple(one.sampled(share, exact) for one in (top, _reversed(top)))
    return Family(attacks, None, once)


def with_replacement(of: Drawn) -> Family:
    """A record is in any number of places; telling how many costs no less."""
    size, examples = (int(one) for one in of.values)
    noise = of.noise
    if not isinstance(noise, noises.Gaussian):
        return Family(())
    rate = 1.0 / examples
    weights = [math.comb(size, k) * rate**k * (1.0 - rate) ** (size - k) for k in range(size + 1)]
    reach = [(k, w) for k, w in enumerate(weights) if w > 1e-300]
    attacks = tuple(
        mixed_shifts(noise, [(k * x, w) for k, w in reach], [(k * y, w) for k, w in reach])
        for x, y in ((1.0, 0.0), (0.5, -0.5))
    )
    chance = mp.mpf(1) / examples
    terms: list[tuple[Real, Real, Real]] = []
    for k in range(size + 1):
        w = mp.binomial(size, k) * chance**k * (1 - chance) ** (size - k)
        terms.append((w, w, (k / number(noise.deviation)) ** 2))
    return Family(attacks, of_terms(gathered(terms)))


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


def shuffled_reports(of: Drawn) -> Family:
    epsilon, categories, users = of.values
    cases = _reports(epsilon, categories, users)
    plain = of_terms(failing(number(epsilon), mp.mpf(0)))
    return Family(cases, cases[0] if len(cases) == 1 else plain, cases)


SAMPLINGS: dict[str, Callable[[Drawn], Family]] = {
    "PoissonSubsampled": poisson,
    "FixedSizeSubsampled": fixed_size,
    "WithReplacementSubsampled": with_replacement,
    "ClippedBatch": clipped_batch,
    "ShuffledReports": shuffled_reports,
}
