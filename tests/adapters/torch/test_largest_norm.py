"""Noise on the scale of the batch's largest norm is to be had, and never as if it were private."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import hockeystick as hs
from hockeystick.adapters.torch import LargestNorm
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.sampling.poisson import Clipping
from tests.adapters.torch.loops import DEVICE, make_private

LARGEST = LargestNorm(1.0, not_private=True)
EXAMPLES, WIDTH = 6, 20_000
POISSON = hs.DPSGD(examples=EXAMPLES, batch_size=2, steps=4, noise_multiplier=3)
FULL = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=4, noise_multiplier=3)


def _loop(plan: hs.DPSGD, clipping: Any = LARGEST, lengths: Any = None, **options: Any) -> Any:
    """Return a loop over examples whose gradients have such lengths."""
    model = torch.nn.Linear(WIDTH, 1, bias=False).to(DEVICE)
    inputs = torch.zeros(EXAMPLES, WIDTH)
    inputs[:, 0] = torch.ones(EXAMPLES) if lengths is None else torch.tensor(lengths)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    dataset = torch.utils.data.TensorDataset(inputs)
    return make_private(model, optimizer, dataset, plan, clipping=clipping, **options)


def _released(private: Any) -> Any:
    """Do a step, and return the noisy sum in double precision."""
    batch = next(iter(private.loader))
    private.step(torch.sum, batch)
    size = private.loader.sampler.expected(batch.step)
    return private.model.weight.grad.double().flatten() * size


def _always_infinite(private: Any) -> bool:
    """Return whether both ends are infinite at any delta below 1."""
    answers = [private.spent(delta) for delta in (0.0, 1e-5, 0.5, 0.999)]
    return all(answer.lower == answer.upper == math.inf for answer in answers)


@pytest.mark.parametrize("given", [False, None, 1, "yes"])
def test_it_is_refused_unless_it_is_said_to_be_not_private(given: Any) -> None:
    with pytest.raises(ParameterError, match=r"not_private must be True: .* epsilon = inf"):
        LargestNorm(1.0, not_private=given)
    with pytest.raises(ParameterError, match="not_private"):
        LargestNorm(1.0)
    with pytest.raises(ParameterError, match="norm"):
        LargestNorm(0.0, not_private=True)


@pytest.mark.parametrize("microbatch", [None, 1, 4])
@pytest.mark.parametrize(
    ("norm", "largest"), [(8.0, 5.0), (2.0, 2.0)], ids=["below the norm", "clipped"]
)
def test_the_noise_is_a_multiple_of_the_largest_length_in_the_batch(
    norm: float, largest: float, microbatch: int | None
) -> None:
    lengths = [0.5, 1.0, 5.0, 0.0, math.inf, 2.0]
    clip = LargestNorm(norm, not_private=True)
    private = _loop(FULL, clip, lengths, microbatch=microbatch)
    found = _released(private)
    clipped = sum(min(one, norm) for one in lengths if math.isfinite(one))
    deviation = 3 * largest
    assert abs(float(found[0]) - clipped) < 7 * deviation
    # A sum of n squares is within 6 sqrt(2 n) of n but in 2 of 10^9 runs.
    squares = float((found[1:] / deviation).square().sum())
    assert abs(squares - WIDTH) < 6 * math.sqrt(2 * WIDTH)
    assert private.clipping_norm == norm


def test_neighbours_are_told_apart_for_certain() -> None:
    # Why no epsilon is finite: with the only gradient the sum is never 0, without it always.
    alone = _released(_loop(FULL, lengths=[1.0, 0, 0, 0, 0, 0]))
    assert float(alone.abs().max()) > 0
    assert float(_released(_loop(FULL, lengths=[0.0] * EXAMPLES)).abs().max()) == 0
    rare = hs.DPSGD(examples=EXAMPLES, rate=1e-9, steps=1, noise_multiplier=3)
    assert float(_released(_loop(rare)).abs().max()) == 0


@pytest.mark.parametrize(
    "plan",
    [
        POISSON,
        hs.DPSGD(
            examples=EXAMPLES,
            batch_size=2,
            steps=4,
            noise_multiplier=3,
            schedule=hs.schedules.Linear(end=0.5),
            extra=hs.Gaussian(2),
        ),
    ],
    ids=["poisson", "extra"],
)
def test_its_epsilon_is_infinite_from_the_start_to_the_end(plan: hs.DPSGD) -> None:
    private = _loop(plan)
    assert _always_infinite(private)
    for batch in private.loader:
        private.step(torch.sum, batch)
        assert _always_infinite(private)
    assert private.steps == plan.total_steps
    with pytest.raises(IncompatibleError, match="epsilon = inf"):
        _loop(plan, budget=hs.ApproxDP(1e300, 1e-5))
    with pytest.raises(IncompatibleError, match="single gradients"):
        _loop(replace(plan, clipping=Clipping.BATCH))
