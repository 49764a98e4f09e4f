"""The tilted loss density and what lies below it by the kernel, against mpmath's level sets."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hockeystick.kernels import uniform_minorant as kernel
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import uniform_minorant as twin
from hockeystick.precision.sampled_gaussian import cumulant_sums

ULP = 2.0**-52
rates = st.floats(-8, -0.02).map(lambda x: 10.0**x)
means = st.floats(-2, 1).map(lambda x: 10.0**x)
powers = st.one_of(st.floats(-30, 60), st.floats(-2, 2))


@given(rates, means, powers, st.floats(-40, 40))
def test_the_density_and_its_slope_are_the_formulas(
    p: float, mu: float, w: float, u: float
) -> None:
    found, slope = kernel.log_density(p, mu, w, u), kernel.density_slope(p, mu, w, u)
    with mp.workdps(40):
        exact = [mp.mpf(one) for one in (p, mu, w, u)]
        parts = 1 + u * u + mu * mu + (1 + abs(w)) * (abs(mu * u) + mu * mu + 40) / (1 - p)
        assert abs(found - twin.log_density(*exact)) <= 32 * ULP * parts
        truth = twin.density_slope(*exact)
        assert abs(slope - truth) <= 32 * ULP * (1 + mu) * parts
        by_definition = mp.diff(
            lambda x: twin.log_density(exact[0], exact[1], exact[2], x), exact[3]
        )
        assert abs(truth - by_definition) <= mp.mpf(10) ** -15 * parts


@given(rates, means, powers)
@example(1e-4, 4.0, 7.0)
def test_the_density_rises_to_each_mode_and_falls_to_the_cut(p: float, mu: float, w: float) -> None:
    found, first, second, cut = kernel.modes(p, mu, w)
    turns = [(first, 1), (second, 1), (cut, -1)] if found == 2 else [(first, 1)]
    with mp.workdps(40):
        for u, side in turns:
            near = mp.mpf(2e-9 * (1.0 + abs(u)))
            before, after = (twin.density_slope(p, mu, w, u + d) for d in (-near, near))
            assert side * before > 0 > side * after


GRID = [
    (p, mu, w)
    for p, mu in ((1e-4, 1.25), (0.01, 1.0), (0.3, 0.66), (1e-4, 4.0), (0.9, 2.0))
    for w in (-6.0, -0.05, 1.05, 7.0, 31.0)
]


@pytest.mark.parametrize(("p", "mu", "w"), GRID)
def test_modes_are_all_the_modes(p: float, mu: float, w: float) -> None:
    with mp.workdps(15):
        assert kernel.modes(p, mu, w) == pytest.approx(
            [float(one) for one in twin.modes(p, mu, w)], abs=3e-9
        )


@pytest.mark.parametrize(("p", "mu", "w"), GRID[1::4])
def test_layers_lie_below_the_density_and_hold_most_of_it(p: float, mu: float, w: float) -> None:
    removing, c = (True, w - 1.0) if w > 0.0 else (False, -w)
    with mp.workdps(20):
        log_norm = mp.log1p(cumulant_sums(mp.mpf(p), mp.mpf(mu), removing, mp.mpf(c))[0])
        width, mass, variation = kernel.level_sets(p, mu, w, False, float(log_norm), 0.0)
        # Each stack begins with a layer of no width, at its mode.
        starts = np.flatnonzero(width == 0.0).tolist()
        stacks = [slice(j + 1, k) for j, k in pairwise([*starts, width.size])]
        high = [mass[one] / width[one] for one in stacks]
        levels = [np.cumsum(one[::-1])[::-1][::12].tolist() for one in high]
        exact = twin.level_sets(p, mu, w, log_norm, [x for one in levels for x in one])
        assert len(exact) == len(stacks)
        limits = [
            x for k, row in enumerate(exact) for x in row[len(levels[0]) * k :][: len(levels[k])]
        ]
        taken = [x for one in stacks for x in width[one][::12]]
        assert all(x <= limit * (1 + 1e-9) for x, limit in zip(taken, limits, strict=True))
        assert 0.7 < mass.sum() <= 1.0
        found, *peaks, cut = twin.modes(p, mu, w)
        tops = [mp.exp(twin.log_density(p, mu, w, u) - log_norm) for u in peaks[:found]]
        least = mp.exp(twin.log_density(p, mu, w, cut) - log_norm) if found == 2 else mp.zero
        assert 2 * (mp.fsum(tops) - least) <= variation <= 2 * mp.fsum(tops) * (1 + 1e-5)


layer_lists = st.lists(st.tuples(st.floats(0, 30), st.floats(1e-9, 1)), min_size=1, max_size=6)


@given(layer_lists, st.floats(0, 20), st.floats(0.01, 30))
@example([(1.0, 1.0)], 2 * 2.55, math.inf)
@example([(1.0, 1.0)], 2 * 0.3, math.inf)
@example([(1.0, 1.0)], 2 * 4.4, math.inf)
@example([(1.0, 1.0)], 2 * 7.7, math.inf)
def test_the_exponent_of_layers_is_below_that_of_their_transforms(
    layers: list[tuple[float, float]], y: float, variation: float
) -> None:
    width, mass = (np.array(one) for one in zip(*layers, strict=True))
    mass /= max(1.0, mass.sum() * (1.0 + 1e-6))
    found = kernel.minorant_exponent(width, mass, variation, y)
    with mp.workdps(25):
        truth = twin.minorant_exponent(list(width), list(mass), mp.mpf(variation), mp.mpf(y))
        assert found <= truth + 64 * ULP / math.exp(-float(truth))
        # Where the envelope of sinc is used instead of its maxima, up to 0.08 of the mass is lost.
        assert math.exp(-found) <= mp.exp(-truth) + 0.08 * mass.sum() + 1e-9
        if (0.5 * y * width < 2.5).all():
            assert math.exp(-found) <= mp.exp(-truth) + 1e-6
