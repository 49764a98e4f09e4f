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
from tests.adapters.torch.loops import EXAMPLES, LOSS, make_data, make_loop, make_private

PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=1, steps=12, noise_multiplier=1)


def _model() -> Any:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.4), nn.Tanh(), nn.Linear(8, 2))


def _weights(private: Any) -> Any:
    return torch.cat([one.detach().flatten() for one in private.model.parameters()])


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


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("options", [{}, {"arithmetic": "real"}, {"microbatch": 1}], ids=str)
def test_the_weights_are_those_of_private_steps(reduction: str, options: Any) -> None:
    usual = make_loop(PLAN, _model(), not_private=6, **options)
    for batch in usual.loader:
        usual.step(LOSS, batch)
    own = _trained(reduction, not_private=6, **options)
    assert torch.allclose(_weights(usual), _weights(own), atol=1e-6)
    assert own.steps == PLAN.total_steps


def test_what_ran_costs_what_the_plan_costs() -> None:
    own = _trained("mean")
    assert own.spent(1e-5).upper == hs.epsilon(PLAN, 1e-5).upper
    assert any("mean" in one for one in own.spent(1e-5).assumptions)


def test_a_closure_is_called_before_the_step() -> None:
    private = make_loop(PLAN, _model())
    model, batches = private.own_loop()
    inputs, targets = next(iter(batches))

    def closure() -> Any:
        loss = LOSS(model(inputs), targets)
        loss.backward()
        return loss

    assert private.optimizer.step(closure).dim() == 0
    assert private.steps == 1


def test_without_gradients_the_model_is_as_it_is() -> None:
    private = make_loop(PLAN, _model().eval())
    model, _ = private.own_loop()
    rows = make_data()[:][0]
    with torch.no_grad():
        assert torch.equal(model(rows), private.model(rows))


@pytest.mark.filterwarnings("ignore")  # theirs
def test_lightnings_loop_steps_privately() -> None:
    lightning = pytest.importorskip("lightning", reason="needs lightning")

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.private = make_loop(PLAN, _model())
            self.model, self.batches = self.private.own_loop()

        def configure_optimizers(self) -> Any:
            return self.private.optimizer

        def training_step(self, batch: Any, _: int) -> Any:
            inputs, targets = batch
            return LOSS(self.model(inputs), targets)

    module, quiet = Module(), ("logger", "enable_checkpointing", "enable_progress_bar")
    before = _weights(module.private)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", **dict.fromkeys(quiet, False))
    trainer.fit(module, train_dataloaders=module.batches)
    assert module.private.steps == PLAN.total_steps
    assert not torch.equal(before, _weights(module.private))


def _other_rows(model: Any, batch: Any, optimizer: Any) -> None:
    model(make_data()[:2][0])


def _moved(model: Any, batch: Any, optimizer: Any) -> None:
    model(batch[0] - batch[0].mean(dim=0))


def _written(model: Any, batch: Any, optimizer: Any) -> None:
    batch[0].add_(1.0)
    model(batch[0])


def _called_twice(model: Any, batch: Any, optimizer: Any) -> None:
    model(batch[0])
    model(batch[0])


def _two_backwards(model: Any, batch: Any, optimizer: Any) -> None:
    loss = LOSS(model(batch[0]), batch[1])
    loss.backward(retain_graph=True)
    loss.backward()


def _no_backward(model: Any, batch: Any, optimizer: Any) -> None:
    model(batch[0])
    optimizer.step()


def _two_steps(model: Any, batch: Any, optimizer: Any) -> None:
    LOSS(model(batch[0]), batch[1]).backward()
    optimizer.step()
    optimizer.step()


def _touched(model: Any, batch: Any, optimizer: Any) -> None:
    loss = LOSS(model(batch[0]), batch[1])
    (loss + sum(one.square().sum() for one in model.parameters())).backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("misuse", "error", "counted"),
    [
        (_other_rows, ParameterError, 0),
        (_moved, ParameterError, 0),
        (_written, ParameterError, 0),
        (_called_twice, ParameterError, 0),
        (_two_backwards, IncompatibleError, 0),
        (_no_backward, IncompatibleError, 0),
        (_touched, IncompatibleError, 0),
        (_two_steps, IncompatibleError, 1),
    ],
)
def test_misuse_is_refused(misuse: Callable[..., None], error: Any, counted: int) -> None:
    private = make_loop(PLAN, _model())
    model, batches = private.own_loop()
    batch = next(iter(batches))
    before = _weights(private)
    with pytest.raises(error):
        misuse(model, batch, private.optimizer)
    assert private.steps == counted
    assert torch.equal(before, _weights(private)) is (counted == 0)


def test_a_batch_that_no_step_used_is_refused() -> None:
    model, batches = make_loop(PLAN, _model()).own_loop()
    given = iter(batches)
    inputs, targets = next(given)
    LOSS(model(inputs), targets).backward()
    with pytest.raises(IncompatibleError, match="was drawn and not used"):
        next(given)


def test_a_reduction_is_the_mean_or_the_sum() -> None:
    with pytest.raises(ParameterError, match="reduction"):
        make_loop(PLAN, _model()).own_loop(reduction="none")


class _Around(torch.optim.Optimizer):  # type: ignore[misc]  # torch may have no types
    """An optimizer that has another one do all, and no hooks of its own."""

    def __init__(self, inner: Any) -> None:
        self.__dict__["inner"] = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    def step(self, *given: Any) -> Any:
        return self.inner.step(*given)


def _own_step(private: Any, batch: Any) -> None:
    model, batches = private.own_loop()
    inputs, targets = next(iter(batches))
    LOSS(model(inputs), targets).backward()
    private.optimizer.step()


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("step", [lambda private, _: private.step(LOSS), _own_step])
def test_no_optimizer_steps_with_gradients_that_are_not_private(
    wrapped: bool, step: Callable[[Any, Any], None]
) -> None:
    model, dataset = nn.Linear(3, 2), make_data()
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    private = make_private(model, _Around(inner) if wrapped else inner, dataset, PLAN)
    if not wrapped:
        private.optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    LOSS(model(dataset[:][0]), dataset[:][1]).backward()
    raw, before = model.weight.grad.clone(), model.weight.detach().clone()
    if step is _own_step:
        model.zero_grad()
    if wrapped or step is not _own_step:
        step(private, None)
        assert private.steps == 1
        assert not torch.allclose(before - model.weight.detach(), raw, atol=1e-6)
        return
    model.zero_grad()
    step(private, None)  # which this loop does not know: without gradients it does nothing
    assert torch.equal(before, model.weight.detach()) or private.steps == 1


def test_outputs_in_16_bits_do_not_tell_how_many_examples_there_are() -> None:
    found = []
    for examples in (1021, 1022):
        rows = torch.utils.data.TensorDataset(torch.ones(examples, 1))
        model = nn.Linear(1, 1, bias=False)
        plan = hs.DPSGD(examples=examples, sampling="full-batch", steps=1, noise_multiplier=0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        private = make_private(model, optimizer, rows, plan, clipping=1.02, microbatch=1)
        own, batches = private.own_loop()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = own(next(iter(batches))).float().mean()
        loss.backward()
        optimizer.step()
        found.append(float(model.weight.grad) * examples / 1.02)
    assert found[1] - found[0] <= 1.0 + 1e-4
    assert "not rounded" in private.spent(1e-5).accountant
