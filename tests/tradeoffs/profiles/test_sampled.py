"""Profiles of samples at random arguments, beside their formulas in fifty digits."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hockeystick.kernels.series import Array
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs.profiles.profile import (
    GaussianProfile,
    Profile,
    ProfileValues,
    SampledProfile,
    SwappedSampledProfile,
)
from hockeystick.tradeoffs.rounding import down, up

STEEPNESS = 1000


@dataclass(frozen=True, slots=True)
class Steep(Profile):
    """A delta that falls so fast that each unit of epsilon's last place counts."""

    @property
    def supremum(self) -> float:
        """Infinite."""
        return math.inf

    def at(self, epsilon: Array) -> ProfileValues:
        """Return the nearest floats on either side."""
        with mp.workdps(50):
            exact = [mp.exp(-STEEPNESS * mp.mpf(one)) for one in epsilon.tolist()]
            low, high = np.array([*map(down, exact)]), np.array([*map(up, exact)])
        return ProfileValues(low, low, high, -STEEPNESS * low)


def drawn(seed: int) -> Iterator[tuple[float, float]]:
    """Yield rates and epsilons at which little is left, but something."""
    draw = np.random.default_rng(seed)
    for _ in range(60):
        rate = float(10 ** draw.uniform(-3, -0.01))
        yield rate, rate * float(draw.uniform(0.0, 0.3))


def test_a_sample_s_profile_is_its_formula_within_its_ends() -> None:
    with mp.workdps(50):
        for rate, epsilon in drawn(1):
            found = SampledProfile(Steep(), rate).at(np.array([epsilon]))
            inner = mp.log1p(mp.expm1(mp.mpf(epsilon)) / mp.mpf(rate))
            truth = rate * mp.exp(-STEEPNESS * inner)
            assert found.lower[0] <= truth <= found.upper[0] <= found.lower[0] * (1 + 1e-9)


def test_the_other_direction_s_profile_is_its_formula_within_its_ends() -> None:
    with mp.workdps(50):
        for rate, epsilon in drawn(2):
            found = SwappedSampledProfile(Steep(), rate).at(np.array([epsilon]))
            w = 1 - (1 - mp.mpf(rate)) * mp.exp(mp.mpf(epsilon))
            truth = w * mp.exp(-STEEPNESS * (epsilon + mp.log(rate / w)))
            assert found.lower[0] <= truth <= found.upper[0] <= found.lower[0] * (1 + 1e-6)


def test_a_gaussian_s_profile_is_its_formula_within_its_ends() -> None:
    draw = np.random.default_rng(3)
    with mp.workdps(50):
        for _ in range(4):
            mu, share = float(10 ** draw.uniform(-2, 1)), float(draw.uniform(-3.0, 8.0))
            epsilon = max(mu * (share + 0.5 * mu), 0.0)
            found = GaussianProfile(mu).at(np.array([epsilon]))
            a = mp.mpf(epsilon) / mu - mp.mpf(mu) / 2
            truth = mp.ncdf(-a) - mp.exp(epsilon) * mp.ncdf(-a - mu)
            assert found.lower[0] <= truth <= found.upper[0]
            assert found.upper[0] - found.lower[0] <= 1e-9 * found.upper[0]
