"""Fine-tune a causal language model privately by TRL's trainer.

    pip install 'hockeystick[trl]'
    python examples/train_sft.py

The model is a tiny GPT-2 with random weights, its tokenizer knows twenty words, and texts count up
from a random one.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import torch
import transformers
from datasets import Dataset
from peft import LoraConfig
from rich.console import Console
from tokenizers import Tokenizer, models, pre_tokenizers
from trl import SFTConfig, SFTTrainer

import hockeystick as hs
from hockeystick.adapters.huggingface import PrivateSteps

EPSILON, DELTA = 3.0, 1e-4
TEXTS, LONGEST = 1000, 12
WORDS = tuple(f"w{place}" for place in range(20))


class PrivateSFT(PrivateSteps, SFTTrainer):
    """TRL's trainer with private steps."""


def tokens() -> Any:
    """Return a tokenizer of words, which no private text decides."""
    places = {word: place for place, word in enumerate(("<pad>", "<eos>", *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(places, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>"
    )


def network(vocabulary: int) -> Any:
    """Return a model with random weights."""
    config = transformers.GPT2Config(
        vocab_size=vocabulary,
        n_positions=LONGEST,
        n_embd=32,
        n_layer=1,
        n_head=2,
        bos_token_id=1,
        eos_token_id=1,
    )
    return transformers.GPT2LMHeadModel(config)


def counting(texts: int) -> Dataset:
    """Return texts of different lengths; a model learns to count."""
    starts, lengths = torch.randint(20, (texts,)), torch.randint(4, LONGEST - 1, (texts,))
    pairs = zip(starts.tolist(), lengths.tolist(), strict=True)
    return Dataset.from_list(
        [
            {"text": " ".join(WORDS[(start + place) % 20] for place in range(length))}
            for start, length in pairs
        ]
    )


def main() -> None:
    """Train, and say what came out."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    torch.manual_seed(0)  # the noise has nothing to do with it
    plan = hs.DPSGD(examples=TEXTS, batch_size=100, epochs=3, noise_multiplier=1.0)
    plan = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(EPSILON, DELTA)).plan
    tokenizer = tokens()
    with tempfile.TemporaryDirectory() as folder:
        arguments = SFTConfig(
            folder,
            learning_rate=0.05,
            logging_steps=10,
            report_to=[],
            disable_tqdm=True,
            max_length=LONGEST,
            bf16=False,
            gradient_checkpointing=False,
        )
        trainer = PrivateSFT(
            network(len(tokenizer)),
            arguments,
            train_dataset=counting(TEXTS),
            processing_class=tokenizer,
            peft_config=LoraConfig(
                task_type="CAUSAL_LM", r=4, target_modules=["c_attn"], fan_in_fan_out=True
            ),
            plan=plan,
            delta=DELTA,
            pad_to=LONGEST,
        )
        trainer.train()
    spent, steps = trainer.private.spent(DELTA), trainer.private.steps
    Console().print(f"{steps} private steps, ({spent:.3f}, {DELTA:g})-DP")


if __name__ == "__main__":
    main()
