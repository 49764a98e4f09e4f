"""The tilted loss density and what lies below it by the kernel, against mpmath's level sets."""

from itertools import pairwise

import numpy as np
import pytest

from hockeystick.kernels import uniform_minorant as kernel
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import uniform_minorant as twin
from hockeystick.precision.sampled_gaussian import cumulant_sums

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
