"""Sinh-normal and Gaussian noise on the sum of clipped vectors: sensitivity, noise and cost."""

from typing import Any

import numpy as np
import pytest

from hockeystick.mechanisms import SinhNormal
from tests.systems.programs import program

pytestmark = pytest.mark.extras

METHODS = ("Gaussian", "sinh-normal, width 40", "sinh-normal, width 80", "sinh-normal, width 320")


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


@pytest.mark.parametrize("method", METHODS)
def test_a_mean_is_released_as_it_is_accounted(example: Any, method: str) -> None:
    found = example.run(1, method=method)
    assert found.checks == dict.fromkeys(("charge", "budget", "sensitivity", "deviation"), True)
    assert 0.995 < found.epsilon <= 1.0
    assert found.epsilon == example.cost(example.planned(method))


@pytest.mark.parametrize("name", ["charge", "budget", "deviation"])
def test_what_is_not_as_accounted_is_seen(
    example: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
