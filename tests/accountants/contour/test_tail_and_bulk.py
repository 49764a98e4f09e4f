"""Tail and bulk: the bound on outcomes without a large loss, and the decay of the others."""

import math
from typing import Any, TypeAlias

import numpy as np
import pytest

from hockeystick.accountants.contour._line import (
    AnalyticTerms,
    ContourTarget,
    TailAndBulk,
    tail_and_bulk,
)
from hockeystick.accountants.orders import saddle
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import jumps as twin
from hockeystick.precision.profiles import exact, reciprocal
from hockeystick.privacy_loss import GaussianLoss, SampledGaussianLoss, TailSplit
from hockeystick.privacy_loss.sampling.sampled_gaussian_tail import (
    NearSampledGaussianLoss,
    SampledGaussianTailSplit,
)

Plan: TypeAlias = tuple[tuple[float, float, int], ...]

# Rate, noise and runs of each part; epsilon and delta that go about together; the accuracy asked.
PLANS: list[tuple[Plan, float, float, float]] = [
    (((1e-4, 1.5, 300),), 0.45339, 1e-10, 32.0),
    (((3.2e-4, 1.5, 109),), 0.01565, 5e-10, 21.0),
    (((3.2e-4, 1.5, 109),), 0.01747, 1e-10, 6.0),
    (((1e-4, 1.5, 1),), 0.44609, 1e-10, 32.0),
    (((1e-3, 1.0, 1),), 0.14147, 5e-10, 21.0),
    (((1e-3, 0.8, 50),), 1.21308, 1e-10, 21.0),
    (((1e-6, 0.3, 100),), 6.96666, 1e-10, 32.0),
    (((0.01, 1.0, 100),), 2.16282, 1e-10, 6.0),
    (((1e-4, 1.5, 300), (1e-3, 2.0, 40)), 0.02359, 1e-10, 21.0),
]
plans = pytest.mark.parametrize(("plan", "epsilon", "delta", "accuracy"), PLANS, ids=str)


def terms_of(plan: Plan) -> AnalyticTerms:
    return tuple((SampledGaussianLoss(rate, noise, True), runs) for rate, noise, runs in plan)


def separated(plan: Plan, epsilon: float, delta: float, accuracy: float) -> TailAndBulk:
    found = tail_and_bulk(terms_of(plan), ContourTarget(epsilon, math.log(delta), accuracy))
    assert found is not None
    assert [runs for _, runs in found.splits] == [runs for _, _, runs in plan]
    return found


def sampled(split: TailSplit) -> NearSampledGaussianLoss:
    assert isinstance(split, SampledGaussianTailSplit)
    assert isinstance(split.small, NearSampledGaussianLoss)
    return split.small


def transform_of(loss: NearSampledGaussianLoss, c: float, v: float, side: int) -> Any:
    """Return J (side 1) or A (side -1) at c + i v, by quadrature."""
    w, mu = mp.mpc(1 + mp.mpf(c), v), reciprocal(loss.noise_multiplier)
    return twin.integral(loss.rate, mu, w, loss.edge, loss.width, side)


@pytest.mark.parametrize(
    ("plan", "epsilon", "delta", "accuracy"), [one for one in PLANS if one[0][0][2] == 1]
)
def test_the_bulk_bounds_the_integral_of_one_run(
    plan: Plan, epsilon: float, delta: float, accuracy: float
) -> None:
    found = separated(plan, epsilon, delta, accuracy)
    split = sampled(found.splits[0][0])
    with mp.workdps(20):
        p, mu = exact(split.rate), reciprocal(split.noise_multiplier)
        start = mp.log1p(mp.expm1(mp.mpf(epsilon)) / p) / mu + mu / 2

        def integrand(u: Any) -> Any:
            ratio = 1 + p * mp.expm1(mu * u - mu * mu / 2)
            small = mp.exp(twin.log_normal_cdf((split.edge - u) / split.width))
            return small * mp.npdf(u) * (ratio - mp.exp(mp.mpf(epsilon)))

        cuts = [start + k * mp.mpf(split.width) / 8 for k in range(0, 80, 8)]
        scale = mp.exp(found.log_bulk_delta(epsilon))
        share = mp.quad(lambda u: integrand(u) / scale, cuts)
    assert 1e-5 < share <= 1.0


@plans
def test_the_bound_of_chernoff_is_at_its_sharpest(
    plan: Plan, epsilon: float, delta: float, accuracy: float
) -> None:
    found = separated(plan, epsilon, delta, accuracy)
    order = found.order
    excess = np.linspace(0.2, 5.0, 200_001) / order
    factor = float((np.exp(-order * excess) * -np.expm1(-excess)).max())
    for other in (epsilon, 1.2 * epsilon):
        expected = found.log_bulk - order * other + math.log(factor)
        assert found.log_bulk_delta(other) == pytest.approx(expected, abs=1e-6)
    bulk = sum(runs * split.bulk(order).value for split, runs in found.splits)
    assert found.log_bulk == pytest.approx(bulk, abs=1e-4)


@pytest.mark.parametrize(
    ("plan", "epsilon", "delta", "accuracy"), [PLANS[k] for k in (0, 5, 8)], ids=str
)
def test_the_part_with_a_large_loss_falls_at_least_as_proven(
    plan: Plan, epsilon: float, delta: float, accuracy: float
) -> None:
    found = separated(plan, epsilon, delta, accuracy)
    c = saddle(terms_of(plan), epsilon)
    decay = found.decay(c)
    with mp.workdps(16):
        at_c = [at(sampled(split), c, 0.0) for split, _ in found.splits]
        for y in (0.7, 17.0):
            all_of_it = small = mp.mpc(1)
            for (part, runs), (whole, _) in zip(found.splits, at_c, strict=True):
                m, j = at(sampled(part), c, y)
                all_of_it *= (m / whole) ** runs
                small *= ((m - j) / whole) ** runs
            size = float(-mp.log(abs(all_of_it - small)))
            assert decay.exponent(y) <= size
            assert y > 1.0 or decay.exponent(y) >= size - 6.0


def at(split: NearSampledGaussianLoss, c: float, v: float) -> tuple[Any, Any]:
    large = transform_of(split, c, v, 1)
    return large + transform_of(split, c, v, -1), large


def test_nothing_is_split_without_losses_beyond_a_threshold() -> None:
    target = ContourTarget(0.5, math.log(1e-6), 32.0)
    adding = SampledGaussianLoss(1e-4, 1.5, removing=False)
    removing = SampledGaussianLoss(1e-4, 1.5, removing=True)
    assert tail_and_bulk(((adding, 10),), target) is None
    assert tail_and_bulk(((removing, 5), (GaussianLoss(2.0), 1)), target) is None
    assert tail_and_bulk(((removing, 5),), ContourTarget(0.0, math.log(1e-6), 32.0)) is None
    assert tail_and_bulk(((removing, 5),), ContourTarget(-1.0, math.log(1e-6), 32.0)) is None


def test_nothing_is_split_where_small_losses_alone_reach_epsilon() -> None:
    one = SampledGaussianLoss(0.3, 1.0, removing=True)
    assert tail_and_bulk(((one, 1),), ContourTarget(0.01, math.log(1e-6), 32.0)) is None
