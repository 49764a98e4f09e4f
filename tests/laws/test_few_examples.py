"""What few examples lose, for every way of sampling, clipping and adjacency, against concrete data.

All gradients are numbers, the clipping norm is 1, and a data set's outputs are a mixture of
Gaussians over all ways to draw its batches, one dimension for each batch. Seen in cells it gives a
lower bound of delta that no upper end may fall below. What bounds delta from above for exactly so
many examples is derived here once more, from the chance of company: no lower end may exceed it.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import Clipping, Sampling

Means = tuple[float, ...]
Outputs = dict[Means, float]
Data = tuple[float, ...]

NOISE: Final = 1.0
EPSILONS: Final = (0.0, 0.6, 1.5)
# How far cells reach beyond the means.
REACH: Final = 7.0
# Cells in each dimension, by the number of dimensions.
CELLS: Final = {1: 1500, 2: 320, 3: 40, 4: 24}
BY_EPOCH: Final = (Sampling.SHUFFLE, Sampling.RANDOM_ALLOCATION)


def plans(most: int) -> Iterator[hs.DPSGD]:
    for sampling, clipping, adjacency in itertools.product(Sampling, Clipping, hs.Adjacency):
        for examples in range(1, most + 1):
            for size, length in itertools.product(range(1, examples + 1), (1, 2)):
                steps = examples // size if sampling in BY_EPOCH else length
                if sampling in BY_EPOCH and length == 2:
                    continue
                for cap in (None, *range(1, examples + 1)):
                    try:
                        yield hs.DPSGD(
                            examples=examples,
                            batch_size=size,
                            batch_cap=cap,
                            steps=steps,
                            noise_multiplier=NOISE,
                            sampling=sampling,
                            clipping=clipping,
                            adjacency=adjacency,
                        )
                    except hs.errors.IncompatibleError:
                        continue


def batches(plan: hs.DPSGD, number: int) -> Iterator[tuple[float, tuple[tuple[int, ...], ...]]]:
    """Yield all ways to fill the batches of one run with so many examples, and their chances."""
    size, everyone = plan.batch_size or 0, tuple(range(number))
    count = plan.steps_per_epoch or 1
    if plan.sampling is Sampling.POISSON:
        for drawn in itertools.product((False, True), repeat=number):
            chance = math.prod(plan.sampling_rate if x else 1 - plan.sampling_rate for x in drawn)
            found = tuple(itertools.compress(everyone, drawn))
            sets = list(itertools.combinations(found, min(len(found), plan.batch_cap or number)))
            yield from ((chance / len(sets), (one,)) for one in sets)
    elif plan.sampling is Sampling.FIXED_SIZE:
        sets = list(itertools.combinations(everyone, min(size, number)))
        yield from ((1 / len(sets), (one,)) for one in sets)
    elif plan.sampling is Sampling.WITH_REPLACEMENT:
        yield from ((number**-size, (one,)) for one in itertools.product(everyone, repeat=size))
    elif plan.sampling is Sampling.SHUFFLE:
        orders = list(itertools.permutations(everyone))
        for order in orders:
            cut = tuple(order[size * k : size * (k + 1)] for k in range(count))
            yield 1 / len(orders), cut
    elif plan.sampling is Sampling.RANDOM_ALLOCATION:
        for places in itertools.product(range(count), repeat=number):
            filled = tuple(tuple(i for i in everyone if places[i] == k) for k in range(count))
            yield count**-number, filled
    else:
        yield 1.0, (everyone,)


def outputs(plan: hs.DPSGD, data: Data) -> Outputs:
    """Return the means of what is released, and how likely each is."""
    found: Counter[Means] = Counter()
    for chance, filled in batches(plan, len(data)):
        sums = tuple(clipped(plan.clipping, [data[i] for i in batch]) for batch in filled)
        found[sums] += chance  # type: ignore[assignment]
    return joined([dict(found)] * (1 if plan.sampling in BY_EPOCH else plan.total_steps))


def clipped(clipping: Clipping, values: Sequence[float]) -> float:
    """Return the sum of a batch as it is released, but for the noise."""
    if clipping is Clipping.BATCH:
        return min(max(sum(values), -1.0), 1.0)
    return sum(min(max(value, -1.0), 1.0) for value in values)


def neighbours(plan: hs.DPSGD) -> Iterator[tuple[Data, Data]]:
    """Yield neighbouring data sets, the larger of exactly so many examples."""
    others = itertools.combinations_with_replacement((-5.0, 0.0, 5.0), (plan.examples or 0) - 1)
    for rest, own in itertools.product(others, (50.0, -50.0, 0.0)):
        if plan.adjacency is hs.Adjacency.ADD_REMOVE:
            yield (*rest, own), rest
        elif plan.adjacency is hs.Adjacency.ZERO_OUT:
            yield (*rest, own), (*rest, 0.0)
        else:
            yield from (((*rest, own), (*rest, new)) for new in (50.0, -50.0, 0.0))


def costs(first: Outputs, second: Outputs, epsilons: Sequence[float]) -> list[float]:
    """Return the larger divergence of both directions, of cells of the outputs."""
    means = [mean for found in (first, second) for several in found for mean in several]
    ends = min(means) - REACH, max(means) + REACH
    one, other = (masses(found, *ends) for found in (first, second))
    return [
        max(
            float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
            for p, q in ((one, other), (other, one))
        )
        for epsilon in epsilons
    ]


def masses(found: Outputs, low: float, high: float) -> np.ndarray:
    dimensions = len(next(iter(found)))
    count = CELLS[dimensions]
    total = np.zeros((count + 1,) * dimensions)
    for means, chance in found.items():
        product = np.array(chance)
        for mean in means:
            product = np.multiply.outer(product, cells(mean, low, high, count))
        total += product
    return total


@cache
def cells(mean: float, low: float, high: float, count: int) -> np.ndarray:
    edges = (np.linspace(low, high, count) - mean) / NOISE
    below = np.array([0.5 * math.erfc(-edge / math.sqrt(2.0)) for edge in edges])
    return np.diff(below, prepend=0.0, append=1.0)


def attacked(plan: hs.DPSGD, epsilons: Sequence[float]) -> list[float]:
    found = [
        costs(outputs(plan, one), outputs(plan, other), epsilons) for one, other in neighbours(plan)
    ]
    return [max(of_one) for of_one in zip(*found, strict=True)]


# How far the example moves each batch, if it is in one: what an adversary knows who sees everything
# but which batch that is; and how likely that is.
Told = tuple[float, tuple[float, ...]]


def ceiling(plan: hs.DPSGD, epsilons: Sequence[float]) -> list[float]:
    """Return bounds of delta for exactly so many examples, to the width of the cells."""
    runs = 1 if plan.sampling in BY_EPOCH else plan.total_steps
    total = [0.0] * len(epsilons)
    for choice in itertools.product(told(plan), repeat=runs):
        chance = math.prod(one for one, _ in choice)
        pairs = [mixtures(plan, moves) for _, moves in choice]
        one, other = (joined([pair[k] for pair in pairs]) for k in range(2))
        found = costs(one, other, epsilons)
        total = [sum_of + chance * cost for sum_of, cost in zip(total, found, strict=True)]
    return total


def joined(parts: Sequence[Outputs]) -> Outputs:
    several: Outputs = {}
    for choice in itertools.product(*(part.items() for part in parts)):
        means = tuple(itertools.chain.from_iterable(mean for mean, _ in choice))
        several[means] = several.get(means, 0.0) + math.prod(chance for _, chance in choice)
    return several


def told(plan: hs.DPSGD) -> Iterator[Told]:
    """Yield how far the example moves each batch, given the others, and how likely that is."""
    count, others = plan.steps_per_epoch or 1, (plan.examples or 0) - 1
    far = 2.0 if plan.adjacency is hs.Adjacency.REPLACE_ONE else 1.0
    if plan.batch_cap is not None:
        yield from drawn_with(plan, others)
    elif plan.clipping is Clipping.INDIVIDUAL or plan.adjacency is hs.Adjacency.REPLACE_ONE:
        yield 1.0, (far,) * count
    elif plan.sampling is Sampling.POISSON and plan.adjacency is hs.Adjacency.ADD_REMOVE:
        yield 1.0, (2.0,)  # Any number of examples.
    elif plan.sampling is Sampling.POISSON:
        alone = (1 - plan.sampling_rate) ** others
        yield from ((alone, (1.0,)), (1 - alone, (2.0,)))
    elif plan.sampling is Sampling.RANDOM_ALLOCATION:
        for places in itertools.product(range(count), repeat=others):
            yield count**-others, tuple(2.0 if k in places else 1.0 for k in range(count))
    else:
        company = others if plan.sampling is Sampling.FULL_BATCH else (plan.batch_size or 0) - 1
        yield 1.0, ((2.0 if company else 1.0),) * count


def drawn_with(plan: hs.DPSGD, others: int) -> Iterator[Told]:
    """Yield how far an example that is drawn moves a capped batch, told how many others are."""
    rate, cap = plan.sampling_rate, plan.batch_cap or 0
    for drawn in range(others + 1):
        chance = math.comb(others, drawn) * rate**drawn * (1 - rate) ** (others - drawn)
        keeps = min(1.0, cap / (drawn + 1))
        yield chance * keeps, (2.0 if drawn >= cap else 1.0,)
        yield chance * (1 - keeps), (0.0,)


def mixtures(plan: hs.DPSGD, moves: tuple[float, ...]) -> tuple[Outputs, Outputs]:
    """Return the outputs of a run with the example, and without it, where others are known."""
    none = (0.0,) * len(moves)
    if not any(moves):
        return {none: 1.0}, {none: 1.0}
    one = [
        tuple(move if k == j else 0.0 for j in range(len(moves))) for k, move in enumerate(moves)
    ]
    if plan.sampling is Sampling.RANDOM_ALLOCATION:
        return {mean: 1 / len(one) for mean in one}, {none: 1.0}
    if plan.sampling is Sampling.SHUFFLE:
        return {one[0]: 1.0}, {none: 1.0}  # An adversary who knows the batch.
    rate = plan.sampling_rate
    if plan.sampling is Sampling.POISSON and plan.adjacency is hs.Adjacency.REPLACE_ONE:
        if plan.batch_cap is not None and moves[0] == 2.0:
            # It takes the place of one that is opposite to it, and equal to what replaces it.
            return {(2.0,): rate, none: 1 - rate}, {none: 1.0}
        return {(1.0,): rate, none: 1 - rate}, {(-1.0,): rate, none: 1 - rate}
    if plan.sampling is Sampling.WITH_REPLACEMENT:
        size, share = plan.batch_size or 0, 1 / (plan.examples or 1)
        hits = [math.comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(size + 1)]
        return {(k * moves[0],): hit for k, hit in enumerate(hits)}, {none: 1.0}
    if plan.sampling is Sampling.FIXED_SIZE and rate < 1:
        # Another example takes the place of a missing one.
        return {(2.0,): rate, none: 1 - rate}, {none: 1.0}
    return ({one[0]: rate, none: 1 - rate} if rate < 1 else {one[0]: 1.0}), {none: 1.0}


def named(plan: hs.DPSGD) -> str:
    sizes = f"{plan.batch_size} of {plan.examples}, {plan.steps} steps"
    capped = "" if plan.batch_cap is None else f", at most {plan.batch_cap}"
    return f"{plan.sampling}, {plan.clipping}, {plan.adjacency}, {sizes}{capped}"


PLANS: Final = [*plans(4)]


@pytest.mark.parametrize("plan", PLANS, ids=named)
def test_no_end_is_wrong_for_few_examples(plan: hs.DPSGD) -> None:
    attacks, bounds = attacked(plan, EPSILONS), ceiling(plan, EPSILONS)
    for epsilon, attack, bound in zip(EPSILONS, attacks, bounds, strict=True):
        answer = hs.delta(plan, epsilon)
        assert attack <= answer.upper * (1 + 1e-9) + 1e-12
        # The cells make the bound too small by this at most.
        if plan.total_steps <= 2:
            assert answer.lower <= bound * (1 + 2e-3) + 1e-7
