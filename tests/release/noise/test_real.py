"""Gaussian and Laplace noise on arrays: on a grid, for the distance that rounding may add."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.numerics import largest_reading
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import gaussian, laplace
from hockeystick.release.noise._grid import grid_of
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


@pytest.mark.parametrize(("release", "kind"), BOTH)
def test_the_charge_comes_before_any_bit(release: Any, kind: Any) -> None:
    happened = []

    class Book:
        def step(self, mechanism: Any) -> None:
            happened.append(mechanism)

    def bits(count: Any) -> Any:
        happened.append(count)
        return np.full(count, 2**60, dtype=np.uint64)

    release(kind(1.0), [1.0, 2.0], 1, charge=Book(), bits=bits)
    assert happened == [kind(1.0), 2]


@pytest.mark.parametrize(("release", "kind"), BOTH)
def test_a_refused_charge_draws_nothing(release: Any, kind: Any) -> None:
    budget = hs.ZCDP(0.1)
    spending = hs.calibration.Filter(budget)
    with pytest.raises(hs.errors.BudgetExhausted):
        release(kind(1.0), [1.0], 1, charge=spending, bits=none_left)
    assert spending.left == budget


def test_an_accountant_knows_what_was_released() -> None:
    account = hs.Accountant()
    gaussian(hs.Gaussian(2.0), [1.0], 3.0, charge=account)
    laplace(hs.Laplace(2.0), 1, 1, charge=account)
    assert account.plan == hs.Gaussian(2.0) @ hs.Laplace(2.0)


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


@pytest.mark.parametrize("charge", [hs.Accountant, 3, "account", object()])
def test_what_cannot_be_charged_is_refused(charge: Any) -> None:
    with pytest.raises(ParameterError, match=r"^charge must be"):
        gaussian(hs.Gaussian(1.0), 1.0, 1, charge=charge, bits=none_left)


def test_private_values_are_not_shown_in_errors() -> None:
    with pytest.raises(ParameterError) as caught:
        gaussian(hs.Gaussian(1.0), [123456.0, NAN], 1)
    assert "123456" not in str(caught.value)


def test_a_generator_that_fails_releases_nothing() -> None:
    def failing(count: Any) -> Any:
        raise OSError("no entropy")

    with pytest.raises(OSError, match="no entropy"):
        gaussian(hs.Gaussian(1.0), 1.0, 1, bits=failing)
