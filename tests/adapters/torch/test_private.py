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
from torch.nn import functional

import hockeystick as hs
from hockeystick.adapters.torch import Constant, Online, Quantile
from hockeystick.adapters.torch._clipping import _first_state
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import DEVICE, FULL, do_step, make_loop, make_private

EXAMPLES = 12
LOSS = functional.cross_entropy


@pytest.fixture(autouse=True)
def _whole_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no GPU multiply in fewer bits than a slow loop would."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


class Scaled(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A layer times a parameter that is a single number."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.layer = nn.Linear(6, 3)

    def forward(self, inputs: Any) -> Any:
        return self.scale * self.layer(inputs)


class Block(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A small transformer on tokens: embedding, attention, a head that is tied to the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Any) -> Any:
        return self.head(self.block(self.tokens(tokens)).mean(dim=1))


def _mlp() -> tuple[Any, Any]:
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    return model, torch.randn(EXAMPLES, 6)


def _cnn() -> tuple[Any, Any]:
    layers = (nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    return nn.Sequential(*layers), torch.randn(EXAMPLES, 1, 8, 8)


def _transformer() -> tuple[Any, Any]:
    return Block(), torch.randint(11, (EXAMPLES, 5))


def _scaled() -> tuple[Any, Any]:
    return Scaled(), torch.randn(EXAMPLES, 6)


MODELS = {"mlp": _mlp, "cnn": _cnn, "transformer": _transformer, "scaled": _scaled}


def made(
    maker: Callable[[], tuple[Any, Any]] = _mlp,
    clipping: Any = 0.3,
    *,
    noise_multiplier: float = 0.0,
    plan: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[Any, Any, Any, Any]:
    """Return a private loop with its model, inputs and targets; without noise and seeded."""
    torch.manual_seed(1)
    model, inputs = maker()
    model.to(DEVICE)
    targets = torch.randint(3, (len(inputs),))
    fields: dict[str, Any] = {"sampling": "full-batch", "steps": 3} | (plan or {})
    described = hs.DPSGD(examples=len(inputs), noise_multiplier=noise_multiplier, **fields)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = torch.utils.data.TensorDataset(inputs, targets)
    settings: dict[str, Any] = {"not_private": 1} | options
    private = make_private(model, optimizer, dataset, described, clipping=clipping, **settings)
    return private, model, inputs, targets


def _one_step(private: Any) -> dict[str, Any]:
    private.step(LOSS, next(iter(private.loader)))
    return {name: value.grad for name, value in private.model.named_parameters()}


def _slow_gradients(model: Any, alone: Callable[[int], Any], count: int) -> list[dict[str, Any]]:
    found = []
    for place in range(count):
        model.zero_grad()
        alone(place).backward()
        found.append(
            {n: p.grad.double().clone() for n, p in model.named_parameters() if p.grad is not None}
        )
    model.zero_grad()
    return found


def _alone(model: Any, inputs: Any, targets: Any) -> list[dict[str, Any]]:
    def loss(n: int) -> Any:
        return LOSS(model(inputs[n : n + 1].to(DEVICE)), targets[n : n + 1].to(DEVICE))

    return _slow_gradients(model, loss, len(inputs))


def _length(parts: Any) -> float:
    return math.sqrt(sum(float(part.square().sum()) for part in parts))


def _slow_sum(gradients: list[dict[str, Any]], norm: float, groups: Any = None) -> Any:
    groups = groups or [list(gradients[0])]
    limit = norm / math.sqrt(len(groups))
    sums = {name: torch.zeros_like(value) for name, value in gradients[0].items()}
    for one in gradients:
        for names in groups:
            length = _length(one[name] for name in names)
            for name in names:
                sums[name] += one[name] * min(1.0, limit / length)
    return sums


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
@pytest.mark.parametrize("microbatch", [None, 5])
@pytest.mark.parametrize("per_layer", [False, True], ids=["flat", "per-layer"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_step_without_noise_is_the_slow_loops_clipped_mean(
    name: str, per_layer: bool, microbatch: int | None, arithmetic: str
) -> None:
    clip = Constant(0.7, per_layer=per_layer)
    options: dict[str, Any] = {"microbatch": microbatch, "arithmetic": arithmetic}
    private, model, inputs, targets = made(MODELS[name], clip, **options)
    slow = _alone(model, inputs, targets)
    names = list(slow[0])
    layers: dict[str, list[str]] = {}
    for one in names:
        layers.setdefault(one.rpartition(".")[0], []).append(one)
    groups = list(layers.values()) if per_layer else [names]
    expected = _slow_sum(slow, 0.7, groups)
    lengths = [_length(one.values()) for one in slow]
    assert min(lengths) < 0.7 or max(lengths) > 0.7
    found = _one_step(private)
    for one in names:
        scale = float(expected[one].abs().max())
        error = (found[one].double() * EXAMPLES - expected[one]).abs().max()
        assert float(error) <= 1e-5 * max(scale, 0.7)


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
def test_batches_are_clipped_as_a_whole_where_the_plan_says_so(arithmetic: str) -> None:
    options: dict[str, Any] = {"plan": {"clipping": "batch"}, "arithmetic": arithmetic}
    private, model, inputs, targets = made(clipping=0.3, microbatch=5, **options)
    slow = _alone(model, inputs, targets)
    total = {name: sum(one[name] for one in slow) for name in slow[0]}
    length = _length(total.values())
    assert length > 0.3
    found = _one_step(private)
    for name, value in found.items():
        assert torch.allclose(value.double() * EXAMPLES, total[name] * 0.3 / length, atol=1e-6)


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
def test_an_empty_batch_gives_pure_noise_of_the_stated_variance(arithmetic: str) -> None:
    def wide() -> tuple[nn.Module, torch.Tensor]:
        return nn.Linear(400, 100), torch.randn(50, 400)

    plan = {"sampling": "poisson", "rate": 1e-9}
    options: dict[str, Any] = {"plan": plan, "not_private": None, "arithmetic": arithmetic}
    private, _model, _inputs, _targets = made(wide, 0.5, noise_multiplier=3.0, **options)
    batch = next(iter(private.loader))
    assert len(batch) == 0
    private.step(LOSS, batch)
    values = torch.cat([value.grad.flatten() for value in private.model.parameters()])
    noise = values.double() * 50e-9 / 1.5
    # A sum of n squares is within 6 sqrt(2 n) of n but in 2 of 10^9 runs, and a mean within 6.
    count = len(noise)
    assert abs(float(noise.square().sum()) - count) < 6 * math.sqrt(2 * count)
    assert abs(float(noise.sum())) < 6 * math.sqrt(count)
    assert float(noise.abs().max()) < 7.5


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
def test_noise_follows_the_schedule_of_the_plan(arithmetic: str) -> None:
    plan = {"steps": 2, "schedule": hs.schedules.Values([1.0, 100.0])}
    options: dict[str, Any] = {"plan": plan, "arithmetic": arithmetic}
    private, _model, _inputs, _targets = made(noise_multiplier=1.0, clipping=1e-6, **options)
    first, second = (_length(_one_step(private).values()) for _ in range(2))
    assert 20 < second / first < 200


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
def test_the_online_norm_pays_for_directions_and_moves_by_its_rate(arithmetic: str) -> None:
    clip = Online(1e-3, rate=0.1)
    noise = hs.calibration.joint_noise(2.0, inflation=1.01)
    assert clip.noises(2.0) == (noise.gradient, noise.query)
    assert noise.query == pytest.approx(2 * 7.1239907201718425, rel=1e-12)
    options: dict[str, Any] = {"plan": {"steps": 6}, "arithmetic": arithmetic}
    private, _model, _inputs, _targets = made(clipping=clip, noise_multiplier=1e-3, **options)
    norms = [private.clipping_norm]
    for batch in private.loader:
        private.step(LOSS, batch)
        norms.append(private.clipping_norm)
    # Everything is clipped, so that a larger norm goes along with the gradient in each step.
    assert norms == pytest.approx([1e-3 * math.exp(0.1 * max(t - 1, 0)) for t in range(7)])


@pytest.mark.parametrize("clip", [Quantile(1.0, bit_noise=5.0), Online(1.0)], ids=["q", "oso"])
def test_rules_that_follow_lengths_need_noise_and_single_gradients(clip: Any) -> None:
    with pytest.raises(IncompatibleError, match="single gradients"):
        made(clipping=clip, noise_multiplier=1.0, plan={"clipping": "batch"})
    with pytest.raises(ParameterError, match="noise_multiplier"):
        made(clipping=clip, noise_multiplier=0.0)
    if isinstance(clip, Quantile):
        with pytest.raises(IncompatibleError, match="zeroed"):
            made(clipping=clip, noise_multiplier=1.0, plan={"adjacency": "zero-out"})


def _wrong(**changes: Any) -> None:
    model, inputs = _mlp()
    arguments: dict[str, Any] = {
        "model": model,
        "optimizer": None,
        "dataset": torch.utils.data.TensorDataset(inputs),
        "plan": hs.DPSGD(examples=EXAMPLES, batch_size=2, steps=1, noise_multiplier=1),
    } | changes
    if arguments["optimizer"] is None:
        parameters = [*arguments["model"].parameters()] or [torch.zeros(1)]
        arguments["optimizer"] = torch.optim.SGD(parameters, lr=0.1)
    make_private(**arguments)


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
        ({"model": nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))}, "BatchNorm1d at 1"),
        ({"model": nn.SyncBatchNorm(3)}, "SyncBatchNorm at the top"),
        ({"model": nn.InstanceNorm1d(3, track_running_stats=True)}, "InstanceNorm1d"),
        ({"model": nn.Embedding(11, 8, max_norm=1.0)}, "Embedding"),
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
        ({"clipping": 0.0}, "norm"),
        ({"budget": 3.0}, "budget"),
        ({"not_private": -1}, "not_private"),
        ({"not_private": True}, "not_private must be an integer"),
        ({"counting": {}}, "counting must be a Counting"),
        ({"pad_to": 0}, "pad_to"),
    ],
)
def test_what_cannot_be_private_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        _wrong(**changes)


def test_only_the_batch_that_was_given_last_is_used_and_once() -> None:
    private, _model, inputs, targets = made(plan={"sampling": "poisson", "batch_size": 6})
    other, *_ = made(plan={"sampling": "poisson", "batch_size": 6})
    foreign = next(iter(other.loader))
    batch = next(iter(private.loader))
    assert next(iter(private.loader)) is batch  # no choice among batches
    for wrong in (foreign, (inputs, targets)):
        with pytest.raises(ParameterError, match=r"private\.loader"):
            private.step(LOSS, wrong)
    private.step(LOSS, batch)
    with pytest.raises(ParameterError, match="used once"):
        private.step(LOSS, batch)
    assert private.steps == 1
    changed = next(iter(other.loader))
    changed.examples[0].mul_(0)
    with pytest.raises(ParameterError, match="as it was drawn"):
        other.step(LOSS, changed)


# Examples and models of several parts.

FEW, NORM = 5, 0.3


class Examples(torch.utils.data.Dataset):  # type: ignore[misc]  # torch may have no types
    def __init__(self, examples: list[Any]) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, place: int) -> Any:
        return self.examples[place]


class Two(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model of two inputs, the second of which may be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 4), nn.Linear(2, 4)

    def forward(self, left: Any, right: Any = None) -> Any:
        found = self.left(left)
        return found if right is None else found * self.right(right).tanh()


def _summed(model: Any, examples: list[Any], loss: Any, **options: Any) -> dict[str, Any]:
    model.to(DEVICE)
    plan = hs.DPSGD(examples=len(examples), sampling="full-batch", steps=1, noise_multiplier=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    private = make_private(model, optimizer, Examples(examples), plan, clipping=NORM, **options)
    private.step(loss, next(iter(private.loader)))
    return {n: p.grad.double() * len(examples) for n, p in model.named_parameters()}


def _same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    assert any(float(one.abs().max()) > 1e-3 for one in expected.values())
    return all(torch.allclose(found[n], one, atol=2e-6) for n, one in expected.items())


def _numbers(place: int) -> tuple[Any, Any, int]:
    source = torch.Generator().manual_seed(place)
    return torch.randn(3, generator=source), torch.randn(2, generator=source), place % 4


@pytest.mark.parametrize("microbatch", [None, 2])
@pytest.mark.parametrize(
    "given",
    [
        lambda left, right: {"right": right, "left": left},
        lambda left, right: UserDict(left=left, right=right.tolist()),
        lambda left, right: (left, right.numpy()),
        lambda left, right: [left.tolist(), right],
    ],
    ids=["dict", "mapping", "tuple", "list"],
)
def test_a_models_inputs_are_given_by_name_or_in_their_places(
    given: Callable[[Any, Any], Any], microbatch: int | None
) -> None:
    torch.manual_seed(1)
    model = Two()
    rows = [_numbers(place) for place in range(FEW)]
    examples = [(given(left, right), label) for left, right, label in rows]
    found = _summed(model, examples, LOSS, microbatch=microbatch)

    def alone(place: int) -> Any:
        left, right, label = rows[place]
        output = model(left[None].to(DEVICE), right[None].to(DEVICE))
        return LOSS(output, torch.tensor([label], device=DEVICE))

    assert _same(found, _slow_sum(_slow_gradients(model, alone, FEW), NORM))


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


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")  # torch's own
@pytest.mark.parametrize(
    "options",
    [
        {"batch_first": True},
        {"num_layers": 2, "bidirectional": True, "named": True},
        {"batch_first": True, "bidirectional": True, "bias": False},
    ],
    ids=["plain", "deep", "without-bias"],
)
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM", "projected LSTM"])
def test_recurrent_layers_keep_examples_apart(kind: str, options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    projected, _, kind = kind.rpartition(" ")
    if projected:
        options = options | {"proj_size": 2}
    model = Recurrent(kind, **options).to(DEVICE)
    words, labels = torch.randint(7, (FEW, 6)), torch.randint(4, (FEW,))
    model(words.to(DEVICE))  # which initialises the head
    enabled = torch.backends.mkldnn.set_flags()[0]
    found = _summed(model, list(zip(words, labels, strict=True)), LOSS)
    assert torch.backends.mkldnn.set_flags()[0] == enabled
    assert not model.layer._forward_pre_hooks

    def alone(place: int) -> Any:
        one = slice(place, place + 1)
        return LOSS(model(words[one].to(DEVICE)), labels[one].to(DEVICE))

    assert _same(found, _slow_sum(_slow_gradients(model, alone, FEW), NORM))


def test_packed_sequences_are_refused() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.ones(2, 3)])
    with pytest.raises(IncompatibleError, match="packed sequence"):
        _first_state(nn.GRU(3, 4), (packed,), {})


def test_padding_of_a_mapping_fills_what_has_a_length_and_leaves_labels_out() -> None:
    example = {"words": [1, 2], "labels": [3, 4], "weight": 0.5}
    private = make_loop(replace(FULL, examples=1), dataset=Examples([example]), pad_to=4)
    (given,) = next(iter(private.loader)).examples
    assert given["words"].tolist() == [[1, 2, 0, 0]]
    assert given["labels"].tolist() == [[3, 4, -100, -100]]
    assert given["weight"].tolist() == [0.5]


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
        _summed(Two(), examples, LOSS)


def test_a_model_that_reads_values_is_refused_and_nothing_is_counted() -> None:
    class Reading(nn.Linear):  # type: ignore[misc]  # torch may have no types
        def forward(self, rows: Any) -> Any:
            return super().forward(rows) if bool(rows.sum() > 0) else super().forward(-rows)

    private = make_loop(model=Reading(3, 2))
    with pytest.raises(IncompatibleError, match=r"values of a tensor .* torch\.where"):
        do_step(private)
    assert private.steps == 0


@pytest.mark.parametrize("clipping", ["individual", "batch"])
def test_the_loss_is_the_mean_of_the_examples_before_the_step(clipping: str) -> None:
    torch.manual_seed(1)
    model = nn.Linear(3, 4).to(DEVICE)
    rows, labels = torch.randn(FEW, 3), torch.randint(4, (FEW,))
    plan = hs.DPSGD(
        examples=FEW, sampling="full-batch", steps=1, noise_multiplier=1, clipping=clipping
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(rows, labels)
    private = make_private(model, optimizer, data, plan, microbatch=2)
    assert math.isnan(private.not_private_loss)
    with torch.no_grad():
        expected = float(LOSS(model(rows.to(DEVICE)), labels.to(DEVICE)))
    private.step(LOSS, next(iter(private.loader)))
    assert private.not_private_loss == pytest.approx(expected, rel=1e-5)
