"""Train LoRA adapters of a BERT privately; a tiny one with random weights, if no other is named.

    pip install 'hockeystick[huggingface]'
    python examples/train_bert.py

Each example is a mapping by the names of the model's arguments, as tokenizers return it, of its own
length: ``pad_to`` gives all one length that no text decides, and the attention mask tells the model
what is padding. The loss is the one that the model computes of "labels". The texts are made up: a
few words of 200, the label says which half of the words most are from. Whoever has texts and
weights of their own puts a tokenizer in the place of ``made_up`` and ``from_pretrained`` in that of
``network``.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from peft import LoraConfig, TaskType, get_peft_model
from rich.console import Console
from transformers import BertConfig, BertForSequenceClassification

import hockeystick as hs
from hockeystick.adapters.torch import Loading, make_private

EPSILON, DELTA = 3.0, 1e-4
TEXTS, WORDS, LONGEST = 1500, 200, 16
BATCH_SIZE, STEPS, CLIPPING_NORM, LEARNING_RATE = 256, 60, 1.0, 0.02


class Texts(torch.utils.data.Dataset):
    """Texts one by one, each as long as it is."""

    def __init__(self, texts: list[list[int]], labels: list[int]) -> None:
        self.texts, self.labels = texts, labels

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.texts)

    def __getitem__(self, place: int) -> dict[str, Any]:
        """Return what the model is called with."""
        text = self.texts[place]
        return {"input_ids": text, "attention_mask": [1] * len(text), "labels": self.labels[place]}


def made_up(texts: int) -> Texts:
    """Return random texts; a word of the lower half is one of the upper half, moved."""
    lengths = torch.randint(4, LONGEST, (texts,)).tolist()
    labels = torch.randint(2, (texts,)).tolist()
    found = []
    for length, label in zip(lengths, labels, strict=True):
        upper = (torch.rand(length) < 0.9) == bool(label)
        words = torch.randint(1, WORDS // 2, (length,)) + upper * (WORDS // 2)
        found.append([0, *words.tolist()])
    return Texts(found, labels)


def network() -> Any:
    """Return a BERT whose adapters and classifier are trained, and nothing else."""
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LONGEST,
        initializer_range=0.2,
    )
    adapters = LoraConfig(task_type=TaskType.SEQ_CLS, r=4, target_modules=["query", "value"])
    return get_peft_model(BertForSequenceClassification(config), adapters)


def planned(examples: int) -> hs.DPSGD:
    """Return a plan with the least noise that meets the budget."""
    plan = hs.DPSGD(examples=examples, batch_size=BATCH_SIZE, steps=STEPS, noise_multiplier=1.0)
    budget = hs.ApproxDP(epsilon=EPSILON, delta=DELTA)
    found = hs.calibrate(plan, "noise_multiplier", budget).plan
    assert isinstance(found, hs.DPSGD)
    return found


def train(model: Any, texts: Any, plan: hs.DPSGD) -> hs.Certified:
    """Train by a plan, and return what that costs."""
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=LEARNING_RATE)
    private = make_private(
        model,
        optimizer,
        texts,
        plan,
        clipping=CLIPPING_NORM,
        microbatch=32,
        loading=Loading(pad_to=LONGEST),
    )
    model.train()
    for batch in private.loader:
        private.step(lambda output: output.loss, batch)
    return private.spent(DELTA)


def accuracy(model: Any, texts: Texts) -> float:
    """Return the share of texts whose label is told."""
    model.eval()
    right = 0
    with torch.no_grad():
        for example in texts:
            scores = model(input_ids=torch.tensor([example["input_ids"]])).logits
            right += int(scores.argmax()) == example["labels"]
    return right / len(texts)


def main() -> None:
    """Train, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    torch.manual_seed(0)  # the noise has nothing to do with it
    console = Console()
    model, seen, unseen = network(), made_up(TEXTS), made_up(300)
    plan = planned(len(seen))
    console.print(f"noise multiplier {plan.noise_multiplier:.4f}, {plan.total_steps} steps")
    spent = train(model, seen, plan)
    console.print(f"accuracy {accuracy(model, unseen):.1%} at ({spent:.3f}, {DELTA:g})-DP")


if __name__ == "__main__":
    main()
