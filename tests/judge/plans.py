"""Random mechanisms: descriptions for the oracles, and the calls that make them."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.judge.truths import Spec

# Numbers with few binary digits mean the same as floats and as decimals.
NOISES = (0.5, 0.75, 1.0, 1.0, 1.5, 2.0, 4.0, 0.3, 3.7)
RATES = (0.5, 0.25, 0.0625, 1.0, 0.0, 1e-9, 0.9, 0.01, 0.984375)
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 0.7)
EPSILONS = (0.0, 0.125, 0.5, 1.0, 2.0, 4.0, 0.3)
RUNS = (2, 2, 3, 4, 8, 20, 100)
ADJACENCIES = ("add-remove", "zero-out", "replace-one")
_FUNCTIONS = {"FDP of lists", "FDP of deltas", "FDP mixture"}
_NOTIONS = {"PureDP", "ApproxDP", "GDP", "ZCDP", "TCDP"}

Maker = Callable[[random.Random], Spec]


def gaussian(draw: random.Random) -> Spec:
    return Spec("Gaussian", (draw.choice(NOISES),))


def _numbers(kind: str, *choices: tuple[Any, ...]) -> Maker:
    return lambda draw: Spec(kind, tuple(draw.choice(one) for one in choices))


def _lists(draw: random.Random) -> Spec:
    p, q = (
        draw.choice(
            [
                (0.5, 0.5, 0.0),
                (0.25, 0.5, 0.25),
                (0.0, 0.75, 0.25),
                (0.625, 0.25, 0.125),
                (0.125, 0.0, 0.875),
            ]
        )
        for _ in range(2)
    )
    return Spec("FDP of lists", (p, q))


def _deltas(draw: random.Random) -> Spec:
    choices = [(0.5, 0.25), (1.0, 0.0), (2.0, 0.0), (1.0, 0.0625), (0.0, 0.5), (3.0, 1e-6)]
    return Spec("FDP of deltas", (tuple(draw.sample(choices, draw.randint(1, 3))),))


def _renyi(draw: random.Random) -> Spec:
    orders = sorted(draw.sample((1.5, 2.0, 4.0, 8.0, 32.0), draw.randint(1, 3)))
    slope = draw.choice((0.125, 0.25, 0.5, 1.0))
    return Spec("RenyiDP", (tuple((a, slope * a) for a in orders),))


def _mixture(draw: random.Random) -> Spec:
    chances = draw.choice([(0.5, 0.25, 0.25), (0.0, 0.5, 0.5), (0.875, 0.125, 0.0)])
    return Spec("GaussianMixture", (draw.choice((1.0, 2.0, 0.5)), (0.0, 1.0, 2.0), chances))


LEAVES: dict[str, Maker] = {
    "Gaussian": gaussian,
    "Laplace": _numbers("Laplace", SCALES),
    "DiscreteGaussian": _numbers("DiscreteGaussian", (0.5, 1.0, 2.0, 3.5), (1, 1, 2)),
    "DiscreteLaplace": _numbers("DiscreteLaplace", (0.5, 1.0, 2.0), (1, 2, 3)),
    "Skellam": _numbers("Skellam", (2.0, 10.0, 50.0), (1, 1, 3)),
    "RandomizedResponse": _numbers("RandomizedResponse", EPSILONS, (2, 3, 10)),
    "UnaryEncoding": _numbers("UnaryEncoding", EPSILONS, ("symmetric", "optimized")),
    "RAPPOR": _numbers("RAPPOR", (0.5, 0.75, 1.0), (1, 2)),
    "Exponential": _numbers("Exponential", EPSILONS),
    "ReportNoisyMax": _numbers("ReportNoisyMax", EPSILONS, ("gumbel", "exponential", "laplace")),
    "PermuteAndFlip": _numbers("PermuteAndFlip", EPSILONS),
    "AboveThreshold": _numbers("AboveThreshold", (1.0, 2.0, 4.0), (1.0, 2.0, 8.0)),
    "SinhNormal": _numbers("SinhNormal", (0.125, 0.5), (8.0, 40.0)),
    "MultivariateLaplace": _numbers("MultivariateLaplace", (0.5, 1.0, 2.0), (1, 3)),
    "JointGaussian": _numbers("JointGaussian", ((1.0, 2.0), (4.0, 4.0, 2.0), (1.5,))),
    "GaussianMixture": _mixture,
    "PureDP": _numbers("PureDP", EPSILONS),
    "ApproxDP": _numbers("ApproxDP", EPSILONS, (0.0, 0.25, 1e-6, 0.5, 1e-300)),
    "GDP": _numbers("GDP", (0.0, 0.25, 1.0, 2.0)),
    "ZCDP": _numbers("ZCDP", (0.0, 0.03125, 0.125, 0.5, 2.0)),
    "TCDP": _numbers("TCDP", (0.0, 0.125, 0.5), (1.5, 2.0, 4.0, 32.0)),
    "RenyiDP": _renyi,
    "FDP of lists": _lists,
    "FDP of deltas": _deltas,
    "FDP mixture": _numbers("FDP mixture", (0.5, 0.25, 1.0), (0.5, 1.0, 2.0)),
}
# What a sample may be taken of: not described under an adjacency of its own.
_SAMPLED = [name for name in LEAVES if name != "GaussianMixture"]
# Guarantees known by f are drawn more often, and so is training: they have many forms.
_LEAVES = [*LEAVES, "FDP of lists", "FDP of deltas", "FDP of deltas", "FDP mixture", "ApproxDP"]


def leaf(draw: random.Random, names: list[str] | None = None) -> Spec:
    return LEAVES[draw.choice(names or _LEAVES)](draw)


def poisson(draw: random.Random) -> Spec:
    adjacency = draw.choice(ADJACENCIES)
    rate = draw.choice(RATES)
    if adjacency == "replace-one" or draw.random() < 0.4:
        return Spec("PoissonSubsampled", (rate,), (gaussian(draw),), adjacency)
    inner = leaf(draw, _SAMPLED)
    if draw.random() < 0.15:
        inner = Spec("Repeated", (2,), (inner,))
    return Spec("PoissonSubsampled", (rate,), (inner,), adjacency)


def fixed_size(draw: random.Random) -> Spec:
    sizes = draw.choice([(1, 2), (1, 4), (1, 3), (2, 4), (3, 4), (4, 4), (1, 1), (1, 1024)])
    inner = gaussian(draw) if draw.random() < 0.5 else leaf(draw, _SAMPLED)
    adjacency = draw.choice(ADJACENCIES)
    clipped = adjacency == "zero-out" and inner.kind == "Gaussian" and sizes[1] != 3
    return Spec("ClippedBatch" if clipped else "FixedSizeSubsampled", sizes, (inner,), adjacency)


def with_replacement(draw: random.Random) -> Spec:
    sizes = draw.choice([(1, 4), (3, 8), (5, 2), (4, 1), (16, 256)])
    return Spec("WithReplacementSubsampled", sizes, (gaussian(draw),), "replace-one")


def truncated(draw: random.Random) -> Spec:
    values = draw.choice([(0.5, 2, 6), (0.25, 1, 4), (0.0625, 10, 100), (1.0, 3, 6), (0.5, 5, 5)])
    return Spec("TruncatedPoissonSubsampled", values, (gaussian(draw),), "add-remove")


def allocation(draw: random.Random) -> Spec:
    values = draw.choice([(1, 1), (2, 1), (4, 1), (8, 1), (4, 2), (3, 3), (4, 0)])
    adjacency = draw.choice(("add-remove", "zero-out"))
    return Spec("RandomAllocation", values, (gaussian(draw),), adjacency)


def shuffled(draw: random.Random) -> Spec:
    values = draw.choice([1, 2, 10, 100]), draw.choice(("individual", "individual", "batch"))
    return Spec("Shuffled", values, (gaussian(draw),), draw.choice(ADJACENCIES[1:]))


def reports(draw: random.Random) -> Spec:
    values = draw.choice(EPSILONS), draw.choice((2, 3)), draw.choice((1, 2, 3, 5))
    return Spec("ShuffledReports", values, (), "replace-one")


def revealed(draw: random.Random) -> Spec:
    kind = draw.choice(("RevealedSample", "RevealedSample", "RevealedRound"))
    inner = gaussian(draw) if draw.random() < 0.6 else leaf(draw, _SAMPLED)
    if kind == "RevealedRound" and draw.random() < 0.5:
        inner = Spec("Repeated", (draw.choice((2, 5)),), (inner,))
    return Spec(kind, (draw.choice(RATES),), (inner,))


def tuned(draw: random.Random) -> Spec:
    law = draw.choice(
        [
            ("TruncatedNegativeBinomial", 1.0, 0.125),
            ("TruncatedNegativeBinomial", 0.0, 0.25),
            ("TruncatedNegativeBinomial", -0.5, 0.0625),
            ("Poisson", 4.0),
            ("Poisson", 0.5),
            ("Binomial", 6, 0.5),
            ("Binomial", 3, 0.875),
        ]
    )
    inner = draw.choice((gaussian(draw), leaf(draw, _SAMPLED), poisson(draw)))
    return Spec("RandomStopping", law, (inner,), inner.adjacency)


def parallel(draw: random.Random) -> Spec:
    parts = tuple(leaf(draw, _SAMPLED) for _ in range(2))
    return Spec("Parallel", (draw.choice(("group", "clinic")),), parts)


def dpsgd(draw: random.Random) -> Spec:
    """A training run; its parts say what it comes down to."""
    noise = draw.choice((0.5, 1.0, 2.0, 4.0))
    examples, batch = draw.choice([(2, 1), (8, 1), (8, 2), (4, 4), (64, 4), (1024, 16)])
    steps = draw.choice((1, 1, 3, 16))
    sampling = draw.choice(
        (
            "poisson",
            "poisson",
            "fixed-size",
            "shuffle",
            "random-allocation",
            "full-batch",
            "with-replacement",
        )
    )
    adjacency = draw.choice(ADJACENCIES)
    clipping = draw.choice(("individual", "individual", "batch"))
    values = (noise, examples, batch, steps, sampling, clipping)
    return Spec("DPSGD", values, (), adjacency)


SAMPLED: dict[str, Maker] = {
    "PoissonSubsampled": poisson,
    "FixedSizeSubsampled": fixed_size,
    "WithReplacementSubsampled": with_replacement,
    "TruncatedPoissonSubsampled": truncated,
    "RandomAllocation": allocation,
    "Shuffled": shuffled,
    "ShuffledReports": reports,
    "Revealed": revealed,
    "RandomStopping": tuned,
    "Parallel": parallel,
    "DPSGD": dpsgd,
}


def single(draw: random.Random) -> Spec:
    if draw.random() < 0.35:
        return leaf(draw)
    return SAMPLED[draw.choice([*SAMPLED, "DPSGD", "PoissonSubsampled", "FixedSizeSubsampled"])](
        draw
    )


def plan(draw: random.Random) -> Spec:
    one = single(draw)
    chance = draw.random()
    if chance < 0.55:
        return one
    if chance < 0.85:
        return Spec("Repeated", (draw.choice(RUNS),), (one,), one.adjacency)
    other = leaf(draw, _SAMPLED) if draw.random() < 0.7 else single(draw)
    return Spec("Composed", (), (one, other))


def code(spec: Spec) -> str:
    if spec.kind in _FUNCTIONS:
        return f"hs.FDP({function(spec)})"
    return _CALLS.get(spec.kind, _plain)(spec)


def function(spec: Spec) -> str:
    if spec.kind == "FDP of lists":
        p, q = spec.values
        return f"hs.tradeoffs.discrete_tradeoff({list(p)}, {list(q)})"
    if spec.kind == "FDP of deltas":
        return f"hs.tradeoffs.tradeoff_of_deltas({list(spec.values[0])})"
    weight, mu = spec.values
    rest = f", ({1.0 - weight!r}, hs.tradeoffs.IDENTITY)" if weight < 1.0 else ""
    return f"hs.tradeoffs.mixture([({weight!r}, hs.tradeoffs.GaussianTradeOff({mu!r})){rest}])"


def _place(kind: str) -> str:
    return (
        "hs.federated"
        if kind == "RevealedRound"
        else "hs.notions"
        if kind in _NOTIONS
        else "hs.mechanisms"
    )


def _plain(spec: Spec) -> str:
    given = [code(part) for part in spec.parts] + [repr(value) for value in spec.values]
    if spec.kind in SAMPLED and spec.kind not in ("ShuffledReports", "RandomStopping"):
        given.append(f"adjacency={spec.adjacency!r}")
    return f"{_place(spec.kind)}.{spec.kind}({', '.join(given)})"


def _renyi_call(spec: Spec) -> str:
    return f"hs.RenyiDP({dict(spec.values[0])!r})"


def _revealing(spec: Spec) -> str:
    return f"{_place(spec.kind)}.{spec.kind}({code(spec.parts[0])}, {spec.values[0]!r})"


def _clipped(spec: Spec) -> str:
    sizes = ", ".join(map(repr, spec.values))
    sampled = f"{code(spec.parts[0])}, {sizes}, {spec.adjacency!r}, clipped=True"
    return f"hs.FixedSizeSubsampled({sampled})"


def _shuffle(spec: Spec) -> str:
    steps, clipping = spec.values
    return f"hs.Shuffled({code(spec.parts[0])}, {steps}, {spec.adjacency!r}, {clipping!r})"


def _reports(spec: Spec) -> str:
    epsilon, categories, users = spec.values
    return (
        f"hs.mechanisms.ShuffledReports(hs.RandomizedResponse({epsilon!r}, {categories}), {users})"
    )


def _stopping(spec: Spec) -> str:
    name, *numbers = spec.values
    law = f"hs.mechanisms.tuning.{name}({', '.join(map(repr, numbers))})"
    return f"hs.mechanisms.RandomStopping({code(spec.parts[0])}, {law})"


def _parallel(spec: Spec) -> str:
    parts = ", ".join(code(part) for part in spec.parts)
    return f"hs.Parallel(({parts},), {spec.values[0]!r})"


def _training(spec: Spec) -> str:
    noise, examples, batch, steps, sampling, clipping = spec.values
    by_epoch = sampling in ("shuffle", "random-allocation")
    length = f"epochs={steps}" if by_epoch else f"steps={steps}"
    size = "" if sampling == "full-batch" else f"batch_size={batch}, "
    return (
        f"hs.DPSGD(examples={examples}, {size}noise_multiplier={noise!r}, {length}, "
        f"sampling={sampling!r}, adjacency={spec.adjacency!r}, clipping={clipping!r})"
    )


_CALLS: dict[str, Callable[[Spec], str]] = {
    "RenyiDP": _renyi_call,
    "RevealedSample": _revealing,
    "RevealedRound": _revealing,
    "ClippedBatch": _clipped,
    "Shuffled": _shuffle,
    "ShuffledReports": _reports,
    "RandomStopping": _stopping,
    "Parallel": _parallel,
    "DPSGD": _training,
    "Repeated": lambda spec: f"({code(spec.parts[0])}) ** {spec.values[0]}",
    "Composed": lambda spec: " @ ".join(f"({code(part)})" for part in spec.parts),
}


def meaning(spec: Spec) -> Spec | None:
    """What a plan comes down to for the oracles; None where nothing is known of it here."""
    parts = tuple(meaning(part) for part in spec.parts)
    if any(part is None for part in parts):
        return None
    known = tuple(part for part in parts if part is not None)
    if spec.kind != "DPSGD":
        return Spec(spec.kind, spec.values, known, spec.adjacency)
    noise, examples, batch, steps, sampling, clipping = spec.values
    one = _step(noise, examples, batch, sampling, clipping, spec.adjacency)
    return None if one is None else Spec("Repeated", (steps,), (one,), spec.adjacency)


def _step(
    noise: float, examples: int, batch: int, sampling: str, clipping: str, adjacency: str
) -> Spec | None:
    """One step or epoch of training, from the definition of DP-SGD: a replacement moves by 2."""
    own, half = Spec("Gaussian", (noise,)), Spec("Gaussian", (noise / 2,))
    replaced, whole, steps = adjacency == "replace-one", clipping == "batch", examples // batch
    sizes = (batch, examples)
    if sampling == "full-batch" or (sampling == "poisson" and batch == examples):
        # With company the sum of a batch that is clipped turns from -1 to 1, alone from 0 to 1.
        return half if replaced or (whole and examples > 1) else own
    if sampling == "poisson":
        return _poisson_step(noise, sizes, whole, adjacency)
    if sampling == "fixed-size":
        if batch == examples and adjacency == "add-remove":
            return half if whole and examples > 1 else own
        # A batch of one record that is clipped as a whole is clipped with it.
        zeroed = "ZeroedBatch" if whole and batch > 1 else "ClippedBatch"
        kind = zeroed if adjacency == "zero-out" else "FixedSizeSubsampled"
        return Spec(kind, sizes, (half,), adjacency)
    if sampling == "with-replacement":
        return Spec("WithReplacementSubsampled", sizes, (half,), "replace-one")
    if sampling == "shuffle":
        way = clipping if batch > 1 else "individual"
        return Spec("Shuffled", (steps, way), (own,), adjacency)
    if whole:
        return Spec("AllocatedBatches", (steps, examples), (own,), adjacency)
    return Spec("RandomAllocation", (steps, 1), (own,), adjacency)


def _poisson_step(noise: float, sizes: tuple[int, int], whole: bool, adjacency: str) -> Spec | None:
    """One step on a Poisson batch.

    Under add-remove the number of examples is private, so that the worst data set may have any:
    where batches are clipped as a whole, so many that there is always company.
    """
    rate, own = Fraction(*sizes), Spec("Gaussian", (noise,))
    if not whole:
        return Spec("PoissonSubsampled", (rate,), (own,), adjacency)
    if adjacency == "replace-one":
        return None
    if adjacency == "add-remove":
        return Spec("PoissonSubsampled", (rate,), (Spec("Gaussian", (noise / 2,)),), adjacency)
    return Spec("BatchClipped", (float(rate), sizes[1]), (own,), adjacency)
