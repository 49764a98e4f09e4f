"""Which pair of losses each plan has at the ends of its parameters, and which has none."""

import math
import re
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.notions import GDP, TCDP, ZCDP, RenyiDP
from hockeystick.privacy_loss import (
    ConcentratedLoss,
    DiscreteLaplaceLoss,
    DominatingPair,
    GaussianLoss,
    GaussianMixtureLoss,
    LaplaceLoss,
    NoAnalysisError,
    NoiselessLoss,
    PrivacyLoss,
    RandomizedResponsePairLoss,
    SampledGaussianLoss,
    SampledLoss,
    UnknownLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.guarantees import BoundedRangeLoss
from hockeystick.privacy_loss.sampling.sampled import SampledAtomsLoss
from hockeystick.tradeoffs import PerfectPrivacy, ProfileTradeOff
from hockeystick.tradeoffs.functions.piecewise import ApproxTradeOff, IdentityTradeOff

INF = math.inf
PATH = hs.mechanisms.Graph.path(3)
# The last two are not linked to the first four.
FOREST = hs.mechanisms.Graph(7, [(0, 1), (1, 2), (1, 3), (4, 5)])
ROOT = hs.mechanisms.Encoder.square_root(1000)
STEP = hs.PoissonSubsampled(hs.Gaussian(2.0), 0.1)
ITERATIONS: dict[str, Any] = {"step_size": 0.5, "smoothness": 2.0}
DESCENT: dict[str, Any] = {"examples": 100, "step_size": 0.1, "smoothness": 10.0}
GEOMETRIC = hs.mechanisms.tuning.TruncatedNegativeBinomial(1.0, 0.1)
COUNTS = (GEOMETRIC, hs.mechanisms.tuning.Poisson(1.0), hs.mechanisms.tuning.Binomial(3, 0.95))


def above(*scales: float, noise: str = "laplace") -> hs.Mechanism:
    return hs.mechanisms.AboveThreshold(
        *scales, threshold_noise=noise, query_noise=noise, queries=3
    )


def tuned(run: hs.Mechanism) -> list[hs.Mechanism]:
    """Return the best of a random number of runs, for numbers of every kind."""
    return [hs.mechanisms.RandomStopping(run, count) for count in COUNTS]


NOTHING: list[hs.Mechanism] = [
    hs.Gaussian(INF),
    hs.PoissonSubsampled(hs.Gaussian(1.0), 0.0),
    hs.PoissonSubsampled(hs.Gaussian(INF), 0.1, "replace-one"),
    hs.PoissonSubsampled(hs.Laplace(INF), 0.25),
    hs.FixedSizeSubsampled(hs.Gaussian(INF), 2, 10),
    hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(INF), 2, 10),
    hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(INF), 0.1, 2, 10),
    hs.Shuffled(hs.Gaussian(INF), 5),
    hs.mechanisms.RandomAllocation(hs.Gaussian(1.0), 5, 0),
    hs.mechanisms.RandomAllocation(hs.Gaussian(INF), 5),
    hs.mechanisms.BallsInBins(INF, (1.0, 0.5), 20, bins=4),
    hs.mechanisms.BallsInBins(2.0, (0.0, 0.0), 20, bins=4),
    hs.mechanisms.TreeAggregation(INF, 5),
    hs.mechanisms.MatrixFactorization(INF, ROOT),
    hs.mechanisms.MatrixFactorization(
        1.0, hs.mechanisms.Encoder.of_matrix([[0, 0]], participations=2)
    ),
    hs.mechanisms.LastIterate(INF, 5, **DESCENT),
    hs.mechanisms.LastIterate(1.0, 0, **DESCENT),
    hs.mechanisms.LastIterate(INF, 5, batch_size=30, batches="fixed-size", **DESCENT),
    hs.mechanisms.NoisyIterations(INF, 5, **ITERATIONS),
    hs.mechanisms.NoisyIterations(0.0, 0, **ITERATIONS),
    hs.mechanisms.TokenWalk(INF, 5, **ITERATIONS),
    hs.mechanisms.GOPA(INF, 0.0, PATH),
    hs.mechanisms.GossipAveraging(0.0, PATH, 0, 2, [0]),
    hs.mechanisms.GossipAveraging(0.0, PATH, 1, 2, [0]),
    hs.mechanisms.GossipAveraging(1.0, FOREST, 9, 5, [0]),
    hs.mechanisms.GossipAveraging(1.0, FOREST, 9, 6, [0, 1, 2, 3]),
    hs.mechanisms.GossipAveraging(INF, PATH, 9, 2, [0]),
    hs.federated.RevealedRound(STEP**5, 0.0),
    hs.federated.RevealedRound(hs.Gaussian(INF) ** 5, 0.5),
    hs.federated.RevealedRound(STEP**0, 0.5),
    hs.mechanisms.GaussianMixture(INF, (0, 1), (0.5, 0.5)),
    hs.mechanisms.GaussianMixture(1, (0, 1), (1, 0)),
    hs.Laplace(INF),
    hs.FDP(hs.tradeoffs.LaplaceTradeOff(INF)),
    hs.mechanisms.MultivariateLaplace(INF, 3),
    hs.RandomizedResponse(0.0, 7),
    hs.mechanisms.UnaryEncoding(0.0),
    hs.mechanisms.RAPPOR(1.0, 3),
    hs.DiscreteLaplace(INF, 3),
    hs.DiscreteGaussian(INF),
    hs.mechanisms.Skellam(INF),
    hs.mechanisms.ShuffledReports(hs.PureDP(0.0), 10),
    hs.Exponential(0.0),
    hs.mechanisms.PermuteAndFlip(0.0),
    hs.mechanisms.ReportNoisyMax(0.0, "laplace"),
    above(1.0, INF),
    above(0.0, INF, noise="gaussian"),
    *tuned(hs.Gaussian(INF)),
    *tuned(hs.Gaussian(1.0) ** 0),
    hs.PureDP(0.0),
    hs.ApproxDP(0.0, 0.0),
    ZCDP(0.0),
    GDP(0.0),
    TCDP(0.0, 5),
    RenyiDP({2: 0.0, 3: 1.0}),
    hs.FDP(IdentityTradeOff()),
    hs.FDP(ProfileTradeOff((PerfectPrivacy(), PerfectPrivacy()))),
]
EVERYTHING: list[hs.Mechanism] = [
    hs.Gaussian(0.0),
    hs.Laplace(0),
    hs.mechanisms.MultivariateLaplace(0.0, 3),
    hs.mechanisms.SinhNormal(INF, 1),
    hs.mechanisms.TreeAggregation(0.0, 5),
    hs.mechanisms.MatrixFactorization(0.0, ROOT),
    hs.mechanisms.LastIterate(0.0, 5, **DESCENT),
    hs.mechanisms.NoisyIterations(0.0, 5, **ITERATIONS),
    hs.mechanisms.TokenWalk(0.0, 5, **ITERATIONS),
    *(hs.mechanisms.GOPA(0.0, pairwise, PATH) for pairwise in (0.0, 1.0, INF)),
    hs.mechanisms.GossipAveraging(0.0, PATH, 3, 2, [0]),
]
ANYTHING: list[hs.Mechanism] = [
    hs.RandomizedResponse(INF, 7),
    hs.mechanisms.UnaryEncoding(INF),
    hs.mechanisms.RAPPOR(0.0, 3),
    hs.DiscreteLaplace(0.0, 3),
    hs.DiscreteGaussian(0.0),
    hs.mechanisms.Skellam(0.0),
    hs.Exponential(INF),
    hs.mechanisms.PermuteAndFlip(INF),
    hs.mechanisms.ReportNoisyMax(INF),
    hs.mechanisms.ReportNoisyMax(INF, "laplace"),
    hs.PureDP(INF),
    hs.ApproxDP(INF, 0.1),
    RenyiDP({2: INF}),
]
UNKNOWN: list[hs.Mechanism] = [
    above(0.0, 1.0),
    above(1.0, 0.0),
    above(INF, 0.0, noise="gaussian"),
    *tuned(hs.Gaussian(0.0)),
    *tuned(hs.PureDP(INF)),
    *tuned(hs.Gaussian(1.0) @ hs.Laplace(0.0)),
]
SAME: list[tuple[hs.Mechanism, PrivacyLoss]] = [
    (hs.PoissonSubsampled(hs.Gaussian(1.0), 1.0), GaussianLoss(1.0)),
    (hs.PoissonSubsampled(hs.Laplace(3.0), 1.0), LaplaceLoss(3.0)),
    (hs.Laplace(2), LaplaceLoss(2.0)),
    (hs.mechanisms.MultivariateLaplace(0.3, 1), LaplaceLoss(0.3)),
    (hs.RandomizedResponse(0.7), RandomizedResponsePairLoss(0.7)),
    (hs.mechanisms.Staircase(0.8, 0.5), RandomizedResponsePairLoss(0.8)),
    (hs.mechanisms.UnaryEncoding(INF, "optimized"), RandomizedResponsePairLoss(0.0, 0.5)),
    (hs.DiscreteLaplace(20.0), RandomizedResponsePairLoss(0.05)),
    (hs.DiscreteLaplace(3.0), DiscreteLaplaceLoss(3.0, 1)),
    (hs.mechanisms.ReportNoisyMax(0.7), BoundedRangeLoss(0.7)),
    (hs.mechanisms.GaussianMixture(2, (1, 1), (0.5, 0.5)), GaussianLoss(Fraction(2))),
    (hs.mechanisms.TreeAggregation(0.1, leaves=1), GaussianLoss(Fraction(1, 10))),
    (hs.mechanisms.RandomAllocation(hs.Gaussian(0.7), 1), GaussianLoss(0.7)),
    (hs.Shuffled(hs.Gaussian(3.0), 1), GaussianLoss(3.0)),
    (hs.FixedSizeSubsampled(hs.Gaussian(0.5), 4, 4, "zero-out", clipped=True), GaussianLoss(1.0)),
    (hs.Shuffled(hs.Gaussian(3.0), 1, "replace-one"), GaussianLoss(1.5)),
    (hs.Shuffled(hs.Gaussian(3.0), 1, "zero-out", "batch"), GaussianLoss(1.5)),
    (hs.PureDP(0.5), RandomizedResponsePairLoss(0.5)),
    (hs.ApproxDP(0.5, 1e-5), RandomizedResponsePairLoss(0.5, 1e-5)),
    (hs.ApproxDP(0.0, 0.1), RandomizedResponsePairLoss(0.0, 0.1)),
    (hs.FDP(ApproxTradeOff(1.0, 1e-5)), RandomizedResponsePairLoss(1.0, 1e-5)),
    (ZCDP(0.1), ConcentratedLoss(0.1)),
    (TCDP(0.1, 5), ConcentratedLoss(0.1, 5.0)),
    (TCDP(0.1, INF), ConcentratedLoss(0.1)),
    (GDP(0.5), GaussianLoss(2.0)),
]
MIXED = ((Fraction(1, 2), Fraction(2)), (Fraction(9, 10), Fraction(1, 10)))
# The loss of removing and of adding, by the direction.
DIRECTED: list[tuple[hs.Mechanism, Any]] = [
    (hs.PoissonSubsampled(hs.Gaussian(0.0), 0.5), lambda side: NoiselessLoss(0.5, side)),
    (hs.PoissonSubsampled(hs.Laplace(0), 0.25), lambda side: NoiselessLoss(0.25, side)),
    (hs.PoissonSubsampled(hs.PureDP(INF), 0.25), lambda side: NoiselessLoss(0.25, side)),
    (hs.PoissonSubsampled(hs.Gaussian(1.0), 0.5), lambda side: SampledGaussianLoss(0.5, 1.0, side)),
    (
        hs.PoissonSubsampled(GDP(0.5), 0.25),
        lambda side: SampledGaussianLoss(0.25, Fraction(2), side),
    ),
    (
        hs.PoissonSubsampled(hs.PoissonSubsampled(hs.Gaussian(2), 0.1), 0.25),
        lambda side: SampledGaussianLoss(Fraction(1, 40), 2.0, side),
    ),
    (
        hs.PoissonSubsampled(hs.Laplace(3), 0.25),
        lambda side: SampledLoss(LaplaceLoss(3.0), 0.25, side),
    ),
    (
        hs.PoissonSubsampled(hs.PureDP(0.5), 0.25),
        lambda side: SampledAtomsLoss(RandomizedResponsePairLoss(0.5), 0.25, side),
    ),
    (
        hs.mechanisms.GaussianMixture(0, (0, 1, 2), (0.5, 0.25, 0.25)),
        lambda side: NoiselessLoss(Fraction(1, 2), side),
    ),
    (
        hs.mechanisms.GaussianMixture(3, (0, 2), (0.9, 0.1)),
        lambda side: SampledGaussianLoss(Fraction(1, 10), Fraction(3, 2), side),
    ),
    (
        hs.mechanisms.GaussianMixture(2, (0, 1, 4), (0.5, 0.45, 0.05)),
        lambda side: SampledLoss(GaussianMixtureLoss(*MIXED, side), Fraction(1, 2), side),
    ),
]
PAIRS: list[tuple[hs.Mechanism, Any, Any]] = [
    *((plan, None, None) for plan in NOTHING),
    *((plan, NoiselessLoss(1.0, True), NoiselessLoss(1.0, False)) for plan in EVERYTHING),
    *((plan, *(RandomizedResponsePairLoss(0.0, 1.0),) * 2) for plan in ANYTHING),
    *((plan, *(UnknownLoss(),) * 2) for plan in UNKNOWN),
    *((plan, loss, loss) for plan, loss in SAME),
    *((plan, of(True), of(False)) for plan, of in DIRECTED),
]


@pytest.mark.parametrize(("plan", "removing", "adding"), PAIRS)
def test_a_plan_has_this_pair(plan: hs.Mechanism, removing: Any, adding: Any) -> None:
    assert dominating_pair(plan) == DominatingPair(removing, adding)
    if plan in (*NOTHING, *EVERYTHING, *ANYTHING, *UNKNOWN):
        assert hs.epsilon(plan, 1e-5).upper == (0.0 if removing is None else math.inf)


PARTITIONS = hs.mechanisms.PartitionSelection(hs.Gaussian(10.0), 56)
REFUSED: list[hs.Mechanism] = [
    hs.PoissonSubsampled(hs.Gaussian(1) ** 2, 0.1),
    hs.PoissonSubsampled(hs.Gaussian(1) @ hs.Laplace(1), 0.25),
    hs.PoissonSubsampled(hs.DPSGD(noise_multiplier=1, rate=0.1, steps=3), 0.25),
    hs.FixedSizeSubsampled(hs.Gaussian(1.0) ** 2, 2, 10),
    hs.PoissonSubsampled(ZCDP(0.1), 0.25),
    hs.FixedSizeSubsampled(hs.ApproxDP(0.1, 1e-3), 2, 10),
    hs.PoissonSubsampled(hs.ApproxDP(701.0, 1e-3), 0.25),
    hs.PoissonSubsampled(hs.DiscreteGaussian(20_000.0), 0.1),
    hs.mechanisms.WithReplacementSubsampled(hs.Laplace(1.0), 2, 10),
    hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(0.0), 2, 10),
    hs.mechanisms.TruncatedPoissonSubsampled(hs.Laplace(1.0), 0.1, 2, 10),
    hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(1.0), 1.0, 2, 10),
    hs.mechanisms.PoissonSubsampledGroup(hs.Gaussian(1.0), 0.1, 1001),
    hs.Shuffled(hs.Gaussian(1e-101), 2),
    hs.mechanisms.GaussianMixture(1e-300, (0.5, 1), (0.5, 0.5)),
    *(hs.mechanisms.SinhNormal(*one) for one in ((1e13, 1.0), (1e5, 5e-3), (1.0, 1e13))),
    *(hs.mechanisms.MultivariateLaplace(scale, 3) for scale in (1e-8, 1e7)),
    hs.mechanisms.RAPPOR(0.5, 10_001),
    hs.DiscreteLaplace(1.0, 10**6),
    hs.DiscreteLaplace(1e-305),
    hs.DiscreteGaussian(1e-160),
    *(hs.mechanisms.Skellam(*one) for one in ((1e9,), (1e-310,), (1.0, 10**6))),
    *(
        hs.mechanisms.ShuffledReports(one, 100)
        for one in (hs.ApproxDP(1.0, 1e-6), ZCDP(0.5), hs.mechanisms.UnaryEncoding(INF))
    ),
    hs.mechanisms.ShuffledReports(hs.PureDP(1.0), 10**9 + 1),
    hs.federated.RevealedRound(hs.ApproxDP(0.1, 1e-9) ** 3, 0.5),
    hs.mechanisms.GOPA(5e-324, 1.0, PATH),
    hs.mechanisms.NoisyIterations(5e-324, 3, 2, **ITERATIONS),
    hs.mechanisms.TokenWalk(5e-324, 30, **ITERATIONS),
    hs.mechanisms.LastIterate(5e-324, 3, **DESCENT),
    hs.mechanisms.LastIterate(0.0, 3, batch_size=30, batches="fixed-size", **DESCENT),
    *tuned(hs.ApproxDP(1.0, 1e-9)),
    hs.PoissonSubsampled(PARTITIONS, 0.1),
    hs.mechanisms.RandomStopping(PARTITIONS, hs.mechanisms.tuning.Poisson(4.0)),
]


@pytest.mark.parametrize("plan", REFUSED, ids=str)
def test_what_has_no_analysis_is_refused_with_the_reason(plan: hs.Mechanism) -> None:
    with pytest.raises(NoAnalysisError) as caught:
        dominating_pair(plan)
    with pytest.raises(hs.errors.UnsupportedError, match=re.escape(str(caught.value))):
        hs.epsilon(plan, 1e-5)
