"""Plans for the laws: an example of every registered mechanism and of every notion."""

import ast
import math
from collections.abc import Iterator, Mapping
from doctest import DocTestParser
from typing import Any, Final

import hockeystick as hs
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import FDP, GDP, NOTIONS, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.tradeoffs.functions.closed_forms import LaplaceTradeOff


def documented(name: str) -> str:
    """Return the call that makes a mechanism or a notion in the example of its docstring."""
    for one in DocTestParser().get_examples({**MECHANISMS, **NOTIONS}[name].__doc__ or ""):
        for call in ast.walk(ast.parse(one.source)):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(f".{name}"):
                return ast.unparse(call)
    raise LookupError(f"the example in the docstring of {name} makes none")


def made(text: str) -> Any:
    return eval(text, {"hs": hs, "inf": math.inf})


STEP: Final = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.02)
LOCAL: Final = hs.federated.LocalTraining(
    examples=100, batch_size=20, noise_multiplier=8.0, local_steps=10
)
TRAINING: Final = hs.DPSGD(noise_multiplier=2.0, rate=0.03, steps=400)
RECORDS: Final[Mapping[str, Any]] = {
    "total_clients": 100,
    "clients_per_round": 10,
    "examples_per_client": 100,
    "batch_size": 10,
    "local_steps": 10,
    "rounds": 10,
}
# Those that the accountants made for Gaussian noise take too.
GAUSSIANS: Final[tuple[hs.Mechanism, ...]] = (
    hs.Gaussian(5.0),
    hs.PoissonSubsampled(hs.Gaussian(1.5), rate=0.1),
    hs.PoissonSubsampled(hs.Gaussian(2.0), rate=0.05, adjacency="zero-out"),
    hs.Repeated(STEP, 300),
    hs.Composed((STEP**200, hs.Gaussian(8.0))),
    hs.DPSGD(noise_multiplier=1.0, examples=6000, batch_size=60, steps=500),
    TRAINING,
    hs.DPSGD(noise_multiplier=1.2, rate=0.02, epochs=5),
)
_CHOSEN: Final[tuple[hs.Mechanism, ...]] = (
    *GAUSSIANS,
    hs.mechanisms.AboveThreshold(
        4.0, 8.0, threshold_noise="gaussian", query_noise="gaussian", queries=50, monotone=True
    ),
    hs.mechanisms.BatchClipped(hs.PoissonSubsampled(hs.Gaussian(4.0), 0.05, "zero-out"), 20),
    hs.DiscreteGaussian(4.0, sensitivity=2),
    hs.DiscreteLaplace(2.0, sensitivity=3),
    hs.Exponential(1.6),
    hs.federated.FedAlphaCDP(
        noise_multiplier=2.0,
        **RECORDS,
        sampling="poisson",
        schedule=hs.schedules.Staircase(end=0.8, stairs=2),
    ),
    hs.federated.FedCDP(noise_multiplier=3.0, **RECORDS, sampling="two-stage-poisson"),
    hs.federated.FedSDP(
        noise_multiplier=2.0,
        total_clients=1000,
        clients_per_round=20,
        rounds=50,
        sampling="poisson",
    ),
    hs.federated.FederatedClustering(3.0, dimension=10, radius=1.0, rounds=10),
    hs.FixedSizeSubsampled(hs.Gaussian(3.0), 20, 100),
    hs.mechanisms.GOPA(4.0, 3.0, hs.mechanisms.Graph.path(6), colluders=[2]),
    hs.mechanisms.GossipAveraging(4.0, hs.mechanisms.Graph(4, [(0, 1), (1, 2), (1, 3)]), 3, 2, [0]),
    hs.mechanisms.GaussianSequence((2.0, 1.5, 1.2), rate=0.05),
    hs.mechanisms.GaussianMixture(1.5, (0.0, 1.0, 2.0), (0.9, 0.08, 0.02)),
    hs.mechanisms.PoissonSubsampledGroup(hs.Gaussian(4.0), 0.1, 3, "replace-one"),
    hs.mechanisms.JointGaussian((8.0, 6.0)),
    hs.Laplace(0.6),
    LOCAL,
    hs.mechanisms.MatrixFactorization(
        8.0, hs.mechanisms.Encoder.square_root(100, participations=2, separation=50)
    ),
    hs.Parallel((STEP, hs.PoissonSubsampled(hs.Gaussian(1.6), 0.06)), split="client"),
    hs.mechanisms.MultivariateLaplace(0.4, dimension=10),
    hs.mechanisms.NoisyIterations(9.0, 40, 10, step_size=0.1, smoothness=1.0),
    hs.mechanisms.PermuteAndFlip(1.5),
    hs.federated.PriFedSync(clients=LOCAL, rounds=10, client_rate=0.5),
    hs.mechanisms.PrivateCovariance(3.0, columns=10, adjacency="replace-one"),
    hs.mechanisms.RAPPOR(0.45, hashes=5),
    hs.mechanisms.RandomAllocation(hs.Gaussian(2.0), steps=40, participations=10),
    hs.mechanisms.RandomStopping(
        hs.Gaussian(6.0), hs.mechanisms.tuning.TruncatedNegativeBinomial(1.0, 0.2)
    ),
    hs.mechanisms.RandomStopping(hs.Gaussian(9.0), hs.mechanisms.tuning.Poisson(4.0)),
    hs.mechanisms.RandomStopping(hs.Gaussian(9.0), hs.mechanisms.tuning.Binomial(8, 0.5)),
    hs.RandomizedResponse(1.6, categories=5),
    hs.mechanisms.ReportNoisyMax(1.5, "laplace"),
    hs.federated.RevealedRound(STEP**10, 0.4),
    hs.mechanisms.RevealedSample(hs.Gaussian(2.0), 0.4),
    hs.Shuffled(hs.Gaussian(4.0), steps=10),
    hs.mechanisms.ShuffledReports(hs.RandomizedResponse(2.0, categories=3), users=500),
    hs.mechanisms.SinhNormal(0.1, 40.0),
    hs.mechanisms.Skellam(9.0),
    hs.mechanisms.SparseVector(40.0, 80.0, positives=30, queries=50),
    hs.mechanisms.TokenWalk(3.0, 40, "ring", distance=10, step_size=0.1, smoothness=1.0),
    hs.mechanisms.TreeAggregation(20.0, leaves=100),
    hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(3.0), 0.2, 30, 100),
    hs.mechanisms.UnaryEncoding(1.6),
    hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(4.0), 3, 15),
)


def _documented(registry: Mapping[str, Any], chosen: tuple[hs.Mechanism, ...]) -> Iterator[Any]:
    """Each that is registered and not among the chosen ones, as its docstring makes it."""
    shown = {type(plan).__name__ for plan in chosen}
    return (made(documented(name)) for name in registry if name not in shown)


DESCRIBED: Final[tuple[hs.Mechanism, ...]] = (*_CHOSEN, *_documented(MECHANISMS, _CHOSEN))
_STATED: Final[tuple[Notion, ...]] = (
    PureDP(0.9),
    ApproxDP(0.8, 1e-13),
    GDP(0.5),
    ZCDP(0.05),
    TCDP(0.02, 50.0),
    RenyiDP({2.0: 0.1, 8.0: 0.3, 32.0: 1.5}),
    FDP(LaplaceTradeOff(1.2)),
)
GUARANTEED: Final[tuple[Notion, ...]] = (*_STATED, *_documented(NOTIONS, _STATED))
EXAMPLES: Final[tuple[hs.Mechanism, ...]] = DESCRIBED + GUARANTEED
