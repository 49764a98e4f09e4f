"""What a private step makes of a batch: clipped sums, noise, and what is refused."""

from __future__ import annotations

import math
from collections import UserDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import hockeystick as hs
from hockeystick.adapters.torch import Constant, Online, Quantile
from hockeystick.adapters.torch._clipping import _first_state
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import (
    DEVICE,
    FULL,
    LOSS,
    Items,
    do_step,
    make_data,
    make_loop,
    make_private,
)

EXAMPLES, CLASSES = 12, 3
SILENT: Any = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=6, noise_multiplier=0)
each_arithmetic = pytest.mark.parametrize("arithmetic", ["exact", "real"])


@pytest.fixture(autouse=True)
def _whole_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no GPU multiply in fewer bits than a slow loop would."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


# Sums of clipped gradients, against a loop that takes them one by one.


class Scaled(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A layer times a parameter that is a single number."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.layer = nn.Linear(6, CLASSES)

    def forward(self, inputs: Any) -> Any:
        return self.scale * self.layer(inputs)


class Block(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A small transformer on tokens: embedding, attention, a head that is tied to the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(7, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 7, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Any) -> Any:
        return self.head(self.block(self.tokens(tokens)).mean(dim=1))


class Two(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model of two inputs, the second of which may be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 4), nn.Linear(2, 4)

    def forward(self, left: Any, right: Any = None) -> Any:
        found = self.left(left)
        return found if right is None else found * self.right(right).tanh()


class Recurrent(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A recurrent layer between an embedding and a head."""

    def __init__(self, kind: str, *, named: bool = False, **options: Any) -> None:
        super().__init__()
        self.words, self.named = nn.Embedding(7, 3), named
        self.layer = getattr(nn, kind)(3, 4, **options)
        self.head = nn.LazyLinear(4)

    def forward(self, words: Any) -> Any:
        rows = self.words(words)
        if not self.layer.batch_first:
            rows = rows.transpose(0, 1)
        found = self.layer(input=rows) if self.named else self.layer(rows, None)
        return self.head(found[0].mean(dim=1 if self.layer.batch_first else 0))


def _mlp() -> Any:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, CLASSES))


class Checkpointed(nn.Module):  # type: ignore[misc]  # torch may have no types
    """Layers whose activations are computed again, by one of torch's two ways."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.first, self.layers, self.reentrant = nn.Linear(6, 6), _mlp(), reentrant

    def forward(self, inputs: Any) -> Any:
        return checkpoint(self.layers, self.first(inputs), use_reentrant=self.reentrant)


def _cnn() -> Any:
    layers = (nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(144, CLASSES))


def _deep(kind: str, **options: Any) -> Any:
    return Recurrent(kind, named=True, num_layers=2, bidirectional=True, **options)


def _numbers(*shape: int) -> Callable[[], Any]:
    return lambda: torch.randn(EXAMPLES, *shape)


def _words() -> Any:
    return torch.randint(7, (EXAMPLES, 5))


PAIR = _numbers(3), _numbers(2)
# A model, what its inputs are, and how an example gives them if not as it is.
CASES: dict[str, tuple[Callable[[], Any], tuple[Callable[[], Any], ...], Any]] = {
    "mlp": (_mlp, (_numbers(6),), None),
    "cnn": (_cnn, (_numbers(1, 8, 8),), None),
    "transformer": (Block, (_words,), None),
    "scaled": (Scaled, (_numbers(6),), None),
    "names": (Two, PAIR, lambda left, right: {"right": right, "left": left}),
    "a mapping": (Two, PAIR, lambda left, right: UserDict(left=left, right=right.tolist())),
    "places": (Two, PAIR, lambda left, right: (left, right.numpy())),
    "a list": (Two, PAIR, lambda left, right: [left.tolist(), right]),
    "RNN": (
        lambda: Recurrent("RNN", batch_first=True, bidirectional=True, bias=False),
        (_words,),
        None,
    ),
    "GRU": (lambda: _deep("GRU"), (_words,), None),
    "LSTM": (lambda: Recurrent("LSTM", batch_first=True), (_words,), None),
    "projected LSTM": (lambda: _deep("LSTM", proj_size=2), (_words,), None),
    "bfloat16": (lambda: _mlp().bfloat16(), (lambda: _numbers(6)().bfloat16(),), None),
    "checkpoints": (lambda: Checkpointed(reentrant=False), (_numbers(6),), None),
    "reentrant checkpoints": (lambda: Checkpointed(reentrant=True), (_numbers(6),), None),
}
HOW = [(False, None, "exact"), (False, 5, "real"), (True, 5, "exact"), (True, None, "real")]
# In a loop of one's own as well.
OWN = ("bfloat16", "checkpoints", "reentrant checkpoints", "GRU")


def _length(parts: Any) -> float:
    return math.sqrt(sum(float(part.square().sum()) for part in parts))


def _alone(model: Any, inputs: Any, targets: Any) -> list[dict[str, Any]]:
    """Return the gradients of each example, by a pass of its own."""
    found = []
    for *places, target in zip(*inputs, targets, strict=True):
        model.zero_grad()
        outputs = model(*(one[None].to(DEVICE) for one in places))
        LOSS(outputs, target[None].to(DEVICE)).backward()
        found.append({n: p.grad.double().clone() for n, p in model.named_parameters()})
    model.zero_grad()
    return found


def _slow_sum(gradients: list[dict[str, Any]], norm: float, per_layer: bool) -> dict[str, Any]:
    groups: dict[str, list[str]] = {}
    for name in gradients[0]:
        groups.setdefault(name.rpartition(".")[0] if per_layer else "", []).append(name)
    limit = norm / math.sqrt(len(groups))
    sums = {name: torch.zeros_like(value) for name, value in gradients[0].items()}
    for one in gradients:
        for names in groups.values():
            length = _length(one[name] for name in names)
            for name in names:
                sums[name] += one[name] * min(1.0, limit / length)
    return sums


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")  # torch's own
@pytest.mark.parametrize(
    ("name", "per_layer", "microbatch", "arithmetic", "own_loop"),
    [
        *((name, *how, False) for name in CASES for how in HOW),
        *((name, False, None, how, True) for name in OWN for how in ("exact", "real")),
    ],
)
def test_a_step_without_noise_is_the_slow_loops_clipped_mean(
    name: str, per_layer: bool, microbatch: int | None, arithmetic: str, own_loop: bool
) -> None:
    torch.manual_seed(1)
    make, parts, given = CASES[name]
    model, inputs, targets = make().to(DEVICE), [one() for one in parts], torch.arange(12) % CLASSES
    model(*(one.to(DEVICE) for one in inputs))  # which makes the lazy layers
    dataset: Any = torch.utils.data.TensorDataset(*inputs, targets)
    if given is not None:
        dataset = Items([(given(*places), int(target)) for *places, target in dataset])
    slow = _alone(model, inputs, targets)
    norm = sorted(_length(one.values()) for one in slow)[EXAMPLES // 2]
    options: dict[str, Any] = {"microbatch": microbatch, "arithmetic": arithmetic}
    enabled = torch.backends.mkldnn.set_flags()[0]
    clip = Constant(norm, per_layer=per_layer)
    private = make_loop(SILENT, model, dataset, clipping=clip, not_private=1, **options)
    if own_loop:
        called, batches = private.own_loop()
        rows, labels = next(iter(batches))
        LOSS(called(rows), labels).backward()
        private.optimizer.step()
    else:
        do_step(private)
        assert not any(one._forward_pre_hooks for one in model.modules())
    assert torch.backends.mkldnn.set_flags()[0] == enabled
    within = 2e-2 if name == "bfloat16" else 1e-5
    for one, expected in _slow_sum(slow, norm, per_layer).items():
        found = model.get_parameter(one).grad.double() * EXAMPLES
        assert float((found - expected).abs().max()) <= within * max(
            float(expected.abs().max()), norm
        )


@each_arithmetic
def test_batches_are_clipped_as_a_whole_where_the_plan_says_so(arithmetic: str) -> None:
    model, (rows, targets) = _mlp(), (torch.randn(EXAMPLES, 6), torch.arange(EXAMPLES) % CLASSES)
    slow = _alone(model.to(DEVICE), [rows], targets)
    total = {name: sum(one[name] for one in slow) for name in slow[0]}
    length = _length(total.values())
    options: dict[str, Any] = {"arithmetic": arithmetic, "not_private": 1, "microbatch": 5}
    data = torch.utils.data.TensorDataset(rows, targets)
    plan = replace(SILENT, clipping="batch")
    do_step(make_loop(plan, model, data, clipping=length / 3, **options))
    for name, value in model.named_parameters():
        assert torch.allclose(value.grad.double() * EXAMPLES, total[name] / 3, atol=1e-6)


def test_packed_sequences_are_refused() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.ones(2, 3)])
    with pytest.raises(IncompatibleError, match="packed sequence"):
        _first_state(nn.GRU(3, 4), (packed,), {})


@pytest.mark.parametrize("clipping", ["individual", "batch"])
def test_the_loss_is_the_mean_of_the_examples_before_the_step(clipping: str) -> None:
    private = make_loop(replace(FULL, clipping=clipping), microbatch=5)
    assert math.isnan(private.not_private_loss)
    rows, targets = (one.to(DEVICE) for one in make_data().tensors)
    with torch.no_grad():
        expected = float(LOSS(private.model(rows), targets))
    do_step(private)
    assert private.not_private_loss == pytest.approx(expected, rel=1e-5)


# Noise, and rules of clipping.


def _gradients(private: Any) -> Any:
    do_step(private)
    return torch.cat([one.grad.flatten() for one in private.model.parameters()]).double()


@each_arithmetic
def test_an_empty_batch_gives_pure_noise_of_the_stated_variance(arithmetic: str) -> None:
    plan = hs.DPSGD(examples=50, rate=1e-9, steps=3, noise_multiplier=3)
    data = torch.utils.data.TensorDataset(torch.randn(50, 400), torch.zeros(50).long())
    private = make_loop(plan, nn.Linear(400, 100), data, clipping=0.5, arithmetic=arithmetic)
    assert len(next(iter(private.loader))) == 0
    noise = _gradients(private) * 50e-9 / 1.5
    # A sum of n squares is within 6 sqrt(2 n) of n but in 2 of 10^9 runs, and a mean within 6.
    count = len(noise)
    assert abs(float(noise.square().sum()) - count) < 6 * math.sqrt(2 * count)
    assert abs(float(noise.sum())) < 6 * math.sqrt(count)
    assert float(noise.abs().max()) < 7.5


@each_arithmetic
def test_noise_follows_the_schedule_of_the_plan(arithmetic: str) -> None:
    schedule = hs.schedules.Values([1.0, 100.0])
    plan = replace(SILENT, steps=2, noise_multiplier=1.0, schedule=schedule)
    private = make_loop(plan, nn.Linear(3, 30), clipping=1e-6, arithmetic=arithmetic)
    first, second = (float(_gradients(private).norm()) for _ in range(2))
    assert 20 < second / first < 200


@each_arithmetic
def test_the_online_norm_pays_for_directions_and_moves_by_its_rate(arithmetic: str) -> None:
    clip = Online(1e-3, rate=0.1)
    noise = hs.calibration.joint_noise(2.0, inflation=1.01)
    assert clip.noises(2.0) == (noise.gradient, noise.query)
    assert noise.query == pytest.approx(2 * 7.1239907201718425, rel=1e-12)
    plan = replace(SILENT, noise_multiplier=1e-3)
    private = make_loop(plan, clipping=clip, not_private=1, arithmetic=arithmetic)
    norms = [private.clipping_norm]
    while private.left:
        do_step(private)
        norms.append(private.clipping_norm)
    # Everything is clipped, so that a larger norm goes along with the gradient in each step.
    assert norms == pytest.approx([1e-3 * math.exp(0.1 * max(t - 1, 0)) for t in range(7)])


@pytest.mark.parametrize("clip", [Quantile(1.0, bit_noise=5.0), Online(1.0)], ids=["q", "oso"])
def test_rules_that_follow_lengths_need_noise_and_single_gradients(clip: Any) -> None:
    with pytest.raises(IncompatibleError, match="single gradients"):
        make_loop(replace(FULL, clipping="batch"), clipping=clip)
    with pytest.raises(ParameterError, match="noise_multiplier"):
        make_loop(SILENT, clipping=clip)
    if isinstance(clip, Quantile):
        with pytest.raises(IncompatibleError, match="zeroed"):
            make_loop(replace(FULL, adjacency="zero-out"), clipping=clip)


# What cannot be private.


def _hooked() -> Any:
    model = nn.Linear(6, 3)
    model.weight.register_hook(lambda gradient: 0 * gradient)
    return model


class Endless(torch.utils.data.IterableDataset):  # type: ignore[misc]  # torch may have no types
    def __iter__(self) -> Any:
        return iter(())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": nn.Sequential(nn.Linear(6, 3), nn.SyncBatchNorm(3))}, "SyncBatchNorm at 1"),
        ({"model": nn.Flatten()}, "requires a gradient"),
        ({"model": nn.Linear(6, 3).requires_grad_(False)}, "requires a gradient"),
        ({"model": nn.Linear(6, 3).half()}, "float16"),
        ({"model": nn.LazyLinear(3)}, "lazy"),
        ({"model": _hooked()}, "a hook on weight"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)], lr=1)}, "the model does not have"),
        ({"dataset": Endless()}, "a length"),
        ({"plan": hs.Gaussian(1)}, "hs.DPSGD"),
        ({"plan": hs.DPSGD(rate=0.1, steps=1, noise_multiplier=1)}, "got None"),
        ({"microbatch": 0}, "microbatch"),
        ({"microbatch": "few"}, "microbatch"),
        ({"clipping": 0.0}, "clipping"),
        ({"budget": 3.0}, "budget"),
        ({"not_private": -1}, "not_private"),
        ({"not_private": True}, "not_private must be an integer"),
        ({"counting": {}}, "counting must be a Counting"),
        ({"pad_to": 0}, "pad_to"),
        ({"num_workers": -1}, "loading must be"),
        ({"num_workers": "2"}, "loading must be"),
        ({"prefetch_factor": 2}, "loading must be"),
        ({"loading": {}}, "loading must be"),
    ],
)
def test_what_cannot_be_private_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    model = changes.get("model", nn.Linear(6, 3))
    given = {
        "model": model,
        "optimizer": torch.optim.SGD([*model.parameters()] or [torch.zeros(1)], lr=0.1),
        "dataset": torch.utils.data.TensorDataset(torch.randn(EXAMPLES, 6)),
        "plan": hs.DPSGD(examples=EXAMPLES, batch_size=2, steps=1, noise_multiplier=1),
    }
    with pytest.raises(ParameterError, match=message):
        make_private(**given | changes)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([{"left": torch.ones(3)}, {"left": torch.ones(2)}], "examples that differ"),
        ([{"left": torch.ones(3)}, {"right": torch.ones(3)}], "examples that differ"),
        ([{"left": torch.ones(3)}, (torch.ones(3),)], "examples that differ"),
        ([{"left": torch.ones(3)}, {"left": [1, 2, 3]}], "examples that differ"),
        ([{}], "got {}"),
        ([{1: torch.ones(3)}], "by names"),
        ([{"left": None}], "got 'NoneType'"),
        ([(torch.ones(3), "a text")], "got 'str'"),
    ],
    ids=str,
)
def test_what_is_not_made_of_like_tensors_is_refused(examples: list[Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        do_step(make_loop(replace(SILENT, examples=len(examples)), Two(), Items(examples)))


def test_only_the_batch_that_was_given_last_is_used_and_once() -> None:
    private = make_loop(hs.DPSGD(examples=8, batch_size=4, steps=3, noise_multiplier=1))
    batch = next(iter(private.loader))
    assert next(iter(private.loader)) is batch  # no choice among batches
    private.step(LOSS, batch)
    with pytest.raises(ParameterError, match="used once"):
        private.step(LOSS, batch)
    assert private.steps == 1


def test_padding_of_a_mapping_fills_what_has_a_length_and_leaves_labels_out() -> None:
    example = {"words": [1, 2], "labels": [3, 4], "weight": 0.5}
    private = make_loop(replace(FULL, examples=1), dataset=Items([example]), pad_to=4)
    (given,) = next(iter(private.loader)).examples
    assert given["words"].tolist() == [[1, 2, 0, 0]]
    assert given["labels"].tolist() == [[3, 4, -100, -100]]
    assert given["weight"].tolist() == [0.5]
