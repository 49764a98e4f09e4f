"""Gaussian, Laplace and multivariate Laplace noise on arrays: on a grid, for what rounding adds."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.numerics import largest_reading
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import (
    gaussian,
    laplace,
    multivariate_laplace,
    multivariate_laplace_length,
    multivariate_laplace_log_density,
    multivariate_laplace_variance,
)
from hockeystick.release._values import grid_of
from hockeystick.release.samplers import rounded_multivariate_laplace
from tests.release.bits import none_left, replay, seeded

BOTH = [(gaussian, hs.Gaussian), (laplace, hs.Laplace)]
STEP = Fraction(1, 2**20)  # the grid of few numbers with sensitivity 1


def grid(noise: Any, sensitivity: Any, moved: Any = 1) -> Any:
    return grid_of(hs.Gaussian(1), noise, sensitivity, moved)


def real(kind: Any, word: Any) -> Any:
    """Return the noise of scale 1 of the middle of a word's uniform numbers."""
    u = mp.ldexp(2 * (word >> 1) + 1, -64)
    size = mp.sqrt(2) * mp.erfinv(1 - u) if kind is hs.Gaussian else -mp.log(u)
    return -size if word & 1 else size


@pytest.mark.parametrize(("release", "kind"), BOTH)
def test_what_comes_out_is_the_rounded_value_plus_rounded_noise(release: Any, kind: Any) -> None:
    values = [[3.25, -1.0], [math.pi, 1e6 / 3]]
    words = [(k * 2654435761 + 12345) * 2**30 % 2**64 | k for k in range(1, 5)]
    found = release(kind(1.5), values, 1, bits=replay(words))
    moved = 2 if release is gaussian else 4
    with mp.workprec(300):
        for value, word, out in zip(np.ravel(values), words, found.ravel(), strict=True):
            noise = real(kind, word) * 3 * (2**20 + moved) / 2
            steps = round(Fraction(float(value)) / STEP) + int(mp.nint(noise))
            assert Fraction(float(out)) == steps * STEP


@pytest.mark.parametrize(("release", "kind"), BOTH)
def test_frequencies_are_those_of_rounded_noise(release: Any, kind: Any, chi_square: Any) -> None:
    """With a multiplier of 3 steps of the grid."""
    drawn = release(kind(3 * 2.0**-20), np.full(200_000, 7 * 2.0**-20), 1, bits=seeded(4))
    moved = math.isqrt(199_999) + 1 if release is gaussian else 200_000
    own = grid(3 * 2.0**-20, 1, moved)
    steps = np.ldexp(drawn, -own.exponent).astype(np.int64) - 7 * 2 ** (-own.exponent - 20)
    s = mp.mpf(own.scale)
    gauss = release is gaussian

    def above(x: Any) -> Any:
        if gauss:
            return mp.erfc(x / s / mp.sqrt(2)) / 2
        return mp.exp(-x / s) / 2 if x > 0 else 1 - mp.exp(x / s) / 2

    cells = max(int(own.scale) // 3, 1)
    binned = np.floor_divide(steps, cells)

    def probability(k: Any) -> Any:
        low, high = mp.mpf(k * cells) - 0.5, mp.mpf((k + 1) * cells) - 0.5
        return float(above(low) - above(high))

    assert chi_square(binned, probability) > 1e-6


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


@settings(max_examples=200)
@given(
    first=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9),
    moves=st.lists(st.floats(-1, 1), min_size=9, max_size=9),
    noise=st.floats(1e-3, 1e12),
    norm=st.sampled_from([1, 2]),
)
def test_the_noise_is_at_least_the_mechanisms_on_the_grid(
    first: Any, moves: Any, noise: Any, norm: Any
) -> None:
    """For every two arrays, with the sensitivity that they have."""
    second = [a + m for a, m in zip(first, moves, strict=False)]
    gaps = [abs(Fraction(b) - Fraction(a)) for a, b in zip(first, second, strict=True)]
    exact = sum(gap**norm for gap in gaps)
    if exact == 0:
        return
    sensitivity = float(exact) if norm == 1 else math.sqrt(float(exact))
    while Fraction(sensitivity) ** norm < exact:
        sensitivity = math.nextafter(sensitivity, math.inf)
    size = len(first)
    moved = size if norm == 1 else math.isqrt(size - 1) + 1
    try:
        own = grid(noise, sensitivity, moved)
        steps = [own.steps("value", np.array(one)) for one in (first, second)]
    except ParameterError:
        return  # too much noise, or values of too many steps
    reached = sum(abs(int(b) - int(a)) ** norm for a, b in zip(*steps, strict=True))
    assert reached <= own.sensitivity**norm
    assert Fraction(own.scale) >= Fraction(noise) * own.sensitivity
    assert own.scale <= float(noise * own.sensitivity) * (1 + 2.0**-50)
    if noise < 2.0**20:
        most = largest_reading(sensitivity) * (1 + Fraction(1, 2**15))
        assert own.sensitivity * Fraction(2) ** own.exponent <= most


@pytest.mark.parametrize(("release", "kind"), BOTH)
def test_neighbours_reach_the_same_floats(release: Any, kind: Any) -> None:
    """All multiples of the step that are near, from numbers that have no bits in common."""
    reached = [
        {float(release(kind(8 * 2.0**-20), value, 1)) for _ in range(3000)}
        for value in (0.1 * 2.0**-20, (1 + math.pi / 10) * 2.0**-20)
    ]
    middle = {k * 2.0**-20 for k in range(-5, 7)}
    assert middle <= reached[0]
    assert middle <= reached[1]


@pytest.mark.parametrize(("release", "kind"), BOTH)
def test_every_output_is_a_multiple_of_the_step(release: Any, kind: Any) -> None:
    for value in (0.0, 0.1, 1 / 3, 1e5):
        drawn = release(kind(0.7), value, 1.0)
        assert drawn.shape == ()
        assert (Fraction(float(drawn)) / STEP).denominator == 1


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_the_account_holds_of_what_is_released(epsilon: Any) -> None:
    """The exact delta of neighbours on the grid, for the set of all integers from some m on.

    With noise for the sensitivity alone, rounding would break the account.
    """
    z, size = 1.5, 4
    own = grid(z, 1, 2)
    said = hs.delta(hs.Gaussian(z), epsilon)

    def delta(moved: Any, scale: Any) -> Any:
        with mp.workdps(40):
            s = mp.mpf(scale)
            best = round(s * s * epsilon / moved + mp.mpf(moved) / 2)  # where losses reach epsilon

            def reached(m: Any) -> Any:
                return mp.ncdf((moved - m + 0.5) / s) - mp.exp(epsilon) * mp.ncdf((0.5 - m) / s)

            return max(reached(m) for m in range(best - 2, best + 3))

    # all entries are rounded apart, each by the whole step that the test above shows
    farthest = mp.mpf(2**20) + math.isqrt(size)
    assert delta(farthest, own.scale) <= said.upper
    assert delta(farthest, own.scale) >= said.lower * (1 - 1e-5)
    assert delta(farthest, z * 2**20) > said.upper


@pytest.mark.parametrize("given", [Fraction(1, 3), Decimal("0.3333333333333333333"), 2**60 + 1])
def test_exact_sensitivities_are_not_rounded_down(given: Any) -> None:
    own = grid(1.0, given)
    assert own.sensitivity >= Fraction(given) / Fraction(2) ** own.exponent + 1


@pytest.mark.parametrize("given", [np.float32("0.7"), np.float16("0.1")])
def test_the_decimal_that_a_short_float_prints_as_is_covered(given: Any) -> None:
    assert float(given) < float(str(given))
    own = grid(1.0, given)
    assert own.sensitivity >= Fraction(str(given)) / Fraction(2) ** own.exponent + 1


def test_both_readings_of_the_parameters_are_covered() -> None:
    assert Fraction(0.3) < Fraction(3, 10)  # the float is below the decimal
    assert grid(1.0, 0.3).sensitivity == Fraction(3, 10) * 2**22 + 1
    for noise in (k / 10 for k in range(1, 400)):
        own = grid(noise, 0.3)
        assert Fraction(own.scale) >= Fraction(repr(noise)) * own.sensitivity
        assert Fraction(own.scale) >= Fraction(noise) * own.sensitivity


@pytest.mark.parametrize(("release", "kind"), BOTH)
def test_values_of_every_kind_keep_their_shape(release: Any, kind: Any) -> None:
    noise = kind(0.0)
    short, none = np.array([[0.1]], np.float32), np.zeros((2, 0, 3))
    for value in (3, 2.5, [1, 2], short, np.int8(-3), [], none):
        found = release(noise, value, 1, bits=none_left)
        assert found.dtype == np.float64
        assert found.shape == np.shape(value)
        assert found.tolist() == np.asarray(value, dtype=np.float64).tolist()
    assert release(kind(1.0), [], 1).shape == (0,)


def test_much_noise_makes_the_grid_coarser_and_no_less_private() -> None:
    fine, coarse = grid(2.0, 1), grid(2.0**40, 1)
    assert fine.exponent == -20
    assert coarse.exponent > -20
    assert 2.0**43 <= coarse.scale <= 2.0**44
    assert Fraction(coarse.scale) >= 2**40 * (Fraction(2) ** -coarse.exponent + 1)


@pytest.mark.parametrize("sensitivity", [5e-324, 1e-300, 1.7976931348623157e308])
def test_sensitivities_at_the_ends_of_floats(sensitivity: Any) -> None:
    own = grid(1.0, sensitivity)
    assert 2**20 <= own.sensitivity - 1 <= 2**21
    found = gaussian(hs.Gaussian(1e-9), 0.0, sensitivity)
    assert math.isfinite(float(found))


NAN = float("nan")
WRONG = [
    ("value", [1.0, NAN], 1),
    ("value", math.inf, 1),
    ("value", "many", 1),
    ("value", [True], 1),
    ("value", [[1], [1, 2]], 1),
    ("value", [1j], 1),
    ("value", 2**53 + 1, 1),
    ("value", 2**70, 1),
    ("value", [2**53 + 1, 0.5], 2**12),  # floats, of which the first is rounded
    ("value", ((0.5, 1.0), (-1, 2**53 + 3)), 2**12),
    ("value", [np.array([2**53 + 1]), np.array([0.5])], 2**12),
    ("value", np.ma.masked_array([1.0, 5e5], mask=[False, True]), 1),
    ("value", [np.ma.masked_array([1.0, 5e5], mask=[False, True]), [0.0, 0.0]], 1),
    ("value", 1e300, 1),
    ("sensitivity", 1.0, 0),
    ("sensitivity", 1.0, -1),
    ("sensitivity", 1.0, NAN),
    ("sensitivity", 1.0, math.inf),
    ("sensitivity", 1.0, "1"),
]


@pytest.mark.parametrize(("release", "kind"), BOTH)
@pytest.mark.parametrize(("name", "value", "sensitivity"), WRONG)
def test_bad_arguments_are_named_and_nothing_is_charged(
    release: Any, kind: Any, name: Any, value: Any, sensitivity: Any
) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError, match=f"^{name} must be") as caught:
        release(kind(1.0), value, sensitivity, charge=account, bits=none_left)
    assert len(str(caught.value).splitlines()) == 1
    assert len(account) == 0


@pytest.mark.parametrize(("release", "kind"), BOTH)
@pytest.mark.parametrize("wrong", [1.0, "gaussian", hs.Exponential(1), hs.Gaussian, None])
def test_other_mechanisms_are_refused(release: Any, kind: Any, wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^mechanism must be"):
        release(wrong, 1.0, 1, bits=none_left)
    for noise in (math.inf, 2.0**44):
        with pytest.raises(ParameterError, match=r"^mechanism must be of noise up to 2\^43 times"):
            release(kind(noise), 1.0, 1, bits=none_left)


def test_a_generator_that_fails_releases_nothing() -> None:
    def failing(count: Any) -> Any:
        raise OSError("no entropy")

    with pytest.raises(OSError, match="no entropy"):
        gaussian(hs.Gaussian(1.0), 1.0, 1, bits=failing)


FIVE = hs.mechanisms.MultivariateLaplace(1.5, dimension=5)


def test_what_comes_out_is_the_rounded_value_plus_rounded_noise_of_the_right_scale() -> None:
    """Five numbers, each rounded by half a step, are moved by at most ceil(sqrt(5)) = 3 steps."""
    value = np.array([3.25, -1.0, math.pi, 1e6 / 3, 0.0])
    for seed in range(5):
        found = multivariate_laplace(FIVE, value, 1, bits=seeded(seed))
        drawn = rounded_multivariate_laplace(1.5 * (2**20 + 3), 5, bits=seeded(seed))
        steps = [round(Fraction(one) / Fraction(float(STEP))) for one in value.tolist()]
        assert (found / float(STEP)).tolist() == [a + b for a, b in zip(steps, drawn, strict=True)]


def test_noise_grows_with_the_sensitivity() -> None:
    small, large = (
        multivariate_laplace(FIVE, np.zeros(5), size, bits=seeded(1)) for size in (1.0, 8.0)
    )
    assert large == pytest.approx(small * 8, rel=1e-9)


def test_without_noise_it_is_the_vector_itself() -> None:
    silent = hs.mechanisms.MultivariateLaplace(0.0, dimension=2)
    assert multivariate_laplace(silent, [0.1, 0.2], 1, bits=none_left).tolist() == [0.1, 0.2]


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


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_the_density_integrates_to_1(dimension: int) -> None:
    noise = hs.mechanisms.MultivariateLaplace(0.7, dimension)
    sphere = 2 * mp.pi ** (mp.mpf(dimension) / 2) / mp.gamma(mp.mpf(dimension) / 2)

    def term(r: Any) -> Any:
        point = np.eye(dimension)[0] * float(r)
        log = multivariate_laplace_log_density(noise, 2.0, point)
        return sphere * r ** (dimension - 1) * mp.exp(float(log))

    assert float(mp.quad(term, [0, 5, 10, 20, 60, 120])) == pytest.approx(1.0, rel=1e-12)


def test_the_density_keeps_the_shape_of_what_it_is_asked() -> None:
    noise = hs.mechanisms.MultivariateLaplace(1.0, 3)
    assert multivariate_laplace_log_density(noise, 1.0, np.zeros((4, 5, 3))).shape == (4, 5)
    far = multivariate_laplace_log_density(noise, 2.0, [[3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    assert far[1] - far[0] == pytest.approx(2.5, rel=1e-14)
    for points, scale, told in ((np.zeros(4), 1.0, "points"), (np.zeros(3), 0.0, "no density")):
        noise = hs.mechanisms.MultivariateLaplace(scale, 3)
        with pytest.raises(ParameterError, match=told):
            multivariate_laplace_log_density(noise, 1.0, points)


def test_the_variance_of_a_coordinate_and_the_mean_length_are_as_stated() -> None:
    noise, bits = hs.mechanisms.MultivariateLaplace(0.5, 3), seeded(17)
    drawn = np.array(
        [multivariate_laplace(noise, np.zeros(3), 2.0, bits=bits) for _ in range(4000)]
    )
    for values, mean in (
        ((drawn**2).mean(axis=1), multivariate_laplace_variance(noise, 2.0)),
        (np.linalg.norm(drawn, axis=1), multivariate_laplace_length(noise, 2.0)),
    ):
        assert abs(values.mean() - mean) < 4.5 * values.std() / math.sqrt(4000)
    one = hs.mechanisms.MultivariateLaplace(3.0, 1)
    assert multivariate_laplace_variance(one, 1.0) == 2 * 9.0


def test_the_privacy_loss_of_drawn_noise_exceeds_a_level_as_often_as_the_cells_say() -> None:
    from hockeystick.privacy_loss import MultivariateLaplaceLoss

    noise, bits = hs.mechanisms.MultivariateLaplace(3 / 11, 11), seeded(6)
    drawn = np.array([multivariate_laplace(noise, np.zeros(11), 1, bits=bits) for _ in range(4000)])
    lengths = [np.linalg.norm(one, axis=1) for one in (drawn + np.eye(11)[3], drawn)]
    loss = (lengths[0] - lengths[1]) * 11 / 3
    one_run = MultivariateLaplaceLoss(3 / 11, 11)
    for level in (-1.0, 0.5, 2.0):
        above = math.exp(one_run.cells(np.array([level, math.inf])).log_p[0])
        assert stats.binomtest(int((loss > level).sum()), 4000, above).pvalue > 1e-4


@pytest.mark.parametrize(
    ("noise", "sensitivity", "name"),
    [
        (hs.mechanisms.MultivariateLaplace(math.inf, 3), 1.0, "scale"),
        (hs.mechanisms.MultivariateLaplace(1.0, 3), 0.0, "sensitivity"),
        (hs.mechanisms.MultivariateLaplace(1.0, 3), math.nan, "sensitivity"),
    ],
)
def test_what_noise_is_not_described_of_is_named(noise: Any, sensitivity: Any, name: str) -> None:
    for ask in (
        lambda: multivariate_laplace_log_density(noise, sensitivity, np.zeros(3)),
        lambda: multivariate_laplace_variance(noise, sensitivity),
        lambda: multivariate_laplace_length(noise, sensitivity),
    ):
        with pytest.raises(ParameterError, match=f"^{name} must be"):
            ask()
