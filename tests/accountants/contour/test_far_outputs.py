"""Far outputs: what they contribute, where they are cut, and answers without them."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.accountants.contour._far_outputs import (
    FarMode,
    far_mode,
    near_at,
    near_terms,
    truncation,
)
from hockeystick.accountants.contour._line import AnalyticTerms, ContourTarget
from hockeystick.accountants.contour.profile import ContourProfile
from hockeystick.accountants.contour.search import integral_for_epsilon
from hockeystick.numerics import FloatAndDecimal
from hockeystick.privacy_loss import GaussianLoss, NearLoss, SampledGaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian_tail import NearSampledGaussianLoss

Array = NDArray[np.float64]


def terms_of(*parts: tuple[float, float, int], removing: bool = True) -> AnalyticTerms:
    return tuple((SampledGaussianLoss(rate, noise, removing), n) for rate, noise, n in parts)


class Outputs:
    """Outputs u of one run on a grid: masses under P and Q, losses, and who is marked."""

    def __init__(self, loss: NearSampledGaussianLoss, points: int) -> None:
        p, mu = loss.p, loss.mu
        u, step = np.linspace(-9.0, max(loss.edge, mu) + 9.0, points, retstep=True)
        self.q: Array = step * np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        self.loss: Array = np.log1p(p * np.expm1(mu * u - 0.5 * mu * mu))
        self.p: Array = self.q * np.exp(self.loss)
        self.marked: Array = ndtr((u - loss.edge) / loss.width)


def marked_delta(loss: NearSampledGaussianLoss, epsilon: float, runs: int) -> float:
    """Return ``Int_F (p - e^eps q)_+`` of one or two runs, summed over outputs."""
    one = Outputs(loss, 200_001 if runs == 1 else 1_501)
    if runs == 1:
        return float((one.marked * np.maximum(one.p - math.exp(epsilon) * one.q, 0.0)).sum())
    p, q = one.p[:, None] * one.p, one.q[:, None] * one.q
    marked = 1.0 - (1.0 - one.marked[:, None]) * (1.0 - one.marked)
    return float((marked * np.maximum(p - math.exp(epsilon) * q, 0.0)).sum())


# Rate, noise, epsilon and ln of a delta that go together for one or two runs, and an accuracy.
FAR = [
    (1e-3, 1.0, 0.1, -14.0, 3.0),
    (1e-2, 0.7, 0.5, -9.0, 6.0),
    (1e-4, 1.5, 0.01, -16.0, 20.0),
    (0.05, 0.5, 2.0, -6.0, 6.0),
    (1e-5, 1.0, 3e-3, -20.0, 26.0),
]


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize(("rate", "noise", "epsilon", "log_delta", "accuracy"), FAR)
def test_what_is_marked_contributes_what_is_said(
    rate: float, noise: float, epsilon: float, log_delta: float, accuracy: float, runs: int
) -> None:
    target = ContourTarget(epsilon, log_delta, accuracy)
    split = near_terms(terms_of((rate, noise, runs)), target)
    assert split is not None
    (near, _), *_ = split.terms
    assert isinstance(near, NearSampledGaussianLoss)
    for at in (0.0, 0.3 * epsilon, epsilon, 1.3 * epsilon):
        truth = marked_delta(near, at, runs)
        lower, estimate, upper, _ = split.far.deltas(np.array(at), np.array(0.0))
        slack = 1e-9 if runs == 1 else 1e-3
        assert lower <= truth * (1.0 + slack) <= upper * (1.0 + 2.0 * slack)
        assert lower <= estimate <= upper
    lower, _, upper, slope = split.far.deltas(np.array(epsilon), np.array(0.0))
    assert upper - lower <= 2.0 * math.exp(log_delta - accuracy)
    change = split.far.deltas(np.array(1.001 * epsilon), np.array(0.0))[1] - lower
    assert (
        slope == pytest.approx(change / (1e-3 * epsilon), rel=0.01) or split.far.order == math.inf
    )


def test_the_ends_are_over_the_scale_and_hold_below_zero_and_beyond_floats() -> None:
    split = near_terms(terms_of((1e-3, 1.0, 50)), ContourTarget(0.1, -14.0, 6.0))
    assert split is not None
    far = split.far
    plain, scaled = (far.deltas(np.array(0.1), np.array(scale)) for scale in (0.0, -300.0))
    for one, other in zip(plain, scaled, strict=True):
        assert float(other) == pytest.approx(float(one) * math.exp(300.0), rel=1e-11)
    assert far.deltas(np.array(-0.5), np.array(0.0))[2] >= math.exp(far.log_p)
    assert far.deltas(np.array(0.1), np.array(-1e4))[2] == math.inf
    assert far.upper >= math.exp(far.log_p)


@pytest.mark.parametrize("goal", [-3.0, -30.0, -600.0])
@pytest.mark.parametrize("removing", [True, False])
def test_truncation_leaves_no_more_mass_than_asked(goal: float, removing: bool) -> None:
    terms = terms_of((1e-4, 1.5, 300), (1e-3, 2.0, 40), removing=removing)
    loss = truncation(terms, goal, 40.0)
    assert loss is not None
    cut = [(one, n) for one, n in near_at(terms, loss, 40.0) if isinstance(one, NearLoss)]
    assert len(cut) == 2
    marked = math.fsum(n * math.exp(one.far.log_p - goal) for one, n in cut)
    assert 0.5 * math.exp(0.05 * goal) < marked <= 1.0


def test_nothing_is_cut_where_nothing_is_rare() -> None:
    assert truncation(((GaussianLoss(2.0), 3),), -20.0, 40.0) is None
    assert near_terms(((GaussianLoss(2.0), 3),), ContourTarget(0.5, -10.0, 20.0)) is None
    assert far_mode(((GaussianLoss(2.0), 3),), 50.0) is FarMode.NONE
    assert far_mode(terms_of((0.004, 1.1, 10_000)), 5.0) is FarMode.NONE
    assert far_mode(terms_of((1e-4, 1.5, 300)), 40.0) is FarMode.STRONG


def test_far_outputs_count_in_full_where_one_is_possible_under_q_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terms, target = terms_of((1e-3, 1.0, 50)), ContourTarget(0.1, -14.0, 6.0)
    usual = near_terms(terms, target)
    assert usual is not None
    assert usual.far.log_shortfall < math.inf
    monkeypatch.setattr(SampledGaussianLoss, "infinity_mass", FloatAndDecimal.of(0.125))
    whole = near_terms(terms, target)
    assert whole is not None
    assert whole.far.log_shortfall == math.inf
    assert whole.far.log_p < usual.far.log_p


def test_a_profile_counts_the_far_outputs_above_a_threshold() -> None:
    terms = terms_of((1.87e-4, 0.604, 279))
    located = integral_for_epsilon(terms, 0.06)
    assert located is not None
    assert located.integral.far is not None
    epsilons = np.linspace(0.05, 0.3, 30)
    wide: Any = hs.tradeoffs.GaussianProfile(50.0)
    profile = ContourProfile(terms, wide)
    profile.at(epsilons)
    bounds = profile.above(epsilons, np.ones(30)).upper
    for epsilon, bound in zip(epsilons[::7], bounds[::7], strict=True):
        alone = integral_for_epsilon(terms, float(epsilon))
        assert alone is not None
        value = alone.integral.delta(float(epsilon))
        assert math.exp(value.log("lower")) <= bound
        assert value.log("upper") < -8.0
