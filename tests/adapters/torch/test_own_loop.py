"""Loops of one's own: the same steps as those of the private loop, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import (
    EXAMPLES,
    LOSS,
    make_data,
    make_loop,
    make_private,
    weights_of,
)

PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=1, steps=12, noise_multiplier=1)


def _model() -> Any:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.4), nn.Tanh(), nn.Linear(8, 2))


def _trained(reduction: Any, **options: Any) -> Any:
    private = make_loop(PLAN, _model(), **options)
    model, batches = private.own_loop(reduction=reduction)
    sizes = []
    for inputs, targets in batches:
        sizes.append(len(inputs))
        LOSS(model(inputs), targets, reduction=reduction).backward()
        private.optimizer.step()
        private.optimizer.zero_grad()
    assert options == {} or {0, 2} <= set(sizes)
    return private


@pytest.mark.parametrize(
    ("reduction", "options"),
    [("mean", {}), ("sum", {"arithmetic": "real"}), ("mean", {"microbatch": 1})],
    ids=str,
)
def test_the_weights_and_the_cost_are_those_of_private_steps(reduction: str, options: Any) -> None:
    usual = make_loop(PLAN, _model(), not_private=6, **options)
    for batch in usual.loader:
        usual.step(LOSS, batch)
    own = _trained(reduction, not_private=6, **options)
    assert torch.allclose(weights_of(usual), weights_of(own), atol=1e-6)
    assert own.steps == PLAN.total_steps
    secret = _trained(reduction).spent(1e-5)
    assert secret.upper == hs.epsilon(PLAN, 1e-5).upper
    assert any(reduction in one for one in secret.assumptions)


def test_a_closure_is_called_before_the_step() -> None:
    private = make_loop(PLAN, _model())
    model, batches = private.own_loop()
    batch = next(iter(batches))
    assert private.optimizer.step(lambda: _backward(model, batch)).dim() == 0
    assert private.steps == 1


def test_without_gradients_the_model_is_as_it_is() -> None:
    private = make_loop(PLAN, _model().eval())
    model, _ = private.own_loop()
    rows = make_data()[:][0]
    with torch.no_grad():
        assert torch.equal(model(rows), private.model(rows))


def _backward(model: Any, batch: Any, times: int = 1, penalty: float = 0.0) -> Any:
    loss = LOSS(model(batch[0]), batch[1])
    if penalty:
        loss = loss + penalty * sum(one.square().sum() for one in model.parameters())
    for _ in range(times):
        loss.backward(retain_graph=True)
    return loss


MISUSES: dict[str, tuple[Callable[..., Any], Any, int]] = {
    "other rows": (lambda model, *_: model(make_data()[:2][0]), ParameterError, 0),
    "moved": (lambda model, batch, _: model(batch[0] - batch[0].mean(dim=0)), ParameterError, 0),
    "written": (lambda model, batch, _: model(batch[0].add_(1.0)), ParameterError, 0),
    "called twice": (
        lambda model, batch, _: [model(batch[0]) for _ in range(2)],
        ParameterError,
        0,
    ),
    "two backwards": (lambda model, batch, _: _backward(model, batch, 2), IncompatibleError, 0),
    "no backward": (
        lambda model, batch, optimizer: [model(batch[0]), optimizer.step()],
        IncompatibleError,
        0,
    ),
    "a penalty": (
        lambda model, batch, optimizer: [_backward(model, batch, 1, 1.0), optimizer.step()],
        IncompatibleError,
        0,
    ),
    "two steps": (
        lambda model, batch, optimizer: [
            _backward(model, batch),
            optimizer.step(),
            optimizer.step(),
        ],
        IncompatibleError,
        1,
    ),
}


@pytest.mark.parametrize(("misuse", "error", "counted"), MISUSES.values(), ids=MISUSES)
def test_misuse_is_refused(misuse: Callable[..., None], error: Any, counted: int) -> None:
    private = make_loop(PLAN, _model())
    model, batches = private.own_loop()
    batch = next(iter(batches))
    before = weights_of(private)
    with pytest.raises(error):
        misuse(model, batch, private.optimizer)
    assert private.steps == counted
    assert torch.equal(before, weights_of(private)) is (counted == 0)


def test_a_batch_that_no_step_used_and_another_reduction_are_refused() -> None:
    private = make_loop(PLAN, _model())
    with pytest.raises(ParameterError, match="reduction"):
        private.own_loop(reduction="none")
    model, batches = private.own_loop()
    given = iter(batches)
    _backward(model, next(given))
    with pytest.raises(IncompatibleError, match="was drawn and not used"):
        next(given)


class _Around(torch.optim.Optimizer):  # type: ignore[misc]  # torch may have no types
    """An optimizer that has another one do all, and no hooks of its own."""

    def __init__(self, inner: Any) -> None:
        self.__dict__["inner"] = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    def step(self, *given: Any) -> Any:
        return self.inner.step(*given)


def _own_step(private: Any) -> None:
    model, batches = private.own_loop()
    private.model.zero_grad()
    _backward(model, next(iter(batches)))
    private.optimizer.step()


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("step", [lambda private: private.step(LOSS), _own_step])
def test_no_optimizer_steps_with_gradients_that_are_not_private(
    wrapped: bool, step: Callable[[Any], None]
) -> None:
    model, dataset = nn.Linear(3, 2), make_data()
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    private = make_private(model, _Around(inner) if wrapped else inner, dataset, PLAN)
    if not wrapped:
        private.optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    LOSS(model(dataset[:][0]), dataset[:][1]).backward()
    raw, before = model.weight.grad.clone(), model.weight.detach().clone()
    step(private)
    moved = before - model.weight.detach()
    assert not torch.allclose(moved, raw, atol=1e-6)
    # An optimizer that an own loop does not know has no gradients to step with.
    unknown = step is _own_step and not wrapped
    assert private.steps == 1 or (unknown and not moved.any())


def test_outputs_in_16_bits_do_not_tell_how_many_examples_there_are() -> None:
    found = []
    for examples in (1021, 1022):
        rows = torch.utils.data.TensorDataset(torch.ones(examples, 1))
        plan = hs.DPSGD(examples=examples, sampling="full-batch", steps=1, noise_multiplier=0)
        model = nn.Linear(1, 1, bias=False)
        private = make_loop(plan, model, rows, clipping=1.02, microbatch=1)
        own, batches = private.own_loop()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = own(next(iter(batches))).float().mean()
        loss.backward()
        private.optimizer.step()
        found.append(float(model.weight.grad) * examples / 1.02)
    assert found[1] - found[0] <= 1.0 + 1e-4
    assert "not rounded" in private.spent(1e-5).accountant
