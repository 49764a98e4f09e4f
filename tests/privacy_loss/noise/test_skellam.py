"""The loss of Skellam noise, against Bessel functions."""

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import SkellamLoss
from hockeystick.privacy_loss.core.atomic import LOG_LEAST_MASS


@pytest.mark.parametrize(
    ("variance", "order", "truth"),
    [
        (10.0, 2, 0.099654438453542522904),
        (10.0, 8, 0.36463380820611164586),
        (100.0, 16, 0.07953977601297696448),
    ],
)
def test_renyi_divergences_are_the_known_values(variance: float, order: int, truth: float) -> None:
    found = SkellamLoss(variance, 1).cgf_bounds(order - 1.0)
    assert abs(found.midpoint - truth * (order - 1)) <= found.radius
    assert found.midpoint / (order - 1) == pytest.approx(truth, rel=1e-14)


@pytest.mark.parametrize("shift", [1, 4])
@pytest.mark.parametrize("variance", [1e-300, 1e-9, 0.03, 1.0, 50.0, 3e3])
def test_the_atoms_are_ratios_of_bessel_functions(variance: float, shift: int) -> None:
    atoms = SkellamLoss(variance, shift).atoms()
    size = atoms.loss.size
    last = (size - 1 - shift) // 2
    with mp.workdps(40):
        v = mp.mpf(repr(variance))

        def log_p(k: int) -> mp.mpf:
            return mp.log(mp.besseli(abs(k), v)) - v

        for index in {0, 1, size // 3, size // 2 - 1, size // 2, 2 * size // 3, size - 1}:
            k = index - last - shift
            own, other = log_p(k), log_p(k + shift)
            assert abs(atoms.log_p[index] - own) <= atoms.error[index]
            assert abs(atoms.loss[index] - (own - other)) <= 4 * 2.0**-52 * abs(own - other) + 1e-35
    assert (atoms.error <= 2e-15 * (np.abs(atoms.log_p) + 10.0)).all()


@pytest.mark.parametrize("variance", [1e-9, 0.5, 12.0, 900.0, 4e3])
def test_what_is_not_listed_is_as_small_as_promised(variance: float) -> None:
    last = (SkellamLoss(variance, 1).atoms().loss.size - 2) // 2
    with mp.workdps(30):
        v = mp.mpf(repr(variance))
        first, next_one = (mp.besseli(last + k, v) * mp.exp(-v) for k in (1, 2))
        assert mp.log(2 * first / (1 - next_one / first)) < LOG_LEAST_MASS


@pytest.mark.parametrize("variance", [0.5, 10.0, 200.0])
@pytest.mark.parametrize("c", [0.5, 3.0, 20.0, 150.0])
def test_the_upper_bound_of_the_moments_holds(variance: float, c: float) -> None:
    loss = SkellamLoss(variance, 2)
    found = loss.cgf_bounds(c)
    assert found.midpoint - found.radius <= loss.cgf_upper(c)


@pytest.mark.parametrize("c", [1.0, 40.0, 120.0])
def test_the_bound_on_what_is_omitted_holds_the_tail(c: float) -> None:
    loss = SkellamLoss(2.0, 3)
    last = (loss.atoms().loss.size - 4) // 2
    with mp.workdps(30):
        p = [mp.besseli(k, 2) * mp.exp(-2) for k in range(last + 1, last + 404)]
        tail = mp.fsum(p[k] * (p[k] / p[k + 3]) ** c for k in range(400))
        assert mp.log(tail) <= loss.log_omitted_moment(c)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "2", "4"])
@pytest.mark.parametrize(("variance", "shift"), [(3.0, 1), (40.0, 5)])
def test_delta_is_a_sum_over_bessel_functions(variance: float, shift: int, epsilon: str) -> None:
    with mp.workdps(40):
        level, v = mp.mpf(epsilon), mp.mpf(variance)
        p = [mp.besseli(k, v) * mp.exp(-v) for k in range(400)]
        terms = (p[abs(k)] - mp.exp(level) * p[abs(k + shift)] for k in range(-20, 350))
        truth = mp.fsum(max(term, 0) for term in terms)
        found = SkellamLoss(variance, shift).delta(level)
        assert abs(found - truth) < mp.mpf(10) ** -35 * truth


def test_a_delta_below_any_float_is_bounded_by_the_least_one() -> None:
    found = hs.delta(hs.mechanisms.Skellam(10), epsilon=30)
    assert found.lower == 0.0
    assert 0.0 < found.upper <= 5e-324
