"""Bounds of audits: how often they miss the truth, and how tight they are beside jax_privacy's.

``python -m benchmarks.bench_audit --out benchmarks/AUDIT.md --jax PYTHON`` writes a page. PYTHON is
an interpreter that has jax-privacy 2.0.0, which is asked on the same scores in a process of its
own; without one that table is left out. ``--repetitions`` says how many audits a cell simulates.
"""

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

import hockeystick as hs
from benchmarks.pages import asked_of, table, write
from hockeystick import audit
from hockeystick.audit.bounds import margins
from hockeystick.audit.one_run import (
    Guesses,
    epsilon_by_binomial,
    largest_rejected,
    of_gaussians,
    outcomes,
)
from hockeystick.audit.region import (
    SHARE,
    Counts,
    Levels,
    Objective,
    Region,
    at_ranks,
    epsilons,
    mus,
    quarter_ellipse,
    ranks,
    region,
)
from hockeystick.audit.scores import error_probability

Draw: TypeAlias = Callable[[np.random.Generator], tuple[Any, Any]]
Misses: TypeAlias = list[float]
Row: TypeAlias = tuple[str, int, int, Misses]

LEVELS: Final = (0.9, 0.95, 0.99)
SIZES: Final = (100, 1_000, 10_000, 100_000, 1_000_000)
REPETITIONS: Final = 10_000
DELTA: Final = 1e-5
MUS: Final = (0.5, 1.0, 2.0, 4.0)
TRIALS: Final = (100, 1_000, 10_000)
MOST_IN_FULL: Final = 100_000
CANARIES: Final = (100, 1_000, 10_000)
PAIRS: Final = 20

JAX: Final = """
import json, sys
import numpy as np
from jax_privacy import auditing as a
found = []
with np.load(sys.argv[1]) as file:
    for i in range(int(sys.argv[2])):
        one = a.CanaryScoreAuditor(file[f"in{i}"], file[f"out{i}"])
        split = a.Split(seed=i)
        found.append({
            "bonferroni": one.epsilon_clopper_pearson(0.05, 1e-5, False),
            "split": one.epsilon_clopper_pearson(0.05, 1e-5, False, threshold_strategy=split),
            "multi-split": one.epsilon_clopper_pearson(
                0.05, 1e-5, False, threshold_strategy=a.MultiSplit(20, seed=i)),
            "gdp": one.epsilon_from_gdp(0.05, 1e-5),
        })
print(json.dumps([{k: float(v) for k, v in one.items()} for one in found]))
"""

HEAD: Final = """# What audits find, against the truth

Written by `python -m benchmarks.bench_audit --out benchmarks/AUDIT.md --jax PYTHON`.
"""


def gaussian(random: np.random.Generator, size: float, trials: int) -> tuple[Any, Any]:
    """Return the scores of the best attack on a Gaussian of that mu, "in" and "out"."""
    return random.normal(size, 1.0, trials), random.normal(0.0, 1.0, trials)


def response(random: np.random.Generator, size: float, trials: int) -> tuple[Any, Any]:
    """Return the scores of the best attack on randomized response of that epsilon: 0 or 1."""
    rate = 1.0 / (1.0 + math.exp(size))
    inside, outside = random.random(trials) >= rate, random.random(trials) < rate
    return inside.astype(np.float64), outside.astype(np.float64)


def fewest(most: int, proves: Callable[[int], bool]) -> int:
    """Return the least number up to `most` that proves something, as all larger ones do."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


def fewest_hits(levels: Levels, rank: int, trials: int, wrong: Objective) -> int:
    """Return the fewest true positives with which a region proves what is not true.

    The objective is above 0 where it does; more true positives only raise it.
    """
    return fewest(
        trials,
        lambda hits: (
            float(wrong(region(Counts(rank - 1, trials, hits, trials), levels)).min()) > 0.0
        ),
    )


def missed(draw: Draw, objectives: list[Objective], trials: int, repetitions: int) -> list[Misses]:
    """Return how often each objective is above 0, at each level, over the ranks of the default.

    Which counts are wrong is found once; then only counts are simulated.
    """
    critical = {
        (number, level, rank): fewest_hits(
            quarter_ellipse(error_probability(level) / (2 * len(ranks(trials))), SHARE),
            rank,
            trials,
            wrong,
        )
        for number, wrong in enumerate(objectives)
        for level in LEVELS
        for rank in ranks(trials)
    }
    found = np.zeros((len(objectives), len(LEVELS)))
    for i in range(repetitions):
        scores = draw(np.random.default_rng([20260726, i]))
        hits = [
            (int(rule.counts.errors) + 1, int(rule.counts.hits))
            for rule in at_ranks(*scores, 0.05, i)
        ]
        for number, level in np.ndindex(found.shape):
            key = (number, LEVELS[level])
            found[number, level] += any(x >= critical[*key, rank] for rank, x in hits)
    return [list(map(float, one)) for one in found / repetitions]


def above_mu(corners: Region) -> Any:
    """Return by how much a region proves more than mu = 1."""
    return mus(corners) - 1.0


def above_epsilon(corners: Region) -> Any:
    """Return by how much a region proves more than epsilon = 1 at delta 0."""
    return epsilons(0.0)(corners) - 1.0


def by_threshold(epsilon: float, level: float, trials: int) -> float:
    """Return how often a bound at a fixed threshold misses, by exact sums over both counts.

    The audited mechanism is randomized response, whose epsilon its one threshold shows.
    """
    from scipy.stats import binom

    rate = 1.0 / (1.0 + math.exp(epsilon))
    low, high = int(binom.ppf(1e-9, trials, rate)), int(binom.isf(1e-9, trials, rate))
    counts = np.unique(np.linspace(low, high, min(high - low + 1, 40)).astype(int))
    needed = [_first_above(epsilon, level, trials, int(y)) for y in counts]
    # Between two counts, what the smaller one needs is enough, so that this errs to more misses.
    steps = np.array(needed)[np.searchsorted(counts, np.arange(low, high + 1), side="right") - 1]
    masses = binom.pmf(np.arange(low, high + 1), trials, rate)
    return float(masses @ binom.sf(steps - 1, trials, 1.0 - rate))


def _first_above(epsilon: float, level: float, trials: int, y: int) -> int:
    places = np.arange(trials)
    how: Any = {"delta": 0.0, "confidence": level, "threshold": 0.5}

    def above(x: int) -> bool:
        scores = (places < x).astype(float), (places < y).astype(float)
        return audit.lower_epsilon(*scores, **how).value > epsilon

    return fewest(trials, above)


def missed_in_one_run(
    draw: Draw, bound: Callable[[Guesses, float], float], repetitions: int
) -> Misses:
    """Return how often a bound on what is 1 is above it, at each level.

    Which numbers of right guesses are wrong is found once; then only these are simulated.
    """
    critical: dict[tuple[float, int], int] = {}
    found = np.zeros(len(LEVELS))
    for i in range(repetitions):
        trials = draw(np.random.default_rng([20260727, i]))
        for at, level in enumerate(LEVELS):
            alpha, guessed = outcomes(*trials, level, None, i)
            for one in guessed:
                key = (level, one.made)
                if key not in critical:
                    critical[key] = _fewest_right(bound, one, alpha)
            found[at] += any(one.correct >= critical[level, one.made] for one in guessed)
    return [float(one) for one in found / repetitions]


def _fewest_right(bound: Callable[[Guesses, float], float], guesses: Guesses, alpha: float) -> int:
    number, made = guesses.canaries, guesses.made
    return fewest(made, lambda right: bound(Guesses(number, made, right), alpha) > 1.0)


def canaries(random: np.random.Generator, number: int) -> tuple[Any, Any]:
    """Return the scores of canaries that each get a randomized response, and who was included."""
    included = random.random(number) < 0.5
    kept = random.random(number) < 1.0 / (1.0 + math.exp(-1.0))
    return (included == kept).astype(np.float64), included


def gaussian_canaries(random: np.random.Generator, number: int) -> tuple[Any, Any]:
    """Return the scores of canaries with noise of their own, with mu = 1, and who was included."""
    included = random.random(number) < 0.5
    return random.normal(0.0, 1.0, number) + included, included


def rows_of_misses(repetitions: int) -> Iterator[Row]:
    """Yield what bound was asked, how many trials and repetitions, and how often it missed."""
    claim = margins(hs.tradeoffs.GaussianTradeOff(1.0))
    for trials in SIZES:
        each = trials // 2
        many = repetitions if trials <= MOST_IN_FULL else max(repetitions // 10, 1)
        normal, coins = (partial(one, size=1.0, trials=each) for one in (gaussian, response))
        of_mu, refuted = missed(normal, [above_mu, claim], each, many)
        yield "mu, simultaneous", trials, many, of_mu
        yield "falsify, simultaneous", trials, many, refuted
        yield "epsilon, simultaneous", trials, many, missed(coins, [above_epsilon], each, many)[0]
        yield "epsilon, combined", trials, 0, [by_threshold(1.0, level, each) for level in LEVELS]


def rows_of_one_run(repetitions: int) -> Iterator[Row]:
    """Yield the same for audits in one run."""
    for number in CANARIES:
        for name, draw, bound in (
            ("epsilon, binomial", canaries, by_binomial),
            ("mu", gaussian_canaries, of_mu_in_one_run),
        ):
            found = missed_in_one_run(partial(draw, number=number), bound, repetitions)
            yield f"one run, {name}", number, repetitions, found


def by_binomial(guesses: Guesses, alpha: float) -> float:
    """Return the sharp bound at a delta of 1e-6."""
    return epsilon_by_binomial(guesses, 1e-6, alpha)


def of_mu_in_one_run(guesses: Guesses, alpha: float) -> float:
    """Return the bound on mu of the recursion."""
    return largest_rejected(guesses, alpha, of_gaussians)


def coverage(rows: Iterator[Row]) -> str:
    """Return the table of how often bounds hold."""
    head = ("bound", "trials", "repetitions", *map(str, LEVELS))
    return table(
        head,
        (
            (name, str(trials), str(many or "exact"), *(f"{1.0 - one:.4f}" for one in found))
            for name, trials, many, found in rows
        ),
    )


def tightness(python: str) -> str:
    """Return the table of bounds on epsilon beside jax_privacy's, on the same scores."""
    names = ("bonferroni", "split", "multi-split")
    head = ("mu", "trials of each kind", "truth", "simultaneous", *(f"jax {one}" for one in names))
    rows = []
    for mu, trials in product(MUS, TRIALS):
        pairs = [gaussian(np.random.default_rng([7, i]), mu, trials) for i in range(PAIRS)]
        own = [audit.lower_epsilon(*one, delta=DELTA).value for one in pairs]
        theirs = asked_of_jax(python, pairs)
        wins = [sum(a >= one[name] for a, one in zip(own, theirs, strict=True)) for name in names]
        medians = [own, *([one[name] for one in theirs] for name in names)]
        cells = [hs.epsilon(hs.GDP(mu), DELTA).lower, *map(np.median, medians)]
        won = ", ".join(f"{one}/{PAIRS}" for one in wins)
        rows.append((f"{mu:g}", str(trials), *(f"{one:.3f}" for one in cells), won))
    return table((*head, "at least as tight as each"), rows)


def asked_of_jax(python: str, pairs: list[tuple[Any, Any]]) -> list[dict[str, float]]:
    """Return what jax_privacy finds on the same scores."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.npz"
        arrays = {f"in{i}": a for i, (a, _) in enumerate(pairs)}
        arrays |= {f"out{i}": b for i, (_, b) in enumerate(pairs)}
        np.savez(path, allow_pickle=False, **arrays)
        found: list[dict[str, float]] = asked_of(python, "-c", JAX, str(path), str(len(pairs)))
    return found


def planned() -> str:
    """Return the table of how many trials it takes to refute a wrong claim."""
    plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1.0)
    weaker = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=0.9)
    cases = [
        ("Gaussian, noise 1 claimed and 0.9 run", hs.Gaussian(1.0), hs.Gaussian(0.9)),
        ("Gaussian, noise 1 claimed and 0.5 run", hs.Gaussian(1.0), hs.Gaussian(0.5)),
        ("Gaussian, noise 0.5 claimed and 0.45 run", hs.Gaussian(0.5), hs.Gaussian(0.45)),
        ("Gaussian, a clip that lets 10 times the norm pass", hs.Gaussian(1.0), hs.Gaussian(0.1)),
        ("DP-SGD, rate 0.01, 1000 steps, noise 1 claimed and 0.9 run", plan, weaker),
    ]
    powers = (0.5, 0.9, 0.99)
    return table(
        ("what is wrong", *(f"power {power}" for power in powers)),
        (
            (name, *(str(audit.trials_needed(claimed, actual, power=one)) for one in powers))
            for name, claimed, actual in cases
        ),
    )


def page(asked: argparse.Namespace) -> str:
    """Return the page."""
    parts = [HEAD, "## How often bounds hold\n"]
    parts += [COVERAGE, coverage(rows_of_misses(asked.repetitions))]
    parts += ["\n" + ONE_RUN, coverage(rows_of_one_run(asked.repetitions))]
    if asked.jax is not None:
        parts += ["\n## Tightness\n", TIGHTNESS, tightness(asked.jax)]
    parts += ["\n## Trials that it takes\n", PLANNED, planned(), ""]
    return "\n".join(parts)


COVERAGE: Final = """How often the answer was right, at each level. "exact" is computed by sums over
all counts, and all else is simulated, once it is known which counts would be wrong: 10,000
repetitions have a standard error of 0.003, 0.0022 and 0.001. Audited are mechanisms whose bound
every threshold can reach: a Gaussian with mu = 1 for mu and for `falsify` of the true claim, and
randomized response with epsilon 1 for epsilon at delta 0. Half of the trials are of each kind.
"""
ONE_RUN: Final = """In one run, canaries with a randomized response each (epsilon 1, delta 1e-6
claimed) or noise of their own (mu 1):
"""
TIGHTNESS: Final = """Lower bounds on epsilon at delta 1e-5 with confidence 0.95, of the best attack
on a Gaussian: medians of 20 audits. jax_privacy 2.0.0 is asked on the same scores, for both sides;
the last column says in how many audits the bound of the method "simultaneous", the default, is at
least as large as each of its three.
"""
PLANNED: Final = """Trials of each kind by `audit.trials_needed` at confidence 0.95, with the best
attack and its best threshold:
"""


def main() -> None:
    """Write or print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where to write the page")
    parser.add_argument("--jax", help="an interpreter that has jax-privacy")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    asked = parser.parse_args()
    write(page(asked), asked.out)


if __name__ == "__main__":
    main()
