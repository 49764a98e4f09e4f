"""Sinh-normal and Gaussian noise on the sum of clipped vectors: sensitivity, noise and cost."""

from typing import Any

import pytest

from hockeystick.mechanisms import SinhNormal
from tests.systems.programs import program

pytestmark = pytest.mark.extras

METHODS = ("Gaussian", "sinh-normal, width 40", "sinh-normal, width 80", "sinh-normal, width 320")


@pytest.fixture(scope="module")
def example() -> Any:
    return program("sinh_normal")


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
