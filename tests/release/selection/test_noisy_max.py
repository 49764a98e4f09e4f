"""Selections: the largest of real sums, with the probabilities of the mechanism."""

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import hockeystick as hs
from hockeystick.mechanisms import PermuteAndFlip, ReportNoisyMax
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import exponential, permute_and_flip, report_noisy_max
from hockeystick.release.samplers import RealNoise
from tests.release.bits import seeded

ALL = [
    (exponential, hs.Exponential, RealNoise.GUMBEL),
    (permute_and_flip, PermuteAndFlip, RealNoise.EXPONENTIAL),
    (report_noisy_max, ReportNoisyMax, RealNoise.GUMBEL),
]
every = pytest.mark.parametrize(("release", "kind", "noise"), ALL)


class Asked:
    """What the comparison of noisy numbers was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("hockeystick.release.selection.noisy_argmax", self)

    def __call__(self, values: Any, noise: Any, scale: Any, *, bits: Any) -> Any:
        self.values = [Fraction(value) for value in values]
        self.noise, self.scale = noise, scale
        return 0


@every
@settings(max_examples=100)
@given(
    scores=st.lists(st.floats(-1e6, 1e6) | st.integers(-50, 50), min_size=1, max_size=5),
    moves=st.lists(st.floats(-1, 1), min_size=5, max_size=5),
    epsilon=st.floats(1e-3, 50),
    monotone=st.booleans(),
)
def test_ratios_of_probabilities_stay_below_exp_epsilon(
    release: Any, kind: Any, noise: Any, scores: Any, moves: Any, epsilon: Any, monotone: Any
) -> None:
    """In rational arithmetic, of exactly what is compared, for neighbours as far as they may be.

    With the scale b, shifts of all scores by x to y change the log of every ratio of the
    exponential mechanism by at most (y - x) / b; the largest noise moves by as much.
    """
    if monotone:
        moves = [abs(move) for move in moves]
    others = [score + move for score, move in zip(scores, moves, strict=False)]
    gaps = [Fraction(b) - Fraction(a) for a, b in zip(scores, others, strict=True)]
    sensitivity = float(max(*map(abs, gaps), Fraction(1, 2**40)))
    while Fraction(sensitivity) < max(map(abs, gaps)):
        sensitivity = math.nextafter(sensitivity, math.inf)
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        for one in (scores, others):
            found = Asked(patch)
            release(kind(epsilon), one, sensitivity, monotone=monotone)
            asked.append([value / found.scale for value in found.values])
            assert found.noise is noise
    shifts = [b - a for a, b in zip(*asked, strict=True)]
    spread = max(*shifts, Fraction(0)) - min(*shifts, Fraction(0))
    assert spread <= min(Fraction(epsilon), Fraction(repr(epsilon)))


@every
def test_the_scale_is_exact_and_covers_both_readings(
    release: Any, kind: Any, noise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch)
    for sensitivity, epsilon in ((0.3, 0.1), (0.1, 0.3)):
        release(kind(epsilon), [0.5, 2], sensitivity)
        least = min(Fraction(epsilon), Fraction(repr(epsilon)))
        most = max(Fraction(sensitivity), Fraction(repr(sensitivity)))
        assert asked.scale / asked.values[1] == most / least
        assert asked.values[0] * 4 == asked.values[1]
        release(kind(epsilon), [0.5, 2], sensitivity, monotone=True)
        assert asked.scale / asked.values[1] == most / least / 2


def exponential_law(scores: Any, epsilon: Any) -> Any:
    weights = np.exp(epsilon * np.array(scores) / 2)
    return weights / weights.sum()


def flipping_law(scores: Any, epsilon: Any) -> Any:
    """Return the probabilities of permute-and-flip by its definition, over all orders."""
    heads = np.exp(epsilon * (np.array(scores) - max(scores)) / 2)
    found = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for i in order:
            found[i] += left * heads[i] / len(orders)
            left *= 1 - heads[i]
    return found


def largest_laplace_law(scores: Any, epsilon: Any) -> Any:
    """Return the probabilities of the largest after Laplace noise, by quadrature."""
    b = 2 / epsilon

    def chance(i: Any) -> Any:
        def density(x: Any) -> Any:
            others = [j for j in range(len(scores)) if j != i]
            return stats.laplace.pdf(x, scores[i], b) * np.prod(
                [stats.laplace.cdf(x, scores[j], b) for j in others]
            )

        return float(mp.quad(lambda x: mp.mpf(density(float(x))), [-60, *sorted(scores), 60]))

    return np.array([chance(i) for i in range(len(scores))])


@pytest.mark.parametrize(
    ("release", "mechanism", "law"),
    [
        (exponential, hs.Exponential(1.5), exponential_law),
        (permute_and_flip, PermuteAndFlip(1.5), flipping_law),
        (report_noisy_max, ReportNoisyMax(1.5), exponential_law),
        (report_noisy_max, ReportNoisyMax(1.5, "exponential"), flipping_law),
        (report_noisy_max, ReportNoisyMax(1.5, "laplace"), largest_laplace_law),
    ],
)
def test_candidates_are_selected_with_their_probabilities(
    release: Any, mechanism: Any, law: Any
) -> None:
    scores, bits, count = [0.0, 1.5, 2.0, 2.0], seeded(21), 6000
    drawn = [release(mechanism, scores, 1, bits=bits) for _ in range(count)]
    seen = np.bincount(drawn, minlength=4)
    expected = law(scores, 1.5)
    assert abs(expected.sum() - 1) < 1e-6
    assert stats.chisquare(seen, expected / expected.sum() * count).pvalue > 1e-6


@every
def test_without_epsilon_all_candidates_are_alike(release: Any, kind: Any, noise: Any) -> None:
    bits = seeded(5)
    drawn = [release(kind(0.0), [0, 1e300, -5], 1, bits=bits) for _ in range(3000)]
    assert stats.chisquare(np.bincount(drawn, minlength=3)).pvalue > 1e-6


@every
def test_with_infinite_epsilon_the_first_of_the_best_is_selected(
    release: Any, kind: Any, noise: Any
) -> None:
    assert release(kind(math.inf), [1, 3, 3, 2], 1) == 1
    assert release(kind(math.inf), [0.0], 1) == 0
    assert release(kind(math.inf), [0.0, 0.0], 1) == 0


@every
@pytest.mark.parametrize(
    ("scores", "sensitivity", "epsilon"),
    [
        ([-1e308, 1e308], 1e-300, 1.0),
        ([0.0, 5e-324], 5e-324, 2000.0),
        ([0, 2**53], 1e-9, 1e-3),
        ([-1.7e308, 1.7e308, 0], 5e-324, 1e300),
    ],
)
def test_numbers_at_the_ends_of_floats_are_compared(
    release: Any, kind: Any, noise: Any, scores: Any, sensitivity: Any, epsilon: Any
) -> None:
    assert release(kind(epsilon), scores, sensitivity) == 1
    assert release(kind(5e-324), scores, 1.7e308) in range(len(scores))
