"""What a model keeps, what its loss reads, and who else trained it: refused, or shown harmless."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
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
from hockeystick.adapters.torch._loop import _digest
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


class Counting(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model that counts its calls, in one of several places."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.layer, self.where = nn.Linear(4, 3), where
        self.calls: Any
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("old", None)

    def forward(self, rows: Any) -> Any:
        if self.where == "in place":
            self.calls += 1
        elif self.where == "through data":
            self.calls.data.add_(1)
        elif self.where == "out":
            torch.add(self.calls, 1, out=self.calls)
        elif self.where == "replaced":
            self.calls = self.calls + 1
        elif self.where == "new":
            self.register_buffer("more", torch.ones(()))
        elif self.where == "late":
            self.old = torch.ones(())
        return self.layer(rows)


@pytest.mark.parametrize("where", ["in place", "through data", "out", "replaced", "new", "late"])
def test_calls_that_a_buffer_counts_are_refused_and_forgotten(where: str) -> None:
    private = _loop(Counting(where), microbatch=1)
    before = dict(private.model.state_dict())
    refused = "^model must be free of buffers, weights and modules|a write in place"
    with pytest.raises((ParameterError, IncompatibleError), match=refused):
        _step(private)
    assert private.steps == 0
    assert private.model.state_dict().keys() == before.keys()
    assert float(private.model.calls) == 0


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


class Growing(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model that keeps data where torch keeps weights and modules."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.layer, self.where = nn.Linear(4, 3), where

    def forward(self, rows: Any) -> Any:
        if self.where == "parameter":
            self.register_parameter("kept", nn.Parameter(rows.detach(), requires_grad=False))
        elif self.where == "module":
            self.add_module("kept", nn.Identity())
        elif self.where == "weight":
            with torch.no_grad():
                self.layer.weight.mul_(0.5)
        elif self.where == "data of a weight":
            self.layer.weight.data.mul_(0.5)
        return self.layer(rows)


@pytest.mark.parametrize("where", ["parameter", "module", "weight", "data of a weight"])
def test_a_refused_step_leaves_the_model_as_it_was(where: str) -> None:
    private = _loop(Growing(where), microbatch=1)
    before = _digest(private.model)
    with pytest.raises((ParameterError, IncompatibleError)):
        _step(private)
    assert private.steps == 0
    assert _digest(private.model) == before
    assert not hasattr(private.model, "kept")


class Ring(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model with a buffer that no number equals itself in."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("nothing", torch.full((3,), math.nan))

    def forward(self, rows: Any) -> Any:
        return self.layer(rows)


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


def _old(kind: str) -> Callable[[Any], Any]:
    """Return one of the older ways to normalise weights, which later releases may lack."""

    def made(layer: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(nn.utils, kind)(layer)

    return made


def _observed() -> Any:
    from torch.ao.quantization import FakeQuantize

    return FakeQuantize()


ZOO: Final[dict[str, Callable[[], Any]]] = {
    "linear": lambda: _in(nn.ReLU()),
    "dropout": lambda: _in(nn.Dropout(0.5)),
    "batch norm": lambda: _in(nn.BatchNorm1d(6)),
    "batch norm in eval": lambda: _in(nn.BatchNorm1d(6).eval()),
    "batch norm without statistics": lambda: _in(nn.BatchNorm1d(6, track_running_stats=False)),
    "instance norm": lambda: _in(nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2), nn.Flatten()),
    "instance norm that keeps": lambda: _in(
        nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten()
    ),
    "group norm": lambda: _in(nn.GroupNorm(2, 6)),
    "layer norm": lambda: _in(nn.LayerNorm(6)),
    "local response norm": lambda: _in(
        nn.Unflatten(1, (2, 3)), nn.LocalResponseNorm(2), nn.Flatten()
    ),
    "spectral norm": lambda: _in(parametrizations.spectral_norm(nn.Linear(6, 6))),
    "spectral norm in eval": lambda: _in(parametrizations.spectral_norm(nn.Linear(6, 6)).eval()),
    "older spectral norm": lambda: _in(_old("spectral_norm")(nn.Linear(6, 6))),
    "weight norm": lambda: _in(parametrizations.weight_norm(nn.Linear(6, 6))),
    "older weight norm": lambda: _in(_old("weight_norm")(nn.Linear(6, 6))),
    "orthogonal": lambda: _in(
        parametrizations.orthogonal(nn.Linear(6, 6), orthogonal_map="cayley")
    ),
    "lstm": lambda: _in(First(nn.LSTM(6, 6, batch_first=True), 1)),
    "gru": lambda: _in(First(nn.GRU(6, 6, batch_first=True), 1)),
    "lstm cell": lambda: _in(First(nn.LSTMCell(6, 6), 1)),
    "attention": lambda: _in(First(nn.MultiheadAttention(6, 2, batch_first=True), 3)),
    "transformer": lambda: _in(
        nn.Unflatten(1, (1, 6)), nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), nn.Flatten()
    ),
    "embedding": lambda: nn.Sequential(Embedded(nn.Embedding(10, 2)), nn.LazyLinear(3)),
    "embedding that rescales": lambda: nn.Sequential(
        Embedded(nn.Embedding(10, 2, max_norm=1.0)), nn.LazyLinear(3)
    ),
    "sparse embedding": lambda: nn.Sequential(
        Embedded(nn.Embedding(10, 2, sparse=True)), nn.LazyLinear(3)
    ),
    "bag that rescales": lambda: nn.Sequential(
        Embedded(nn.EmbeddingBag(10, 2, max_norm=1.0)), nn.LazyLinear(3)
    ),
    "sparse bag": lambda: nn.Sequential(
        Embedded(nn.EmbeddingBag(10, 2, sparse=True)), nn.LazyLinear(3)
    ),
    "observer": lambda: _in(_observed()),
    "a buffer of nan": Ring,
    "counter": partial(Counting, "in place"),
}
REFUSED: Final = {
    *("batch norm", "batch norm without statistics", "instance norm that keeps", "spectral norm"),
    *("older spectral norm", "embedding that rescales", "sparse embedding", "bag that rescales"),
    *("sparse bag", "observer", "counter"),
}


def _kept(name: str, examples: int) -> str:
    """Return a digest of a model after two steps that leave its weights be, or raise."""
    torch.manual_seed(0)
    model = ZOO[name]()
    modes = [one.training for one in model.modules()]
    model.eval()
    with torch.no_grad():
        model(torch.zeros(2, 4))  # which makes the lazy layers
    for one, mode in zip(model.modules(), modes, strict=False):
        one.training = mode
    if name == "counter":
        model.load_state_dict({n: torch.zeros_like(v) for n, v in model.state_dict().items()})
    private = _loop(model, _data(examples), microbatch=3, lr=0.0)
    before = _digest(model)
    for _ in range(2):
        _step(private)
    assert _digest(model) == before
    return before + repr(sorted(n for one in model.modules() for n in vars(one)))


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.filterwarnings("ignore")  # torch's own, which differ from release to release
def test_a_layer_keeps_nothing_of_a_batch_or_is_refused(name: str) -> None:
    if name in REFUSED:
        refused = "^model must be |a write in place"
        with pytest.raises((ParameterError, IncompatibleError), match=refused):
            _kept(name, 40)
    else:
        assert _kept(name, 40) == _kept(name, 41)


def test_a_cache_of_weights_that_would_lose_their_gradients_is_refused() -> None:
    private = _loop(parametrizations.weight_norm(nn.Linear(4, 3)))
    with parametrize.cached(), pytest.raises(IncompatibleError, match=r"outside .*cached"):
        _step(private)
    assert private.steps == 0


@pytest.mark.parametrize(
    ("kind", "options"),
    [("SparseAdam", {}), ("LBFGS", {}), ("SGD", {"differentiable": True, "lr": 0.1})],
)
def test_optimizers_that_no_noisy_gradient_suits_are_refused(kind: str, options: Any) -> None:
    model = nn.Linear(4, 3)
    optimizer = getattr(torch.optim, kind)(list(model.parameters()), **options)
    with pytest.raises(ParameterError, match=r"^optimizer must be one "):
        make_private(model, optimizer, _data(), PLAN)


def test_a_hook_on_a_gradient_which_would_not_be_called_is_refused() -> None:
    model = nn.Linear(4, 3)
    model.weight.register_hook(lambda gradient: 0 * gradient)
    with pytest.raises(ParameterError, match="free of hooks on its gradients"):
        _loop(model)


class Checkpointed(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model that computes its activations again."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.layer, self.reentrant = nn.Linear(4, 3), reentrant

    def forward(self, rows: Any) -> Any:
        return checkpoint(self.layer, rows, use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_is_refused_by_name(reentrant: bool) -> None:
    private = _loop(Checkpointed(reentrant=reentrant))
    with pytest.raises(IncompatibleError, match="activation checkpointing"):
        _step(private)
    assert private.steps == 0


def test_checkpointing_as_hugging_face_switches_it_on_is_refused_at_once() -> None:
    model = nn.Sequential(nn.Linear(4, 3))
    model[0].gradient_checkpointing = True
    with pytest.raises(ParameterError, match="without activation checkpointing"):
        _loop(model)


# What a loss reads.


def _update(loss: Any, model: Any, **options: Any) -> Any:
    """Return the mean gradient of a step without noise and hardly any clipping."""
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


def _proximal(model: Any) -> Any:
    start = [one.detach().clone() + 1 for one in model.parameters()]
    return lambda out, target: (
        LOSS(out, target)
        + sum(
            (one - old).square().sum() for one, old in zip(model.parameters(), start, strict=True)
        )
    )


def _second_pass(model: Any) -> Any:
    other = torch.ones(1, 4)
    return lambda out, target: LOSS(out, target) + model(other).square().sum()


def _taught(model: Any) -> Any:
    teacher = nn.Linear(4, 3)
    other = torch.ones(1, 4)
    return lambda out, target: LOSS(out, target) + (out - teacher(other)).square().sum()


@pytest.mark.parametrize("made", [_penalty, _proximal, _second_pass, _taught])
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


def test_gradients_that_are_long_in_single_precision_count() -> None:
    for width, size in ((4, 1e20), (3000, 1e19), (3000, 1e35)):
        plan = hs.DPSGD(examples=1, sampling="full-batch", steps=1, noise_multiplier=0)
        rows = TensorDataset(torch.full((1, width), size))
        for arithmetic in ("exact", "real"):
            model = nn.Linear(width, 1, bias=False)
            nn.init.zeros_(model.weight)
            private = _loop(model, rows, plan, arithmetic=arithmetic)
            _step(private, torch.sum)
            length = float(model.weight.grad.double().norm())
            assert length == pytest.approx(1.0, abs=1e-4), (width, size, arithmetic)


# Who else trained it.


def _twice(first: hs.DPSGD, second: Callable[[Any], hs.DPSGD], **options: Any) -> Any:
    model = nn.Linear(4, 3)
    one = _loop(model, plan=first)
    _step(one)
    one.close()
    return one, _loop(model, plan=second(one), **options)


def test_a_second_loop_on_the_same_parameters_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="another private loop trained these parameters"):
        _twice(PLAN, lambda one: PLAN)


def test_a_second_loop_whose_plan_has_the_first_tells_what_both_cost() -> None:
    def both(one: Any) -> hs.DPSGD:
        return replace(PLAN, extra=one.plan)

    one, two = _twice(PLAN, both, microbatch=1)
    _step(two)
    cost = hs.epsilon(one.plan @ one.plan, delta=1e-5)
    assert two.spent(1e-5).lower <= cost.upper
    assert two.spent(1e-5).upper >= cost.lower
    with pytest.raises(IncompatibleError, match="another private loop"):
        _loop(two.model, plan=PLAN)
    three = both(two)  # has the second, which has the first
    _step(_loop(two.model, plan=three))


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


def test_two_loops_on_parts_of_one_model_add_up() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    model[1].requires_grad_(False)
    _step(_loop(model))
    model.requires_grad_(True)
    model[0].requires_grad_(False)
    with pytest.raises(IncompatibleError, match="another private loop"):
        _loop(model)


def test_a_correlated_loop_and_another_one_are_refused_together() -> None:
    encoder = hs.mechanisms.Encoder.square_root(5)
    plan = hs.mechanisms.MatrixFactorization(2.0, encoder)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    make_correlated(model, optimizer, _data(), plan, batch_size=8).step(LOSS)
    for made in (
        lambda: _loop(model),
        lambda: make_correlated(model, optimizer, _data(), plan, batch_size=8),
    ):
        with pytest.raises(IncompatibleError, match="another private loop"):
            made()


def test_two_ledgers_do_not_add_up(tmp_path: Any) -> None:
    model = nn.Linear(4, 3)
    for name in ("one", "two"):
        ledger = hs.Ledger(tmp_path / f"{name}.db", "d", hs.ApproxDP(50, 1e-5))
        if name == "two":
            with pytest.raises(IncompatibleError, match="another private loop"):
                _loop(model, ledger=ledger, key="run")
        else:
            with _loop(model, ledger=ledger, key="run") as private:
                _step(private)


def test_a_second_head_on_a_backbone_that_nobody_trained_is_new() -> None:
    backbone = nn.Linear(4, 4).requires_grad_(False)
    for _ in range(2):
        _step(_loop(nn.Sequential(backbone, nn.Linear(4, 3))))


def test_two_loops_on_a_ledger_go_on_as_it_adds_them(tmp_path: Any) -> None:
    ledger = hs.Ledger(tmp_path / "ledger.db", "d", hs.ApproxDP(50, 1e-5))
    model = nn.Linear(4, 3)
    for key in ("one", "two"):
        with _loop(model, ledger=ledger, key=key) as private:
            _step(private)
    for beside in (None, PLAN):
        with pytest.raises(IncompatibleError, match="another private loop"):
            _loop(model, plan=replace(PLAN, extra=beside))
    _step(_loop(model, plan=replace(PLAN, extra=PLAN @ PLAN)))


def test_a_run_that_goes_on_in_the_same_process_is_the_same(tmp_path: Any) -> None:
    model = nn.Linear(4, 3)
    for _ in range(2):
        with _loop(model, journal=tmp_path / "journal") as private:
            _step(private)
    assert private.steps == 2
