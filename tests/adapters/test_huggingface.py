"""Hugging Face's models: the gradient of an example in a batch is the one of its own pass."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
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


def _llama(attention: str) -> Any:
    config = transformers.LlamaConfig(**SMALL, attn_implementation=attention)
    return transformers.LlamaForCausalLM(config)


def _vit(attention: str) -> Any:
    sizes = {name: size for name, size in SMALL.items() if name.startswith(("hidden", "num", "in"))}
    config = transformers.ViTConfig(
        **sizes,
        image_size=8,
        patch_size=4,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation=attention,
    )
    return transformers.ViTForImageClassification(config)


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


def _pictures() -> list[dict[str, Any]]:
    return [{"pixel_values": torch.randn(3, 8, 8), "labels": place % 2} for place in range(4)]


MODELS: dict[str, tuple[Any, Any, int | None]] = {
    "bert": (_bert, lambda: _texts(next_word=False), LONGEST),
    "gpt2": (_gpt2, lambda: _texts(next_word=True), LONGEST),
    "llama": (_llama, lambda: _texts(next_word=True), LONGEST),
    "vit": (_vit, _pictures, None),
    "lora": (_lora, lambda: _texts(next_word=False), LONGEST),
}


def _loss(output: Any) -> Any:
    return output.loss


def _loop(model: Any, examples: Any, steps: int = 1, **options: Any) -> Any:
    """Return a private loop without noise."""
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


def test_texts_of_several_lengths_are_refused_without_one() -> None:
    private = _loop(_bert("eager"), _texts(next_word=False))
    with pytest.raises(ParameterError, match="pad_to gives"):
        next(iter(private.loader))


def _recipe() -> Any:
    """Return the example that trains adapters, without running it."""
    path = Path(__file__).parents[2] / "examples" / "train_bert.py"
    spec = spec_from_file_location("train_bert", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    return module


def test_the_recipe_trains_adapters_and_nothing_else_within_its_budget() -> None:
    torch.manual_seed(0)
    recipe = _recipe()
    plan = recipe.planned(recipe.TEXTS)
    assert 2.99 <= hs.epsilon(plan, recipe.DELTA).upper <= recipe.EPSILON
    model, texts = recipe.network(), recipe.made_up(24)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    few = hs.DPSGD(examples=24, batch_size=8, steps=2, noise_multiplier=1.0)
    assert recipe.train(model, texts, few).upper == hs.epsilon(few, recipe.DELTA).upper
    changed = {n for n, value in model.named_parameters() if not torch.equal(value, before[n])}
    assert changed
    assert all("lora_" in name or "modules_to_save" in name for name in changed)


def test_the_recipe_tells_texts_apart_at_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    recipe = _recipe()
    torch.manual_seed(0)
    model = recipe.network()
    recipe.train(model, recipe.made_up(recipe.TEXTS), recipe.planned(recipe.TEXTS))
    # The noise is not seeded. A guess is right of more than 65 % with a probability of 6e-8.
    assert recipe.accuracy(model, recipe.made_up(300)) > 0.65
