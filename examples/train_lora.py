"""Train LoRA adapters of a causal language model privately, by Hugging Face's own trainer.

    pip install 'hockeystick[huggingface]'
    python examples/train_lora.py

The model is a tiny GPT-2 with random weights, its texts count up from a random word. Whoever has
texts and weights of their own puts a tokenizer in the place of ``counting`` and ``from_pretrained``
in that of ``network``.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import torch
import transformers
from peft import LoraConfig, TaskType, get_peft_model
from rich.console import Console

import hockeystick as hs
from hockeystick.adapters.huggingface import PrivateTrainer

EPSILON, DELTA = 3.0, 1e-4
TEXTS, WORDS, LONGEST = 1000, 20, 12


def counting(texts: int) -> list[dict[str, list[int]]]:
    """Return texts of different lengths, as a tokenizer has them; a model learns to count."""
    starts, lengths = torch.randint(WORDS, (texts,)), torch.randint(4, LONGEST, (texts,))
    found = [
        [(start + place) % WORDS for place in range(length)]
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]
    return [{"input_ids": one, "attention_mask": [1] * len(one), "labels": one} for one in found]


def network() -> Any:
    """Return a model whose adapters and embeddings are trained, and nothing else."""
    config = transformers.GPT2Config(
        vocab_size=WORDS,
        n_positions=LONGEST,
        n_embd=32,
        n_layer=1,
        n_head=2,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    adapters = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=4,
        target_modules=["c_attn"],
        modules_to_save=["lm_head"],
        fan_in_fan_out=True,
    )
    return get_peft_model(transformers.GPT2LMHeadModel(config), adapters)


def right(model: Any, texts: list[dict[str, list[int]]]) -> float:
    """Return the share of last words that are foretold."""
    model.eval()
    with torch.no_grad():
        scores = [model(torch.tensor([one["input_ids"][:-1]])).logits[0, -1] for one in texts]
    found = [
        int(score.argmax()) == one["input_ids"][-1]
        for score, one in zip(scores, texts, strict=True)
    ]
    return sum(found) / len(found)


def main() -> None:
    """Train, and say what came out."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    torch.manual_seed(0)  # the noise has nothing to do with it
    plan = hs.DPSGD(examples=TEXTS, batch_size=100, epochs=4, noise_multiplier=1.0)
    plan = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(EPSILON, DELTA)).plan
    model, seen, unseen = network(), counting(TEXTS), counting(300)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder,
            learning_rate=0.05,
            lr_scheduler_type="constant",
            logging_steps=10,
            report_to=[],
            disable_tqdm=True,
        )
        trainer = PrivateTrainer(
            model, arguments, train_dataset=seen, plan=plan, delta=DELTA, pad_to=LONGEST
        )
        before = right(model, unseen)
        trainer.train()
    spent = trainer.private.spent(DELTA)
    Console().print(
        f"{before:.0%} right, then {right(model, unseen):.0%} at ({spent:.3f}, {DELTA:g})-DP"
    )


if __name__ == "__main__":
    main()
