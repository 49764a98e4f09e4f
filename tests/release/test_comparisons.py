"""Comparisons of numbers with real noise: right for the reals, whatever the bits."""

from fractions import Fraction
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hockeystick.numerics.multiprecision import mp
from hockeystick.release.samplers import NoisyNumber, RealNoise, noisy_argmax
from tests.release.bits import exact, none_left, replay, seeded

NOISES = list(RealNoise)


def ones(count: Any) -> Any:
    return np.full(count, 2**63, dtype=np.uint64)  # the middle of what is known


@pytest.mark.parametrize("noise", NOISES)
@settings(max_examples=40)
@given(
    words=st.lists(st.integers(2**20, 2**64 - 2**20), min_size=2, max_size=2),
    gap=st.fractions(-3, 3, max_denominator=1000),
)
def test_numbers_lie_in_their_bounds_and_compare_as_reals(noise: Any, words: Any, gap: Any) -> None:
    values, scale = [Fraction(0), gap], Fraction(3, 2)
    numbers = [NoisyNumber(v, noise, scale, w, ones) for v, w in zip(values, words, strict=True)]
    reals = []
    for value, word, number in zip(values, words, numbers, strict=True):
        low, high = number.bounds()
        with mp.workprec(300):
            real = mp.mpf(value.numerator) / value.denominator + mp.mpf(1.5) * exact(noise, word)
            assert mp.mpf(low.numerator) / low.denominator <= real
            assert real <= mp.mpf(high.numerator) / high.denominator
        reals.append(real)
    if reals[0] != reals[1]:
        assert numbers[1].exceeds(numbers[0]) == (reals[1] > reals[0])


@pytest.mark.parametrize("noise", NOISES)
def test_numbers_that_nearly_agree_are_compared_with_more_bits(noise: Any) -> None:
    asked = []

    def bits(count: Any) -> Any:
        asked.append(count)
        return np.full(count, len(asked) * 2**60, dtype=np.uint64)

    first, second = (NoisyNumber(Fraction(0), noise, Fraction(1), 2**63, bits) for _ in range(2))
    # the second to draw has the larger u, and so the smaller deviate; but for Gumbel noise
    assert first.exceeds(second) == (noise is not RealNoise.GUMBEL)
    assert len(asked) >= 2


def test_numbers_without_noise_are_compared_as_they_are() -> None:
    less, more = (NoisyNumber(Fraction(v), RealNoise.LAPLACE, Fraction(0), 5, ones) for v in (1, 2))
    assert more.exceeds(less)
    assert not less.exceeds(more)
    assert less.exceeds(less)
    noisy = NoisyNumber(Fraction(0), RealNoise.LAPLACE, Fraction(1), 5, none_left)
    assert not noisy.exceeds(noisy)
    values = [Fraction(v) for v in (1, 2, 2, 0)]
    assert noisy_argmax(values, RealNoise.LAPLACE, Fraction(0)) == 1


@pytest.mark.parametrize(
    ("noise", "probabilities"),
    [
        # the exponential mechanism; permute and flip of two, 1 - exp(-d)/2
        (RealNoise.GUMBEL, [1 / (1 + np.e), np.e / (1 + np.e)]),
        (RealNoise.EXPONENTIAL, [np.exp(-1) / 2, 1 - np.exp(-1) / 2]),
        (RealNoise.LAPLACE, [np.exp(-1) * 0.75, 1 - np.exp(-1) * 0.75]),
        (RealNoise.GAUSSIAN, [0.23975006109347669, 0.7602499389065233]),
    ],
)
def test_the_largest_of_two_is_drawn_with_its_probability(noise: Any, probabilities: Any) -> None:
    bits, count = seeded(12), 20_000
    values = [Fraction(0), Fraction(1)]
    second = sum(noisy_argmax(values, noise, Fraction(1), bits=bits) for _ in range(count))
    assert abs(second / count - probabilities[1]) < 5 * (0.25 / count) ** 0.5


@pytest.mark.parametrize("noise", NOISES)
def test_the_largest_is_that_of_all_exact_comparisons(noise: Any) -> None:
    generator = np.random.default_rng(9)
    for _ in range(30):
        words = generator.integers(2**64, size=20, dtype=np.uint64)
        values = [Fraction(int(v), 7) for v in generator.integers(-9, 9, 20)]
        found = noisy_argmax(values, noise, Fraction(2), bits=partial(np.resize, words))
        best = max(range(20), key=lambda i: float(values[i]) + 2 * exact(noise, int(words[i])))
        assert found == best


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ((0.0, 1e-323), Fraction(5e-324) * Fraction(7, 5)),
        ((0.0, 1e-323), Fraction(1, 10**330)),
        ((1.7976931348623157e308, 1.7976931348623155e308), Fraction(2) ** 970),
        ((-1e308, 1e308), Fraction(10) ** 308),
        ((0.0, 0.5), Fraction(10) ** 400),
        ((1e300, 1e300), Fraction(1, 10**300)),
    ],
)
def test_the_largest_is_found_at_either_end_of_the_floats(
    noise: Any, values: Any, scale: Any
) -> None:
    generator = np.random.default_rng(2)
    for _ in range(60):
        words = generator.integers(2**64, size=2, dtype=np.uint64)
        found = noisy_argmax(
            [Fraction(v) for v in values], noise, scale, bits=partial(np.resize, words)
        )
        with mp.workprec(300):
            drawn = [exact(noise, int(word)) for word in words]
        with mp.workprec(2600):
            ratio = mp.mpf(scale.numerator) / scale.denominator
            sums = [mp.mpf(v) + ratio * z for v, z in zip(values, drawn, strict=True)]
            assert found == int(sums[1] > sums[0])


@pytest.mark.parametrize(
    ("noise", "word", "further"),
    [(RealNoise.GUMBEL, 2**64 - 2, 2**64 - 2), (RealNoise.EXPONENTIAL, 0, 1)],
)
def test_what_the_bits_known_leave_open_may_win_though_its_middle_would_not(
    noise: Any, word: Any, further: Any
) -> None:
    """63 bits say that the noise is above 43; 64 more make it 87."""
    values, more = [Fraction(0), Fraction(60)], repeat(further)
    bits = replay(chain([word, 2**63], more))
    assert noisy_argmax(values, noise, Fraction(1), bits=bits) == 0
    bits = replay(chain([word, 2**63], repeat(2**63)))
    assert noisy_argmax(values, noise, Fraction(1), bits=bits) == 1
