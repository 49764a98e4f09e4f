"""Noise on arrays: the grid, the moments, what is drawn for each word, and what it costs."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import SinhNormal
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import (
    discrete_gaussian,
    gaussian,
    geometric,
    laplace,
    multivariate_laplace,
    multivariate_laplace_length,
    multivariate_laplace_log_density,
    multivariate_laplace_variance,
    samplers,
    sinh_normal,
    sinh_normal_divergences,
    sinh_normal_vector,
    skellam,
)
from hockeystick.release._values import grid_of
from tests.release.bits import exact, none_left, replay, seeded

BOTH = [(gaussian, hs.Gaussian), (laplace, hs.Laplace)]
STEP = Fraction(1, 2**20)  # the grid of few numbers with sensitivity 1


def grid(noise: Any, sensitivity: Any, moved: Any = 1) -> Any:
    return grid_of(hs.Gaussian(1), noise, sensitivity, moved)


@pytest.mark.parametrize(("release", "kind"), BOTH)
def test_what_comes_out_is_the_rounded_value_plus_rounded_noise(release: Any, kind: Any) -> None:
    values = [[3.25, -1.0], [math.pi, 1e6 / 3]]
    words = [(k * 2654435761 + 12345) * 2**30 % 2**64 | k for k in range(1, 5)]
    found = release(kind(1.5), values, 1, bits=replay(words))
    moved = 2 if release is gaussian else 4
    with mp.workprec(300):
        for value, word, out in zip(np.ravel(values), words, found.ravel(), strict=True):
            noise = (
                exact("gaussian" if kind is hs.Gaussian else "laplace", word)
                * 3
                * (2**20 + moved)
                / 2
            )
            steps = round(Fraction(float(value)) / STEP) + int(mp.nint(noise))
            assert Fraction(float(out)) == steps * STEP


def test_rounding_may_move_neighbours_beyond_the_sensitivity_and_the_noise_covers_it() -> None:
    """Two arrays whose rounded values are further from each other: by nearly a step in each."""
    sensitivity, step = 1 + 2.0**-28, float(STEP)
    first = np.full(4, step / 2 * (1 - 2.0**-10))
    second = np.full(4, 0.5 + step / 2 * (1 + 2.0**-10))
    distance = sum((Fraction(b) - Fraction(a)) ** 2 for a, b in zip(first, second, strict=True))
    assert distance <= Fraction(sensitivity) ** 2
    own = grid(2.0, sensitivity, 2)
    assert own.exponent == -20
    moved = own.steps("value", second) - own.steps("value", first)
    reached = int((moved**2).sum())
    # noise for the sensitivity alone would be too little
    assert reached > (Fraction(sensitivity) / STEP) ** 2
    assert reached <= own.sensitivity**2
    assert Fraction(own.scale) >= 2 * own.sensitivity


SENSITIVITIES = [
    *(Fraction(1, 3), Decimal("0.3333333333333333333"), 2**60 + 1, 5e-324, 1e-300, 1.7e308),
    *(np.float32("0.7"), np.float16("0.1")),  # which are below the decimals that they print as
]


@pytest.mark.parametrize("given", SENSITIVITIES)
def test_sensitivities_are_not_rounded_down(given: Any) -> None:
    own = grid(1.0, given)
    assert own.sensitivity >= Fraction(str(given)) / Fraction(2) ** own.exponent + 1
    assert 2**20 <= own.sensitivity - 1 <= 2**21


def test_both_readings_of_the_parameters_are_covered() -> None:
    assert Fraction(0.3) < Fraction(3, 10)  # the float is below the decimal
    assert grid(1.0, 0.3).sensitivity == Fraction(3, 10) * 2**22 + 1
    for noise in (k / 10 for k in range(1, 400)):
        own = grid(noise, 0.3)
        assert Fraction(own.scale) >= Fraction(repr(noise)) * own.sensitivity
        assert Fraction(own.scale) >= Fraction(noise) * own.sensitivity


MASKED: Any = np.ma.masked_array([1.0, 5e5], mask=[False, True])


@pytest.mark.parametrize(
    "value",
    [
        *(2**53 + 1, 2**70, [2**53 + 1, 0.5]),  # floats, of which the first is rounded
        *(((0.5, 1.0), (-1, 2**53 + 3)), [np.array([2**53 + 1]), np.array([0.5])]),
        *(MASKED, [MASKED, [0.0, 0.0]], [[1], [1, 2]]),
    ],
)
def test_what_floats_would_change_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^value must be"):
        gaussian(hs.Gaussian(1.0), value, 2**12, bits=none_left)


FIVE = hs.mechanisms.MultivariateLaplace(1.5, dimension=5)


def test_a_vector_gets_rounded_noise_of_the_right_scale() -> None:
    """Five numbers, each rounded by half a step, are moved by at most ceil(sqrt(5)) = 3 steps."""
    value = np.array([3.25, -1.0, math.pi, 1e6 / 3, 0.0])
    for seed in range(5):
        found = multivariate_laplace(FIVE, value, 1, bits=seeded(seed))
        drawn = samplers.rounded_multivariate_laplace(1.5 * (2**20 + 3), 5, bits=seeded(seed))
        steps = [round(Fraction(one) / Fraction(float(STEP))) for one in value.tolist()]
        assert (found / float(STEP)).tolist() == [a + b for a, b in zip(steps, drawn, strict=True)]


@pytest.mark.parametrize(
    ("dimension", "value"),
    [
        (1, "-0.693147180559945309417232121458"),
        (2, "-1.83787706640934548356065947281"),
        (11, "-18.1357601581884452685543910273"),
        (1206590, "-8953613.54803018387246"),
    ],
)
def test_the_constant_of_the_density_is_known_in_any_dimension(dimension: int, value: str) -> None:
    noise = hs.mechanisms.MultivariateLaplace(1.0, dimension)
    found = multivariate_laplace_log_density(noise, 1.0, np.zeros(dimension))
    assert float(found) == pytest.approx(float(value), rel=1e-15)


def test_the_density_keeps_the_shape_of_what_it_is_asked() -> None:
    noise = hs.mechanisms.MultivariateLaplace(1.0, 3)
    assert multivariate_laplace_log_density(noise, 1.0, np.zeros((4, 5, 3))).shape == (4, 5)
    far = multivariate_laplace_log_density(noise, 2.0, [[3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    assert far[1] - far[0] == pytest.approx(2.5, rel=1e-14)
    assert multivariate_laplace_variance(noise, 2.0) == 16.0
    assert multivariate_laplace_length(noise, 2.0) == 6.0
    for points, scale, sensitivity, told in (
        (np.zeros(4), 1.0, 1.0, "points"),
        (np.zeros(3), 0.0, 1.0, "scale must be > 0"),
        (np.zeros(3), math.inf, 1.0, "scale must be finite"),
        (np.zeros(3), 1.0, math.nan, "sensitivity"),
    ):
        noise = hs.mechanisms.MultivariateLaplace(scale, 3)
        with pytest.raises(ParameterError, match=f"^{told}"):
            multivariate_laplace_log_density(noise, sensitivity, points)


ALL = [
    (discrete_gaussian, hs.DiscreteGaussian, samplers.discrete_gaussian),
    (geometric, hs.DiscreteLaplace, samplers.discrete_laplace),
    (skellam, hs.mechanisms.Skellam, samplers.skellam),
]
every = pytest.mark.parametrize(("release", "kind", "sampler"), ALL)


@every
def test_noise_of_the_samplers_is_added(release: Any, kind: Any, sampler: Any) -> None:
    parameter, value = 7.25, np.arange(6).reshape(2, 3) * 10
    found = release(kind(parameter), value, bits=seeded(3))
    noise = sampler(parameter, 6, bits=seeded(3))
    assert found.dtype == np.int64
    assert found.tolist() == (value + noise.reshape(2, 3)).tolist()


@every
def test_a_float_below_the_decimal_that_it_prints_as_is_taken_as_that(
    release: Any, kind: Any, sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def noted(scale: Any, size: Any, **_: Any) -> Any:
        asked.append(scale)
        return np.zeros(size, np.int64)

    monkeypatch.setattr(f"hockeystick.release.samplers.{sampler.__name__}", noted)
    release(kind(0.3), 5)
    release(kind(0.1), 5)
    assert asked == [math.nextafter(0.3, 1.0), 0.1]


@every
def test_without_noise_the_integers_come_out(release: Any, kind: Any, sampler: Any) -> None:
    small, none = np.array([200], np.uint8), np.zeros((0, 2), np.int32)
    for value in (3, [1, 2], [[2**62, -(2**62)]], small, none):
        found = release(kind(0.0), value, bits=none_left)
        assert found.dtype == np.int64
        assert found.tolist() == np.asarray(value).tolist()


NOISE = SinhNormal(rho=0.25, width=8)


def real(word: Any, rho: Any, width: Any, steps: Any) -> Any:
    """Return the noise of the middle of a word's uniform numbers, in steps."""
    return (
        width * (steps + 1) * mp.asinh(exact("gaussian", word) / (width * mp.sqrt(2 * mp.mpf(rho))))
    )


@pytest.mark.parametrize(("rho", "width"), [(0.25, 8.0), (0.5, 2.0), (1e-3, 1e3), (4.0, 1e6)])
def test_sinh_normal_noise_is_that_of_each_word(rho: Any, width: Any) -> None:
    words = [(k * 0x9E3779B97F4A7C15 + 5) % 2**64 for k in range(1, 9)]
    values = np.linspace(-3.7, 1e4, 8)
    found = sinh_normal(SinhNormal(rho, width), values, 1, bits=replay(words))
    with mp.workprec(300):
        for value, word, out in zip(values, words, found, strict=True):
            steps = round(Fraction(float(value)) * 2**20)
            steps += int(mp.nint(real(word, rho, width, 2**20)))
            assert Fraction(float(out)) == Fraction(steps, 2**20)


def test_a_word_on_a_boundary_takes_more_bits() -> None:
    """The word at which the real noise is half way between two steps."""
    with mp.workprec(400):
        z = mp.sinh((mp.mpf(2**20) - 0.5) / (8 * (2**20 + 1))) * 8 * mp.sqrt(0.5)
        exact = mp.ldexp(mp.erfc(z / mp.sqrt(2)), 63)
        word = 2 * int(mp.floor(exact))
        rest = int(mp.floor(mp.ldexp(exact - mp.floor(exact), 64)))
    found = [
        float(sinh_normal(NOISE, 0.0, 1, bits=replay([word, more]))) * 2**20
        for more in (rest - 2, rest + 2)
    ]
    # the larger u has the smaller noise
    assert found == [2.0**20, 2.0**20 - 1]


CASES = [(0.1, 40.0), (0.1, 10.0), (0.5, 5.0), (0.04, 5.0), (0.9, 2.0), (3.0, 1.0)]


def divergence(rho: Any, width: Any, order: Any, shift: Any) -> float:
    """Return one entry's divergence by quadrature in the noise's own unit."""

    def log_density(z: Any) -> Any:
        square = rho * width**2 * np.sinh(z / width) ** 2
        return 0.5 * math.log(rho / math.pi) + np.log(np.cosh(z / width)) - square

    def both(z: Any) -> Any:
        return order * log_density(z - shift) + (1 - order) * log_density(z)

    reach = width * math.asinh(40 / math.sqrt(2 * rho) / width)
    points = np.linspace(-reach, reach + shift, 20_001)
    top = float(both(points).max())
    total = float(integrate.simpson(np.exp(both(points) - top), x=points))
    return float((top + math.log(total)) / (order - 1))


@pytest.mark.parametrize(("rho", "width"), CASES)
@pytest.mark.parametrize("entries", [1, 2, 9])
def test_the_bound_covers_a_shift_however_it_is_spread(rho: Any, width: Any, entries: Any) -> None:
    found = sinh_normal_divergences(SinhNormal(rho, width)).divergences
    for order, bound in found[:: len(found) // 5]:
        own = entries * divergence(rho, width, order, 1 / math.sqrt(entries))
        assert own <= bound * (1 + 1e-9)
        assert entries > 1 or (rho, width) not in CASES[:3] or bound <= 1.15 * own


def test_wide_noise_costs_what_gaussian_noise_does() -> None:
    found = sinh_normal_divergences(SinhNormal(0.25, 1e6)).divergences
    assert all(0.25 * order <= bound <= 0.25 * order * (1 + 1e-3) for order, bound in found[:40])


def test_the_noise_covers_what_rounding_to_the_grid_adds_to_the_distance() -> None:
    """With the same bits, an entry of 100 has noise for 10 steps more than S, and one for 1."""
    noise = SinhNormal(0.3, 5)
    one = sinh_normal(noise, [0.0], 1, bits=seeded(1))[0]
    many = sinh_normal_vector(noise, np.zeros(100), 1, bits=seeded(1))[0]
    assert abs(one) > 0.3
    assert many / one - 1 == pytest.approx(9 / 2**20, rel=0.2)


@pytest.mark.parametrize(
    "mechanism",
    [hs.Gaussian(1), SinhNormal(math.inf, 3), SinhNormal(10.0, 0.4), SinhNormal(0.1, 1e13)],
)
def test_noise_that_the_bound_does_not_cover_is_refused(mechanism: Any) -> None:
    with pytest.raises(ParameterError, match=r"^mechanism"):
        sinh_normal_divergences(mechanism)
    with pytest.raises(ParameterError, match=r"^mechanism"):
        sinh_normal_vector(mechanism, [1.0], 1, bits=none_left)
