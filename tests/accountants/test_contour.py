"""Integrals along contour lines: each error is needed, guesses prove no less, tails and bulks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.accountants.base import Interval
from hockeystick.accountants.contour._far_outputs import (
    AnalyticTerms,
    ContourTarget,
    FarMode,
    _far_outputs,
    far_mode,
    near_at,
    near_terms,
    truncation,
)
from hockeystick.accountants.contour._integral import (
    Integral,
    TailAndBulk,
    choose_contour,
    integrate,
    rules_for,
    tail_and_bulk,
)
from hockeystick.accountants.contour.accountant import AnalyticPairs, Contour, _smoothed
from hockeystick.accountants.rdp import saddle
from hockeystick.numerics import FloatAndDecimal
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    AnalyticLoss,
    GaussianLoss,
    NearLoss,
    SampledGaussianLoss,
    compose,
)
from hockeystick.privacy_loss.core.base import ContourValues
from hockeystick.privacy_loss.sampling.sampled_gaussian import NearSampledGaussianLoss

LOSS = GaussianLoss(1.5)
TERMS: Sequence[tuple[AnalyticLoss, int]] = ((LOSS, 3),)
WHOLE = GaussianLoss(1.5 / math.sqrt(3.0))
EPSILON = 2.0


@dataclass(frozen=True)
class Off:
    """A rule whose values are off by as much as they say."""

    rule: Any
    off: float
    side: float

    def line(self, c: float, step: float, size: int) -> ContourValues:
        real, imag, error = self.rule.line(c, step, size)
        signs = self.side * np.where(np.arange(size) % 2, -1.0, 1.0)
        return ContourValues(real + self.off * signs, imag, error + self.off)


def made(accuracy: float, off: float = 0.0, side: float = 1.0) -> Integral:
    target = ContourTarget(EPSILON, float(mp.log(WHOLE.delta(mp.mpf(EPSILON)))), accuracy)
    line = choose_contour(TERMS, saddle(TERMS, EPSILON), target, 10_000)
    assert line is not None
    rules = rules_for(TERMS, line, target)
    assert rules is not None
    wrong: Any = [Off(one, off, side) for one in rules]
    return integrate(TERMS, line, wrong if off else rules)


@pytest.mark.parametrize("off", [0.0, 1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("accuracy", [0.0, 1.0, 2.0, 4.0, 12.0])
def test_a_coarse_line_proves_less_and_nothing_wrong(
    accuracy: float, off: float, side: float
) -> None:
    found = made(accuracy, off, side)
    for epsilon in np.linspace(0.5, 5.0, 46).tolist():
        scale, lower, _, upper, _ = found.delta(epsilon)
        truth = WHOLE.delta(mp.mpf(epsilon)) * mp.exp(-scale)
        assert lower <= truth <= upper


@pytest.mark.parametrize("off", [1e-6, 1e-2])
def test_aliases_are_bounded_by_the_upper_end_of_k(off: float) -> None:
    found = made(2.0, off, -1.0)
    for order, k in found.aliases:
        assert k >= WHOLE.cgf_estimate(order).value * (1.0 - 1e-14)


@pytest.mark.parametrize("log_bulk", [-3.0, -9.0])
def test_outcomes_without_a_large_loss_are_added_to_the_upper_end(log_bulk: float) -> None:
    found = made(12.0)
    beside = replace(found, tails=TailAndBulk((), 1.0, log_bulk))
    scale, lower, estimate, upper, _ = beside.delta(EPSILON)
    more = math.exp(log_bulk - EPSILON - 2.0 * math.log(2.0) - scale)
    assert (lower, estimate) == found.delta(EPSILON)[1:3]
    assert upper - found.delta(EPSILON).upper >= more * (1.0 - 1e-12)


@pytest.mark.parametrize("error", [1.0, 0.1, 1e-3])
def test_what_is_smoothed_has_a_remainder(error: float) -> None:
    pair = _smoothed(TERMS, EPSILON, float(mp.log(WHOLE.delta(mp.mpf(EPSILON)))), error)
    assert pair is not None
    for epsilon in np.linspace(0.5, 5.0, 19).tolist():
        assert pair.lower(epsilon) <= mp.log(WHOLE.delta(mp.mpf(epsilon))) <= pair.upper(epsilon)


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


def test_what_no_float_holds_is_marked_in_every_run() -> None:
    near = SampledGaussianLoss(1e-3, 1.0, removing=True).near_outputs(100.0, 10.0)
    assert near is not None
    assert near.far.log_p < math.log(5e-324)
    one, many = (_far_outputs(((near, n),), math.inf, ()).log_p for n in (1, 1000))
    assert one == near.far.log_p
    assert many == pytest.approx(one + math.log(1000), rel=1e-12)


def test_the_tail_of_many_runs_decays_less_by_their_number() -> None:
    split = SampledGaussianLoss(1e-3, 1.0, removing=True).tail_split(0.5)
    assert split is not None
    one, many = (TailAndBulk(((split, n),), 4.0, 0.0).decay(4.0).exponent(9.0) for n in (1, 1000))
    assert many == pytest.approx(one - math.log(1000), rel=1e-12)


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


@pytest.mark.parametrize(("adjacency", "noise"), [("replace-one", 3.0), ("zero-out", 6.0)])
def test_the_lower_end_is_that_of_the_attained_pair(adjacency: Any, noise: float) -> None:
    plan = hs.FixedSizeSubsampled(hs.Gaussian(3.0), 20, 100, adjacency) ** 100
    attained = hs.PoissonSubsampled(hs.Gaussian(noise), 0.2) ** 100
    for ask, value in ((hs.epsilon, 1e-6), (hs.delta, 1.5)):
        found, alone = ask(plan, value), ask(attained, value)
        assert found.lower == pytest.approx(alone.lower, rel=1e-9)
        assert found.lower <= alone.upper


@pytest.mark.parametrize("most", [1.1, math.inf])
def test_an_end_that_is_not_sharp_settles_nothing(most: float) -> None:
    pairs = AnalyticPairs.of(
        compose(hs.FixedSizeSubsampled(hs.Gaussian(3.0), 20, 100) ** 100).removing
    )
    assert pairs is not None
    with pytest.raises(hs.errors.UnsupportedError, match="hardly decays"):
        Contour()._between(pairs, 2.0, lambda _: Interval(1.0, 1.0, most))
    assert Contour()._between(pairs, 2.0, lambda _: Interval.point(1.0)) == (1.0, 1.0, 1.0)


def test_directions_that_are_no_opposites_are_both_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = hs.PoissonSubsampled(hs.Gaussian(0.7), 1e-6) ** 100
    asked = []
    ask = Contour.epsilon_of

    def counted(self: Contour, terms: object, delta: float) -> object:
        asked.append(terms)
        return ask(self, terms, delta)  # type: ignore[arg-type]

    monkeypatch.setattr(Contour, "epsilon_of", counted)
    hs.epsilon(sampled, 1e-5, accountant="contour")
    assert len(asked) == 1
    monkeypatch.setattr(SampledGaussianLoss, "opposite", None)
    hs.epsilon(sampled, 1e-5, accountant="contour")
    assert len(asked) == 3


def test_nothing_is_split_without_losses_beyond_a_threshold() -> None:
    adding, removing = (SampledGaussianLoss(1e-4, 1.5, removing=one) for one in (False, True))
    whole = SampledGaussianLoss(0.3, 1.0, removing=True)
    cases: list[tuple[AnalyticTerms, float]] = [
        (((adding, 10),), 0.5),
        (((removing, 5), (GaussianLoss(2.0), 1)), 0.5),
        (((removing, 5),), 0.0),
        (((removing, 5),), -1.0),
        (((whole, 1),), 0.01),
    ]
    for terms, epsilon in cases:
        assert tail_and_bulk(terms, ContourTarget(epsilon, math.log(1e-6), 32.0)) is None
