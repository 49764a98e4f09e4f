"""Threshold queries: each outcome is that of the real sums, and a run ends as it says."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import AboveThreshold, SparseVector
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import above_threshold, sparse_vector
from tests.release.bits import none_left, replay, seeded

LAPLACE = AboveThreshold(2.0, 4.0)
GAUSSIAN = AboveThreshold(
    2.0, 4.0, threshold_noise="gaussian", query_noise="gaussian", queries=1000
)
MIXED = AboveThreshold(2.0, 4.0, threshold_noise="gaussian")


def real(word: Any, noise: Any) -> Any:
    """Return the noise of scale 1 of the middle of a word's uniform numbers."""
    u = mp.ldexp(2 * (word >> 1) + 1, -64)
    size = mp.sqrt(2) * mp.erfinv(1 - u) if noise == "gaussian" else -mp.log(u)
    return -size if word & 1 else size


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN, MIXED])
def test_every_outcome_is_that_of_the_real_sums(mechanism: Any) -> None:
    generator = np.random.default_rng(2)
    for _ in range(12):
        words = [int(w) for w in generator.integers(2**64, size=200, dtype=np.uint64)]
        run = above_threshold(mechanism, 10.5, 1.5, bits=replay(words))
        with mp.workprec(300):
            top = 10.5 + 3 * real(words[0], mechanism.threshold_noise)
            for place in range(1, 200):
                answer = place / 8
                expected = answer + 6 * real(words[place], mechanism.query_noise) >= top
                assert run.above(answer) == expected
                assert run.ended == expected
                if expected:
                    break


def test_a_query_is_above_with_its_probability() -> None:
    """The difference of the two noises, by quadrature."""
    count, bits = 3000, seeded(14)
    seen = sum(above_threshold(LAPLACE, 3.0, 1.0, bits=bits).above(1.0) for _ in range(count))

    def density(x: Any) -> Any:
        tail = mp.exp(-abs(2 + x) / 4) / 2
        return mp.exp(-abs(x) / 2) / 4 * (tail if x > -2 else 1 - tail)

    p = float(mp.quad(density, [-80, -2, 0, 80]))
    assert abs(seen / count - p) < 5 * math.sqrt(p * (1 - p) / count)


def test_sparse_vector_begins_again_with_a_fresh_threshold() -> None:
    """Words: threshold, query, query (above), threshold, query (above)."""
    half, asked = 2**63, []

    def bits(count: Any) -> Any:
        asked.append(count)
        return np.full(count, half + 2**40 * len(asked), dtype=np.uint64)

    run = sparse_vector(SparseVector(2.0, 4.0, positives=2), 100.0, 1.0, bits=bits)
    assert asked == []
    assert [run.above(answer) for answer in (0.0, 1e4, 1e5)] == [False, True, True]
    assert len(asked) == 5
    assert run.ended
    with pytest.raises(IncompatibleError, match="ended"):
        run.above(1.0)
    assert len(asked) == 5


def test_after_the_first_above_nothing_more_is_said() -> None:
    run = above_threshold(LAPLACE, 0.0, 1.0)
    assert run.above(1e9)
    with pytest.raises(IncompatibleError):
        run.above(-1e9)


def test_no_more_queries_are_answered_than_the_mechanism_has() -> None:
    run = above_threshold(AboveThreshold(1.0, 1.0, queries=2), 1e9, 1.0)
    assert [run.above(0.0), run.above(0.0)] == [False, False]
    assert run.ended
    two = sparse_vector(SparseVector(1.0, 1.0, positives=2, queries=2), 1e9, 1.0)
    assert [two.above(answer) for answer in (0, 2e9, 0, 0)] == [False, True, False, False]
    assert two.ended


def test_without_positives_nothing_can_be_asked() -> None:
    run = sparse_vector(SparseVector(1.0, 1.0, positives=0), 0.0, 1.0, bits=none_left)
    assert run.ended
    with pytest.raises(IncompatibleError):
        run.above(1.0)


def test_without_noise_numbers_are_compared_as_they_are() -> None:
    run = sparse_vector(SparseVector(0.0, 0.0, positives=3), 0.3, 1.0)
    assert [run.above(x) for x in (math.nextafter(0.3, 0), 0.3, 1)] == [False, True, True]


def test_both_readings_of_the_scales_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = []

    class Noted:
        def __init__(self, value: Any, noise: Any, scale: Any, word: Any, bits: Any) -> None:
            scales.append((value, scale))

        def exceeds(self, other: Any) -> bool:
            return True

    monkeypatch.setattr("hockeystick.release.selection.NoisyNumber", Noted)
    above_threshold(AboveThreshold(0.3, 0.1), 0.1, 0.3).above(0.3)
    most = Fraction(3, 10)
    assert scales == [(Fraction(0.1), most * most), (Fraction(0.3), Fraction(0.1) * most)]


@pytest.mark.parametrize(
    ("release", "mechanism"),
    [(above_threshold, LAPLACE), (sparse_vector, SparseVector(20.0, 40.0, positives=3))],
)
def test_a_run_is_charged_once_before_any_bit(release: Any, mechanism: Any) -> None:
    account = hs.Accountant()
    run = release(mechanism, 100.0, 1.0, charge=account, bits=none_left)
    assert account.plan == mechanism
    assert not run.ended
    run = release(mechanism, 100.0, 1.0, charge=account)
    run.above(0.0)
    run.above(0.0)
    assert len(account) == 2
    spending = hs.calibration.Filter(hs.PureDP(1e-3))
    with pytest.raises(hs.errors.BudgetExhausted):
        release(mechanism, 100.0, 1.0, charge=spending, bits=none_left)


@pytest.mark.parametrize("answer", [math.nan, math.inf, "3", [1.0], None, True])
def test_bad_answers_are_named_and_use_up_nothing(answer: Any) -> None:
    run = above_threshold(AboveThreshold(1.0, 1.0, queries=1), 0.0, 1.0, bits=none_left)
    with pytest.raises(ParameterError, match=r"^answer must be"):
        run.above(answer)
    assert not run.ended
