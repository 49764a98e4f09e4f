"""The examples that train: what they learn within their budget, and how they prepare their data."""

import io
import re
import sys
from contextlib import redirect_stdout
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import pytest

import hockeystick as hs

pytest.importorskip("torch")
pytest.importorskip("sklearn")

import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


def _loaded(name: str) -> Any:
    """Return an example as a module, without running it."""
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


def _printed(module: Any, *arguments: str) -> str:
    threads, given = torch.get_num_threads(), ["example", *arguments]
    try:
        with redirect_stdout(io.StringIO()) as text, patch.object(sys, "argv", given):
            module.main()
    finally:
        torch.set_num_threads(threads)
    return text.getvalue()


def _accuracies(text: str) -> dict[str, float]:
    """Return the shares that an example prints, by what it says of them."""
    found = re.findall(r"^accuracy (\S+)% (.+)$", text, re.MULTILINE)
    return {what: float(share) / 100 for share, what in found}


@pytest.fixture(scope="module")
def text_example() -> Any:
    """Return the example, which reads the sentences of each library but once."""
    module = _loaded("train_text")
    read = module.sentences
    module.sentences = cache(lambda library: tuple(read(library)))
    return module


@pytest.mark.parametrize(("name", "examples"), [("train_digits", 1437), ("train_text", 32_890)])
def test_what_an_example_plans_costs_no_more_than_its_budget(name: str, examples: int) -> None:
    module = _loaded(name)
    assert (module.EPSILON, module.DELTA) == (3.0, 1e-4)
    plan = module.planned(examples)
    assert plan.examples == examples
    assert 2.99 <= hs.epsilon(plan, 1e-4).upper <= 3.0


def test_digits_are_read_rightly_at_the_budget() -> None:
    text = _printed(_loaded("train_digits"))
    found = _accuracies(text)
    assert found["at (3.000, 0.0001)-DP"] > 0.89
    assert found["without privacy"] > 0.94
    assert "epsilon 3.000" in text


def test_sentences_are_told_apart_far_above_the_most_frequent_label_at_the_budget(
    text_example: Any,
) -> None:
    text = _printed(text_example)
    found = _accuracies(text)
    assert found["by the most frequent library"] < 0.55
    assert found["at (3.000, 0.0001)-DP"] > 0.73
    assert found["without privacy"] > 0.76
    assert "epsilon 3.000" in text


def test_the_steps_that_ran_cost_no_more_than_the_budget(text_example: Any) -> None:
    from rich.progress import Progress

    rows = torch.tensor([text_example.buckets("what a bucket of words says")] * 400)
    dataset = torch.utils.data.TensorDataset(rows, torch.zeros(400, dtype=torch.long))
    budget = hs.ApproxDP(epsilon=3, delta=1e-4)
    plan = hs.DPSGD(examples=400, batch_size=40, steps=6, noise_multiplier=1.0)
    found = hs.calibrate(plan, "noise_multiplier", budget).plan
    with Progress(disable=True) as progress:
        spent = text_example.train_privately(text_example.MeanOfWords(), dataset, found, progress)
    assert spent.upper == hs.epsilon(found, 1e-4).upper <= 3.0


def test_a_sentence_is_there_once_and_seen_in_training_or_not(text_example: Any) -> None:
    said = [one for library in text_example.LIBRARIES for one in text_example.sentences(library)]
    seen, unseen = text_example.texts()
    assert len(seen) + len(unseen) == len(set(said)) < len(said)
    assert len(seen) > 10_000
    assert abs(len(seen) - 4 * len(unseen)) < 5


def test_prose_is_cut_into_sentences_without_headings_and_code(text_example: Any) -> None:
    docstring = """Return the eigenvalues of a matrix.

    The matrix is symmetric, or it is read as such. It is not
    changed by any of this in place. Too short.

    Returns
    -------
    A row that is no sentence of prose at all.

    >>> f(1) is an example and so not a sentence.
    """
    assert list(text_example.prose(docstring)) == [
        "return the eigenvalues of a matrix",
        "the matrix is symmetric or it is read as such",
        "it is not changed by any of this in place",
    ]


def test_a_word_has_the_bucket_of_its_own_letters_alone(text_example: Any) -> None:
    row = text_example.buckets("the matrix the")
    assert len(row) == text_example.LONGEST
    assert row[:3] == [1 + crc32(word) % 2047 for word in (b"the", b"matrix", b"the")]
    assert set(row[3:]) == {text_example.NO_WORD}
    assert text_example.NO_WORD not in row[:3]


def test_what_is_no_word_has_no_part_in_the_score(text_example: Any) -> None:
    model = text_example.MeanOfWords()
    row = torch.tensor([text_example.buckets("what a bucket of words says")])
    scores = model(row)
    with torch.no_grad():
        mean = model.embedding.weight[row[0, :6]].mean(dim=0)
        model.embedding.weight[text_example.NO_WORD] = 1e6
    assert torch.allclose(model(row), scores)
    assert torch.allclose(model.classifier(mean), scores[0], atol=1e-6)


def test_ways_to_add_noise_are_within_one_budget() -> None:
    module = _loaded("dp_ftrl_digits")
    for way in module.TUNED:
        spent = hs.epsilon(way.planned(1437), module.DELTA)
        assert module.EPSILON * 0.99 <= spent.upper <= module.EPSILON


def test_each_way_to_add_noise_trains_some_steps() -> None:
    text = _printed(_loaded("dp_ftrl_digits"), "--runs", "1", "--steps", "3")
    rows = [line for line in text.splitlines() if line.count("%") == 3]
    assert len(rows) == 3
    assert "1 trainings each within (1, 0.0001)-DP" in text
