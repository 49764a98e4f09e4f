"""Hugging Face's models: the gradient of an example in a batch is the one of its own pass."""

from __future__ import annotations

import os
import runpy
import warnings
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers", reason="needs the extra huggingface")
pytest.importorskip("peft", reason="needs the extra huggingface")

import peft
import torch
import transformers

import hockeystick as hs
from hockeystick.errors import ParameterError
from tests.adapters.torch.loops import DEVICE, make_private

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # theirs, of their own names
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

EXAMPLES, LONGEST, NORM = 4, 8, 0.5
SMALL = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "max_position_embeddings": LONGEST,
}


def _bert(attention: str, dropout: float = 0.0) -> Any:
    config = transformers.BertConfig(
        **SMALL,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        attn_implementation=attention,
    )
    return transformers.BertForSequenceClassification(config)


def _gpt2(attention: str) -> Any:
    config = transformers.GPT2Config(
        vocab_size=20,
        n_positions=LONGEST,
        n_embd=8,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=1,
        eos_token_id=1,
        loss_type="ForCausalLM",
        attn_implementation=attention,
    )
    return transformers.GPT2LMHeadModel(config)


def _lora(attention: str) -> Any:
    adapters = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"])
    model = peft.get_peft_model(_bert(attention), adapters)
    for name, value in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(value)
    return model


def _texts(*, next_word: bool) -> list[dict[str, Any]]:
    """Return texts of several lengths; the label is one of two, or the text itself."""
    texts = [torch.randint(2, 20, (length,)).tolist() for length in (3, 8, 5, 2)]
    return [
        {
            "input_ids": text,
            "attention_mask": [1] * len(text),
            "labels": text if next_word else place % 2,
        }
        for place, text in enumerate(texts)
    ]


MODELS: dict[str, tuple[Any, Any, int | None]] = {
    "bert": (_bert, lambda: _texts(next_word=False), LONGEST),
    "gpt2": (_gpt2, lambda: _texts(next_word=True), LONGEST),
    "lora": (_lora, lambda: _texts(next_word=False), LONGEST),
}


def _loss(output: Any) -> Any:
    return output.loss


def _loop(model: Any, examples: Any, steps: int = 1, **options: Any) -> Any:
    model.to(DEVICE).train()
    plan = hs.DPSGD(examples=len(examples), sampling="full-batch", steps=steps, noise_multiplier=0)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
    return make_private(model, optimizer, examples, plan, clipping=NORM, **options)


def _slow(model: Any, examples: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of clipped gradients, by a backward pass for each example, without padding."""
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    sums = {name: torch.zeros_like(value).double() for name, value in trained.items()}
    for example in examples:
        model.zero_grad()
        given = {name: torch.as_tensor(part)[None].to(DEVICE) for name, part in example.items()}
        model(**given).loss.backward()
        grads = {n: p.grad.double() for n, p in trained.items() if p.grad is not None}
        length = float(sum(one.square().sum() for one in grads.values())) ** 0.5
        for name, one in grads.items():
            sums[name] += one * min(1.0, NORM / length)
    return sums


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_step_is_the_slow_loops_clipped_sum(name: str, attention: str) -> None:
    torch.manual_seed(1)
    make, data, length = MODELS[name]
    model, examples = make(attention), data()
    if length is not None:
        with pytest.raises(ParameterError, match="pad_to gives"):
            next(iter(_loop(model, examples).loader))
    private = _loop(model, examples, pad_to=length)
    private.step(_loss, next(iter(private.loader)))
    found = {n: p.grad for n, p in model.named_parameters() if p.requires_grad}
    expected = _slow(model, examples)
    assert max(float(one.abs().max()) for one in expected.values()) > 1e-3
    for one, value in expected.items():
        assert torch.allclose(found[one].double() * EXAMPLES, value, atol=2e-6), one


def test_dropout_is_drawn_for_each_example_and_masks_are_read_again_after_a_step() -> None:
    torch.manual_seed(1)
    masks: Any = import_module("transformers.masking_utils")
    before = masks.is_tracing
    example = _texts(next_word=False)[0]
    private = _loop(_bert("eager", dropout=0.5), [example] * EXAMPLES, 2)
    found = []
    for batch in private.loader:
        private.step(_loss, batch)
        found.append(torch.cat([p.grad.flatten() for p in private.model.parameters()]))
    assert not torch.equal(*found)
    assert masks.is_tracing is before


def test_the_recipe_tells_texts_apart_and_trains_adapters_alone_within_its_budget() -> None:
    path = Path(__file__).parents[2] / "examples" / "train_bert.py"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recipe = SimpleNamespace(**runpy.run_path(os.fspath(path)))
    torch.manual_seed(0)
    plan, model = recipe.planned(recipe.TEXTS), recipe.network()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    spent = recipe.train(model, recipe.made_up(recipe.TEXTS), plan).upper
    assert spent == hs.epsilon(plan, recipe.DELTA).upper <= recipe.EPSILON
    changed = {n for n, value in model.named_parameters() if not torch.equal(value, before[n])}
    assert all("lora_" in name or "modules_to_save" in name for name in changed)
    # The noise is not seeded. A guess is right of more than 65 % with a probability of 6e-8.
    assert recipe.accuracy(model, recipe.made_up(300)) > 0.65
