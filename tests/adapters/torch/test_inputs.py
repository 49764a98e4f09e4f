"""Examples and models of several parts: each example's gradient is what it is alone."""

from __future__ import annotations

import math
from collections import UserDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import DEVICE, make_private

EXAMPLES, NORM = 5, 0.3
LOSS = functional.cross_entropy


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


class Masked(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A transformer that is told which places of a text are words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, words: Any, mask: Any) -> Any:
        found = self.block(self.words(words), src_key_padding_mask=mask == 0)
        return self.head((found * mask.unsqueeze(-1)).sum(dim=1))


def _step(model: Any, examples: list[Any], loss: Any, **options: Any) -> dict[str, Any]:
    """Return the sum of clipped gradients, by a step without noise."""
    model.to(DEVICE)
    plan = hs.DPSGD(examples=len(examples), sampling="full-batch", steps=1, noise_multiplier=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    private = make_private(model, optimizer, Examples(examples), plan, clipping=NORM, **options)
    private.step(loss, next(iter(private.loader)))
    return {n: p.grad.double() * len(examples) for n, p in model.named_parameters()}


def _slow(model: Any, alone: Callable[[int], Any]) -> dict[str, Any]:
    """Return the sum of clipped gradients, by a backward pass for each example."""
    sums = {name: torch.zeros_like(p).double() for name, p in model.named_parameters()}
    for place in range(EXAMPLES):
        model.zero_grad()
        alone(place).backward()
        grads = {n: p.grad.double() for n, p in model.named_parameters() if p.grad is not None}
        length = float(sum(g.square().sum() for g in grads.values())) ** 0.5
        for name, g in grads.items():
            sums[name] += g * min(1.0, NORM / length)
    return sums


def _same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Return whether sums are the same to single precision, and not of nothing."""
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
    rows = [_numbers(place) for place in range(EXAMPLES)]
    examples = [(given(left, right), label) for left, right, label in rows]
    found = _step(model, examples, LOSS, microbatch=microbatch)

    def alone(place: int) -> Any:
        left, right, label = rows[place]
        output = model(left[None].to(DEVICE), right[None].to(DEVICE))
        return LOSS(output, torch.tensor([label], device=DEVICE))

    assert _same(found, _slow(model, alone))


def test_targets_may_be_trees_and_several() -> None:
    torch.manual_seed(1)
    model = Two()
    rows = [_numbers(place) for place in range(EXAMPLES)]
    examples = [(left, {"label": label}, np.float32(0.5)) for left, _, label in rows]

    def loss(output: Any, target: Any, weight: Any) -> Any:
        assert output.shape == (1, 4)
        assert target["label"].shape == weight.shape == (1,)
        return weight * LOSS(output, target["label"], reduction="none")

    def alone(place: int) -> Any:
        left, _, label = rows[place]
        target = torch.tensor([label], device=DEVICE)
        return 0.5 * LOSS(model(left[None].to(DEVICE)), target)

    found = _step(model, examples, loss)
    expected = _slow(model, alone)
    expected = {name: one for name, one in expected.items() if name.startswith("left")}
    assert _same(found, expected)


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
    words, labels = torch.randint(7, (EXAMPLES, 6)), torch.randint(4, (EXAMPLES,))
    model(words.to(DEVICE))  # which initialises the head
    enabled = torch.backends.mkldnn.set_flags()[0]
    found = _step(model, list(zip(words, labels, strict=True)), LOSS)
    assert torch.backends.mkldnn.set_flags()[0] == enabled
    assert not model.layer._forward_pre_hooks

    def alone(place: int) -> Any:
        one = slice(place, place + 1)
        return LOSS(model(words[one].to(DEVICE)), labels[one].to(DEVICE))

    assert _same(found, _slow(model, alone))


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")  # torch's own
def test_packed_sequences_are_refused() -> None:
    class Packed(nn.GRU):  # type: ignore[misc]  # torch may have no types
        def forward(self, rows: Any) -> Any:
            return super().forward(rows)[1]

    class Packing(nn.Module):  # type: ignore[misc]  # torch may have no types
        def __init__(self) -> None:
            super().__init__()
            self.layer = Packed(3, 4)

        def forward(self, rows: Any) -> Any:
            lengths = torch.ones(rows.shape[1], dtype=torch.long)
            return self.layer(nn.utils.rnn.pack_padded_sequence(rows, lengths))

    with pytest.raises(IncompatibleError, match="packed sequence"):
        _step(Packing(), [torch.ones(2, 3)] * EXAMPLES, torch.sum)


def test_padding_that_a_mask_names_changes_no_gradient() -> None:
    torch.manual_seed(1)
    model = Masked()
    texts = [torch.randint(1, 7, (length,)) for length in (2, 3, 5, 4, 1)]
    examples = [
        ({"words": text, "mask": torch.ones(len(text))}, place % 4)
        for place, text in enumerate(texts)
    ]
    found = _step(model, examples, LOSS, pad_to=6)

    def alone(place: int) -> Any:
        text = texts[place][None].to(DEVICE)
        target = torch.tensor([place % 4], device=DEVICE)
        return LOSS(model(text, torch.ones_like(text)), target)

    assert _same(found, _slow(model, alone))


def test_padding_of_a_mapping_fills_what_has_a_length_and_leaves_labels_out() -> None:
    example = {"words": [1, 2], "labels": [3, 4], "weight": 0.5}
    plan = hs.DPSGD(examples=1, sampling="full-batch", steps=1, noise_multiplier=1)
    model = Two()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    private = make_private(model, optimizer, Examples([example]), plan, pad_to=4)
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
        ([{1: torch.ones(3)}], "by the names"),
        ([{"left": None}], "got 'NoneType'"),
        ([(torch.ones(3), "a text")], "got 'str'"),
    ],
    ids=str,
)
def test_what_is_not_made_of_like_tensors_is_refused(examples: list[Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        _step(Two(), examples, LOSS)


def test_a_model_that_reads_values_is_refused_and_nothing_is_counted() -> None:
    class Reading(nn.Linear):  # type: ignore[misc]  # torch may have no types
        def forward(self, rows: Any) -> Any:
            return super().forward(rows) if bool(rows.sum() > 0) else super().forward(-rows)

    model = Reading(3, 2).to(DEVICE)
    plan = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=1, noise_multiplier=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    private = make_private(model, optimizer, Examples([torch.ones(3)] * EXAMPLES), plan)
    with pytest.raises(IncompatibleError, match=r"values of a tensor .* torch\.where"):
        private.step(torch.sum, next(iter(private.loader)))
    assert private.steps == 0


def test_a_batch_with_a_part_that_was_changed_is_refused() -> None:
    rows = [_numbers(place) for place in range(EXAMPLES)]
    examples = [({"left": left, "right": right}, label) for left, right, label in rows]
    plan = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=1, noise_multiplier=1)
    model = Two().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    private = make_private(model, optimizer, Examples(examples), plan)
    batch = next(iter(private.loader))
    assert len(batch) == EXAMPLES
    batch.examples[0]["right"].mul_(0)
    with pytest.raises(ParameterError, match="as it was drawn"):
        private.step(LOSS, batch)
    assert private.steps == 0


@pytest.mark.parametrize("clipping", ["individual", "batch"])
@pytest.mark.parametrize("microbatch", [None, 2])
def test_the_loss_is_the_mean_of_the_examples_before_the_step(
    clipping: str, microbatch: int | None
) -> None:
    torch.manual_seed(1)
    model = nn.Linear(3, 4).to(DEVICE)
    rows, labels = torch.randn(EXAMPLES, 3), torch.randint(4, (EXAMPLES,))
    plan = hs.DPSGD(
        examples=EXAMPLES, sampling="full-batch", steps=1, noise_multiplier=1, clipping=clipping
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(rows, labels)
    private = make_private(model, optimizer, data, plan, microbatch=microbatch)
    assert math.isnan(private.not_private_loss)
    with torch.no_grad():
        expected = float(LOSS(model(rows.to(DEVICE)), labels.to(DEVICE)))
    private.step(LOSS, next(iter(private.loader)))
    assert private.not_private_loss == pytest.approx(expected, rel=1e-5)
    assert "loss" not in private.state_dict()
