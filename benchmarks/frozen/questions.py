"""The questions: every plan by every accountant, and whatever else the package answers.

A plan is the text of an expression in public names; a test sees that every mechanism, notion,
accountant, adjacency and sampling is among them.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

import hockeystick as hs
from benchmarks.frozen.answers import NAMES, ROOT
from tests.examples import documented

STEP: Final = "hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.02)"
TRAINING: Final = "hs.DPSGD(noise_multiplier=2.0, rate=0.03, steps=400)"
TUTORIAL: Final = "hs.DPSGD(noise_multiplier=1.1, examples=60000, batch_size=256, epochs=60)"
LOCAL: Final = (
    "hs.federated.LocalTraining(examples=100, batch_size=20, noise_multiplier=8.0, local_steps=10)"
)
RECORDS: Final = (
    "total_clients=100, clients_per_round=10, examples_per_client=100, batch_size=10, "
    "local_steps=10, rounds=10"
)
RESPONSE: Final = "hs.RandomizedResponse(1.6, categories=5)"
_CHOSEN: Final = (
    "hs.Gaussian(5.0)",
    "hs.PoissonSubsampled(hs.Gaussian(1.5), rate=0.1)",
    "hs.Repeated(hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.02), 300)",
    f"hs.Composed(({STEP}**200, hs.Gaussian(8.0)))",
    "hs.DPSGD(noise_multiplier=1.0, examples=6000, batch_size=60, steps=500)",
    TRAINING,
    "hs.DPSGD(noise_multiplier=1.2, rate=0.02, epochs=5)",
    TUTORIAL,
    "hs.mechanisms.AboveThreshold(4.0, 8.0, threshold_noise='gaussian', query_noise='gaussian', queries=50, "
    "monotone=True)",
    "hs.mechanisms.AboveThreshold(2.0, 4.0)",
    "hs.mechanisms.BatchClipped(hs.PoissonSubsampled(hs.Gaussian(4.0), 0.05, 'zero-out'), 20)",
    "hs.DiscreteGaussian(4.0, sensitivity=2)",
    "hs.DiscreteLaplace(2.0, sensitivity=3)",
    "hs.Exponential(1.6)",
    f"hs.federated.FedAlphaCDP(noise_multiplier=2.0, {RECORDS}, sampling='poisson', "
    "schedule=hs.schedules.Staircase(end=0.8, stairs=2))",
    f"hs.federated.FedCDP(noise_multiplier=3.0, {RECORDS}, sampling='two-stage-poisson')",
    "hs.federated.FedSDP(noise_multiplier=2.0, total_clients=1000, clients_per_round=20, rounds=50, "
    "sampling='poisson')",
    "hs.federated.FederatedClustering(3.0, dimension=10, radius=1.0, rounds=10)",
    "hs.FixedSizeSubsampled(hs.Gaussian(3.0), 20, 100)",
    "hs.mechanisms.GOPA(4.0, 3.0, hs.mechanisms.Graph.path(6), colluders=[2])",
    "hs.mechanisms.GOPA(2.5, inf, hs.mechanisms.Graph.complete(4))",
    "hs.mechanisms.GossipAveraging(4.0, hs.mechanisms.Graph(4, [(0, 1), (1, 2), (1, 3)]), 3, 2, [0])",
    "hs.mechanisms.GaussianSequence((2.0, 1.5, 1.2), rate=0.05)",
    "hs.mechanisms.GaussianMixture(1.5, (0.0, 1.0, 2.0), (0.9, 0.08, 0.02))",
    "hs.mechanisms.JointGaussian((8.0, 6.0))",
    "hs.Laplace(0.6)",
    LOCAL,
    "hs.mechanisms.MatrixFactorization(8.0, hs.mechanisms.Encoder.square_root(100, participations=2, separation=50))",
    f"hs.Parallel(({STEP}, hs.PoissonSubsampled(hs.Gaussian(1.6), 0.06)), split='client')",
    "hs.mechanisms.MultivariateLaplace(0.4, dimension=10)",
    "hs.mechanisms.NoisyIterations(9.0, 40, 10, step_size=0.1, smoothness=1.0)",
    "hs.mechanisms.PermuteAndFlip(1.5)",
    f"hs.federated.PriFedSync(clients={LOCAL}, rounds=10, client_rate=0.5)",
    "hs.mechanisms.PrivateCovariance(3.0, columns=10, adjacency='replace-one')",
    "hs.mechanisms.RAPPOR(0.45, hashes=5)",
    "hs.mechanisms.RandomAllocation(hs.Gaussian(2.0), steps=40, participations=10)",
    "hs.mechanisms.RandomStopping(hs.Gaussian(6.0), hs.mechanisms.tuning.TruncatedNegativeBinomial(1.0, 0.2))",
    "hs.mechanisms.RandomStopping(hs.Gaussian(9.0), hs.mechanisms.tuning.Poisson(4.0))",
    "hs.mechanisms.RandomStopping(hs.Gaussian(9.0), hs.mechanisms.tuning.Binomial(8, 0.5))",
    RESPONSE,
    "hs.mechanisms.ReportNoisyMax(1.5, 'laplace')",
    f"hs.federated.RevealedRound({STEP}**10, 0.4)",
    "hs.mechanisms.RevealedSample(hs.Gaussian(2.0), 0.4)",
    "hs.Shuffled(hs.Gaussian(4.0), steps=10)",
    "hs.mechanisms.ShuffledReports(hs.RandomizedResponse(2.0, categories=3), users=500)",
    "hs.mechanisms.SinhNormal(0.1, 40.0)",
    "hs.mechanisms.Skellam(9.0)",
    "hs.mechanisms.SparseVector(40.0, 80.0, positives=30, queries=50)",
    "hs.mechanisms.TokenWalk(3.0, 40, 'ring', distance=10, step_size=0.1, smoothness=1.0)",
    "hs.mechanisms.TokenWalk(3.0, 40, 'complete', step_size=0.1, smoothness=1.0)",
    "hs.mechanisms.TreeAggregation(20.0, leaves=100)",
    "hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(3.0), 0.2, 30, 100)",
    "hs.mechanisms.UnaryEncoding(1.6)",
    "hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(4.0), 3, 15)",
)


def is_about(text: str, name: str) -> bool:
    """Return whether a question makes a mechanism or a notion of a name."""
    return re.search(rf"\bhs\.((mechanisms|federated|notions)\.)?{name}\(", text) is not None


def _with_documented(chosen: tuple[str, ...], names: Iterable[str]) -> tuple[str, ...]:
    others = (name for name in names if not any(is_about(text, name) for text in chosen))
    return (*chosen, *map(documented, others))


MECHANISMS: Final = _with_documented(_CHOSEN, hs.mechanisms.MECHANISMS)

_STATED: Final = (
    "hs.PureDP(0.9)",
    "hs.ApproxDP(0.8, 1e-13)",
    "hs.GDP(0.5)",
    "hs.ZCDP(0.05)",
    "hs.TCDP(0.02, 50.0)",
    "hs.RenyiDP({2.0: 0.1, 8.0: 0.3, 32.0: 1.5})",
    "hs.FDP(hs.tradeoffs.LaplaceTradeOff(1.2))",
)
NOTIONS: Final = _with_documented(_STATED, hs.notions.NOTIONS)

# What one mechanism is made of another, and plans at the ends of their domains.
NESTED: Final = (
    "hs.PoissonSubsampled(hs.Laplace(1.0), 0.1)",
    "hs.PoissonSubsampled(hs.RandomizedResponse(1.0, categories=3), 0.2)",
    "hs.PoissonSubsampled(hs.DiscreteLaplace(2.0), 0.1)",
    "hs.PoissonSubsampled(hs.DiscreteGaussian(2.0), 0.1)",
    "hs.PoissonSubsampled(hs.mechanisms.Skellam(10.0), 0.1)",
    "hs.PoissonSubsampled(hs.mechanisms.UnaryEncoding(1.0), 0.1)",
    "hs.PoissonSubsampled(hs.mechanisms.GaussianMixture(2.0, (0.0, 1.0, 2.0), (0.9, 0.07, 0.03)), 0.5)",
    "hs.PoissonSubsampled(hs.Exponential(1.0), 0.1)",
    "hs.PoissonSubsampled(hs.Composed((hs.Gaussian(3.0), hs.Laplace(2.0))), 0.1)",
    "hs.FixedSizeSubsampled(hs.Gaussian(2.0), 1, 10, 'add-remove')",
    "hs.FixedSizeSubsampled(hs.Laplace(1.0), 3, 30)",
    "hs.FixedSizeSubsampled(hs.RandomizedResponse(1.0), 3, 30)",
    "hs.FixedSizeSubsampled(hs.PureDP(1.0), 3, 30)",
    "hs.mechanisms.WithReplacementSubsampled(hs.Laplace(2.0), 2, 20)",
    "hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(2.0), 0.1, cap=11, examples=10)",
    "hs.mechanisms.RevealedSample(hs.RandomizedResponse(1.0), 0.5)",
    "hs.federated.RevealedRound(hs.RandomizedResponse(1.0), 0.5)",
    "hs.mechanisms.RandomAllocation(hs.Gaussian(5.0), steps=1)",
    "hs.mechanisms.RandomStopping(hs.Laplace(4.0), hs.mechanisms.tuning.TruncatedNegativeBinomial(0.5, 0.1))",
    "hs.mechanisms.RandomStopping(hs.PureDP(0.3), hs.mechanisms.tuning.Poisson(4.0))",
    "hs.mechanisms.RandomStopping(hs.PureDP(0.3), hs.mechanisms.tuning.Binomial(5, 0.9))",
    "hs.mechanisms.RandomStopping(hs.ZCDP(0.01), hs.mechanisms.tuning.TruncatedNegativeBinomial(0.0, 0.1))",
    f"hs.mechanisms.RandomStopping({TRAINING}, hs.mechanisms.tuning.TruncatedNegativeBinomial(1.0, 0.1))",
    "hs.mechanisms.ShuffledReports(hs.mechanisms.UnaryEncoding(1.0), users=100)",
    "hs.mechanisms.ShuffledReports(hs.Laplace(1.0), users=1000)",
    "hs.mechanisms.ShuffledReports(hs.PureDP(1.0), users=10000)",
    "hs.mechanisms.ShuffledReports(hs.Gaussian(2.0), users=100)",
    "hs.Parallel((hs.Gaussian(2.0)**3, hs.Laplace(2.0)))**2",
    "hs.Parallel((hs.Gaussian(5.0), hs.Gaussian(6.0)))",
    "hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.square_root(1000))",
    "hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.toeplitz((1.0, 0.5, 0.25), rounds=20))",
    "hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.of_matrix([[1.0, 0.0], [0.5, 1.0]]))",
    "hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.banded_inverse((1.0, -0.5, -0.125), rounds=200, participations=4, separation=50))",
    "hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.buffered_toeplitz((0.3, 0.125), (0.5, 0.96875), rounds=200, participations=4, separation=50))",
    "hs.mechanisms.GOPA(3.0, 4.0, hs.mechanisms.Graph.cycle(5))",
    "hs.mechanisms.GaussianSequence((2.0,)*20, 0.03, 'zero-out')",
    "hs.Gaussian(1.0)**10 @ hs.Laplace(5.0)**3 @ hs.RandomizedResponse(0.3)",
    f"{STEP}**14062 @ hs.Laplace(scale=20)",
    "hs.Composed((hs.DiscreteLaplace(2.0), hs.RandomizedResponse(1.0)))",
    "hs.PureDP(0.5)**4 @ hs.ZCDP(0.1) @ hs.GDP(1)",
    "hs.ApproxDP(0.5, 1e-7)**10 @ hs.Gaussian(3.0)",
    "hs.ApproxDP(0.1, 0.0)**20",
    "hs.RenyiDP({2.0: 0.1, 8.0: 0.3})**4 @ hs.ZCDP(0.01)",
    "hs.FDP(hs.tradeoffs.GaussianTradeOff(0.8))**5",
    "hs.FDP(hs.tradeoffs.discrete_tradeoff([0.2, 0.5, 0.3], [0.4, 0.45, 0.15]))**3",
    "hs.FDP(hs.tradeoffs.tradeoff_of_deltas([(0.0, 0.5), (3.0, 1e-6), (0.5, 0.25)]))**2",
    "hs.RandomizedResponse(0.1)**1000",
    "hs.Laplace(2.0)**100",
    "hs.Gaussian(0.0)",
    "hs.Gaussian(inf)",
    "hs.Laplace(0.0)",
    "hs.Gaussian(1.0)**0",
    "hs.PoissonSubsampled(hs.Gaussian(0.0), 0.5)",
    "hs.PoissonSubsampled(hs.Gaussian(1.0), 0.0)",
    "hs.PoissonSubsampled(hs.Gaussian(1.0), 1.0)",
    "hs.PoissonSubsampled(hs.Gaussian(1.0), 1e-6)**1000000000",
    "hs.PoissonSubsampled(hs.Gaussian(0.3), 1e-4)**1000",
    "hs.PoissonSubsampled(hs.Gaussian(50.0), 0.5)**100000",
    "hs.DPSGD(noise_multiplier=0.0, rate=0.01, steps=10)",
    "hs.DPSGD(noise_multiplier=1.0, rate=1, steps=1, adjacency='replace-one')",
    *(
        f"hs.DPSGD(noise_multiplier=2.0, rate=0.01, steps=40, schedule=hs.schedules.{schedule})"
        for schedule in (
            "Constant()",
            "Linear(end=0.5)",
            "Exponential(end=0.5)",
            "Staircase(end=0.5, stairs=4)",
            "Cyclic(floor=0.5, cycles=2)",
            "Piecewise([(30, 1.0), (10, 0.5)])",
        )
    ),
    "hs.PureDP(inf)",
    "hs.ApproxDP(1.0, 1.0)",
    "hs.GDP(0.0)",
    "hs.notions.MetricDP(0.5)**3",
    "hs.PoissonSubsampled(hs.Gaussian(1.0), 1.5)",
    "hs.Gaussian(-1.0)",
    "hs.Gaussian(1.0) @ 3",
    "hs.Composed(())",
    "hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1) @ hs.mechanisms.PrivateCovariance(3.0, columns=4)",
)
SOURCES: Final = (
    "hs.PureDP(0.75)",
    "hs.ApproxDP(0.75, 1e-4)",
    "hs.GDP(0.8)",
    "hs.ZCDP(0.3)",
    "hs.TCDP(0.2, 6)",
    "hs.RenyiDP({2: 0.5, 6: 1.1})",
    "hs.FDP(hs.tradeoffs.GaussianTradeOff(0.8))",
)
TARGETS: Final = (
    ("PureDP", ""),
    ("ApproxDP", ", delta=1e-05"),
    ("ApproxDP", ", delta=1e-30"),
    ("ApproxDP", ", epsilon=0.7"),
    ("GDP", ""),
    ("ZCDP", ""),
    ("TCDP", ", omega=4.0"),
    ("RenyiDP", ", orders=(1.5, 8.0)"),
    ("FDP", ""),
)
BUDGETS: Final = (
    "hs.PureDP(1e9)",
    "hs.GDP(1e9)",
    "hs.ZCDP(1e9)",
    "hs.TCDP(1e9, 9.0)",
    "hs.RenyiDP({1.5: 1e9, 8.0: 1e9})",
    "hs.ApproxDP(1e9, 1e-4)",
)
RULES: Final = (", slack=1e-05", ", slack=1e-05, rule='whitehouse'")
GOALS: Final = (
    "hs.ApproxDP(2.0, 1e-05)",
    "hs.ApproxDP(0.5, 1e-30)",
    "hs.PureDP(1.0)",
    "hs.GDP(0.5)",
    "hs.ZCDP(0.125)",
    "hs.RenyiDP({2.0: 0.5, 8.0: 2.0})",
    "hs.TCDP(0.25, 4.0)",
    "hs.calibration.Advantage(0.2)",
    "hs.calibration.TruePositiveRate(0.05, fpr=0.01)",
    "hs.calibration.BayesError(0.4, prior=0.5)",
    "hs.calibration.Reconstruction(0.2, baseline=0.1)",
)
FUNCTIONS: Final = (
    "hs.tradeoffs.IDENTITY",
    "hs.tradeoffs.GaussianTradeOff(0.8)",
    "hs.tradeoffs.LaplaceTradeOff(1.2)",
    "hs.tradeoffs.SampledGaussianTradeOff(1.0, 0.1)",
    "hs.tradeoffs.ApproxTradeOff(0.5, 0.01)",
    "hs.tradeoffs.discrete_tradeoff([0.2, 0.5, 0.3], [0.4, 0.45, 0.15])",
    "hs.tradeoffs.tradeoff_of_deltas([(0.0, 0.5), (3.0, 1e-6), (0.5, 0.25)])",
    "hs.tradeoffs.mixture([(0.3, hs.tradeoffs.GaussianTradeOff(1.0)), (0.7, hs.tradeoffs.LaplaceTradeOff(1.0))])",
    "hs.tradeoffs.SampledGaussianTradeOff(1.0, 0.1).group(2)",
    "hs.tradeoffs.GaussianTradeOff(1.0).subsample(0.2)",
    "hs.tradeoffs.GaussianTradeOff(1.0) @ hs.tradeoffs.LaplaceTradeOff(1.0)",
    "(hs.tradeoffs.SampledGaussianTradeOff(1.0, 0.1) ** 50)",
    f"hs.tradeoff({TRAINING})",
    "hs.tradeoff(hs.RandomizedResponse(0.5)**20)",
    "hs.tradeoff(hs.RenyiDP({2.0: 0.1, 8.0: 0.3}))",
    "hs.tradeoff(hs.ZCDP(0.1))",
)
_OF_MANY: Final = ("contour", "prv", "rdp", "moments", "advanced")
READINGS: Final = (
    "",
    ".inverse()",
    ".symmetrize()",
    ".group(2)",
    ".subsample(0.3)",
    ".power_bounds((1e-6, 0.01, 0.3))",
    ".log_bounds((-200.0, -20.0, -1.0))",
    ".delta(0.7)",
    ".epsilon(1e-05)",
    ".conjugate(-2.0)",
    ".renyi_divergence(3.0)",
    ".advantage",
    ".bayes_error(0.3)",
    ".reconstruction(0.1)",
)
OTHERS: Final = (
    *(
        f"hs.calibration.{name}({epsilon}, {delta})"
        for name in ("gaussian_noise", "classical_gaussian_noise")
        for epsilon in (0.0, 0.1, 0.5, 1.0, 10.0)
        for delta in (0.3, 1e-5, 1e-30, 1e-300)
    ),
    *(
        f"hs.calibration.split_budget({budget}, {parts}{by})"
        for budget in ("hs.ApproxDP(1.0, 1e-5)", "hs.GDP(1.0)", "hs.ZCDP(0.5)", "hs.PureDP(1.0)")
        for parts in ("parts=7", "weights=(0.1, 3.0, 7.0)")
        for by in ("", ", by='least-noise'")
    ),
    "hs.calibration.share_budget(hs.ApproxDP(1.0, 1e-5), [hs.Gaussian(1.0), hs.Laplace(2.0)])",
    "hs.calibration.share_budget(hs.GDP(1.0), [hs.Gaussian(1.0)**3, hs.Gaussian(2.0)])",
    f"hs.calibration.grid_search(hs.ApproxDP(3.0, 1e-5), {TRAINING}, 5)",
    "hs.calibration.grid_search(hs.ZCDP(1.0), hs.Gaussian(1.0), 5)",
    "hs.calibration.joint_noise(1.0, inflation=1.01)",
    "hs.calibration.joint_noise(0.5, query_noise=4.0)",
    "hs.calibration.joint_noise(2.0, query_noise=2.0)",
    "hs.calibration.clipping_noise(1.0, 5.0)",
    "hs.calibration.clipping_noise(2.0, 1.0)",
    "hs.calibration.max_error_quantile(1.5, 34, 0.05)",
    "hs.calibration.max_error_probability(3.0, 1.5, 34)",
    "hs.calibration.max_error_union_bound(1.5, 34, 0.05)",
    "hs.notions.MetricDP(0.5).within(3)",
    "hs.notions.MetricDP(0.5).group(3)",
    "hs.notions.metric_composition([(hs.notions.MetricDP(1), 2), (hs.notions.MetricDP(0.5), 1)])",
    *(f"{one}.group(3)" for one in (*NOTIONS, *SOURCES)),
    *(f"{one}.subsample(0.1)" for one in (*_STATED[:2], *SOURCES[:2], _STATED[-1])),
    *(
        f"hs.notions.parallel([{one}, {one}], {way!r})"
        for one in NOTIONS
        for way in ("add-remove", "replace-one", "zero-out")
    ),
    *(f"hs.accountants.compare_samplings({p}, delta=1e-5)" for p in (TUTORIAL, MECHANISMS[4])),
    f"hs.accountants.compare_samplings({MECHANISMS[4]}, epsilon=1.0)",
    f"hs.calibration.frontier({TUTORIAL}, hs.ApproxDP(2.0, 1e-5), epochs=[5, 20], batch_sizes=[120, 7000])",
    f"list(hs.sweep({{'noise_multiplier': [1.0, 3.0], 'steps': [10, 400]}}, "
    f"hs.calibration.AskEpsilon({TRAINING}, 1e-5)))",
    f"list(hs.sweep({{'noise_multiplier': [1.0, 3.0]}}, hs.calibration.AskDelta({TRAINING}, 1.0)))",
    f"list(hs.sweep({{'steps': [10, 400]}}, "
    f"hs.calibration.Solve({TRAINING}, 'noise_multiplier', hs.ApproxDP(2.0, 1e-5))))",
    *(f"ledger({', '.join(two)}).epsilon(1e-05)" for two in pairwise(MECHANISMS[:6])),
    *(f"ledger({', '.join(two)}).delta(1.0)" for two in pairwise(MECHANISMS[:6])),
    *(f"ledger({', '.join(two)}).tradeoff()" for two in pairwise(MECHANISMS[:6])),
)


def made(text: str) -> Any:
    """Return the plan of a text, or None where it is refused."""
    try:
        return eval(text, dict(NAMES))
    except (hs.HockeystickError, TypeError):
        return None


def variants(text: str) -> Iterator[str]:
    """Yield a plan, and itself with every other word for each field that takes words."""
    yield text
    plan, call = made(text), ast.parse(text, mode="eval").body
    if plan is None or not isinstance(call, ast.Call) or not dataclasses.is_dataclass(plan):
        return
    fields = [one.name for one in dataclasses.fields(plan)]
    given: dict[str | None, ast.expr] = dict(zip(fields, call.args, strict=False))
    given |= {one.arg: one.value for one in call.keywords}
    for name in fields:
        value = getattr(plan, name)
        kind: Any = hs.Adjacency if name == "adjacency" else type(value)
        for word in kind if isinstance(value, StrEnum) or name == "adjacency" else ():
            if word != value:
                other = given | {name: ast.Constant(str(word))}
                keywords = [ast.keyword(key, one) for key, one in other.items()]
                yield ast.unparse(ast.Call(call.func, [], keywords))


def questions() -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of every question."""
    for text in (*MECHANISMS, *NOTIONS):
        yield from _of_plan(text)
    for text in NESTED:
        yield from _of_nested(text)
    for text in (one for plan in (*MECHANISMS, *NESTED) for one in list(variants(plan))[1:]):
        yield from _of_variant(text)
    yield from _of_conversions()
    yield from _of_solves()
    for function in FUNCTIONS:
        yield from (("tradeoff", f"{function}{reading}") for reading in READINGS)
    yield from ((_called(one), one) for one in OTHERS)
    yield from _of_files()


def _called(text: str) -> str:
    return text.removeprefix("list(").removeprefix("hs.").split("(")[0]


def _of_plan(text: str) -> Iterator[tuple[str, str]]:
    for delta in (1e-5, 1e-30, 1e-300, 0.0):
        yield "epsilon", f"hs.epsilon({text}, {delta!r})"
    for epsilon in (0.0, 0.7, 5.0):
        yield "delta", f"hs.delta({text}, {epsilon!r})"
    for row in hs.compare(hs.Gaussian(1.0), delta=0.1):
        by = f"accountant={row.accountant!r}"
        yield f"epsilon by {row.accountant}", f"hs.epsilon({text}, 1e-05, {by})"
        yield f"delta by {row.accountant}", f"hs.delta({text}, 0.7, {by})"
        if row.accountant in _OF_MANY:
            yield f"epsilon by {row.accountant}", f"hs.epsilon({text}**30, 1e-09, {by})"
    for name, asked in (("epsilon", "1e-05"), ("delta", "0.7")):
        yield f"{name} to 20 digits", f"hs.{name}({text}, {asked}, digits=20)"
        yield f"{name} closely", f"hs.{name}({text}, {asked}, tolerance=1e-08)"
    yield "epsilon of many", f"hs.epsilon({text}**100, 1e-05)"
    yield "epsilon of many", f"hs.epsilon({text}**10000, 1e-05)"
    yield "delta of many", f"hs.delta({text}**100, 3.0)"
    yield "epsilon of two", f"hs.epsilon({text} @ {TRAINING}, 1e-05)"
    yield "epsilon of two", f"hs.epsilon({text} @ hs.Laplace(3.0), 1e-05)"
    yield "tradeoff", f"hs.tradeoff({text})"
    yield "shown", f"shown(1e-6, {text})"
    for budget in BUDGETS:
        yield "charged", f"charged({budget}, {text}, {text})"
    for rule in RULES:
        yield "charged", f"charged({BUDGETS[-1]}, {text}, {text}{rule})"


def _of_nested(text: str) -> Iterator[tuple[str, str]]:
    for delta in (1e-5, 1e-300):
        yield "epsilon", f"hs.epsilon({text}, {delta!r})"
    for epsilon in (0.7, 40.0):
        yield "delta", f"hs.delta({text}, {epsilon!r})"
    for accountant in ("closed-form", "contour", "prv", "parts", "rdp", "basic"):
        by = f"accountant={accountant!r}"
        yield f"epsilon by {accountant}", f"hs.epsilon({text}, 1e-05, {by})"
    yield "epsilon of many", f"hs.epsilon({text}**100, 1e-05)"
    yield "tradeoff", f"hs.tradeoff({text})"
    yield "shown", f"shown(1e-6, {text})"
    yield "charged", f"charged({BUDGETS[2]}, {text}, {text})"


def _of_variant(text: str) -> Iterator[tuple[str, str]]:
    yield "epsilon", f"hs.epsilon({text}, 1e-05)"
    if made(text) is not None:
        yield "epsilon", f"hs.epsilon({text}**30, 1e-300)"
        yield "delta", f"hs.delta({text}, 0.7)"
        for accountant in ("prv", "rdp"):
            by = f"accountant={accountant!r}"
            yield f"epsilon by {accountant}", f"hs.epsilon({text}, 1e-05, {by})"
        yield "convert to ApproxDP", f"hs.convert({text}, hs.ApproxDP, delta=1e-05)"
        yield "convert to ZCDP", f"hs.convert({text}, hs.ZCDP)"


def _of_conversions() -> Iterator[tuple[str, str]]:
    for text in (*SOURCES, *NOTIONS, *MECHANISMS, *NESTED):
        for target, given in TARGETS[:: 2 if text in NESTED else 1]:
            yield f"convert to {target}", f"hs.convert({text}, hs.{target}{given})"


def _of_solves() -> Iterator[tuple[str, str]]:
    for text in (*MECHANISMS, *NOTIONS):
        plan = made(text)
        for field in dataclasses.fields(plan):
            value = getattr(plan, field.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                asked = f"{text}, {field.name!r}, {GOALS[0]}"
                yield f"calibrate {field.name}", f"hs.calibrate({asked})"
    for goal in GOALS[1:]:
        for text, name in (
            ("hs.Gaussian(1.0)", "noise_multiplier"),
            ("hs.Laplace(1.0)", "scale"),
            (RESPONSE, "epsilon"),
            (TRAINING, "noise_multiplier"),
            (TRAINING, "steps"),
            ("hs.GDP(1.0)**3", "mu"),
        ):
            yield "calibrate by target", f"hs.calibrate({text}, {name!r}, {goal})"
    asked = f"{TRAINING}, 'noise_multiplier', {GOALS[0]}"
    for how in ("spent=hs.Gaussian(2.0)", "accountant='rdp'", "tolerance=1e-4"):
        yield "calibrate otherwise", f"hs.calibrate({asked}, {how})"


def _of_files() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "examples").glob("*.toml")):
        name = f"examples/{path.name}"
        yield "command epsilon", f"command('epsilon {name}')"
        yield "command delta", f"command('delta {name} --epsilon 1')"
        yield "command tradeoff", f"command('tradeoff {name}')"
        yield "command compare", f"command('compare {name}')"
        solve = f"solve {name} --parameter noise_multiplier --epsilon 2 --delta 1e-5"
        yield "command solve", f"command('{solve}')"
    for line in ("ZCDP(rho=0.5) --to ApproxDP --delta 1e-6", "GDP(mu=1) --to RenyiDP --orders 2,8"):
        yield "command convert", f"command('convert {line}')"
