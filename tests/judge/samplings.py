"""Mechanisms on random parts of the data, and reports that are shuffled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tests.judge import noises
from tests.judge.cases import Case, Family, exactly, of_terms
from tests.judge.noises import Noise
from tests.judge.outcomes import Array, Outcomes, concave_hull, split, union
from tests.judge.profiles import Real, Terms, gathered, gaussian, mp, number


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
        return Outcomes(np.asarray(laws[0]), np.asarray(laws[1]), False)

    return Case(None, low, None)


def random_shift(noise: float, moves: tuple[float, ...], chances: tuple[float, ...]) -> Case:
    """Normal noise that is moved by a random amount >= 0, against none: the ratio rises."""
    normal = noises.Gaussian(noise)
    total = math.fsum(chances)
    pairs = [(c, w / total) for c, w in zip(moves, chances, strict=True) if w > 0.0]
    still = sum(w for c, w in pairs if c == 0.0)

    def high() -> Outcomes:
        edges = normal.cells(0.0, max(moves))
        p: Array = np.asarray(sum(w * normal.masses(edges, c) for c, w in pairs))
        loss = np.logaddexp.reduce(
            [math.log(w) + (normal.loss(edges, c) if c else 0.0 * edges) for c, w in pairs]
        )
        top = math.inf if max(c for c, _ in pairs) > 0.0 else 0.0
        bottom = math.log(still) if still > 0.0 else -math.inf
        at = np.concatenate([[bottom], loss, [top]])
        return split(p, normal.masses(edges, 0.0), at[:-1], at[1:])

    return Case(None, mixed_shifts(normal, pairs, [(0.0, 1.0)]).make_low, high)


def _binomial(count: int, rate: float) -> list[float]:
    return [math.comb(count, k) * rate**k * (1.0 - rate) ** (count - k) for k in range(count + 1)]


def poisson(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    rate, exact = float(values[0]), rate_of(values[0])
    if adjacency == "replace-one" or group > 1:
        if noise is None:
            return Family(())
        return _poisson_records(noise, rate, group, replaced=adjacency == "replace-one")
    assert inner is not None
    top = inner.dominating
    return Family(
        tuple(one.sampled(rate, exact) for one in inner.attacks),
        None if top is None else top.sampled(rate, exact),
        tuple(one.sampled(rate, exact) for one in inner.once),
    )


def _poisson_records(noise: Noise, rate: float, group: int, *, replaced: bool) -> Family:
    """Records that each move the sum by 1, or that are replaced by ones that move it back."""
    weights = _binomial(group, rate)
    with_them = [(float(k), w) for k, w in enumerate(weights)]
    if not replaced:
        return Family((mixed_shifts(noise, with_them, [(0.0, 1.0)]),))
    without = [(-shift, w) for shift, w in with_them]
    attacks = (
        mixed_shifts(noise, with_them, without),
        mixed_shifts(noise, with_them, [(0.0, 1.0)]),
    )
    if rate == 1.0 and isinstance(noise, noises.Gaussian):
        whole = of_terms(gaussian((2 * group / number(noise.deviation)) ** 2))
        return Family((whole,), whole if group == 1 else None)
    if group > 1 or not isinstance(noise, noises.Gaussian):
        return Family(attacks)
    # Telling when the record is drawn: a Gaussian that moves by 2.
    told = of_terms(gaussian((2 / number(noise.deviation)) ** 2).revealed(number(rate)))
    return Family(attacks, told)


def fixed_size(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    """One of all sets of m of n records; another one takes the place of one that is missing."""
    size, examples = (int(one) for one in values)
    rate = Fraction(size, examples)
    assert inner is not None
    if group > 1:
        return Family(())
    if adjacency == "zero-out":
        found = _zeroed(rate, inner, noise)
        return replace(found, attacks=(*found.attacks, *_counted(float(rate), noise)))
    if adjacency == "add-remove" and size == examples:
        return _all_of_them(noise)
    share, exact = float(rate), rate_of(rate)
    attacks = tuple(one.sampled(share, exact) for one in inner.attacks)
    top = inner.dominating
    if adjacency == "add-remove":
        return Family(attacks, None if top is None else top.sampled(share, exact))
    mirrored = tuple(
        _reversed(one).sampled(share, exact)
        for one in inner.attacks
        if one.profile is None or isinstance(one.profile, Terms)
    )
    once = () if top is None else tuple(one.sampled(share, exact) for one in (top, _reversed(top)))
    return Family((*attacks, *mirrored), None if top is None else _worse_of_both(top, share), once)


def _counted(rate: float, noise: Noise | None) -> tuple[Case, ...]:
    """Counts: a record that is zeroed moves one as far as one that is replaced, from 0 to 1."""
    if not isinstance(noise, noises.Gaussian):
        return ()
    return (mixed_shifts(noise, [(0.0, 1.0 - rate), (1.0, rate)], [(0.0, 1.0)]),)


def clipped_batch(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    """One of all sets of m of n records, each a vector of norm 1/2 at most, one of them zeroed."""
    size, examples = (int(one) for one in values)
    assert inner is not None
    if group > 1:
        return Family(())
    if size == examples:
        return _all_of_them(noise)
    return _zeroed(Fraction(size, examples), inner, noise)


def _all_of_them(noise: Noise | None) -> Family:
    """A sample of all records has one fewer without the record: a sum moves by half as much."""
    if not isinstance(noise, noises.Gaussian):
        return Family(())
    return exactly(of_terms(gaussian(1 / (2 * number(noise.deviation)) ** 2)))


def _reversed(case: Case) -> Case:
    profile = None if case.profile is None else case.profile.swapped()

    def low() -> Outcomes:
        return case.low.swapped()

    def high() -> Outcomes:
        return case.high.swapped()

    return Case(profile, low, None if case.make_high is None else high)


def _worse_of_both(top: Case, rate: float) -> Case:
    """In each run the test that is best against either way of replacing (Dong, Roth, Su 4.2)."""

    def high() -> Outcomes:
        ways = [one.mixed(rate) for one in (top.high, top.high.swapped())]
        return concave_hull([*ways, *(one.swapped() for one in ways)])

    return Case(None, None, high)


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
    return Family(attacks, None if top is None else _worse_of_both(top, share), once)


def with_replacement(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    """A record is in any number of places; telling how many costs no less."""
    size, examples = (int(one) for one in values)
    if group > 1 or not isinstance(noise, noises.Gaussian):
        return Family(())
    weights = _binomial(size, 1.0 / examples)
    reach = [(k, w) for k, w in enumerate(weights) if w > 1e-300]
    ways = [(0.0, 1.0, 0.0), (0.5, 0.5, -0.5)]
    attacks = tuple(
        mixed_shifts(noise, [(k * x, w) for k, w in reach], [(k * y, w) for k, w in reach])
        for _, x, y in ways
    )
    chance = mp.mpf(1) / examples
    terms: list[tuple[Real, Real, Real]] = []
    for k in range(size + 1):
        w = mp.binomial(size, k) * chance**k * (1 - chance) ** (size - k)
        terms.append((w, w, (k / number(noise.deviation)) ** 2))
    return Family(attacks, of_terms(gathered(terms)))


def truncated_poisson(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    """A record that is drawn is kept with the chance min(1, cap/(J + 1)), J others drawn."""
    rate, cap, examples = float(values[0]), int(values[1]), int(values[2])
    if group > 1 or not isinstance(noise, noises.Gaussian):
        return Family(())
    others = _binomial(examples - 1, rate)
    kept = math.fsum(w * min(1.0, cap / (j + 1)) for j, w in enumerate(others)) * (1 - 1e-12)
    full = math.fsum(w for j, w in enumerate(others) if j >= cap)
    attack = mixed_shifts(noise, [(0.0, 1.0 - rate * kept), (1.0, rate * kept)], [(0.0, 1.0)])
    attacks = [attack]

    def high() -> Outcomes:
        ways = [(1.0 - full, 1.0)] + ([(full, 2.0)] if full > 0.0 else [])
        return union([(w, noise.dominating(shift).mixed(rate)) for w, shift in ways])

    del adjacency, inner
    top = Case(None, None, high)
    if full > 0.0:
        # All others contribute -1: a full batch in which the record takes a place moves by 2.
        first: list[tuple[float, float]] = []
        second: list[tuple[float, float]] = []
        for j, w in enumerate(others):
            base, keep = -float(min(j, cap)), min(1.0, cap / (j + 1))
            second.append((base, w))
            first.append((base, w * (1.0 - rate * keep)))
            first.append((base + (2.0 if j >= cap else 1.0), w * rate * keep))
        if examples <= 12:
            attacks.append(mixed_shifts(noise, first, second))
    return Family(tuple(attacks), top)


def batch_clipped(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    """Poisson batches whose sum is clipped to 1, of a stated number of records.

    With company, the record turns a sum of -1 into 1; alone, it moves the sum from 0 to 1. Telling
    whether there is company costs no less.
    """
    rate, examples = values
    share = float(rate)
    if group > 1 or not isinstance(noise, noises.Gaussian):
        return Family(())
    alone = (1.0 - share) ** (int(examples) - 1)
    first = [(1.0, share), (-1.0, (1.0 - share) * (1.0 - alone)), (0.0, (1.0 - share) * alone)]
    second = [(-1.0, 1.0 - alone), (0.0, alone)]
    attacks = (
        mixed_shifts(noise, first, second),
        mixed_shifts(noise, [(1.0, share), (0.0, 1.0 - share)], [(0.0, 1.0)]),
    )

    def high() -> Outcomes:
        ways = [(alone, 1.0)] + ([(1.0 - alone, 2.0)] if alone < 1.0 else [])
        return union([(w, noise.dominating(shift).mixed(share)) for w, shift in ways if w > 0.0])

    return Family(attacks, Case(None, None, high))


def zeroed_batch(
    values: tuple[Any, ...], adjacency: str, inner: Family | None, noise: Noise | None, group: int
) -> Family:
    """Sums of two records or more, clipped to 1: zeroing one turns 1 into -1, as a replacement."""
    whole = fixed_size(values, "replace-one", inner, noise, group)
    return Family(whole.attacks[:1], whole.dominating, whole.once)


Sampling = Callable[[tuple[Any, ...], str, Family | None, Noise | None, int], Family]
SAMPLINGS: dict[str, Sampling] = {
    "PoissonSubsampled": poisson,
    "FixedSizeSubsampled": fixed_size,
    "WithReplacementSubsampled": with_replacement,
    "TruncatedPoissonSubsampled": truncated_poisson,
    "BatchClipped": batch_clipped,
    "ZeroedBatch": zeroed_batch,
    "ClippedBatch": clipped_batch,
}
