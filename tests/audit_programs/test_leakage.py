"""Digits from gradients: rebuilt without noise, hidden by it, named no more often than proven."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from tests.systems.programs import AUDIT, program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module", autouse=True)
def leakage() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield program("leakage", AUDIT)
    torch.set_num_threads(threads)


def error(leakage: Any, system: Any, kind: int, records: int = 2) -> float:
    """Return the error of the digits that an attack rebuilds from what a type leaks."""
    batch = leakage.digits(records) if kind < 2 else leakage.digits(1)
    model, seen = system.seen(kind, batch, np.random.default_rng(0))
    return float(leakage.rmse(leakage.rebuilt(model, seen, batch.labels), batch.pixels))


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_without_privacy_every_type_gives_the_digits_away(leakage: Any, kind: int) -> None:
    assert error(leakage, leakage.systems(1.0)[0], kind) < 0.01


def test_the_first_layer_gives_a_digit_away_without_a_search(leakage: Any) -> None:
    batch = leakage.digits(1)
    _, seen = leakage.systems(0.0)[3].seen(2, batch, np.random.default_rng(0))
    assert leakage.first_layer(seen.numpy()) == pytest.approx(batch.pixels[0], abs=1e-9)


def test_the_noise_of_an_update_is_that_of_its_steps(leakage: Any) -> None:
    """Fed-CDP's update is noised by LOCAL_STEPS draws of z C, over the batch, times the rate."""
    batch, noise = leakage.digits(3), 100.0
    system = leakage.systems(noise)[3]
    _, noisy = system.seen(0, batch, np.random.default_rng(1))
    one = leakage.LEARNING_RATE * noise * leakage.NORM / 3
    deviation = float((noisy.square().mean()) ** 0.5)
    assert deviation == pytest.approx(one * leakage.LOCAL_STEPS**0.5, rel=0.1)


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5, 1.0, 3.0])
def test_no_digit_is_named_more_often_than_proven(leakage: Any, noise: float) -> None:
    share, bound = leakage.named(noise), leakage.most_named(noise)
    assert share <= bound + 3 * np.sqrt(bound * (1 - bound) / 5000)
    assert share > 0.01
    assert bound == pytest.approx(hs.tradeoffs.GaussianTradeOff(1 / noise).power(0.01))
