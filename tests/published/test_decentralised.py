"""Figures of the literature on private averaging and learning without a trusted server."""

import math
from typing import Any, cast

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import DominatedLoss, GaussianLoss, dominating_pair
from tests.privacy_loss.decentralised.test_decentralised import ends

STEPS: dict[str, Any] = {"step_size": 0.1, "smoothness": 1.0}
# Variances 1/2 and 10, and 0.16 and 4, as standard deviations.
HALF, TEN = math.sqrt(0.5), math.sqrt(10.0)


def test_gopa_on_a_complete_graph_is_almost_central_noise() -> None:
    low, high = ends(hs.mechanisms.GOPA(0.4, 2.0, hs.mechanisms.Graph.complete(100)))
    assert low == pytest.approx(0.254900000776464618932461414462, rel=1e-15)
    assert high == low
    assert (
        ends(hs.mechanisms.GOPA(4.0, 0.0, hs.mechanisms.Graph(1)))[0] == 0.25
    )  # the mean's noise, by one who is trusted


@pytest.mark.parametrize(
    ("graph", "mu"),
    [
        (hs.mechanisms.Graph.path(10), 0.640700647255927319247597087072),
        (hs.mechanisms.Graph.cycle(10), 0.525056716344549408871826807746),
    ],
    ids=str,
)
def test_gopa_on_a_path_and_a_cycle(graph: hs.mechanisms.Graph, mu: float) -> None:
    low, high = ends(hs.mechanisms.GOPA(HALF, TEN, graph))
    assert low == pytest.approx(mu, rel=1e-13)
    assert high == pytest.approx(mu, rel=1e-13)


@pytest.mark.parametrize(("position", "divergence"), [(1, 4e-5), (1000, 0.04)])
def test_amplification_by_iteration_has_the_divergences_of_its_theorem(
    position: int, divergence: float
) -> None:
    # Feldman, Mironov, Talwar and Thakurta 2018, theorem 23: 2 alpha L^2 / (s^2 (n + 1 - t)).
    loss = dominating_pair(hs.mechanisms.NoisyIterations(10.0, 1000, position, **STEPS)).removing
    above = loss.dominating if isinstance(loss, DominatedLoss) else loss
    mu = cast(GaussianLoss, above).mu
    assert 2 * mu**2 / 2 == pytest.approx(divergence, rel=1e-14)


def test_the_walk_on_the_complete_graph() -> None:
    # With p = 2/n. The count of Cyffers and Bellet 2022, p = 1/n, gives 3.862652581086e-3: there
    # two contributions between which no observer sees the model are taken to have noise each.
    with mp.workdps(30):
        p = mp.mpf(2) / 100
        terms = (p * (1 - p) ** (i - 1) * mp.exp(mp.mpf(24) / 100 / i) for i in range(1, 4000))
        series = float(mp.log(mp.fsum(terms)) / 3)
    assert series == pytest.approx(6.64257908043004446e-3, rel=1e-14, abs=0)
    loss = dominating_pair(hs.mechanisms.TokenWalk(10.0, 100, **STEPS)).removing
    assert isinstance(loss, DominatedLoss)
    found = loss.cgf_bounds(3.0)
    assert series <= (found.midpoint + found.radius) / 3 <= 1.03 * series
    assert 3.862652581086e-3 < found.midpoint / 3 < 0.08
