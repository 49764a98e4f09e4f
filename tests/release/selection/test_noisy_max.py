"""Selections: the largest of real sums, with the probabilities of the mechanism."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import PermuteAndFlip, ReportNoisyMax
from hockeystick.release import exponential, permute_and_flip, report_noisy_max
from hockeystick.release.samplers import RealNoise
from tests.release.bits import none_left

ALL = [
    (exponential, hs.Exponential, RealNoise.GUMBEL),
    (permute_and_flip, PermuteAndFlip, RealNoise.EXPONENTIAL),
    (report_noisy_max, ReportNoisyMax, RealNoise.GUMBEL),
]
every = pytest.mark.parametrize(("release", "kind", "noise"), ALL)


class Asked:
    """What the comparison of noisy numbers was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("hockeystick.release.selection.noisy_max.noisy_argmax", self)

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
    """In rational arithmetic, of exactly what is compared, for neighbours as far as they may be."""
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


@every
def test_with_infinite_epsilon_the_first_of_the_best_is_selected(
    release: Any, kind: Any, noise: Any
) -> None:
    assert release(kind(math.inf), [1, 3, 3, 2], 1) == 1
    assert release(kind(math.inf), [0.0], 1) == 0
    assert release(kind(math.inf), [0.0, 0.0], 1) == 0


@every
def test_the_charge_comes_first_and_a_refusal_draws_nothing(
    release: Any, kind: Any, noise: Any
) -> None:
    account, spending = hs.Accountant(), hs.calibration.Filter(hs.PureDP(0.5))
    release(kind(0.25), [1, 2], 1, charge=account)
    assert account.plan == kind(0.25)
    for epsilon in (0.0, 1.0, math.inf):
        if epsilon:
            with pytest.raises(hs.errors.HockeystickError):
                release(kind(epsilon), [1, 2], 1, charge=spending, bits=none_left)
    assert len(spending) == 0


NAN = math.nan


@every
@pytest.mark.parametrize(
    ("wrong", "scores", "sensitivity", "given"),
    [
        ("scores", [1.0, NAN], 1, {}),
        ("scores", [1.0, math.inf], 1, {}),
        ("scores", [], 1, {}),
        ("scores", 3.0, 1, {}),
        ("scores", [[1.0]], 1, {}),
        ("scores", ["a"], 1, {}),
        ("scores", [2**53 + 1], 1, {}),
        ("scores", [True], 1, {}),
        ("sensitivity", [1.0], 0, {}),
        ("sensitivity", [1.0], math.inf, {}),
        ("sensitivity", [1.0], NAN, {}),
        ("monotone", [1.0], 1, {"monotone": 1}),
        ("charge", [1.0], 1, {"charge": "account"}),
    ],
)
def test_bad_arguments_are_named(
    release: Any, kind: Any, noise: Any, wrong: Any, scores: Any, sensitivity: Any, given: Any
) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError, match=f"^{wrong} must be"):
        release(kind(1.0), scores, sensitivity, **{"charge": account, **given}, bits=none_left)
    assert len(account) == 0
    with pytest.raises(ParameterError, match=r"^mechanism must be"):
        release(hs.Gaussian(1), [1.0], 1, bits=none_left)
