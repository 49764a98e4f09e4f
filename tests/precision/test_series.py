"""The sums of the arbitrary-precision line, against exponentials one by one."""

import random

import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.series import cgf_line, turned_sums


@pytest.mark.parametrize("digits", [15, 30, 80])
@pytest.mark.parametrize("spread", [0, 5, 300])
def test_turned_sums_are_those_of_the_exponentials(spread: int, digits: int) -> None:
    source = random.Random(spread + digits)
    with mp.workdps(digits):
        sizes = [mp.mpf(10) ** source.uniform(-spread, spread) for _ in range(40)]
        angles = [mp.mpf(source.uniform(-30, 30)) for _ in sizes]
        found = turned_sums(sizes, angles, 300)
        largest = max(sizes)
        for k in (0, 1, 7, 299):
            with mp.extraprec(60):
                terms = [
                    size * mp.expj(k * angle) for size, angle in zip(sizes, angles, strict=True)
                ]
                truth = mp.fsum(terms)
            # What is summed is rounded once more, to a number of so many digits.
            assert abs(found[k] - truth) <= mp.eps * (largest + 2 * abs(truth))


def test_turned_sums_of_nothing_are_nothing() -> None:
    assert turned_sums([], [], 3) == [0, 0, 0]
    assert turned_sums([mp.zero, mp.zero], [mp.one, mp.pi], 2) == [0, 0]


def test_a_line_of_tiny_losses_keeps_its_digits() -> None:
    # M - 1 is of the order of the square of the losses: 10^-120 here.
    with mp.workdps(30):
        loss = [mp.mpf(10) ** -60 * j for j in range(-3, 5)]
        mass = [mp.mpf(1) / 8 for _ in loss]
        with mp.extraprec(900):
            points = [mp.mpc(2.5, mp.mpf(0.75) * k) for k in range(5)]
            terms = [
                [m * (mp.expm1(z * x) + z * mp.expm1(-x)) for x, m in zip(loss, mass, strict=True)]
                for z in points
            ]
            truth = [mp.log1p(mp.fsum(one)) for one in terms]
        found = cgf_line(loss, mass, 2.5, 0.75, 5)
        for one, true in zip(found, truth, strict=True):
            assert abs(one - true) < 1e-27 * abs(true)


def test_a_long_line_keeps_its_digits_to_the_end() -> None:
    # The angle turned by then is 40,000: its own digits are lost where one step's are kept.
    with mp.workdps(60):
        loss = [mp.mpf(2) / 3, mp.mpf(-2) / 3]
        mass = [1 / (1 + mp.exp(-x)) for x in loss]
    with mp.workdps(20):
        found = cgf_line(loss, mass, 1.5, 2.0, 30_000)[-1]
        with mp.workdps(60):
            z = mp.mpc(1.5, mp.mpf(2) * 29_999)
            truth = mp.log(mp.fsum(m * mp.exp(z * x) for x, m in zip(loss, mass, strict=True)))
        assert abs(mp.exp(found - truth) - 1) < 1e-18
