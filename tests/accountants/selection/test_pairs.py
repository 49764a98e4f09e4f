"""Finite pairs from the ends of a profile: above and below it at every epsilon."""

import math
from typing import Any

import numpy as np
import pytest

from hockeystick.accountants.selection.pairs import FinitePair, Knots
from hockeystick.tradeoffs.profiles.profile import GaussianProfile

AT = np.linspace(0.0, 6.0, 61)


def divergence(pair: FinitePair, epsilon: float) -> float:
    return float(np.maximum(pair.p - math.exp(epsilon) * pair.q, 0.0).sum())


def both(own: Any, reverse: Any, at: Any) -> tuple[FinitePair, FinitePair]:
    above = FinitePair.of(Knots.above(own, reverse, at))
    below = FinitePair.of(Knots.below(own, reverse, at))
    assert above is not None
    assert below is not None
    return above, below


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
def test_the_pairs_of_a_gaussian_are_on_either_side_of_it(mu: float) -> None:
    profile = GaussianProfile(mu)
    above, below = both(profile, profile, AT * mu)
    for epsilon in np.linspace(-4.5, 4.5, 301) * mu:
        truth = float(profile.at(np.array([abs(epsilon)])).estimate[0])
        if epsilon < 0.0:
            truth = -math.expm1(epsilon) + math.exp(epsilon) * truth
        assert divergence(below, epsilon) <= truth * (1 + 1e-11) + 1e-15
        assert divergence(above, epsilon) >= truth * (1 - 1e-11) - 1e-15
        assert divergence(above, epsilon) - divergence(below, epsilon) < 0.15 * truth


def test_pieces_add_up_to_their_outcomes() -> None:
    pair, _ = both(GaussianProfile(1.0), GaussianProfile(1.0), AT)
    fine = pair.split(0.1, 0.02)
    assert fine.p.size == pair.split_size(0.1, 0.02) > pair.p.size
    assert fine.p.sum() == pytest.approx(1.0, rel=1e-12)
    assert fine.q.sum() == pytest.approx(1.0, rel=1e-12)
    for epsilon in (-2.0, 0.0, 1.3):
        assert divergence(fine, epsilon) == pytest.approx(divergence(pair, epsilon), rel=1e-10)
