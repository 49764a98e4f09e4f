"""Real noise compared and rounded: right for the reals, however few bits are known."""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hockeystick.errors import ParameterError
from hockeystick.kernels.inverse_transform import CELL_BITS, LOWEST, integers
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import inverse_transform as laws
from hockeystick.release.samplers import (
    NoisyNumber,
    RealNoise,
    discrete_laplace,
    noisy_argmax,
    real_noise,
    rounded_gaussian,
    rounded_laplace,
    rounded_multivariate_laplace,
)
from hockeystick.release.samplers.real_noise import decided
from tests.release.bits import chi_square, exact, none_left, replay, seeded

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


LAWS = {"half normal": laws.HALF_NORMAL, "exponential": laws.EXPONENTIAL}
SCALES = (0.01, 1.0, 3.7, 2.0**22, 1e9, 2.0**44)


@lru_cache
def table_of(name: Any) -> Any:
    return laws.table(LAWS[name], LOWEST, CELL_BITS)


def by_kernel(name: Any, words: Any, scale: Any, shift: Any) -> Any:
    """Return what the kernel draws, and which words it leaves undecided."""
    words = np.asarray(words, dtype=np.uint64)
    drawn, undecided = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
    cells, errors, slopes = table_of(name)
    left = integers(words, scale, shift, cells, errors, slopes, drawn, undecided)
    return drawn, set(undecided[:left].tolist())


def survival(name: Any, x: Any) -> Any:
    return mp.erfc(x / mp.sqrt(2)) if name == "half normal" else mp.exp(-x)


@pytest.mark.parametrize("name", LAWS)
@settings(max_examples=150)
@given(
    position=st.integers(0, 2**63 - 1) | st.integers(0, 62).map(lambda e: 2**e),
    sign=st.integers(0, 1),
    scale=st.sampled_from(SCALES),
    shift=st.sampled_from([0.0, 0.5]),
)
def test_the_kernel_draws_what_interval_arithmetic_draws(
    name: Any, position: Any, sign: Any, scale: Any, shift: Any
) -> None:
    word = 2 * position + sign
    drawn, undecided = by_kernel(name, [word], scale, shift)
    if not undecided:
        size = decided(LAWS[name], scale, shift, word, none_left)
        assert drawn[0] == size
        with mp.workprec(120):
            ends = (LAWS[name].inverse(mp.ldexp(position + end, -63)) for end in (0, 1))
            assert {int(mp.floor(scale * end + shift)) for end in ends} == {abs(size)}


@pytest.mark.parametrize("name", LAWS)
def test_further_bits_decide_a_word_on_a_boundary(name: Any) -> None:
    with mp.workprec(400):
        exact = survival(name, mp.mpf("2.5") / 3)
        step = int(mp.floor(mp.ldexp(exact, 63)))
        fraction = int(mp.floor(mp.ldexp(mp.ldexp(exact, 63) - step, 64)))
    law, word = LAWS[name], 2 * step
    assert decided(law, 3.0, 0.5, word, replay([fraction + 1])) == 2
    assert decided(law, 3.0, 0.5, word, replay([fraction - 1])) == 3
    assert decided(law, 3.0, 0.5, word + 1, replay([fraction - 1])) == -3
    assert decided(law, 3.0, 0.5, word, replay([fraction, 2**64 - 1])) == 2
    assert decided(law, 3.0, 0.5, word, replay([fraction, 0])) == 3


@pytest.mark.parametrize("name", LAWS)
def test_the_errors_of_the_table_bound_the_polynomials(name: Any) -> None:
    cells, errors, slopes = table_of(name)
    generator = np.random.default_rng(5)
    with mp.workprec(300):
        for cell in generator.choice(len(cells), 60, replace=False):
            octave, place = divmod(int(cell), 1 << CELL_BITS)
            half = mp.ldexp(1, octave + LOWEST - 63 - CELL_BITS - 1)
            centre = (2 * ((1 << CELL_BITS) + place) + 1) * half
            for t in (-1, -0.37, 0.0, 0.81, 1):
                exact = LAWS[name].inverse(centre + t * half)
                value = cells[cell][-1]
                for c in cells[cell][-2::-1]:
                    value = value * t + c
                assert abs(exact - mp.mpf(value)) <= errors[cell]
                assert errors[cell] <= 2e-14
            ends = [LAWS[name].inverse(centre + t * half) for t in (-1, 1)]
            assert abs(ends[0] - ends[1]) <= 2 * slopes[cell]


@pytest.mark.parametrize("name", LAWS)
def test_tables_do_not_depend_on_the_precision_that_others_set(name: Any) -> None:
    """mpmath's precision is the whole process's: any thread may set it at any time."""

    def disturbed(u: Any) -> Any:
        mpmath.mp.prec = 20
        return LAWS[name].inverse(u)

    with mpmath.mp.workprec(53):
        made = laws.table(replace(LAWS[name], inverse=disturbed), 60, CELL_BITS)
    for found, expected in zip(made, laws.table(LAWS[name], 60, CELL_BITS), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", LAWS)
@settings(max_examples=40)
@given(x=st.fractions(0, 40, max_denominator=10**9), bits=st.integers(64, 300))
def test_enclosures_of_survival_functions_hold(name: Any, x: Any, bits: Any) -> None:
    low, high = laws.enclosure(LAWS[name], x, bits)
    with mp.workprec(2000):
        exact = mp.ldexp(survival(name, mp.mpf(x.numerator) / x.denominator), bits)
        assert low <= exact <= high
    assert high - low <= 1


@pytest.mark.parametrize(
    ("sampler", "probability"),
    [
        (
            rounded_gaussian,
            lambda k: (mp.erfc((k - 0.5) / mp.sqrt(18)) - mp.erfc((k + 0.5) / mp.sqrt(18))) / 2,
        ),
        (
            rounded_laplace,
            lambda k: (
                (mp.exp(-(abs(k) - 0.5) / 3) - mp.exp(-(abs(k) + 0.5) / 3)) / 2
                if k
                else 1 - mp.exp(-mp.mpf(1) / 6)
            ),
        ),
        (discrete_laplace, lambda k: mp.tanh(mp.mpf(1) / 6) * mp.exp(-abs(k) / mp.mpf(3))),
    ],
)
def test_frequencies_are_those_of_the_law(sampler: Any, probability: Any) -> None:
    drawn = sampler(3.0, 400_000, bits=seeded(11))
    assert chi_square(drawn, lambda k: float(probability(k))) > 1e-6


@pytest.mark.parametrize("sampler", [rounded_gaussian, rounded_laplace, discrete_laplace])
def test_sources_that_are_broken_are_refused(sampler: Any) -> None:
    def failing(count: Any) -> Any:
        raise OSError("no entropy")

    with pytest.raises(OSError, match="no entropy"):
        sampler(1.0, 3, bits=failing)
    for wrong in (np.zeros, lambda count: np.zeros(count + 1, np.uint64)):
        with pytest.raises(ParameterError, match=r"^bits must be"):
            sampler(1.0, 3, bits=wrong)
    assert sampler(1.0, 0).tolist() == []


def test_discrete_laplace_noise_is_the_difference_of_two_whole_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = iter([np.array([-3, 2]), np.array([1, -5])])
    monkeypatch.setattr(real_noise, "_draw", lambda *_: next(drawn))
    assert discrete_laplace(3.7, 2, bits=none_left).tolist() == [2, -3]


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_coordinates_are_the_rounded_products_of_the_words_gaussians(dimension: int) -> None:
    words = [(k * 2654435761 + 12345) * 2**30 % 2**64 | k for k in range(1, 2 * dimension + 2)]
    found = rounded_multivariate_laplace(2.0**20 / 3, dimension, bits=replay(words))
    with mp.workprec(300):
        numbers = [exact("gaussian", word) for word in words]
        length = mp.sqrt(sum(x * x for x in numbers[: dimension + 1]))
        for out, x in zip(found.tolist(), numbers[dimension + 1 :], strict=True):
            assert out == int(mp.floor(mp.mpf(2.0**20 / 3) * length * x + 0.5))


def test_what_few_bits_leave_open_is_decided_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """With Gaussians known to 2^-11 only; the same words decide as with all their bits."""
    words = [seeded(k)(5) for k in range(40)]
    usual = [rounded_multivariate_laplace(1e4, 2, bits=replay(one.tolist())) for one in words]
    monkeypatch.setattr(real_noise, "_FINE", 10)
    refined = list[int]()
    original = real_noise._refined

    def counting(*arguments: Any) -> Any:
        refined.append(1)
        return original(*arguments)

    monkeypatch.setattr(real_noise, "_refined", counting)
    again = [rounded_multivariate_laplace(1e4, 2, bits=replay(one.tolist())) for one in words]
    assert np.array_equal(usual, again)
    assert len(refined) > 20
