"""An attack on what is released: it finds less than the account allows, and a broken clip."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import hockeystick as hs
from hockeystick.adapters.torch import Clip, Quantile
from tests.adapters.torch.loops import DEVICE, make_private

TRIALS, EXAMPLES, DELTA = 2000, 4, 1e-5
# One run in a thousand has a bound above the truth.
_DOUBT = 0.001


def _released(canary: float, clipping: Clip | float, seed: int) -> Any:
    """Return what one step gives of the canary's gradient and of zeros, in so many trials."""
    model = torch.nn.Linear(1, 1, bias=False).to(DEVICE)
    inputs = torch.zeros(EXAMPLES, 1)
    inputs[0] = canary
    dataset = torch.utils.data.TensorDataset(inputs)
    plan = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=TRIALS, noise_multiplier=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    private = make_private(model, optimizer, dataset, plan, clipping=clipping, not_private=seed)
    found = []
    for batch in private.loader:
        private.step(torch.sum, batch)
        found.append(float(model.weight.grad) * EXAMPLES)
    return torch.tensor(found)


def _share(count: int, *, upper: bool) -> float:
    """Return a bound on the probability of what was counted, by Clopper and Pearson."""
    from scipy.stats import beta

    if upper:
        return float(beta.ppf(1 - _DOUBT / 2, count + 1, TRIALS - count)) if count < TRIALS else 1.0
    return float(beta.ppf(_DOUBT / 2, count, TRIALS - count + 1)) if count else 0.0


def _audited(clipping: Clip | float = 1.0) -> float:
    """Return a lower bound on the epsilon of one step, from trials with the canary and without.

    The threshold is fixed in advance, where no gradient is rare and a clipped one is not yet.
    """
    present = int((_released(1000.0, clipping, 1) > 3.5).sum())
    absent = int((_released(0.0, clipping, 2) > 3.5).sum())
    power = _share(present, upper=False) - DELTA
    return math.log(power / _share(absent, upper=True)) if power > 0 else -math.inf


def _certified() -> float:
    """Return what the account says of one step."""
    plan = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=1, noise_multiplier=2)
    return hs.epsilon(plan, DELTA).upper


def test_an_attack_finds_less_than_is_certified() -> None:
    found = _audited()
    assert 0.0 < found < _certified()


def test_the_same_attack_catches_a_clip_that_does_not_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    def unclipped(gradients: Any, norm: float, *_: Any) -> Any:
        return {name: one.sum(dim=0) * 2**22 / norm for name, one in gradients.items()}, {}

    monkeypatch.setattr("hockeystick.adapters.torch._loop.clipped_sum", unclipped)
    assert _audited() > _certified()


def test_with_a_noisy_quantile_the_gradients_have_the_noise_that_pays_for_it() -> None:
    clip = Quantile(1.0, rate=0.0, bit_noise=1.1)
    released = _released(0.0, clip, 3).double()
    deviation = hs.calibration.clipping_noise(2.0, bit_noise=1.1)
    assert deviation > 4.7
    # A sum of n squares is within 6 sqrt(2 n) of n but in 2 of 10^9 runs.
    squares = float((released / deviation).square().sum())
    assert abs(squares - TRIALS) < 6 * math.sqrt(2 * TRIALS)
