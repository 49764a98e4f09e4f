"""Sinh-normal and Gaussian noise on the sum of clipped vectors: sensitivity, noise and cost."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from hockeystick.mechanisms import SinhNormal
from tests.systems.programs import program

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def example() -> Any:
    return program("sinh_normal")


def test_leaving_out_a_vector_moves_the_sum_by_its_clipped_length_exactly(example: Any) -> None:
    _, rows = example.vectors(0)
    rows = rows[:300]
    assert 0.05 < (np.linalg.norm(rows, axis=1) > 1).mean() < 0.5
    moved = [
        example.clipped_sum(rows) - example.clipped_sum(np.delete(rows, k, 0)) for k in range(300)
    ]
    lengths = np.array([np.square(one * 2**22).sum() for one in moved])
    assert lengths.max() <= 2.0**44
    assert lengths.max() > (1 - 1e-5) ** 2 * 2.0**44


@pytest.mark.parametrize("method", ["sinh-normal, width 40", "sinh-normal, width 320"])
def test_the_noise_has_the_law_and_the_deviation_that_are_charged(
    example: Any, method: str
) -> None:
    noise = example.planned(method)
    drawn = example.released(noise, np.zeros(200), None, np.random.PCG64(5).random_raw)
    stretched = noise.width * np.sinh(drawn / noise.width)
    normal = stretched * (2 * noise.rho) ** 0.5
    assert stats.kstest(normal, "norm").pvalue > 1e-3


@pytest.mark.parametrize("name", ["charge", "budget", "deviation"])
def test_what_is_not_as_accounted_is_seen(
    example: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged as the number's own noise; of twice the rho; drawn with less noise."""
    right = example.released

    def released(noise: Any, total: Any, charge: Any, bits: Any) -> Any:
        if name == "charge":
            charge.step(noise)
            return right(noise, total, None, bits)
        if name == "budget":
            return right(SinhNormal(2 * noise.rho, noise.width), total, charge, bits)
        charge.step(example.account(noise))
        return right(SinhNormal(16 * noise.rho, noise.width), total, None, bits)

    monkeypatch.setattr(example, "released", released)
    assert not example.run(1, method="sinh-normal, width 40").checks[name]
