"""Choices, comparisons, searches, streams and reports, as audits run them."""

from __future__ import annotations

from typing import Any

import numpy as np
from audited import Audited, each

import hockeystick as hs
from hockeystick import release
from hockeystick.mechanisms import (
    RAPPOR,
    AboveThreshold,
    Encoder,
    MatrixFactorization,
    PartitionSelection,
    PermuteAndFlip,
    RandomStopping,
    ReportNoisyMax,
    SparseVector,
    SquareRoot,
    TreeAggregation,
    UnaryEncoding,
    tuning,
)

QUERIES = 6


def choices() -> list[Audited]:
    """Return selections: the scores of two candidates move by 1, against each other."""

    def choice(name: str, plan: Any) -> Audited:
        run = getattr(release, name)

        def first(inside: bool) -> bool:
            scores = [1.0, 3.0, 3.0] if inside else [0.0, 4.0, 4.0]
            return bool(run(plan, scores, 1.0) == 0)

        return Audited(name, (name,), plan, each(first))

    return [
        choice("exponential", hs.Exponential(1.0)),
        choice("permute_and_flip", PermuteAndFlip(1.0)),
        *(choice("report_noisy_max", ReportNoisyMax(1.0, noise)) for noise in MAX_NOISES),
    ]


MAX_NOISES = ("gumbel", "exponential", "laplace")


def place_of_first(run: Any, inside: bool) -> int:
    """Return 1 if the last of some queries is the first above: it moves up, all others down."""
    answers = [0.0 if inside else 1.0] * (QUERIES - 1) + [1.0 if inside else 0.0]
    above = (place for place, answer in enumerate(answers) if run.above(answer))
    return int(next(above, None) == QUERIES - 1)


def comparisons() -> list[Audited]:
    """Return runs that compare queries with a threshold."""
    once = AboveThreshold(threshold_scale=1.0, query_scale=2.0)
    twice = SparseVector(2.0, 4.0, positives=2)
    seldom, keys = (PartitionSelection(hs.DiscreteLaplace(1.0), one) for one in (4.0, 14.0))

    def above(inside: bool) -> int:
        return place_of_first(release.above_threshold(once, 2.0, 1.0), inside)

    def sparse(inside: bool) -> int:
        run = release.sparse_vector(twice, 2.0, 1.0)
        found = place_of_first(run, inside)
        return found if run.ended else found + place_of_first(run, inside)

    def alone(inside: bool) -> int:
        users = release.users_by_partition([("ann", "rare")] if inside else [], 1)
        return len(release.partition_selection(seldom, users))

    def among_others(inside: bool) -> int:
        users = release.users_by_partition([(n, "key") for n in range(30 + inside)], 1)
        return release.partition_selection(keys, users).get("key", 0)

    both = ("partition_selection", "users_by_partition")
    return [
        Audited("partition_selection, a user alone", both, seldom, each(alone)),
        Audited("partition_selection, among others", both, keys, each(among_others)),
        Audited("above_threshold", ("above_threshold",), once, each(above)),
        Audited("sparse_vector", ("sparse_vector",), twice, each(sparse)),
    ]


def searches() -> list[Audited]:
    """Return searches for the best of several runs: every run's score moves by 1."""
    run = hs.Gaussian(2.0)
    tuned = RandomStopping(run, tuning.TruncatedNegativeBinomial.of_mean(3))

    def scored(inside: bool) -> Any:
        def noisy(candidate: float) -> tuple[float, float]:
            score = float(release.gaussian(run, float(inside) + 0.0 * candidate, 1.0))
            return score, score

        return noisy

    def grid(inside: bool) -> Any:
        return release.grid_search(run, [1.0, 2.0, 3.0], scored(inside)).output

    def random(inside: bool) -> Any:
        return release.random_search(tuned, [1.0, 2.0, 3.0], scored(inside)).output

    return [
        Audited("grid_search", ("grid_search",), run**3, each(grid)),
        Audited("random_search", ("random_search",), tuned, each(random)),
    ]


def tree_score(sums: Any) -> Any:
    """Return the noisy nodes that hold the first row, added up: those of 1, 2, 4, ... rows."""
    return sum(sums[2**level - 1] for level in range(len(sums).bit_length()))


def streams() -> list[Audited]:
    """Return running sums: the first row is there, or is 0."""
    tree, rng = TreeAggregation(noise_multiplier=2.0, leaves=7), np.random.default_rng(13)

    def running(inside: bool) -> Any:
        run = release.tree_aggregation(tree, 1, 1.0)
        return tree_score([run.add([float(inside and row == 0)])[0] for row in range(7)])

    encoder = Encoder.square_root(7)
    diagonals = np.array([float(one) for one in SquareRoot().diagonals(7)])
    correlated = MatrixFactorization(noise_multiplier=2.0, encoder=encoder)

    def rows(inside: bool) -> Any:
        noise = release.CorrelatedNoise(encoder)
        fresh = rng.normal(scale=2.0, size=7)
        released = [float(inside and t == 0) + noise.next(one) for t, one in enumerate(fresh)]
        # The noise of C X + Z is independent, and the first row moves it by the diagonals.
        return diagonals @ np.convolve(diagonals, released)[:7]

    def sums(inside: bool) -> Any:
        run = release.matrix_factorization(correlated, 1, 1.0)
        released = [run.add([float(inside and t == 0)]) for t in range(7)]
        return diagonals @ np.convolve(diagonals, np.diff(released, axis=0, prepend=0)[:, 0])[:7]

    return [
        Audited("matrix_factorization", ("matrix_factorization",), correlated, each(sums)),
        Audited("tree_aggregation", ("tree_aggregation",), tree, each(running)),
        Audited("CorrelatedNoise", ("CorrelatedNoise",), correlated, each(rows)),
    ]


def reports() -> list[Audited]:
    """Return reports that people randomize: a trial is a person with the one value or the other."""
    coin = np.random.default_rng()
    response = hs.RandomizedResponse(1.0, categories=4)
    unary = UnaryEncoding(1.0, "optimized")
    rappor = RAPPOR(flip=0.5, hashes=2)
    numbers = release.OneBitMean(1.0), release.LaplaceMean(1.0)
    noise = hs.Gaussian(1.0)

    def answers(inside: bool, people: int) -> Any:
        seen = release.response_reports(response, np.full(people, int(inside)))
        return (seen == 1).astype(float) - (seen == 0)

    def bits(inside: bool, people: int) -> Any:
        seen = release.unary_reports(unary, np.full(people, int(inside)), 3, coin).astype(float)
        return seen[:, 1] - seen[:, 0]

    def told(seen: Any) -> Any:
        red, blue = release.rappor_filters(rappor, ["red", "blue"], 32).astype(float)
        return seen @ (blue - red)

    def filters(inside: bool, people: int) -> Any:
        return release.rappor_reports(rappor, ["blue" if inside else "red"] * people, 32)

    def again(inside: bool, people: int) -> Any:
        kept = filters(inside, people)
        return sum(told(release.rappor_again(rappor, kept, 0.25)) for _ in range(20))

    def vectors(inside: bool, people: int) -> Any:
        values = np.full((people, 1), 9.0 if inside else -9.0)
        return release.gaussian_reports(noise, values, norm=1.0)[:, 0]

    def mean_of(one: Any) -> Audited:
        def seen(inside: bool, people: int) -> Any:
            return one.reports(np.full(people, 1.0 if inside else -1.0), coin)

        name = type(one).__name__
        return Audited(f"{name}.reports", (name,), one.mechanism, seen)

    return [
        Audited("response_reports", ("response_reports",), response, answers),
        Audited("unary_reports", ("unary_reports",), unary, bits),
        Audited(
            "rappor_reports", ("rappor_reports",), rappor, lambda *asked: told(filters(*asked))
        ),
        Audited("rappor_again, 20 times", ("rappor_again",), rappor, again, trials=5_000),
        Audited("gaussian_reports", ("gaussian_reports",), noise, vectors),
        *map(mean_of, numbers),
    ]
