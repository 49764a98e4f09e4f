"""Hugging Face's models: the gradient of an example in a batch is the one of its own pass."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from importlib import import_module
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
from hockeystick.adapters.huggingface import PrivateTrainer
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import DEVICE, Items, make_private
from tests.systems.programs import EXAMPLES, program

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # theirs, of their own names
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TEXTS, LONGEST, NORM = 4, 8, 0.5
SMALL = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "max_position_embeddings": LONGEST,
}


def _bert(attention: str) -> Any:
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = transformers.BertConfig(**SMALL, **without, attn_implementation=attention)
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


MODELS = {"bert": _bert, "gpt2": _gpt2, "lora": _lora}


def _loss(output: Any) -> Any:
    return output.loss


def _loop(model: Any, examples: Any, **options: Any) -> Any:
    model.to(DEVICE).train()
    plan = hs.DPSGD(examples=len(examples), sampling="full-batch", steps=1, noise_multiplier=0)
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
@pytest.mark.parametrize("name", MODELS)
def test_a_step_is_the_slow_loops_clipped_sum(name: str, attention: str) -> None:
    torch.manual_seed(1)
    model, examples = MODELS[name](attention), _texts(next_word=name == "gpt2")
    with pytest.raises(ParameterError, match="pad_to gives"):
        next(iter(_loop(model, examples).loader))
    private = _loop(model, examples, pad_to=LONGEST)
    masks: Any = import_module("transformers.masking_utils")
    before = masks.is_tracing
    private.step(_loss, next(iter(private.loader)))
    assert masks.is_tracing is before
    found = {n: p.grad for n, p in model.named_parameters() if p.requires_grad}
    expected = _slow(model, examples)
    assert max(float(one.abs().max()) for one in expected.values()) > 1e-3
    for one, value in expected.items():
        assert torch.allclose(found[one].double() * TEXTS, value, atol=2e-6), one


def test_the_recipe_tells_texts_apart_and_trains_adapters_alone_within_its_budget() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recipe = program("train_bert", EXAMPLES)
    torch.manual_seed(0)
    plan, model = recipe.planned(recipe.TEXTS), recipe.network()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    spent = recipe.train(model, recipe.made_up(recipe.TEXTS), plan).upper
    assert spent == hs.epsilon(plan, recipe.DELTA).upper <= recipe.EPSILON
    changed = {n for n, value in model.named_parameters() if not torch.equal(value, before[n])}
    assert all("lora_" in name or "modules_to_save" in name for name in changed)
    # The noise is not seeded. A guess is right of more than 65 % with a probability of 6e-8.
    assert recipe.accuracy(model, recipe.made_up(300)) > 0.65


# Trainers.


_WORDS = [[1 + place % 9] * (3 + place % 4) for place in range(40)]
WORDS = [
    {"input_ids": words, "attention_mask": [1] * len(words), "labels": words} for words in _WORDS
]


def _trainer(folder: Path, **options: Any) -> Any:
    torch.manual_seed(5)
    adapters = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    own = {"save_steps": 4, "gradient_accumulation_steps": options.pop("accumulated", 1)}
    arguments = transformers.TrainingArguments(
        str(folder), use_cpu=True, report_to=[], disable_tqdm=True, learning_rate=0.1, **own
    )
    return PrivateTrainer(
        peft.get_peft_model(_gpt2("eager"), adapters),
        arguments,
        train_dataset=Items(WORDS),
        plan=hs.DPSGD(examples=40, batch_size=2, steps=12, noise_multiplier=1.0),
        delta=1e-3,
        pad_to=LONGEST,
        **options,
    )


def test_a_trainers_steps_are_those_of_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = _trainer(tmp_path, not_private=3)
    before = [one.detach().clone() for one in trainer.model.parameters() if one.requires_grad]
    sizes, own = [], trainer.training_step

    def noted(model: Any, inputs: Any, *given: Any) -> Any:
        sizes.append(len(inputs["input_ids"]))
        return own(model, inputs, *given)

    trainer.training_step = noted
    trainer.train()
    after = [one.detach() for one in trainer.model.parameters() if one.requires_grad]
    assert all(not torch.equal(*pair) for pair in zip(before, after, strict=True))
    assert len(sizes) == trainer.state.global_step == trainer.private.steps == 12
    assert {0, 1} < set(sizes)  # sampled, and neither shuffled nor left out where it is empty
    assert all("loss" not in one and one["delta"] == 1e-3 for one in trainer.state.log_history)
    assert "epsilon" in capsys.readouterr().out


def test_logs_and_checkpoints_have_the_epsilon_of_what_ran(tmp_path: Path) -> None:
    trainer = _trainer(tmp_path)
    trainer.train()
    expected = hs.epsilon(trainer.plan, 1e-3).upper
    assert trainer.state.log_history[-1]["epsilon"] == expected
    for steps in (4, 8, 12):
        saved = json.loads((tmp_path / f"checkpoint-{steps}" / "privacy.json").read_text())
        assert saved["upper"] == hs.epsilon(replace(trainer.plan, steps=steps), 1e-3).upper


def test_what_is_no_private_step_of_a_trainer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="gradient_accumulation_steps must be 1"):
        _trainer(tmp_path, accumulated=2)
    trainer = _trainer(tmp_path)
    trainer.train()
    with pytest.raises(IncompatibleError, match="resume_from_checkpoint"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
