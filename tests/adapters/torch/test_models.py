"""What a model keeps, what its loss reads, and who else trained it: refused, or shown harmless."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn.utils import parametrizations

import hockeystick as hs
from hockeystick.adapters.torch import make_correlated
from hockeystick.adapters.torch._checks import digest
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import LOSS, do_step, make_data, make_loop

PLAN: Final = hs.DPSGD(examples=40, sampling="full-batch", steps=5, noise_multiplier=5)


# What a model keeps.


class Writing(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model that writes to what torch keeps, in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.layer, self.way = nn.Linear(3, 2), way
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
    private = make_loop(PLAN, Writing(way), microbatch=1)
    before = digest(private.model)
    refused = "^model must be free of buffers, weights and modules|a write in place"
    with pytest.raises((ParameterError, IncompatibleError), match=refused):
        do_step(private)
    assert private.steps == 0
    assert digest(private.model) == before
    assert not hasattr(private.model, "kept")


class Memory(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model in which an example finds what those before it left, in one of several places."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.layer, self.where = nn.Linear(3, 2), where
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
    return nn.Sequential(nn.Linear(3, 6), layer, *more, nn.LazyLinear(2))


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
    return nn.Sequential(Embedded(layer), nn.LazyLinear(2))


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
        model(torch.zeros(2, 3))  # which makes the lazy layers
    for one, mode in zip(model.modules(), modes, strict=False):
        one.training = mode
    private = make_loop(PLAN, model, make_data(examples), microbatch=3, lr=0.0)
    before = digest(model)
    for _ in range(2):
        do_step(private)
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


# What a loss reads.


def _update(loss: Any, model: Any, **options: Any) -> Any:
    plan = hs.DPSGD(examples=40, sampling="full-batch", steps=1, noise_multiplier=0)
    private = make_loop(plan, model, make_data(40), clipping=1e3, arithmetic="real", **options)
    do_step(private, loss)
    return torch.cat([one.grad.flatten() for one in model.parameters()])


def _plain(loss: Any, model: Any) -> Any:
    rows, targets = make_data(40).tensors
    total = sum(loss(model(rows[n : n + 1]), targets[n : n + 1]) for n in range(40)) / 40
    return torch.cat([one.flatten() for one in torch.autograd.grad(total, model.parameters())])


def _penalty(model: Any) -> Any:
    return lambda out, target: (
        LOSS(out, target) + sum(one.square().sum() for one in model.parameters())
    )


def _second_pass(model: Any) -> Any:
    other = torch.ones(1, 3)
    return lambda out, target: LOSS(out, target) + model(other).square().sum()


def _steep(model: Any) -> Any:
    return lambda out, target: torch.autograd.grad(LOSS(out, target), out, create_graph=True)[0][
        0, 0
    ]


@pytest.mark.parametrize("made", [_penalty, _second_pass, _steep])
@pytest.mark.parametrize("microbatch", [1, 7])
def test_a_loss_may_read_the_model(made: Callable[[Any], Any], microbatch: int) -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    loss = made(model)
    expected = _plain(loss, model)
    found = _update(loss, model, microbatch=microbatch)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_an_input_that_the_model_writes_to_stays_as_it_was_drawn() -> None:
    private = make_loop(PLAN, nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2)))
    batch = next(iter(private.loader))
    with pytest.raises(ZeroDivisionError):
        private.step(lambda out, target: 1 / 0, batch)
    private.step(LOSS, batch)


# Who else trained it.


def test_a_second_loop_whose_plan_has_the_first_tells_what_both_cost() -> None:
    one = make_loop(PLAN, nn.Linear(3, 2))
    do_step(one)
    one.close()
    two = make_loop(model=one.model, plan=replace(PLAN, extra=one.plan), microbatch=1)
    do_step(two)
    cost = hs.epsilon(one.plan @ one.plan, delta=1e-5)
    assert two.spent(1e-5).lower <= cost.upper
    assert two.spent(1e-5).upper >= cost.lower
    with pytest.raises(IncompatibleError, match="another private loop"):
        make_loop(model=two.model, plan=PLAN)
    do_step(make_loop(model=two.model, plan=replace(PLAN, extra=two.plan)))  # which has the first


def test_a_loop_that_was_made_before_another_one_trained_is_refused() -> None:
    model = nn.Linear(3, 2)
    one, two = make_loop(PLAN, model), make_loop(PLAN, model)
    do_step(one)
    with pytest.raises(IncompatibleError, match="another private loop"):
        do_step(two)
    assert two.steps == 0
    do_step(make_loop(model=model, plan=replace(PLAN, extra=PLAN)))
    with pytest.raises(IncompatibleError, match="another private loop"):
        do_step(one)


def test_two_loops_on_parts_of_one_model_add_up_and_correlated_ones_do() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    encoder = hs.mechanisms.Encoder.square_root(5)
    plan = hs.mechanisms.MatrixFactorization(2.0, encoder)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model[1].requires_grad_(False)
    make_correlated(model, optimizer, make_data(40), plan, batch_size=8).step(LOSS)
    model.requires_grad_(True)
    model[0].requires_grad_(False)
    for made in (
        lambda: make_loop(PLAN, model),
        lambda: make_correlated(model, optimizer, make_data(40), plan, batch_size=8),
    ):
        with pytest.raises(IncompatibleError, match="another private loop"):
            made()


def test_two_loops_on_a_ledger_go_on_as_it_adds_them(tmp_path: Any) -> None:
    ledger = hs.Ledger(tmp_path / "ledger.db", "d", hs.ApproxDP(50, 1e-5))
    model = nn.Linear(3, 2)
    for key in ("one", "two"):
        with make_loop(PLAN, model, ledger=ledger, key=key) as private:
            do_step(private)
    other = hs.Ledger(tmp_path / "other.db", "d", hs.ApproxDP(50, 1e-5))
    refused: Any = ((None, {}), (PLAN, {}), (None, {"ledger": other, "key": "run"}))
    for beside, options in refused:
        with pytest.raises(IncompatibleError, match="another private loop"):
            make_loop(model=model, plan=replace(PLAN, extra=beside), **options)
    do_step(make_loop(model=model, plan=replace(PLAN, extra=PLAN @ PLAN)))
