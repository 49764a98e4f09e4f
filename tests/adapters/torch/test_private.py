"""What a private step makes of a batch: clipped sums, noise, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional

import hockeystick as hs
from hockeystick.adapters.torch import Constant, Online, Quantile
from hockeystick.adapters.torch._gradients import sensible
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import DEVICE, make_private

EXAMPLES = 12


@pytest.fixture(autouse=True)
def _whole_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no GPU multiply in fewer bits than a slow loop would."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


class Words(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A mean of embeddings, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(8, 3))

    def forward(self, words: Any) -> Any:
        return self.head(self.words(words).mean(dim=1))


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


def _text() -> tuple[Any, Any]:
    return Words(), torch.randint(11, (EXAMPLES, 5))


def _transformer() -> tuple[Any, Any]:
    return Block(), torch.randint(11, (EXAMPLES, 5))


def _scaled() -> tuple[Any, Any]:
    return Scaled(), torch.randn(EXAMPLES, 6)


MODELS = {"mlp": _mlp, "cnn": _cnn, "text": _text, "transformer": _transformer, "scaled": _scaled}


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
    private.step(functional.cross_entropy, next(iter(private.loader)))
    return {name: value.grad for name, value in private.model.named_parameters()}


def _slow_gradients(model: Any, inputs: Any, targets: Any) -> list[dict[str, Any]]:
    """Return each example's gradient by an ordinary backward pass of its own."""
    found = []
    inputs, targets = inputs.to(DEVICE), targets.to(DEVICE)
    for place in range(len(inputs)):
        model.zero_grad()
        functional.cross_entropy(
            model(inputs[place : place + 1]), targets[place : place + 1]
        ).backward()
        grads = {n: p.grad.double().clone() for n, p in model.named_parameters()}
        found.append(grads)
    model.zero_grad()
    return found


def _length(parts: Any) -> float:
    return math.sqrt(sum(float(part.square().sum()) for part in parts))


def _slow_sum(gradients: list[dict[str, Any]], norm: float, groups: list[list[str]]) -> Any:
    """Return the clipped sum by a loop over examples and groups of parameters."""
    limit = norm / math.sqrt(len(groups))
    sums = {name: torch.zeros_like(value) for name, value in gradients[0].items()}
    for one in gradients:
        for names in groups:
            length = _length(one[name] for name in names)
            for name in names:
                sums[name] += one[name] * min(1.0, limit / length)
    return sums


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
@pytest.mark.parametrize("microbatch", [None, 1, 5, "auto"])
@pytest.mark.parametrize("per_layer", [False, True], ids=["flat", "per-layer"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_step_without_noise_is_the_slow_loops_clipped_mean(
    name: str, per_layer: bool, microbatch: int | None, arithmetic: str
) -> None:
    clip = Constant(0.7, per_layer=per_layer)
    options: dict[str, Any] = {"microbatch": microbatch, "arithmetic": arithmetic}
    private, model, inputs, targets = made(MODELS[name], clip, **options)
    slow = _slow_gradients(model, inputs, targets)
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
    slow = _slow_gradients(model, inputs, targets)
    total = {name: sum(one[name] for one in slow) for name in slow[0]}
    length = _length(total.values())
    assert length > 0.3
    found = _one_step(private)
    for name, value in found.items():
        assert torch.allclose(value.double() * EXAMPLES, total[name] * 0.3 / length, atol=1e-6)


def test_the_sum_is_divided_by_the_expected_size_and_not_by_the_drawn_one() -> None:
    plan = {"sampling": "poisson", "batch_size": 3}
    private, _model, _inputs, _targets = made(clipping=1e-3, plan=plan, not_private=3)
    batch = next(iter(private.loader))
    assert len(batch) not in (0, 3)
    private.step(functional.cross_entropy, batch)
    grads = [value.grad for value in private.model.parameters()]
    slow = _slow_gradients(made(clipping=1.0)[1], *batch.examples)
    names = list(slow[0])
    assert _length(grads) == pytest.approx(
        _length(_slow_sum(slow, 1e-3, [names]).values()) / 3, rel=1e-4
    )


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
def test_an_empty_batch_gives_pure_noise_of_the_stated_variance(arithmetic: str) -> None:
    def wide() -> tuple[nn.Module, torch.Tensor]:
        return nn.Linear(400, 100), torch.randn(50, 400)

    plan = {"sampling": "poisson", "rate": 1e-9}
    options: dict[str, Any] = {"plan": plan, "not_private": None, "arithmetic": arithmetic}
    private, _model, _inputs, _targets = made(wide, 0.5, noise_multiplier=3.0, **options)
    batch = next(iter(private.loader))
    assert len(batch) == 0
    private.step(functional.cross_entropy, batch)
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
def test_the_usual_noise_differs_from_run_to_run_and_a_seed_repeats_it(arithmetic: str) -> None:
    def ran(seed: int | None) -> Any:
        options: dict[str, Any] = {"not_private": seed, "arithmetic": arithmetic}
        private, _model, _inputs, _targets = made(noise_multiplier=1.0, **options)
        return torch.cat([value.flatten() for value in _one_step(private).values()])

    assert not torch.equal(ran(None), ran(None))
    assert torch.equal(ran(7), ran(7))
    assert not torch.equal(ran(7), ran(8))


def test_any_optimizer_steps_and_frozen_parameters_stay() -> None:
    torch.manual_seed(1)
    model, inputs = _mlp()
    model.to(DEVICE)[0].requires_grad_(False)
    frozen, trained = model[0].weight.clone(), model[2].weight.clone()
    dataset = torch.utils.data.TensorDataset(inputs, torch.zeros(EXAMPLES, dtype=torch.long))
    plan = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=2, noise_multiplier=1)
    optimizer = torch.optim.AdamW(model.parameters())
    _one_step(make_private(model, optimizer, dataset, plan))
    assert torch.equal(model[0].weight, frozen)
    assert not torch.equal(model[2].weight, trained)


def test_the_quantiles_noise_is_paid_for_by_the_gradients() -> None:
    clip = Quantile(1.0, bit_noise=5.0)
    assert clip.multiplier(1.0) == pytest.approx(1.00503781525921207549, rel=1e-12)
    both = clip.multiplier(1.0) ** -2 + (2 * clip.noise(1.0)) ** -2
    assert both <= 1.0 + 1e-15


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
def test_the_clipping_norm_follows_the_quantile(arithmetic: str) -> None:
    clip = Quantile(1e-3, quantile=0.5, rate=0.3, bit_noise=0.05)
    plan = {"steps": 80}
    options: dict[str, Any] = {"plan": plan, "arithmetic": arithmetic}
    private, model, inputs, targets = made(clipping=clip, noise_multiplier=0.01, **options)
    for group in private.optimizer.param_groups:
        group["lr"] = 0.0
    lengths = sorted(_length(one.values()) for one in _slow_gradients(model, inputs, targets))
    for batch in private.loader:
        private.step(functional.cross_entropy, batch)
    assert lengths[3] < private.clipping_norm < lengths[8]


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
def test_the_online_norm_pays_for_directions_and_moves_by_its_rate(arithmetic: str) -> None:
    clip = Online(1e-3, rate=0.1)
    noise = hs.calibration.joint_noise(2.0, inflation=1.01)
    assert (clip.multiplier(2.0), clip.noise(2.0)) == (noise.gradient, noise.query)
    assert noise.query == pytest.approx(2 * 7.1239907201718425, rel=1e-12)
    options: dict[str, Any] = {"plan": {"steps": 6}, "arithmetic": arithmetic}
    private, _model, _inputs, _targets = made(clipping=clip, noise_multiplier=1e-3, **options)
    norms = [private.clipping_norm]
    for batch in private.loader:
        private.step(functional.cross_entropy, batch)
        norms.append(private.clipping_norm)
    # Everything is clipped, so that a larger norm goes along with the gradient in each step.
    assert norms == pytest.approx([1e-3 * math.exp(0.1 * max(t - 1, 0)) for t in range(7)])


@pytest.mark.parametrize("clip", [Quantile(1.0, bit_noise=5.0), Online(1.0)], ids=["q", "oso"])
def test_rules_that_follow_lengths_need_noise_and_single_gradients(clip: Any) -> None:
    with pytest.raises(IncompatibleError, match="single gradients"):
        made(clipping=clip, noise_multiplier=1.0, plan={"clipping": "batch"})
    with pytest.raises(ParameterError, match="noise_multiplier"):
        made(clipping=clip, noise_multiplier=0.0)


def test_a_quantile_is_refused_where_examples_are_zeroed() -> None:
    with pytest.raises(IncompatibleError, match="zeroed"):
        made(
            clipping=Quantile(1.0, bit_noise=5.0),
            noise_multiplier=1.0,
            plan={"adjacency": "zero-out"},
        )


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
            private.step(functional.cross_entropy, wrong)
    private.step(functional.cross_entropy, batch)
    with pytest.raises(ParameterError, match="used once"):
        private.step(functional.cross_entropy, batch)
    assert private.steps == 1


@pytest.mark.parametrize(("entries", "size"), [(2**4, 2**18), (2**16, 2**6), (2**22, 8)])
def test_how_many_gradients_are_computed_at_once_goes_with_the_models_size(
    entries: int, size: int
) -> None:
    halves = {"weight": torch.empty(entries), "bias": torch.empty(entries)}
    assert sensible(halves) == size
    assert sensible({"weight": torch.empty(entries, dtype=torch.float64)}) == size
