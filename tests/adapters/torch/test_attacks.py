"""No way from a private loop to a guarantee that is silently false: each is refused, or mended."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.utils.data import ConcatDataset, Subset, TensorDataset

import hockeystick as hs
from hockeystick.adapters.torch import Constant
from hockeystick.adapters.torch._noise import Exact, Real
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import (
    EXAMPLES,
    LOSS,
    Zeros,
    clipped,
    do_step,
    make_data,
    make_loop,
    make_private,
)


def _sum(model: Any, data: Any, **options: Any) -> Any:
    """Return the clipped sum of all examples' gradients, which one example moves by at most 1."""
    plan = hs.DPSGD(examples=len(data), sampling="full-batch", steps=1, noise_multiplier=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    private = make_private(model, optimizer, data, plan, clipping=1.0, **options)
    do_step(private, torch.sum)
    found = torch.cat([one.grad.flatten() for one in model.parameters()])
    return found.double() * len(data)


# Batches that mix examples.


def _padded(rows: list[Any]) -> Any:
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def _mixed(rows: list[Any]) -> Any:
    """Mix each with the next one."""
    found = torch.stack(rows)
    return 0.5 * found + 0.5 * found.roll(1, dims=0)


@pytest.mark.parametrize("collate", [_mixed, _padded, None])
def test_one_example_more_moves_the_sum_by_no_more_than_the_clipping_norm(collate: Any) -> None:
    texts = [torch.arange(1.0, 4.0) + place for place in range(7)]
    one_more = [*texts, torch.tensor([-500.0, 1000.0, -3.0])]
    few, many = (_sum(Zeros(), rows, collate=collate) for rows in (texts, one_more))
    assert float((few - many).norm()) <= 1 + 1e-6


@pytest.mark.parametrize("length", [2, 40, 60])
def test_texts_are_padded_to_one_length_that_no_example_decides(length: int) -> None:
    texts = [torch.ones(3)] * 7
    few, many = (_sum(Zeros(), rows, pad_to=length) for rows in (texts, [*texts, torch.ones(40)]))
    assert float((few - many).norm()) <= 1 + 1e-6
    with pytest.raises(ParameterError, match=r"dataset must be .* pad_to gives"):
        _sum(Zeros(), [*texts, torch.ones(40)], collate=_padded)


@pytest.mark.parametrize(
    ("collate", "message"),
    [
        (lambda rows: torch.stack(rows).sum(), "collate must be given one example at a time"),
        (torch.cat, "collate must be given one example at a time"),
        (lambda rows: {"x": rows}, "collate must be given one example at a time"),
        (lambda rows: [rows], "collate must be given one example at a time"),
        (lambda rows: {"x": "a text"}, "dataset must be a tensor"),
        (lambda rows: [], "dataset must be a tensor"),
    ],
)
def test_a_collation_gives_tensors_of_one_example(collate: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        _sum(Zeros(), [torch.ones(3)] * 2, collate=collate)


class Mixing(TensorDataset):  # type: ignore[misc]  # torch may have no types
    """Data that mix the examples that are asked for together."""

    def __getitem__(self, places: Any) -> Any:
        (rows,) = super().__getitem__(places)
        return (_mixed(list(rows)) if isinstance(places, torch.Tensor) else rows,)


def test_each_example_is_asked_for_alone() -> None:
    rows = torch.tensor([4.0, -100.0, 3.0]).unsqueeze(1).expand(3, 3)
    assert torch.equal(_sum(Zeros(), Mixing(rows)), _sum(Zeros(), TensorDataset(rows)))


@pytest.mark.parametrize(
    "dataset",
    [
        ConcatDataset([_part := make_data(4), _part]),
        Subset(make_data(), [0, 1, 2, 3, 4, 5, 6, 6]),
        ConcatDataset([make_data(4), Subset(make_data(4), [1, 1, 2, 3])]),
        Subset(ConcatDataset([_part, _part]), range(8)),
    ],
    ids=["concatenated", "subset", "inside", "outside"],
)
def test_copies_of_an_example_are_refused(dataset: Any) -> None:
    with pytest.raises(ParameterError, match="each example at one place"):
        make_loop(dataset=dataset)


# The neighbour with one example more.


@pytest.mark.parametrize(
    "fields",
    [
        {"batch_size": 4, "steps": 4},
        {"batch_size": 4, "epochs": 2, "sampling": "random-allocation"},
        {"steps": 4, "sampling": "full-batch"},
    ],
    ids=lambda fields: fields.get("sampling", "poisson"),
)
def test_a_neighbour_is_trained_on_at_the_same_rate_with_the_same_divisor(fields: Any) -> None:
    plan = hs.DPSGD(examples=EXAMPLES, noise_multiplier=1, **fields)
    nominal = make_loop(plan).loader.sampler
    for examples in (0, 1, 7, 9, 20):
        private = make_loop(plan, dataset=make_data(examples))
        sampler, drawn = private.loader.sampler, set[int]()
        for batch in private.loader:
            assert sampler.rate(batch.step) == nominal.rate(batch.step)
            assert sampler.expected(batch.step) == nominal.expected(batch.step)
            drawn |= {int(one) for _ in range(20) for one in sampler.draw(batch.step)}
            private.step(LOSS, batch)
        assert drawn == set(range(examples))
        assert private.spent(1e-5).upper == hs.epsilon(plan, 1e-5).upper


@pytest.mark.parametrize("examples", [7, 9])
@pytest.mark.parametrize(
    "fields",
    [
        {"steps": 4, "adjacency": "replace-one"},
        {"steps": 4, "adjacency": "zero-out"},
        {"steps": 4, "batch_cap": 5},
        {"steps": 4, "sampling": "fixed-size"},
        {"steps": 4, "sampling": "with-replacement", "adjacency": "replace-one"},
        {"epochs": 2, "sampling": "shuffle", "adjacency": "zero-out"},
        {"epochs": 2, "sampling": "random-allocation", "adjacency": "zero-out"},
    ],
    ids=str,
)
def test_elsewhere_the_number_of_examples_is_the_plans(
    fields: dict[str, Any], examples: int
) -> None:
    plan = hs.DPSGD(examples=EXAMPLES, batch_size=4, noise_multiplier=1, **fields)
    with pytest.raises(ParameterError, match=f"in the dataset, {examples}; got 8"):
        make_loop(plan, dataset=make_data(examples))


# A seed.


def test_a_seed_has_no_guarantee_and_no_budget() -> None:
    private = make_loop(not_private=1)
    do_step(private)
    for delta in (0.0, 1e-5, 0.9):
        assert private.spent(delta).lower == float("inf")
    assert private.state_dict()["account"]["not_private"] is True
    with pytest.raises(IncompatibleError, match="a seed has epsilon = inf"):
        make_loop(not_private=1, budget=hs.ApproxDP(100.0, 1e-5))


def test_states_and_journals_go_not_from_a_seed_to_none_or_back(tmp_path: Path) -> None:
    kinds: list[dict[str, Any]] = [{"not_private": 1}, {}]
    for place, (one, other) in enumerate((kinds, kinds[::-1])):
        first = make_loop(journal=tmp_path / f"{place}", **one)
        do_step(first)
        first.close()
        with pytest.raises(ParameterError, match=r"journal must be .* private or not"):
            make_loop(journal=tmp_path / f"{place}", **other)
        second = make_loop(**other)
        second.model.load_state_dict(first.model.state_dict())
        with pytest.raises(ParameterError, match=r"not_private must be .* a seed"):
            second.load_state_dict(first.state_dict())


# Lengths and precision.


@pytest.mark.parametrize("entries", [10, 1024, 25_001])
@pytest.mark.parametrize("scale", [1e-23, 1.0, 1e19, 1e35])
@pytest.mark.parametrize("norm", [1e-24, 1e-10, 1.0])
@pytest.mark.parametrize("arithmetic", [Exact(), Real()], ids=["exact", "real"])
def test_a_gradient_is_clipped_to_the_norm_whatever_its_size(
    entries: int, scale: float, norm: float, arithmetic: Real
) -> None:
    gradients = {"w": torch.full((1, entries), scale), "b": torch.full((1, 1), scale)}
    before = float(scale * (entries + 1) ** 0.5)
    sums, _ = clipped(gradients, norm, arithmetic, Constant(norm))
    units = norm / arithmetic.units(norm)
    found = float(torch.cat([sums["w"], sums["b"]]).double().norm()) * units
    if isinstance(arithmetic, Exact):
        # Rounding moves a coordinate by at most half a unit, and a limit leaves room for that.
        half = 0.5 * units * (entries + 1) ** 0.5
        assert found <= norm
        assert abs(found - min(before, norm)) <= 2 * half + 5e-6 * norm
        return
    expected = 0.0 if before > norm * 2**126 else min(before, norm)
    assert found == pytest.approx(expected, rel=2e-6, abs=0)


def test_a_step_under_autocast_is_refused_before_it_is_counted() -> None:
    private = make_loop()
    batch = next(iter(private.loader))
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.raises(IncompatibleError, match="autocast"),
    ):
        private.step(LOSS, batch)
    assert private.steps == 0
    private.step(LOSS, batch)
    assert private.steps == 1


def test_a_mask_of_dropout_is_not_decided_by_a_seed_that_others_know() -> None:
    found = []
    for _ in range(2):
        model = nn.Sequential(nn.Dropout(0.5), nn.Linear(50, 1))
        torch.manual_seed(3)
        before = torch.get_rng_state()
        found.append(_sum(model, [torch.ones(50)] * 2))
        assert torch.equal(before, torch.get_rng_state())  # what others draw is as it was
    assert not torch.equal(*found)


# Models.


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    """Have a group of one process."""
    distributed = torch.distributed
    path = f"file://{tmp_path / 'group'}"
    distributed.init_process_group("gloo", rank=0, world_size=1, init_method=path)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("group")
@pytest.mark.filterwarnings("ignore")  # torch's own, which differ from release to release
def test_wrappers_that_spread_a_model_are_refused() -> None:
    from torch.nn.parallel import DataParallel, DistributedDataParallel

    refused = "would have each device or process draw noise of its own"
    for model in (
        DataParallel(nn.Linear(3, 2)),
        nn.Sequential(DataParallel(nn.Linear(3, 2))),
        nn.Sequential(DistributedDataParallel(nn.Linear(3, 2))),
    ):
        with pytest.raises(ParameterError, match=refused):
            make_loop(model=model)
    do_step(make_loop(model=DistributedDataParallel(nn.Linear(3, 2))))
    fully_shard = getattr(import_module("torch.distributed.fsdp"), "fully_shard", None)
    if fully_shard is not None:
        sharded = nn.Linear(3, 2)
        fully_shard(sharded, mesh=torch.distributed.init_device_mesh("cpu", (1,)))
        with pytest.raises(ParameterError, match=refused):
            make_loop(model=sharded)


def test_a_compiled_model_is_refused() -> None:
    with pytest.raises(ParameterError, match="not compiled"):
        make_loop(model=torch.compile(nn.Linear(3, 2), backend="eager"))
    private = make_loop()
    private.model.compile(backend="eager")
    with pytest.raises(ParameterError, match="not compiled"):
        do_step(private)
    assert private.steps == 0


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
@pytest.mark.parametrize("bad", [[float("nan"), 1.0, float("inf")], [3e38, 0.0, 0.0]])
def test_an_example_without_a_length_changes_nothing_for_the_others(
    bad: list[float], arithmetic: str
) -> None:
    rows = torch.randn(6, 3)
    spoiled = torch.cat([rows, torch.tensor([bad]).mul(3)])
    found = (_sum(Zeros(), TensorDataset(data), arithmetic=arithmetic) for data in (rows, spoiled))
    assert torch.allclose(*found, atol=1e-6)
