"""Figures of the literature on sampling, private averaging, last iterates and tuning."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import mechanisms as m
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import dominating_pair
from hockeystick.privacy_loss.selection.tuning import PoissonTuningLoss


def test_sampling_with_replacement_has_the_rate_and_the_profile_of_its_theorem() -> None:
    """Balle, Barthe and Gaboardi 2018, theorem 10: n = 1000, m = 10, base GDP(0.5), eps = 1."""
    gamma = -math.expm1(10 * math.log1p(-1e-3))
    assert gamma == pytest.approx(0.00995511979025179012, rel=1e-14)
    epsilon = math.log1p(gamma * math.expm1(1.0))
    assert epsilon == pytest.approx(0.0169610462140018167, rel=1e-14)
    found = hs.delta(m.WithReplacementSubsampled(hs.Gaussian(2.0), 10, 1000), epsilon)
    assert found.lower < 7.33886400959e-5 <= found.upper
    assert found.upper == pytest.approx(7.33886400959e-5, rel=1e-3)


# Bok, Su and Altschuler 2024: images of norm 8 with a constant 1, clipped gradients of norm 5.
SQUARE, NORM, STEP_SIZE = 65.0, 5.0, 0.05


def test_a_step_with_clipped_softmax_gradients_may_drive_models_apart() -> None:
    # One image in all places of the batch: its ten scores move along themselves.
    def step(scores: Any) -> Any:
        shares = np.exp(scores - scores.max())
        error = shares / shares.sum() - np.eye(10)[0]
        clipped = error * min(1.0, NORM / (math.sqrt(SQUARE) * float(np.linalg.norm(error))))
        return (1 - STEP_SIZE * 0.002) * scores - STEP_SIZE * SQUARE * clipped

    scores = np.log([15.8, 3.1, 2.9, 1.6, 2.5, 3.2, 3.3, 59.6, 2.6, 5.3])
    columns = [(step(scores + 1e-4 * e) - step(scores - 1e-4 * e)) / 2e-4 for e in np.eye(10)]
    worst = 0.05 * np.linalg.svd(np.array(columns).T)[2][0]
    apart = np.linalg.norm(step(scores + worst) - step(scores - worst))
    assert apart > 1.02 * np.linalg.norm(2 * worst)


# Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022, for runs
# that are 0.1-zCDP: theorem 2 for a geometric number of mean 10, and theorem 6 for a Poisson one,
# which gives 2.76327 at order 5, with a delta that an order near 3.399 implies; the best one,
# 3.374, gives 2.76309, and the bound here is sharper than the theorem.
RUN = hs.ZCDP(0.1)


def divergence(plan: hs.Mechanism, order: float) -> float:
    ((_, found),) = hs.convert(plan, hs.RenyiDP, orders=order).divergences
    return found


def test_theorem_2_at_order_10() -> None:
    tuned = m.RandomStopping(RUN, m.tuning.TruncatedNegativeBinomial.of_mean(10))
    truth = 2.97525315298568200347
    assert truth <= divergence(tuned, 10.0) <= truth * (1 + 1e-12)


def poisson() -> PoissonTuningLoss:
    """The loss of a Poisson number of runs of mean 10."""
    loss: Any = dominating_pair(m.RandomStopping(RUN, m.tuning.Poisson(10))).removing
    assert isinstance(loss, PoissonTuningLoss)
    return loss


def test_theorem_6_at_order_5_with_the_best_delta() -> None:
    found = 0.5 + poisson().log_factor(4.0) / 4.0
    truth = 2.76309208104664738
    assert truth <= found <= truth * (1 + 1e-12)
    # What is computed takes the chance of no run into account.
    with mp.workdps(30):
        w, c = mp.exp(2), mp.exp(4 * (mp.mpf(truth) - mp.mpf("0.5")))
        sharper = mp.log(1 + c * (w - 1)) / 4
    tuned = m.RandomStopping(RUN, m.tuning.Poisson(10))
    assert divergence(tuned, 5.0) == pytest.approx(float(sharper), rel=1e-12)
