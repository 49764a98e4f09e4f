"""The examples that train: what they learn within their budget, and how they prepare their data."""

import io
import re
import sys
from contextlib import redirect_stdout
from typing import Any
from unittest.mock import patch

import pytest

import hockeystick as hs
from tests.systems.programs import EXAMPLES, program

pytest.importorskip("torch")
pytest.importorskip("sklearn")

import torch


def _printed(module: Any, *arguments: str) -> str:
    threads, given = torch.get_num_threads(), ["example", *arguments]
    try:
        with redirect_stdout(io.StringIO()) as text, patch.object(sys, "argv", given):
            module.main()
    finally:
        torch.set_num_threads(threads)
    return text.getvalue()


def _accuracies(text: str) -> dict[str, float]:
    found = re.findall(r"^accuracy (\S+)% (.+)$", text, re.MULTILINE)
    return {what: float(share) / 100 for share, what in found}


def test_what_an_example_plans_costs_no_more_than_its_budget() -> None:
    module = program("train_digits", EXAMPLES)
    assert (module.EPSILON, module.DELTA) == (3.0, 1e-4)
    plan = module.planned(1437)
    assert plan.examples == 1437
    assert 2.99 <= hs.epsilon(plan, 1e-4).upper <= 3.0


def test_digits_are_read_rightly_at_the_budget() -> None:
    text = _printed(program("train_digits", EXAMPLES))
    found = _accuracies(text)
    assert found["at (3.000, 0.0001)-DP"] > 0.89
    assert found["without privacy"] > 0.94


def test_ways_to_add_noise_are_within_one_budget() -> None:
    module = program("dp_ftrl_digits", EXAMPLES)
    for way in module.TUNED:
        spent = hs.epsilon(way.planned(1437), module.DELTA)
        assert module.EPSILON * 0.99 <= spent.upper <= module.EPSILON


def test_each_way_to_add_noise_trains_some_steps() -> None:
    text = _printed(program("dp_ftrl_digits", EXAMPLES), "--runs", "1", "--steps", "3")
    rows = [line for line in text.splitlines() if line.count("%") == 3]
    assert len(rows) == 3
    assert "1 trainings each within (1, 0.0001)-DP" in text


@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize("trainer", ["lora:peft", "sft:trl", "lightning:lightning"])
def test_another_librarys_trainer_steps_privately(trainer: str) -> None:
    name, _, library = trainer.partition(":")
    pytest.importorskip(library, reason=f"needs {library}")
    text = _printed(program(f"train_{name}", EXAMPLES))
    assert "(3.000, 0.0001)-DP" in text
    *_, right = map(float, re.findall(r"(\d+\.?\d*)%", text)) if "%" in text else (100.0,)
    assert right > 40.0  # of ten digits or twenty words
