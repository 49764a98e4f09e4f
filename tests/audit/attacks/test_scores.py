"""Scores by hand, and beside the optimal test where it is known."""

from typing import Any

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

import hockeystick as hs
from hockeystick.audit import attacks
from hockeystick.errors import ParameterError

TRIALS = 40_000
ASKED = 40


def points(scores_in: Any, scores_out: Any, above: float = -np.inf) -> tuple[Any, Any]:
    """Return some points of an observed curve, at thresholds from the largest down to this."""
    found = attacks.roc(scores_in, scores_out)
    last = np.count_nonzero(found.thresholds >= above) - 1
    kept = np.unique(np.geomspace(1, last, ASKED).astype(int))
    return found.fpr[kept], found.tpr[kept]


def beats(f: hs.tradeoffs.TradeOff, scores_in: Any, scores_out: Any) -> float:
    """Return by how much an observed curve lies above ``1 - f``, in standard deviations of it.

    That of a rate is at most ``1/(2 sqrt(n))``; a shift of the FPR counts by the slope of f, which
    is why the curve is asked at an FPR a little larger.
    """
    fpr, tpr = points(scores_in, scores_out)
    deviation = 0.5 / np.sqrt(len(scores_in))
    excess = tpr - f.power(np.minimum(fpr + 4 * deviation, 1.0))
    return float(excess.max() / deviation)


def misses(
    f: hs.tradeoffs.TradeOff, scores_in: Any, scores_out: Any, above: float = -np.inf
) -> float:
    """Return by how much an observed curve lies below ``1 - f`` at most, at some thresholds."""
    fpr, tpr = points(scores_in, scores_out, above)
    return float((f.power(fpr) - tpr).max())


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


def test_a_record_without_models_on_one_side_is_named() -> None:
    shadow, included = np.arange(8.0).reshape(4, 2), [[1, 1], [1, 1], [0, 1], [0, 0]]
    with pytest.raises(ParameterError, match=r"included must be two models .*side of record 1"):
        attacks.lira_online([0.0, 0.0], shadow, included)
    with pytest.raises(ParameterError, match=r"shadow must be .* differ .* of record 0"):
        attacks.lira_offline([0.0, 0.0], [[1.0, 2.0], [1.0, 3.0]])


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"observed": [1.0]}, "observed"),
        ({"observed": [np.nan, 1.0]}, "observed"),
        ({"shadow": [1.0, 2.0]}, "shadow"),
        ({"included": [[1, 0]]}, "included"),
        ({"included": [[2, 0]] * 4}, "included"),
        ({"variance": "global"}, "variance"),
    ],
)
def test_bad_arguments_are_named(changed: dict[str, Any], named: str) -> None:
    shadow = np.arange(8.0).reshape(4, 2) ** 2
    good: dict[str, Any] = {
        "observed": [1.0, 2.0],
        "shadow": shadow,
        "included": [[1, 0], [0, 1], [1, 0], [0, 1]],
    }
    assert attacks.lira_online(**good).shape == (2,)
    with pytest.raises(ParameterError, match=f"^{named} must be"):
        attacks.lira_online(**{**good, **changed})


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
