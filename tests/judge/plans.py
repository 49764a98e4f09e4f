"""Random mechanisms: descriptions for the oracles, and the calls that make them."""

import random
from collections.abc import Callable
from typing import Any

from tests.judge.truths import Spec

# Numbers with few binary digits mean the same as floats and as decimals.
NOISES = (0.5, 0.75, 1.0, 1.0, 1.5, 2.0, 4.0, 0.3, 3.7)
RATES = (0.5, 0.25, 0.0625, 1.0, 0.0, 1e-9, 0.9, 0.01, 0.984375)
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 0.7)
EPSILONS = (0.0, 0.125, 0.5, 1.0, 2.0, 4.0, 0.3)
RUNS = (2, 2, 3, 4, 8, 20, 100)
LISTS = (
    *((0.5, 0.5, 0.0), (0.25, 0.5, 0.25), (0.0, 0.75, 0.25), (0.625, 0.25, 0.125)),
    (0.125, 0.0, 0.875),
)
ADJACENCIES = ("add-remove", "zero-out", "replace-one")

Maker = Callable[[random.Random], Spec]


def _numbers(kind: str, *choices: tuple[Any, ...]) -> Maker:
    return lambda draw: Spec(kind, tuple(draw.choice(one) for one in choices))


gaussian = _numbers("Gaussian", NOISES)


def _deltas(draw: random.Random) -> Spec:
    choices = [(0.5, 0.25), (1.0, 0.0), (2.0, 0.0), (1.0, 0.0625), (0.0, 0.5), (3.0, 1e-6)]
    return Spec("FDP of deltas", (tuple(draw.sample(choices, draw.randint(1, 3))),))


def _renyi(draw: random.Random) -> Spec:
    orders = sorted(draw.sample((1.5, 2.0, 4.0, 8.0, 32.0), draw.randint(1, 3)))
    slope = draw.choice((0.125, 0.25, 0.5, 1.0))
    return Spec("RenyiDP", (tuple((a, slope * a) for a in orders),))


LEAVES: dict[str, Maker] = {
    "Gaussian": gaussian,
    "Laplace": _numbers("Laplace", SCALES),
    "DiscreteGaussian": _numbers("DiscreteGaussian", (0.5, 1.0, 2.0, 3.5), (1, 1, 2)),
    "DiscreteLaplace": _numbers("DiscreteLaplace", (0.5, 1.0, 2.0), (1, 2, 3)),
    "Skellam": _numbers("Skellam", (2.0, 10.0, 50.0), (1, 1, 3)),
    "RandomizedResponse": _numbers("RandomizedResponse", EPSILONS, (2, 3, 10)),
    "PureDP": _numbers("PureDP", EPSILONS),
    "ApproxDP": _numbers("ApproxDP", EPSILONS, (0.0, 0.25, 1e-6, 0.5, 1e-300)),
    "GDP": _numbers("GDP", (0.0, 0.25, 1.0, 2.0)),
    "ZCDP": _numbers("ZCDP", (0.0, 0.03125, 0.125, 0.5, 2.0)),
    "TCDP": _numbers("TCDP", (0.0, 0.125, 0.5), (1.5, 2.0, 4.0, 32.0)),
    "RenyiDP": _renyi,
    "FDP of lists": _numbers("FDP of lists", LISTS, LISTS),
    "FDP of deltas": _deltas,
    "FDP mixture": _numbers("FDP mixture", (0.5, 0.25, 1.0), (0.5, 1.0, 2.0)),
}
# Guarantees known by f are drawn more often: they have many forms.
_LEAVES = [*LEAVES, "FDP of lists", "FDP of deltas", "FDP of deltas", "FDP mixture", "ApproxDP"]


def leaf(draw: random.Random, names: list[str] | None = None) -> Spec:
    return LEAVES[draw.choice(names or _LEAVES)](draw)


def poisson(draw: random.Random) -> Spec:
    adjacency = draw.choice(ADJACENCIES)
    rate = draw.choice(RATES)
    if adjacency == "replace-one" or draw.random() < 0.4:
        return Spec("PoissonSubsampled", (rate,), (gaussian(draw),), adjacency)
    inner = leaf(draw, [*LEAVES])
    if draw.random() < 0.15:
        inner = Spec("Repeated", (2,), (inner,))
    return Spec("PoissonSubsampled", (rate,), (inner,), adjacency)


def fixed_size(draw: random.Random) -> Spec:
    sizes = draw.choice([(1, 2), (1, 4), (1, 3), (2, 4), (3, 4), (4, 4), (1, 1), (1, 1024)])
    inner = gaussian(draw) if draw.random() < 0.5 else leaf(draw, [*LEAVES])
    adjacency = draw.choice(ADJACENCIES)
    clipped = adjacency == "zero-out" and inner.kind == "Gaussian" and sizes[1] != 3
    return Spec("ClippedBatch" if clipped else "FixedSizeSubsampled", sizes, (inner,), adjacency)


def with_replacement(draw: random.Random) -> Spec:
    sizes = draw.choice([(1, 4), (3, 8), (5, 2), (4, 1), (16, 256)])
    return Spec("WithReplacementSubsampled", sizes, (gaussian(draw),), "replace-one")


def reports(draw: random.Random) -> Spec:
    values = draw.choice(EPSILONS), draw.choice((2, 3)), draw.choice((1, 2, 3, 5))
    return Spec("ShuffledReports", values, (), "replace-one")


def revealed(draw: random.Random) -> Spec:
    kind = draw.choice(("RevealedSample", "RevealedSample", "RevealedRound"))
    inner = gaussian(draw) if draw.random() < 0.6 else leaf(draw, [*LEAVES])
    if kind == "RevealedRound" and draw.random() < 0.5:
        inner = Spec("Repeated", (draw.choice((2, 5)),), (inner,))
    return Spec(kind, (draw.choice(RATES),), (inner,))


def parallel(draw: random.Random) -> Spec:
    parts = tuple(leaf(draw, [*LEAVES]) for _ in range(2))
    return Spec("Parallel", (draw.choice(("group", "clinic")),), parts)


SAMPLED: dict[str, Maker] = {
    "PoissonSubsampled": poisson,
    "FixedSizeSubsampled": fixed_size,
    "WithReplacementSubsampled": with_replacement,
    "ShuffledReports": reports,
    "Revealed": revealed,
    "Parallel": parallel,
}


def single(draw: random.Random) -> Spec:
    if draw.random() < 0.35:
        return leaf(draw)
    return SAMPLED[draw.choice([*SAMPLED, "PoissonSubsampled", "FixedSizeSubsampled"])](draw)


def plan(draw: random.Random) -> Spec:
    one = single(draw)
    chance = draw.random()
    if chance < 0.55:
        return one
    if chance < 0.85:
        return Spec("Repeated", (draw.choice(RUNS),), (one,), one.adjacency)
    other = leaf(draw, [*LEAVES]) if draw.random() < 0.7 else single(draw)
    return Spec("Composed", (), (one, other))


def code(spec: Spec) -> str:
    if spec.kind == "Composed":
        return " @ ".join(f"({code(part)})" for part in spec.parts)
    if spec.kind == "Repeated":
        return f"({code(spec.parts[0])}) ** {spec.values[0]}"
    if spec.kind in _FUNCTIONS:
        return f"hs.FDP({_FUNCTIONS[spec.kind](*spec.values)})"
    kind, given = spec.kind, [code(part) for part in spec.parts]
    given += [repr(value) for value in spec.values]
    if kind == "RenyiDP":
        given = [repr(dict(spec.values[0]))]
    elif kind == "ShuffledReports":
        epsilon, categories, users = given
        given = [f"hs.RandomizedResponse({epsilon}, {categories})", users]
    elif kind == "Parallel":
        given = [f"({', '.join(given[:-1])},)", given[-1]]
    elif kind == "ClippedBatch":
        kind, given = "FixedSizeSubsampled", [*given, repr(spec.adjacency), "clipped=True"]
    elif kind in SAMPLED:
        given.append(f"adjacency={spec.adjacency!r}")
    place = (
        "federated" if kind == "RevealedRound" else "notions" if kind in _NOTIONS else "mechanisms"
    )
    return f"hs.{place}.{kind}({', '.join(given)})"


def _mixture_of_identity(weight: float, mu: float) -> str:
    rest = f", ({1.0 - weight!r}, hs.tradeoffs.IDENTITY)" if weight < 1.0 else ""
    return f"hs.tradeoffs.mixture([({weight!r}, hs.tradeoffs.GaussianTradeOff({mu!r})){rest}])"


_NOTIONS = {"PureDP", "ApproxDP", "GDP", "ZCDP", "TCDP", "RenyiDP"}
_FUNCTIONS: dict[str, Callable[..., str]] = {
    "FDP of lists": lambda p, q: f"hs.tradeoffs.discrete_tradeoff({list(p)}, {list(q)})",
    "FDP of deltas": lambda pairs: f"hs.tradeoffs.tradeoff_of_deltas({list(pairs)})",
    "FDP mixture": _mixture_of_identity,
}
