"""A line in one call: what it says of K, of the aliases and of the rest, against mpmath."""

import math

import numpy as np
import pytest
from mpmath import mp

from hockeystick.kernels import sampled_gaussian_contour as kernel
from hockeystick.kernels.sampled_gaussian_saddle import saddle

FAR = (4.7, -20.0, 0.005)
WORK = 1e6
# Rates, noise multipliers and counts.
PLANS = [
    [(0.01, 1.0, 1000)],
    [(0.2, 3.0, 50)],
    [(1e-3, 0.8, 40_000)],
    [(0.01, 1.0, 300), (0.05, 2.0, 100), (0.5, 9.0, 7)],
]
DIRECTIONS = [True, False]
Runs = list[tuple[float, float, int]]


def asked(
    runs: Runs, removing: bool, goal: float, *, at_epsilon: bool = False, accuracy: float = 32.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the kernel's answer."""
    p, noise, count = (np.array(column, dtype=float) for column in zip(*runs, strict=True))
    far = (math.inf, math.inf, 0.0) if len(runs) > 1 else FAR
    return kernel.contour(
        p, 1.0 / noise, count, removing, goal, at_epsilon, 1.0, accuracy, WORK, far
    )


def cgf(runs: Runs, removing: bool, z: mp.mpc) -> mp.mpc:
    """Return K of all runs by mpmath's own quadrature."""
    found = mp.zero
    for p, noise, count in runs:
        mu = mp.mpf(1.0 / noise)
        found += count * mp.log(_moment(mp.mpf(p), mu, 1 + z if removing else -z))
    return found


def _moment(p: mp.mpf, mu: mp.mpf, w: mp.mpc) -> mp.mpc:
    """Return ``E[r(U)^w]`` over N(0, 1)."""

    def term(u: mp.mpf) -> mp.mpc:
        return mp.npdf(u) * (1 - p + p * mp.exp(mu * u - mu * mu / 2)) ** w

    ends = [mp.mpf(x) for x in range(-14, 15 + 2 * math.ceil(float(abs(mp.re(w)) * mu)), 2)]
    return mp.quad(term, ends)


@pytest.mark.parametrize("removing", DIRECTIONS)
@pytest.mark.parametrize("runs", PLANS)
def test_the_line_is_within_its_error_of_the_integral(runs: Runs, removing: bool) -> None:
    line, real, imag, error = asked(runs, removing, math.log(1e-6))
    c, _, _, above, below, upper_above, upper_below, step, _ = line
    assert error.max() < 1e-8
    with mp.workdps(30):
        for k in (0, 1, real.size // 2, real.size - 1):
            truth = cgf(runs, removing, mp.mpc(c, step * k))
            turns = round(float(mp.im(truth) - imag[k]) / (2.0 * math.pi))
            found = mp.mpc(real[k], imag[k]) + 2j * mp.pi * turns
            assert abs(truth - found) <= error[k]
        for order, upper in ((above, upper_above), (below, upper_below)):
            exact = mp.re(cgf(runs, removing, mp.mpf(order)))
            assert exact <= upper <= exact + 1e-8 * (1 + exact)


@pytest.mark.parametrize("removing", DIRECTIONS)
def test_the_rest_of_the_line_is_below_its_bound(removing: bool) -> None:
    runs = PLANS[1]
    line, real, _, _ = asked(runs, removing, math.log(1e-6), accuracy=4.0)
    c, step, truncation = line[0], line[7], line[8]
    end = step * (real.size - 1)
    with mp.workdps(15):
        size = mp.re(cgf(runs, removing, mp.mpf(c)))

        def rest(y: mp.mpf) -> mp.mpf:
            z = mp.mpc(c, y)
            return mp.exp(mp.re(cgf(runs, removing, z)) - size) / abs(z * (1 + z)) / mp.pi

        beyond = mp.quad(rest, [end, 1.5 * end, 2.5 * end], maxdegree=3)
    assert 0.0 < beyond < truncation < math.exp(-3.0)


def test_a_long_line_gives_way_to_one_further_left() -> None:
    run = [(256 / 60_000, 1.196, 1395)]
    p, noise, count = (np.array(column, dtype=float) for column in zip(*run, strict=True))
    c = saddle(p, 1.0 / noise, count, True, math.log(1e-5), False, 1.0, FAR)
    line, real, _, _ = asked(run, True, math.log(1e-5))
    assert line[0] < 0.9 * c
    assert real.size < 200


def test_an_order_at_which_hits_decide_costs_no_long_quadrature() -> None:
    p, noise, count = (np.array([one]) for one in (0.0063, 7.7, 177.0))
    goal = math.log(1.2e-5)
    c = saddle(p, 1.0 / noise, count, True, goal, False, 1.0, FAR)
    run = p, 1.0 / noise, count, True
    line, last, (nodes, _, _) = kernel.line_through(*run, c, 0.03, goal, 32.0, WORK)
    assert 0 < last < 60
    assert c < line[3]
    # At the order of the least window, that of 1.9 c, it takes 2,600.
    assert nodes.shape[1] < 400


@pytest.mark.parametrize(
    ("runs", "goal"),
    [
        # Rare large losses decide.
        ([(1e-5, 0.5, 100_000)], math.log(1e-10)),
        # The sum would take too many terms.
        ([(0.5, 0.05, 2)], math.log(1e-10)),
    ],
)
def test_there_is_no_line_where_another_route_is_shorter(runs: Runs, goal: float) -> None:
    assert all(one.size == 0 for one in asked(runs, True, goal))
