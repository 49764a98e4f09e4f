"""Digits from gradients: rebuilt without noise, hidden by it, named no more often than proven."""

import sys
from pathlib import Path
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


def test_gradients_are_those_of_the_loss(leakage: Any) -> None:
    batch = leakage.digits(3)
    row = leakage.weights().clone().requires_grad_()
    pixels, labels = torch.as_tensor(batch.pixels), torch.as_tensor(batch.labels)
    leakage.losses(row, pixels, labels).sum().backward()
    found = leakage.gradients(leakage.weights(), pixels, labels)
    assert found.sum(dim=0).numpy() == pytest.approx(row.grad.numpy())
    lengths = leakage.clipped(100 * found).norm(dim=1).numpy()
    assert lengths == pytest.approx(np.ones(3))


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_without_privacy_every_type_gives_the_digits_away(leakage: Any, kind: int) -> None:
    assert error(leakage, leakage.systems(1.0)[0], kind) < 0.01


def test_who_adds_noise_decides_which_type_leaks(leakage: Any) -> None:
    """Wei et al., section 4: Fed-SDP's server hides type 0 alone, its clients not type 2."""
    _, server, client, steps = leakage.systems(1.0)
    assert error(leakage, server, 0) > 0.4
    assert error(leakage, server, 1) < 0.01
    assert error(leakage, client, 1) > 0.4
    assert error(leakage, client, 2) < 0.01
    assert error(leakage, steps, 0) > 0.4
    assert error(leakage, steps, 2) > 0.4


def test_clipping_alone_hides_nothing(leakage: Any) -> None:
    for kind in (0, 2):
        for system in leakage.systems(0.0)[1:]:
            assert error(leakage, system, kind) < 0.01


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


def test_candidates_keep_their_distances(leakage: Any) -> None:
    batch = leakage.digits(leakage.CANDIDATES)
    rows = leakage.gradients(
        leakage.weights(), torch.as_tensor(batch.pixels), torch.as_tensor(batch.labels)
    )
    full, known = leakage.clipped(rows).numpy(), leakage.candidates()
    assert known.shape == (100, 100)
    assert known @ known.T == pytest.approx(full @ full.T, abs=1e-9)
    assert np.linalg.norm(known, axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5, 1.0, 3.0])
def test_no_digit_is_named_more_often_than_proven(leakage: Any, noise: float) -> None:
    share, bound = leakage.named(noise), leakage.most_named(noise)
    assert share <= bound + 3 * np.sqrt(bound * (1 - bound) / 5000)
    assert share > 0.01
    assert bound == pytest.approx(hs.tradeoffs.GaussianTradeOff(1 / noise).power(0.01))


def test_decays_cost_the_same_and_move_the_leak_to_later_rounds(leakage: Any) -> None:
    noises = leakage.decays(leakage.CONSTANT)
    costs = {
        name: hs.epsilon(hs.mechanisms.GaussianSequence(tuple(each), rate=1.0), 1e-4).upper
        for name, each in noises.items()
    }
    assert list(costs.values()) == pytest.approx([costs["constant"]] * 5)
    for name in ("linear", "staircase", "exponential", "cyclic"):
        first, last = noises[name][0], noises[name][-1]
        assert last < leakage.CONSTANT < first
        assert leakage.named(first) < leakage.named(leakage.CONSTANT) < leakage.named(last)


def test_it_prints_and_draws(
    leakage: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program("pictures", AUDIT)
    monkeypatch.setattr(leakage, "ITERATIONS", 5)
    monkeypatch.setattr(sys, "argv", ["leakage.py", "--folder", str(tmp_path)])
    leakage.main()
    assert "named of 100 in the first and the last of 25 rounds" in capsys.readouterr().out
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["leakage-decays.png", "leakage-noise.png", "leakage-types.png"]
