"""What a model keeps, what its loss reads, and who else trained it: refused, or shown harmless."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize
from torch.utils.checkpoint import checkpoint
from torch.utils.data import TensorDataset

import hockeystick as hs
from hockeystick.adapters.torch import make_correlated
from hockeystick.adapters.torch._checks import digest
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import make_private

PLAN: Final = hs.DPSGD(examples=40, sampling="full-batch", steps=5, noise_multiplier=5)
LOSS: Final = functional.cross_entropy


def _data(examples: int = 40, width: int = 4) -> Any:
    torch.manual_seed(1)
    return TensorDataset(torch.randn(examples, width), torch.randint(3, (examples,)))


def _loop(model: Any, dataset: Any = None, plan: hs.DPSGD = PLAN, **options: Any) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=options.pop("lr", 0.1))
    data = _data() if dataset is None else dataset
    return make_private(model, optimizer, data, plan, **options)


def _step(private: Any, loss: Any = LOSS) -> None:
    private.step(loss, next(iter(private.loader)))


# What a model keeps.


class Writing(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model that writes to what torch keeps, in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.layer, self.way = nn.Linear(4, 3), way
        self.calls: Any
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("old", None)

    def forward(self, rows: Any) -> Any:
        with torch.no_grad():
            WAYS[self.way](self, rows)
        return self.layer(rows)


WAYS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "buffer in place": lambda own, rows: own.calls.add_(1),
    "buffer through data": lambda own, rows: own.calls.data.add_(1),
    "buffer as out": lambda own, rows: torch.add(own.calls, 1, out=own.calls),
    "buffer replaced": lambda own, rows: setattr(own, "calls", own.calls + 1),
    "buffer made": lambda own, rows: own.register_buffer("kept", torch.ones(())),
    "buffer from none": lambda own, rows: setattr(own, "old", torch.ones(())),
    "parameter": lambda own, rows: own.register_parameter(
        "kept", nn.Parameter(rows.detach(), requires_grad=False)
    ),
    "module": lambda own, rows: own.add_module("kept", nn.Identity()),
    "weight": lambda own, rows: own.layer.weight.mul_(0.5),
    "weight through data": lambda own, rows: own.layer.weight.data.mul_(0.5),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_forward_writes_is_refused_and_forgotten(way: str) -> None:
    private = _loop(Writing(way), microbatch=1)
    before = digest(private.model)
    refused = "^model must be free of buffers, weights and modules|a write in place"
    with pytest.raises((ParameterError, IncompatibleError), match=refused):
        _step(private)
    assert private.steps == 0
    assert digest(private.model) == before
    assert not hasattr(private.model, "kept")


class Memory(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model in which an example finds what those before it left, in one of several places."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.layer, self.where = nn.Linear(4, 3), where
        self.count = 0
        self.cache: Any = None
        self.listed: list[Any] = []
        self.named = {"calls": 0}

    def forward(self, rows: Any) -> Any:
        self.count += 1
        self.named["calls"] += 1
        self.listed.append(rows)
        seen = {"count": self.count, "dict": self.named["calls"], "list": len(self.listed)}
        if self.where == "cache":
            if self.cache is None:
                self.cache = 2 * self.layer.weight
            return rows @ self.cache.T
        return self.layer(rows) * (-1.0) ** seen[self.where]


@pytest.mark.parametrize("where", ["count", "dict", "list", "cache"])
def test_no_example_moves_the_gradient_of_a_later_one(where: str) -> None:
    found = []
    for microbatch in (1, 3, 40):
        torch.manual_seed(0)
        model = Memory(where)
        found.append(_update(lambda out, target: out.sum(), model, microbatch=microbatch))
        assert (model.count, model.named, model.listed, model.cache) == (0, {"calls": 0}, [], None)
    for other in found[1:]:
        torch.testing.assert_close(found[0], other, rtol=1e-5, atol=1e-6)
    assert float(found[0].norm()) > 0


def _in(layer: Any, *more: Any) -> Any:
    return nn.Sequential(nn.Linear(4, 6), layer, *more, nn.LazyLinear(3))


class First(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A recurrent layer's outputs, or those of attention, of a text of one word."""

    def __init__(self, layer: Any, times: int) -> None:
        super().__init__()
        self.layer, self.times = layer, times

    def forward(self, rows: Any) -> Any:
        words = rows if isinstance(self.layer, nn.RNNCellBase) else rows.unsqueeze(1)
        return self.layer(*[words] * self.times)[0].squeeze(1)


class Embedded(nn.Module):  # type: ignore[misc]  # torch may have no types
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, rows: Any) -> Any:
        return self.layer((rows.abs() * 3).long().clamp(max=9)).flatten(1)


def _in_channels(layer: Any) -> Any:
    return _in(nn.Unflatten(1, (2, 3)), layer, nn.Flatten())


def _embedded(layer: Any) -> Any:
    return nn.Sequential(Embedded(layer), nn.LazyLinear(3))


KEEPS_NOTHING: Final[dict[str, Callable[[], Any]]] = {
    "batch norm in eval": lambda: _in(nn.BatchNorm1d(6).eval()),
    "spectral norm in eval": lambda: _in(parametrizations.spectral_norm(nn.Linear(6, 6)).eval()),
    "weight norm": lambda: _in(parametrizations.weight_norm(nn.Linear(6, 6))),
    "lstm": lambda: _in(First(nn.LSTM(6, 6, batch_first=True), 1)),
    "lstm cell": lambda: _in(First(nn.LSTMCell(6, 6), 1)),
    "attention": lambda: _in(First(nn.MultiheadAttention(6, 2, batch_first=True), 3)),
}
REFUSED: Final[dict[str, Callable[[], Any]]] = {
    "batch norm": lambda: _in(nn.BatchNorm1d(6)),
    "without statistics": lambda: _in(nn.BatchNorm1d(6, track_running_stats=False).eval()),
    "instance norm": lambda: _in_channels(nn.InstanceNorm1d(2, track_running_stats=True)),
    "spectral norm": lambda: _in(parametrizations.spectral_norm(nn.Linear(6, 6))),
    "older spectral norm": lambda: _in(nn.utils.spectral_norm(nn.Linear(6, 6))),
    "embedding that rescales": lambda: _embedded(nn.Embedding(10, 2, max_norm=1.0)),
    "sparse embedding": lambda: _embedded(nn.Embedding(10, 2, sparse=True)),
    "bag that rescales": lambda: _embedded(nn.EmbeddingBag(10, 2, max_norm=1.0)),
    "sparse bag": lambda: _embedded(nn.EmbeddingBag(10, 2, sparse=True)),
}


def _kept(made: Callable[[], Any], examples: int) -> str:
    """Return a digest of a model after two steps that leave its weights be, or raise."""
    torch.manual_seed(0)
    model = made()
    modes = [one.training for one in model.modules()]
    model.eval()
    with torch.no_grad():
        model(torch.zeros(2, 4))  # which makes the lazy layers
    for one, mode in zip(model.modules(), modes, strict=False):
        one.training = mode
    private = _loop(model, _data(examples), microbatch=3, lr=0.0)
    before = digest(model)
    for _ in range(2):
        _step(private)
    assert digest(model) == before
    return before + repr(sorted(n for one in model.modules() for n in vars(one)))


@pytest.mark.parametrize("name", KEEPS_NOTHING)
@pytest.mark.filterwarnings("ignore")  # torch's own, which differ from release to release
def test_a_layer_keeps_nothing_of_a_batch(name: str) -> None:
    assert _kept(KEEPS_NOTHING[name], 40) == _kept(KEEPS_NOTHING[name], 41)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore")  # torch's own, which differ from release to release
def test_a_layer_that_keeps_something_is_refused(name: str) -> None:
    with pytest.raises((ParameterError, IncompatibleError), match=r"^model must be |a write in"):
        _kept(REFUSED[name], 40)


def test_a_cache_of_weights_that_would_lose_their_gradients_is_refused() -> None:
    private = _loop(parametrizations.weight_norm(nn.Linear(4, 3)))
    with parametrize.cached(), pytest.raises(IncompatibleError, match=r"outside .*cached"):
        _step(private)
    assert private.steps == 0


class Checkpointed(nn.Linear):  # type: ignore[misc]  # torch may have no types
    def forward(self, rows: Any) -> Any:
        return checkpoint(super().forward, rows, use_reentrant=self.bias is None)


@pytest.mark.parametrize("bias", [False, True])
def test_activation_checkpointing_is_refused_by_name(bias: bool) -> None:
    private = _loop(Checkpointed(4, 3, bias=bias))
    with pytest.raises(IncompatibleError, match="activation checkpointing"):
        _step(private)
    assert private.steps == 0


# What a loss reads.


def _update(loss: Any, model: Any, **options: Any) -> Any:
    plan = hs.DPSGD(examples=40, sampling="full-batch", steps=1, noise_multiplier=0)
    private = _loop(model, plan=plan, clipping=1e3, arithmetic="real", **options)
    _step(private, loss)
    return torch.cat([one.grad.flatten() for one in model.parameters()])


def _plain(loss: Any, model: Any) -> Any:
    rows, targets = _data().tensors
    total = sum(loss(model(rows[n : n + 1]), targets[n : n + 1]) for n in range(40)) / 40
    return torch.cat([one.flatten() for one in torch.autograd.grad(total, model.parameters())])


def _penalty(model: Any) -> Any:
    return lambda out, target: (
        LOSS(out, target) + sum(one.square().sum() for one in model.parameters())
    )


def _second_pass(model: Any) -> Any:
    other = torch.ones(1, 4)
    return lambda out, target: LOSS(out, target) + model(other).square().sum()


@pytest.mark.parametrize("made", [_penalty, _second_pass])
@pytest.mark.parametrize("microbatch", [1, 7])
def test_a_loss_may_read_the_model(made: Callable[[Any], Any], microbatch: int) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    loss = made(model)
    expected = _plain(loss, model)
    found = _update(loss, model, microbatch=microbatch)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("clipping", ["individual", "batch"])
def test_a_loss_that_reads_parameters_taken_out_before_is_refused(clipping: Any) -> None:
    model = nn.Linear(4, 3)
    weight = model.weight
    plan = hs.DPSGD(
        examples=40, sampling="full-batch", steps=1, noise_multiplier=5, clipping=clipping
    )
    private = _loop(model, plan=plan)
    with pytest.raises(IncompatibleError, match="taken out of it before"):
        _step(private, lambda out, target: LOSS(out, target) + weight.square().sum())
    assert private.steps == 0
    _step(private, lambda out, target: LOSS(out, target) + weight.detach().square().sum())


def test_a_lost_gradient_is_seen_under_no_grad_too() -> None:
    model = nn.Linear(4, 3)
    weight, private = model.weight, _loop(model)
    with torch.no_grad(), pytest.raises(IncompatibleError, match="taken out of it before"):
        _step(private, lambda out, target: LOSS(out, target) + weight.square().sum())
    with torch.inference_mode(), pytest.raises(IncompatibleError, match="inference_mode"):
        _step(private)


@pytest.mark.parametrize(
    "returned", [1.0, None, (torch.ones(1),), torch.ones(1, dtype=torch.cfloat)]
)
def test_a_loss_that_is_no_real_tensor_is_refused(returned: Any) -> None:
    with pytest.raises(ParameterError, match=r"^loss_fn must be one that returns a real tensor"):
        _step(_loop(nn.Linear(4, 3)), lambda out, target: returned)


def test_an_input_that_the_model_writes_to_stays_as_it_was_drawn() -> None:
    private = _loop(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 3)))
    batch = next(iter(private.loader))
    with pytest.raises(ZeroDivisionError):
        private.step(lambda out, target: 1 / 0, batch)
    private.step(LOSS, batch)


# Who else trained it.


def test_a_second_loop_whose_plan_has_the_first_tells_what_both_cost() -> None:
    one = _loop(nn.Linear(4, 3))
    _step(one)
    one.close()
    two = _loop(one.model, plan=replace(PLAN, extra=one.plan), microbatch=1)
    _step(two)
    cost = hs.epsilon(one.plan @ one.plan, delta=1e-5)
    assert two.spent(1e-5).lower <= cost.upper
    assert two.spent(1e-5).upper >= cost.lower
    with pytest.raises(IncompatibleError, match="another private loop"):
        _loop(two.model, plan=PLAN)
    _step(_loop(two.model, plan=replace(PLAN, extra=two.plan)))  # which has the first


def test_a_loop_that_was_made_before_another_one_trained_is_refused() -> None:
    model = nn.Linear(4, 3)
    one, two = _loop(model), _loop(model)
    _step(one)
    with pytest.raises(IncompatibleError, match="another private loop"):
        _step(two)
    assert two.steps == 0
    _step(_loop(model, plan=replace(PLAN, extra=PLAN)))
    with pytest.raises(IncompatibleError, match="another private loop"):
        _step(one)


def test_two_loops_on_parts_of_one_model_add_up_and_correlated_ones_do() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    encoder = hs.mechanisms.Encoder.square_root(5)
    plan = hs.mechanisms.MatrixFactorization(2.0, encoder)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model[1].requires_grad_(False)
    make_correlated(model, optimizer, _data(), plan, batch_size=8).step(LOSS)
    model.requires_grad_(True)
    model[0].requires_grad_(False)
    for made in (
        lambda: _loop(model),
        lambda: make_correlated(model, optimizer, _data(), plan, batch_size=8),
    ):
        with pytest.raises(IncompatibleError, match="another private loop"):
            made()


def test_two_loops_on_a_ledger_go_on_as_it_adds_them(tmp_path: Any) -> None:
    ledger = hs.Ledger(tmp_path / "ledger.db", "d", hs.ApproxDP(50, 1e-5))
    model = nn.Linear(4, 3)
    for key in ("one", "two"):
        with _loop(model, ledger=ledger, key=key) as private:
            _step(private)
    other = hs.Ledger(tmp_path / "other.db", "d", hs.ApproxDP(50, 1e-5))
    for beside, options in ((None, {}), (PLAN, {}), (None, {"ledger": other, "key": "run"})):
        with pytest.raises(IncompatibleError, match="another private loop"):
            _loop(model, plan=replace(PLAN, extra=beside), **options)
    _step(_loop(model, plan=replace(PLAN, extra=PLAN @ PLAN)))
