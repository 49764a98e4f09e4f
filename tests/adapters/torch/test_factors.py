"""Gradients in factors: the same sums as in rows, and no length that is too small."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import hockeystick as hs
from hockeystick.adapters.torch import Constant, Quantile
from hockeystick.adapters.torch._clipping import clipped_sum
from hockeystick.adapters.torch._factors import Layers, LookedUp, Outer, Rows
from hockeystick.adapters.torch._noise import Real
from tests.adapters.torch.loops import LOSS, make_loop, weights_of

EXAMPLES, WORDS, CLASSES = 12, 20, 3
PLAN = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=2, noise_multiplier=1)


class _Text(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A layer that is called twice, one without a bias, and words that may be padding or tied."""

    def __init__(self, padding: int | None = None, *, tied: bool = False) -> None:
        super().__init__()
        self.words, self.twice = nn.Embedding(WORDS, 16, padding_idx=padding), nn.Linear(16, 16)
        self.wide, self.last = nn.Linear(16, WORDS, bias=False), nn.Linear(WORDS, CLASSES)
        self.drop = nn.Dropout(0.3)
        if tied:
            self.wide.weight = self.words.weight

    def forward(self, text: Any) -> Any:
        hidden = self.drop(self.twice(torch.tanh(self.twice(self.words(text)))))
        return self.last(self.wide(hidden).mean(dim=1))


class _WithPenalty(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model that gives the square of a weight beside its outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, CLASSES)

    def forward(self, rows: Any) -> Any:
        return self.last(torch.relu(self.first(rows))), self.first.weight.square().sum()


class _Sloped(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model that gives the gradient of what its layers give."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, rows: Any) -> Any:
        return torch.func.grad(lambda one: self.layers(one).sum())(rows).square().sum(dim=1)


def _rows() -> Any:
    return torch.randn(EXAMPLES, 5), torch.randint(CLASSES, (EXAMPLES,))


def _texts() -> Any:
    return torch.randint(WORDS, (EXAMPLES, 4)), torch.randint(CLASSES, (EXAMPLES,))


def _mlp() -> Any:
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def _hooked() -> Any:
    """Return a model whose hook changes gradients where one pass back finds all examples'."""

    def hook(layer: Any, given: Any, found: Any) -> None:
        if found.requires_grad:
            found.register_hook(lambda gradient: 3 * gradient)

    model = _mlp()
    model[1].register_forward_hook(hook)
    return model


def _penalised(outputs: Any, targets: Any) -> Any:
    return LOSS(outputs[0], targets) + 0.1 * outputs[1]


@pytest.mark.parametrize(
    ("model", "data", "loss", "options", "chosen"),
    [
        (_mlp, _rows, LOSS, {}, {"0", "2"}),
        (_mlp, _rows, LOSS, {"microbatch": 1}, {"0", "2"}),
        (_mlp, _rows, LOSS, {"clipping": Quantile(0.1, bit_noise=2.0)}, {"0", "2"}),
        (_mlp, _rows, LOSS, {"clipping": Constant(0.1, per_layer=True)}, {"0", "2"}),
        (_Text, _texts, LOSS, {"microbatch": 5}, {"words", "twice", "wide", "last"}),
        (lambda: _Text(3), _texts, LOSS, {}, {"words", "twice", "wide", "last"}),
        (lambda: _Text(tied=True), _texts, LOSS, {}, {"twice", "last"}),
        (_WithPenalty, _rows, _penalised, {}, {"last"}),
        (_Sloped, _rows, lambda outputs, targets: outputs.sum(), {}, set()),
        (_hooked, _rows, LOSS, {}, {"0", "2"}),
    ],
)
def test_sums_are_those_of_rows(
    model: Callable[[], Any], data: Any, loss: Any, options: Any, chosen: set[str]
) -> None:
    torch.manual_seed(0)
    first, dataset = model(), torch.utils.data.TensorDataset(*data())
    found = []
    for in_rows in (False, True):
        given = {"clipping": 0.1, "arithmetic": "real", "not_private": 1} | options
        private = make_loop(PLAN, copy.deepcopy(first), dataset, lr=0.5, **given)
        private._layers = Layers(private.model) if in_rows else None
        while private.left:
            private.step(loss)
        assert {name for name, _ in private._layers.probes} == (set() if in_rows else chosen)
        found.append(weights_of(private))
    assert torch.allclose(*found, rtol=1e-5, atol=1e-6)


def test_a_layer_that_is_called_otherwise_is_taken_in_rows() -> None:
    class Often(nn.Module):  # type: ignore[misc]  # torch may have no types
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.times = nn.Linear(5, 5), 1

        def forward(self, rows: Any) -> Any:
            for _ in range(self.times):
                rows = self.layer(rows)
            return rows

    model = Often()
    dataset = torch.utils.data.TensorDataset(*_rows())
    private = make_loop(PLAN, model, dataset, lr=0.0, arithmetic="real")
    private.step(LOSS)
    assert private._layers.probes
    model.times = 2
    private.step(LOSS)
    assert not private._layers.probes


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1.0, 1e12, 1e25])
@pytest.mark.parametrize("apart", [0.0, 1e-7, 1e-4, 1.0])
def test_no_length_is_too_small_where_places_cancel(size: float, apart: float) -> None:
    torch.manual_seed(2)
    once, outputs = torch.randn(3, 1, 40), torch.randn(3, 1, 30) * size
    inputs, both = torch.cat([once, once * (1.0 + apart)], dim=1), torch.cat([outputs, -outputs], 1)
    exact = torch.einsum("bti,btj->bij", both.double(), inputs.double())
    lengths = Outer.of(inputs, both).lengths(1.0)
    assert bool((lengths >= exact.flatten(1).norm(dim=1) * (1.0 - 1e-6)).all())
    alone = Outer.of(once, outputs).lengths(1.0)
    assert torch.allclose(alone, once.double().norm(dim=(1, 2)) * outputs.double().norm(dim=(1, 2)))


@pytest.mark.parametrize(
    ("places", "entries", "inputs", "outputs", "norm"),
    [
        (2, 8, 1e-12, 1e20, 2.3e-4),
        (64, 4096, 2.6e-23, 5.8e20, 2.3e-4),
        (1, 1000, 3e38, 1e-30, 2.3e-4),
        (3, 8, 1e25, 1e20, 2.3e-4),
        (1, 8, 1e19, 1e20, 100.0),
    ],
)
def test_each_example_is_clipped_by_itself_whatever_its_numbers(
    places: int, entries: int, inputs: float, outputs: float, norm: float
) -> None:
    own = torch.full((1, places, entries), inputs), torch.full((1, places, 4), outputs)
    beside = torch.full((1, places, entries), 1e3), torch.full((1, places, 4), 1e20)
    alone, both = ([*own], [torch.cat(pair) for pair in zip(own, beside, strict=True)])
    sums = [
        clipped_sum({"w": Outer.of(*given)}, norm, Real(), Constant(norm))[0]["w"].double()
        for given in (alone, [*beside], both)
    ]
    row = torch.einsum("bti,btj->bji", *own)
    expected = norm if bool(torch.isfinite(row).all()) else 0.0
    assert float(sums[0].norm()) == pytest.approx(expected, rel=1e-3)
    assert float((sums[2] - sums[1]).norm()) == pytest.approx(expected, rel=1e-3, abs=1e-3 * norm)


def test_lengths_and_sums_of_what_is_looked_up_are_those_of_a_matrix() -> None:
    torch.manual_seed(3)
    places, outputs = torch.randint(4, (5, 6)), torch.randn(5, 6, 3)
    part = LookedUp(places, outputs, 4)
    matrix = torch.zeros(5, 4, 3)
    for example in range(5):
        matrix[example].index_add_(0, places[example], outputs[example])
    weights, kept = torch.rand(2, 5), torch.tensor([True, False, True, True, False])
    assert torch.allclose(part.lengths(1.0), Rows(matrix).lengths(1.0))
    for one, other in ((part, Rows(matrix)), (part.kept(kept), Rows(matrix).kept(kept))):
        assert torch.allclose(one.summed(weights), other.summed(weights), atol=1e-6)
