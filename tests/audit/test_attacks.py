"""Attacks: curves of scores, scores by hand and beside the optimal test, canaries, gradients."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from scipy import stats

import hockeystick as hs
from hockeystick.audit import attacks
from hockeystick.errors import ParameterError
from hockeystick.release.noise.clipped_sum import noisy_sum

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=40)


@given(SCORES, SCORES)
def test_each_point_is_the_share_at_or_above_its_threshold(
    inside: list[float], outside: list[float]
) -> None:
    found = attacks.roc(inside, outside)
    assert found.thresholds[0] == np.inf
    assert list(found.thresholds[1:]) == sorted({*inside, *outside}, reverse=True)
    for threshold, fpr, tpr in zip(found.thresholds, found.fpr, found.tpr, strict=True):
        assert tpr == sum(one >= threshold for one in inside) / len(inside)
        assert fpr == sum(one >= threshold for one in outside) / len(outside)


@given(SCORES, SCORES)
def test_the_area_is_the_share_of_pairs_in_order_and_that_under_the_curve(
    inside: list[float], outside: list[float]
) -> None:
    pairs = [(s, t) for s in inside for t in outside]
    right = sum(2 * (s > t) + (s == t) for s, t in pairs)
    assert attacks.auc(inside, outside) == right / (2 * len(pairs))
    found = attacks.roc(inside, outside)
    heights = (found.tpr[1:] + found.tpr[:-1]) / 2
    assert attacks.auc(inside, outside) == pytest.approx(float(heights @ np.diff(found.fpr)))


@given(SCORES, SCORES, st.floats(0, 1))
def test_the_rate_at_few_false_positives_is_the_best_threshold_that_has_no_more(
    inside: list[float], outside: list[float], fpr: float
) -> None:
    best = 0.0
    for threshold in {*inside, *outside}:
        if sum(one >= threshold for one in outside) / len(outside) <= fpr:
            best = max(best, sum(one >= threshold for one in inside) / len(inside))
    assert attacks.tpr_at(inside, outside, fpr=fpr) == best


def test_rates_are_those_that_a_decimal_names() -> None:
    """3/10 is allowed where 0.3 is asked for, though the float is a little less."""
    outside = np.arange(10.0)
    assert attacks.tpr_at([6.5, 6.9, 7.0], outside, fpr=0.3) == 1.0
    assert attacks.tpr_at([6.5, 6.9, 7.0], outside, fpr=0.29) == 0.0


def test_infinite_scores_are_compared_as_all_others() -> None:
    found = attacks.roc([math.inf, 1.0], [1.0, -math.inf])
    assert found.thresholds.tolist() == [math.inf, math.inf, 1.0, -math.inf]
    assert found.fpr.tolist() == [0.0, 0.0, 0.5, 1.0]
    assert found.tpr.tolist() == [0.0, 0.5, 1.0, 1.0]
    assert attacks.auc([math.inf, 1.0], [1.0, -math.inf]) == 0.875
    assert attacks.tpr_at([math.inf, 1.0], [1.0, -math.inf], fpr=0.0) == 0.5


@pytest.mark.parametrize("variance", ["per-record", "pooled"])
def test_the_ratio_is_that_of_normal_densities(variance: str) -> None:
    random = np.random.default_rng(5)
    shadow, observed = random.standard_normal((9, 4)), random.standard_normal((3, 4))
    included = np.arange(36).reshape(9, 4) % 3 == 0
    found = attacks.lira_online(observed, shadow, included, variance=variance)
    offline = attacks.lira_offline(observed, shadow, included, variance=variance)
    sides = [[shadow[included[:, j] == side, j] for j in range(4)] for side in (False, True)]
    pooled = [np.mean([one.var() for one in side]) for side in sides]
    for j in range(4):
        (out, v_out), (into, v_in) = [
            (side[j].mean(), side[j].var() if variance == "per-record" else whole)
            for side, whole in zip(sides, pooled, strict=True)
        ]
        ratio = stats.norm.logpdf(observed[:, j], into, v_in**0.5)
        ratio -= stats.norm.logpdf(observed[:, j], out, v_out**0.5)
        assert found[:, j] == pytest.approx(ratio)
        assert offline[:, j] == pytest.approx((observed[:, j] - out) / v_out**0.5)


SHADOWED: Any = {
    "observed": [1.0, 2.0],
    "shadow": np.arange(8.0).reshape(4, 2) ** 2,
    "included": [[1, 0], [0, 1], [1, 0], [0, 1]],
}
LIRA: list[tuple[dict[str, Any], str]] = [
    *(({"observed": bad}, "observed") for bad in ([1.0], [np.nan, 1.0])),
    *(({"included": bad}, "included") for bad in ([[1, 0]], [[2, 0]] * 4)),
    ({"shadow": [1.0, 2.0]}, "shadow"),
    ({"variance": "global"}, "variance"),
]


def test_a_record_without_models_on_one_side_is_named() -> None:
    shadow, included = np.arange(8.0).reshape(4, 2), [[1, 1], [1, 1], [0, 1], [0, 0]]
    with pytest.raises(ParameterError, match=r"included must be two models .*side of record 1"):
        attacks.lira_online([0.0, 0.0], shadow, included)
    with pytest.raises(ParameterError, match=r"shadow must be .* differ .* of record 0"):
        attacks.lira_offline([0.0, 0.0], [[1.0, 2.0], [1.0, 3.0]])


def test_the_gap_is_the_log_of_the_odds_and_keeps_its_digits() -> None:
    logits = np.array([[0.3, -1.0, 2.0], [40.0, 0.0, 1.0], [-800.0, 0.0, 700.0]])
    labels = [2, 0, 0]
    found = attacks.logit_gaps(logits, labels)
    with mp.workdps(400):
        for row, label, gap in zip(logits, labels, found, strict=True):
            parts = [mp.exp(mp.mpf(one)) for one in row]
            odds = parts[label] / (sum(parts) - parts[label])
            assert gap == pytest.approx(float(mp.log(odds)), rel=1e-14)
    assert attacks.logit_gaps(np.stack([logits, logits + 5]), labels)[1] == pytest.approx(found)


def test_neighbours_scores_by_hand() -> None:
    losses = np.array([[1.0, 2.0], [0.0, 0.5]])
    near = np.array([losses + 1, losses + np.array([[0.0, 1.0], [2.0, 3.0]]), losses + 1])
    assert attacks.neighbour_scores(losses, near) == pytest.approx(
        np.array([[2 / 3, 1.0], [4 / 3, 5 / 3]])
    )
    with pytest.raises(ParameterError, match=r"neighbour_losses must be .*\(k, 2, 2\)"):
        attacks.neighbour_scores(losses, near[:, 0])
    levels = [[[1.0, 1.0]], [[3.0, 2.5]], [[1.0, 3.0]]]
    assert attacks.deviation_scan([1.0, 2.0], levels, [True, False]).tolist() == [1.0, 1.0, 0.0]


TRIALS = 20_000


def test_the_ratio_is_that_of_a_mixture_of_normal_densities() -> None:
    seen = np.array([[-30.0, 0.2], [0.9, 60.0]])
    noise, rate = np.array([0.5, 1.5]), 0.2
    out = stats.norm(0, noise)
    into = np.log(rate) + stats.norm(1, noise).logpdf(seen)
    ratios = np.logaddexp(np.log(1 - rate) + out.logpdf(seen), into) - out.logpdf(seen)
    found = attacks.canary_scores(seen, noise_multiplier=noise, rate=rate)
    assert found == pytest.approx(ratios.sum(axis=1))


@pytest.mark.parametrize(
    "direction", [attacks.dirac_direction(20, 3), attacks.random_direction(20, seed=1)]
)
def test_a_canary_adds_one_along_itself_to_a_sum(direction: Any) -> None:
    others = np.random.default_rng(0).standard_normal((5, 20))
    sums = [
        noisy_sum(np.vstack([others, trial * direction]), norm=0.5, noise_multiplier=0)
        for trial in (0, 9)
    ]
    without, with_it = attacks.canary_projections(sums, 7 * direction, norm=0.5)
    assert with_it - without == pytest.approx(1, abs=1e-5)


def test_a_layer_gives_its_input_away_clipped_or_not() -> None:
    random = np.random.default_rng(4)
    record, errors = random.standard_normal(12), random.standard_normal(5)
    for clip in (1.0, 1e-3, 1e-160):
        found = attacks.first_layer_input(clip * np.outer(errors, record), clip * errors)
        assert found == pytest.approx(record, rel=1e-9)


@pytest.mark.parametrize("noise", [0.3, 1.0, 4.0])
def test_no_candidate_is_named_more_often_than_the_curve_allows(noise: float) -> None:
    """Orthogonal gradients of the clipping norm's length are the worst case of N candidates."""
    random, count = np.random.default_rng(5), 30
    candidates, truth = np.eye(count), random.integers(count, size=TRIALS)
    seen = candidates[truth] + noise * random.standard_normal((TRIALS, count))
    share = float((attacks.nearest_candidate(seen, candidates) == truth).mean())
    bound = hs.tradeoffs.GaussianTradeOff(1 / noise).power(1 / count)
    assert 1 / count < share < bound + 3 * 0.5 / np.sqrt(TRIALS)
    below = (bound - share) / bound
    assert below < 0.3


def test_the_nearest_is_that_of_the_least_distance() -> None:
    random = np.random.default_rng(6)
    candidates, seen = random.standard_normal((9, 4)), random.standard_normal((5, 7, 4))
    apart = np.linalg.norm(seen[..., None, :] - candidates, axis=-1)
    assert np.array_equal(attacks.nearest_candidate(seen, candidates), apart.argmin(axis=-1))


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (lambda: attacks.canary_scores([[1.0]], noise_multiplier=0.0), "noise_multiplier"),
        (lambda: attacks.canary_scores([[1.0]], noise_multiplier=[1.0, 1.0]), "noise_multiplier"),
        (lambda: attacks.canary_scores([[1.0]], noise_multiplier=1.0, rate=0.0), "rate"),
        (lambda: attacks.canary_scores([], noise_multiplier=1.0), "projections"),
        (lambda: attacks.dirac_direction(3, 3), "coordinate"),
        (lambda: attacks.canary_projections([[1.0]], [0.0], norm=1.0), "direction"),
        (lambda: attacks.canary_projections([[1.0, 2.0]], [1.0], norm=1.0), "sums"),
        (lambda: attacks.canary_projections([[1.0]], [1.0], norm=0.0), "norm"),
        (lambda: attacks.first_layer_input([[1.0]], [0.0]), "bias_gradient"),
        (lambda: attacks.first_layer_input([[1.0]], [1.0, 2.0]), "weight_gradient"),
        (lambda: attacks.logit_gaps([[1.0], [2.0]], [0, 0]), "logits"),
        (lambda: attacks.logit_gaps([[1.0, 2.0]], [-1]), "labels"),
        (lambda: attacks.logit_gaps([[1.0, 2.0]], [0.0]), "labels"),
        *((lambda changed=one: attacks.lira_online(**(SHADOWED | changed)), named)
          for one, named in LIRA),
    ],
)  # fmt: skip
def test_what_is_no_such_argument_is_named(asked: Callable[[], object], named: str) -> None:
    with pytest.raises(ParameterError, match=f"^{named} must be"):
        asked()
