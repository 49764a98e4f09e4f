"""Integers by tables: every cumulative probability is bounded, and boundaries take more bits."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hockeystick.errors import ParameterError
from hockeystick.numerics.multiprecision import mp
from hockeystick.release.samplers import (
    RealNoise,
    bernoulli,
    discrete_gaussian,
    discrete_laplace,
    noisy_argmax,
    permutation,
    poisson,
    rounded_gaussian,
    rounded_laplace,
    rounded_multivariate_laplace,
    skellam,
    uniform_integers,
)
from hockeystick.release.samplers.tables import (
    _accepted,
    _ratio,
    narrow_gaussian,
    point_mass,
    poisson_law,
)
from tests.release.bits import chi_square, none_left, replay, seeded

TOP = 2**64 - 1
SIZES: Any = (0, 1.5)


def gaussian_sum(s: Any, k: Any) -> Any:
    """Return ``P(X <= k)`` of the discrete Gaussian."""
    far = int(40 * s) + 20
    weights = {j: mp.exp(-mp.mpf(j * j) / (2 * mp.mpf(s) ** 2)) for j in range(-far, far + 1)}
    return mp.fsum(w for j, w in weights.items() if j <= k) / mp.fsum(weights.values())


def poisson_sum(mean: Any, k: Any) -> Any:
    """Return ``P(X <= k)`` of the Poisson law, by the incomplete gamma function."""
    return mp.gammainc(k + 1, mean, mp.inf, regularized=True)


CASES = [
    *((narrow_gaussian, gaussian_sum, s, ks) for s, ks in (
        (0.2, (-2, -1, 0, 1)), (1.0, (-9, -3, -1, 0, 1, 8)), (17.5, (-160, -40, 0, 3, 100)),
    )),
    *((poisson_law, poisson_sum, m, ks) for m, ks in (
        (0.01, (0, 1, 3)), (4.0, (0, 3, 4, 30)), (999.5, (700, 999, 1200)), (1e6, (995_000, 10**6)),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("law", "oracle", "parameter", "ks"), CASES, ids=lambda x: str(x)[:24])
@pytest.mark.parametrize("bits", [64, 128])
def test_cumulative_probabilities_are_enclosed(
    law: Any, oracle: Any, parameter: Any, ks: Any, bits: Any
) -> None:
    table = law(parameter, bits)
    assert list(table.lows) == sorted(table.lows)
    assert list(table.highs) == sorted(table.highs)
    with mp.workdps(80):
        for k in ks:
            low, high = table.around(k, bits)
            assert low <= mp.ldexp(oracle(parameter, k), bits) <= high
            assert high - low <= 2
        for k in (table.first - 1, table.first + len(table.lows)):
            low, high = table.around(k, bits)
            assert low <= mp.ldexp(oracle(parameter, k), bits) <= high


@pytest.mark.parametrize("k", [0, 5, 999, 1000, 1001, 20_000])
def test_point_masses_are_enclosed_on_both_sides_of_stirling(k: Any) -> None:
    mean = k + 0.25
    low, high = point_mass(mean, k, 200)
    with mp.workprec(600):
        exact = mp.ldexp(mp.exp(k * mp.log(mean) - mean - mp.loggamma(k + 1)), 200)
        assert low <= exact <= high
    assert high - low <= 2


@pytest.mark.parametrize(
    ("sampler", "parameter", "oracle", "k"),
    [
        (discrete_gaussian, 3.0, gaussian_sum, 2),
        (discrete_gaussian, 3.0, gaussian_sum, -5),
        (poisson, 4.0, poisson_sum, 6),
        (poisson, 4.0, poisson_sum, 0),
    ],
)
def test_the_map_from_bits_to_integers_steps_at_the_probability(
    sampler: Any, parameter: Any, oracle: Any, k: Any
) -> None:
    with mp.workdps(120):
        exact = mp.ldexp(oracle(parameter, k), 64)
        step = int(mp.floor(exact))
        rest = int(mp.floor(mp.ldexp(exact - step, 64)))
    assert sampler(parameter, 2, bits=replay([step - 2, step + 2])).tolist() == [k, k + 1]
    assert sampler(parameter, 1, bits=replay([step, rest - 1])).tolist() == [k]
    assert sampler(parameter, 1, bits=replay([step, rest + 1])).tolist() == [k + 1]
    assert sampler(parameter, 1, bits=replay([step, rest, 0])).tolist() == [k]
    assert sampler(parameter, 1, bits=replay([step, rest, TOP])).tolist() == [k + 1]


@pytest.mark.parametrize("s", [2.0, 63.9, 64.0])
def test_frequencies_of_the_discrete_gaussian(s: Any) -> None:
    total = sum(np.exp(-0.5 * (k / s) ** 2) for k in range(-int(40 * s) - 9, int(40 * s) + 10))
    drawn = discrete_gaussian(s, 300_000, bits=seeded(int(s * 10)))
    assert chi_square(drawn, lambda k: np.exp(-0.5 * (k / s) ** 2) / total) > 1e-6


@pytest.mark.parametrize("mean", [4.0, 900.0])
def test_frequencies_of_poisson_and_skellam(mean: Any) -> None:
    assert chi_square(poisson(mean, 300_000, bits=seeded(1)), stats.poisson(mean).pmf) > 1e-6
    drawn = skellam(2 * mean, 300_000, bits=seeded(2))
    assert chi_square(drawn, stats.skellam(mean, mean).pmf) > 1e-6


def acceptance(k: Any, s: Any) -> Any:
    """Return ``I(0) / I(k)`` by quadrature of the definition."""
    s = mp.mpf(s)

    def weight(j: Any) -> Any:
        return mp.quad(
            lambda t: mp.exp(-t * t / (2 * s * s)) * mp.cosh(j * t / s**2), [-0.5, 0, 0.5]
        )

    return weight(0) / weight(k)


@pytest.mark.parametrize("s", [64.0, 1000.5])
@pytest.mark.parametrize("far", [0.02, 1.0, 4.0, 6.5])
def test_wide_proposals_are_accepted_as_often_as_the_proof_says(s: Any, far: Any) -> None:
    """A proposal k is kept for the words below ``2^64 I(0)/I(k)``, and refused for the others."""
    k = -int(far * s)
    with mp.workdps(60):
        step = int(mp.floor(mp.ldexp(acceptance(k, s), 64)))
        # a word whose u is the middle of those that give k
        middle = int(mp.ldexp(mp.erfc(-k / mp.mpf(s) / mp.sqrt(2)), 63))
    word = 2 * middle + 1
    assert rounded_gaussian(s, 1, bits=replay([word]))[0] == k
    zero = TOP - 1  # u next to 1, which gives 0
    assert discrete_gaussian(s, 1, bits=replay([word, step - 1]))[0] == k
    assert discrete_gaussian(s, 1, bits=replay([word, step + 1, zero, 0]))[0] == 0


def test_coins_are_exact() -> None:
    third = 2**64 // 3
    assert bernoulli(Fraction(1, 3), 2, bits=replay([third - 1, third + 1])).tolist() == [
        True,
        False,
    ]
    assert bernoulli(Fraction(1, 3), 1, bits=replay([third, third - 1])).tolist() == [True]
    assert bernoulli(Fraction(1, 3), 1, bits=replay([third, third, third + 1])).tolist() == [False]
    assert bernoulli(0.5, 2, bits=replay([2**63 - 1, 2**63])).tolist() == [True, False]
    assert bernoulli(0, 2, bits=replay([0, 0])).tolist() == [False, False]
    assert bernoulli(1, 2).tolist() == [True, True]
    tiny = 2.0**-70  # below one word's grid: the first word is 0 with both answers
    assert bernoulli(tiny, 1, bits=replay([0, 2**58 - 1])).tolist() == [True]
    assert bernoulli(tiny, 1, bits=replay([0, 2**58])).tolist() == [False]
    assert abs(bernoulli(0.2, 200_000, bits=seeded(4)).mean() - 0.2) < 0.006


def test_uniform_integers_reject_what_does_not_divide() -> None:
    last = 2**64 - 2**64 % 6
    assert uniform_integers(6, 3, bits=replay([last, 7, last - 1, 4])).tolist() == [4, 1, 5]
    assert uniform_integers(2**63, 1, bits=replay([TOP])).tolist() == [2**63 - 1]
    assert uniform_integers(1, 2, bits=replay([TOP, 0])).tolist() == [0, 0]


def test_orders_are_uniform_and_drawn_again_where_words_are_equal() -> None:
    assert permutation(3, bits=replay([5, 5, 1, 30, 10, 20])).tolist() == [1, 2, 0]
    seen: dict[Any, int] = {}
    source = seeded(8)
    for _ in range(6000):
        order = tuple(permutation(3, bits=source).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6
    assert all(abs(count - 1000) < 150 for count in seen.values())


@pytest.mark.parametrize(
    ("draw", "word"),
    [
        (partial(rounded_gaussian, 3.0, 1), 0),
        (partial(rounded_laplace, 3.0, 1), 0),
        (partial(discrete_gaussian, 3.0, 1), 0),
        (partial(discrete_gaussian, 3.0, 1), TOP),
        (partial(discrete_gaussian, 100.0, 1), 0),
        (partial(poisson, 4.0, 1), TOP),
        (partial(bernoulli, Fraction(1, 3), 1), 2**64 // 3),
        (partial(uniform_integers, 6, 1), TOP),
        (partial(permutation, 3), 5),
        (partial(noisy_argmax, [0, 1], RealNoise.GUMBEL, Fraction(1)), TOP),
        (partial(noisy_argmax, [0, 0], RealNoise.GAUSSIAN, Fraction(1)), 2**63),
    ],
)
def test_a_source_that_repeats_itself_is_refused(draw: Any, word: Any) -> None:
    with pytest.raises(OSError, match="repeats itself"):
        draw(bits=lambda count: np.full(count, word, dtype=np.uint64))


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        *(
            (partial(sampler, scale, 3), "scale")
            for sampler in (rounded_gaussian, rounded_laplace, discrete_laplace, discrete_gaussian)
            for scale in (0.0, math.nan, 1e300)
        ),
        (lambda: rounded_gaussian(1.0, -1), "size"),
        *((partial(rounded_multivariate_laplace, s, 2), "scale") for s in (0.0, math.inf)),
        *((partial(rounded_multivariate_laplace, 1.0, n), "dimension") for n in SIZES),
        (lambda: noisy_argmax([], RealNoise.GUMBEL, Fraction(1)), "values"),
        (lambda: noisy_argmax([1], "normal", Fraction(1)), "noise"),  # type: ignore[arg-type]
        (lambda: noisy_argmax([1], RealNoise.GUMBEL, Fraction(-1)), "scale"),
        (lambda: poisson(2.0**31, 1), "mean"),
        (lambda: skellam(0.0, 1), "variance"),
        (lambda: skellam(1.5e-323, 1), "variance"),  # three units, whose half is no float
        (lambda: bernoulli(1.5, 1), "probability"),
        (lambda: bernoulli(0.5, -1), "size"),
        (lambda: uniform_integers(0, 1), "below"),
        (lambda: permutation(-1), "length"),
    ],
)
def test_bad_arguments_are_named(draw: Any, name: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        draw()


def test_a_wide_proposal_of_a_uniform_number_next_to_1_is_refused() -> None:
    k, s = 64, 64.0
    low, high = _ratio(k, s, 64)
    assert _accepted(k, s, low - 1, none_left)
    assert not _accepted(k, s, high, none_left)
