"""No way from a private loop to a guarantee that is silently false: each is refused, or mended."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.utils.data import ConcatDataset, Subset, TensorDataset

import hockeystick as hs
from hockeystick.adapters.torch import Constant, Online, Quantile
from hockeystick.adapters.torch._noise import Exact, Real
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import (
    DEVICE,
    EXAMPLES,
    FULL,
    LOSS,
    Zeros,
    clipped,
    do_step,
    make_data,
    make_loop,
    weights_of,
)


def _sum(model: Any, data: Any, **options: Any) -> Any:
    """Return the clipped sum of all examples' gradients, which one example moves by at most 1."""
    plan = hs.DPSGD(examples=len(data), sampling="full-batch", steps=1, noise_multiplier=0)
    private = make_loop(plan, model, data, lr=0.0, clipping=1.0, **options)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    do_step(private, torch.sum)
    assert torch.equal(before, torch.get_rng_state())  # what others draw is as it was
    return torch.cat([one.grad.flatten() for one in model.parameters()]).double() * len(data)


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
    ("name", "collate"),
    [
        ("collate", lambda rows: torch.stack(rows).sum()),
        ("collate", torch.cat),
        ("collate", lambda rows: {"x": rows}),
        ("collate", lambda rows: [rows]),
        ("dataset", lambda rows: {"x": "a text"}),
        ("dataset", lambda rows: []),
    ],
)
def test_a_collation_gives_tensors_of_one_example(name: str, collate: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be"):
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


@pytest.mark.parametrize("seeds", [({"not_private": 1}, {}), ({}, {"not_private": 1})])
def test_states_and_journals_go_not_from_a_seed_to_none_or_back(seeds: Any, tmp_path: Path) -> None:
    first = make_loop(journal=tmp_path / "journal", **seeds[0])
    do_step(first)
    first.close()
    with pytest.raises(ParameterError, match=r"journal must be .* private or not"):
        make_loop(journal=tmp_path / "journal", **seeds[1])
    second = make_loop(**seeds[1])
    second.model.load_state_dict(first.model.state_dict())
    with pytest.raises(ParameterError, match=r"not_private must be .* a seed"):
        second.load_state_dict(first.state_dict())


# Lengths and precision.


@pytest.mark.parametrize("entries", [10, 25_001])
@pytest.mark.parametrize("scale", [1e-23, 1.0, 1e19, 1e35])
@pytest.mark.parametrize("norm", [1e-24, 1.0])
@pytest.mark.parametrize("arithmetic", [Exact(), Real()], ids=["exact", "real"])
def test_a_gradient_is_clipped_to_the_norm_whatever_its_size(
    entries: int, scale: float, norm: float, arithmetic: Real
) -> None:
    gradients = {"w": torch.full((1, entries), scale), "b": torch.full((1, 1), scale)}
    before = float(scale * (entries + 1) ** 0.5)
    sums, _ = clipped(gradients, norm, arithmetic, Constant(norm))
    unit = norm / arithmetic.units(norm)
    found = float(torch.cat([sums["w"], sums["b"]]).double().norm()) * unit
    if not isinstance(arithmetic, Exact):
        expected = 0.0 if before > norm * 2**126 else min(before, norm)
        assert found == pytest.approx(expected, rel=2e-6, abs=0)
    else:  # Rounding moves a coordinate by half a unit, and a limit leaves room for that.
        assert found <= norm
        assert abs(found - min(before, norm)) <= unit * (entries + 1) ** 0.5 + 5e-6 * norm


def test_a_mask_of_dropout_is_not_decided_by_a_seed_that_others_know() -> None:
    models = [nn.Sequential(nn.Dropout(0.5), nn.Linear(50, 1)) for _ in range(2)]
    assert not torch.equal(*(_sum(model, [torch.ones(50)] * 2) for model in models))


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


@pytest.mark.usefixtures("group")
@pytest.mark.filterwarnings("ignore")  # torch's own, which differ from release to release
def test_split_models_that_are_not_trained_are_refused(tmp_path: Path) -> None:
    fsdp, mesh = import_module("torch.distributed.fsdp"), torch.distributed.init_device_mesh

    def split(sizes: Any = (1,), names: Any = ("a",), **options: Any) -> Any:
        model = nn.Sequential(nn.Linear(3, 2))
        fsdp.fully_shard(model, mesh=mesh("cpu", sizes, mesh_dim_names=names), **options)
        return model

    last = {"shard_placement_fn": lambda one: torch.distributed.tensor.Shard(one.dim() - 1)}
    refused: Any = (
        (lambda: nn.Sequential(split()), {}),
        (lambda: split(**last), {}),
        (lambda: split((1, 1), ("a", "b")), {}),
        (split, {"clipping": Quantile(0.7, bit_noise=2.0)}),
        (split, {"clipping": Online(0.7)}),
        (split, {"plan": replace(FULL, clipping="batch")}),
        (split, {"not_private": 1}),
        (split, {"checkpoint": tmp_path / "run.pt"}),
    )
    for made, options in refused:
        with pytest.raises(ParameterError, match=r"^model must be whole, or split over all"):
            make_loop(model=made(), **options)
    private = make_loop(model=split())
    do_step(private)
    private.model(torch.ones(2, 3)).sum().backward()
    with pytest.raises(IncompatibleError, match=r"steps by private.step alone"):
        private.optimizer.step()
    with pytest.raises(IncompatibleError, match=r"are not replayed"):
        private.as_replay(LOSS)
    own, batches = private.own_loop()
    with pytest.raises(ParameterError, match=r"^model must be whole"):
        own(next(iter(batches))[0])
    whole = make_loop(model=nn.Linear(3, 2))
    fsdp.fully_shard(whole.model, mesh=mesh("cpu", (1,)))
    with pytest.raises(ParameterError, match=r"^model must be whole|^optimizer must be"):
        do_step(whole)


class Reading(nn.Linear):  # type: ignore[misc]  # torch may have no types
    def forward(self, rows: Any) -> Any:
        return super().forward(rows) if bool(rows.sum() > 0) else super().forward(-rows)


def _under(context: Callable[[], Any]) -> Callable[[Any], None]:
    def step(private: Any) -> None:
        batch = next(iter(private.loader))
        with context():
            private.step(LOSS, batch)

    return step


def _returning(found: Any) -> Callable[[Any], None]:
    return lambda private: do_step(private, lambda *_: found)


def _with_weight_from_before(private: Any) -> None:
    weight = private.model.weight
    do_step(private, lambda out, target: LOSS(out, target) + weight.square().sum())


def _inside(private: Any) -> None:
    batch = next(iter(private.loader))
    private.step(lambda *given: (private.step(LOSS, batch), LOSS(*given))[1], batch)


def _alone(private: Any) -> None:
    private.model(torch.ones(1, 3, device=DEVICE)).sum().backward()
    private.optimizer.step()


def _changed(private: Any) -> None:
    batch = next(iter(private.loader))
    batch.examples[0].mul_(0)
    private.step(LOSS, batch)


def _added(private: Any) -> None:
    private.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(3, device=DEVICE))]})
    do_step(private)


def _refused(done: Callable[[Any], Any], why: str, **options: Any) -> Any:
    return done, why, options


NO_LOSS = "^loss_fn must be one that returns a real tensor"
LOST = "taken out of it before"
# What is done with a loop, and why that is refused.
REFUSED: dict[str, Any] = {
    "autocast": _refused(_under(lambda: torch.autocast("cpu", torch.bfloat16)), "autocast"),
    "inference mode": _refused(_under(torch.inference_mode), "inference_mode"),
    "cached weights, which would lose their gradients": _refused(
        _under(parametrize.cached),
        r"outside .*cached",
        model=parametrizations.weight_norm(nn.Linear(3, 2)),
    ),
    "a model that is compiled later": _refused(
        lambda one: [one.model.compile(backend="eager"), do_step(one)], "not compiled"
    ),
    "values": _refused(do_step, r"values of a tensor .* torch\.where", model=Reading(3, 2)),
    "weights from before": _refused(_with_weight_from_before, LOST),
    "weights from before, by batch": _refused(
        _with_weight_from_before, LOST, plan=replace(FULL, clipping="batch")
    ),
    "weights from before, no_grad": _refused(torch.no_grad()(_with_weight_from_before), LOST),
    "a number as loss": _refused(_returning(1.0), NO_LOSS),
    "several losses": _refused(_returning((torch.ones(1),)), NO_LOSS),
    "a complex loss": _refused(_returning(torch.ones(1, dtype=torch.cfloat)), NO_LOSS),
    "a step inside a step": _refused(_inside, "under way"),
    "a step of the optimizer": _refused(_alone, r"by private\.step alone"),
    "a parameter that was added": _refused(_added, "the model does not have"),
    "no trained parameter": _refused(
        lambda one: [one.model.requires_grad_(False), do_step(one)], "requires a gradient"
    ),
    "another loop's batch": _refused(
        lambda one: one.step(LOSS, next(iter(make_loop().loader))), r"private\.loader"
    ),
    "rows as a batch": _refused(lambda one: one.step(LOSS, make_data()[:]), r"private\.loader"),
    "a batch that was changed": _refused(_changed, "as it was drawn"),
    "a copy": _refused(copy.deepcopy, "not copied or pickled"),
    "a pickle": _refused(pickle.dumps, "not copied or pickled"),
    "the loader": _refused(lambda one: copy.deepcopy(one.loader), "not copied or pickled"),
}


@pytest.mark.parametrize(("done", "why", "options"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_guarantee_is_refused_and_neither_counted_nor_done(
    done: Callable[[Any], Any], why: str, options: Any
) -> None:
    private = make_loop(**options)
    before = weights_of(private).clone()
    with pytest.raises((IncompatibleError, ParameterError), match=why):
        done(private)
    assert private.steps == 0
    assert torch.equal(before, weights_of(private))


def test_a_compiled_model_is_refused() -> None:
    in_place = nn.Linear(3, 2)
    in_place.compile(backend="eager")
    for model in (in_place, torch.compile(nn.Linear(3, 2), backend="eager")):
        with pytest.raises(ParameterError, match="not compiled"):
            make_loop(model=model)


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
@pytest.mark.parametrize("bad", [[float("nan"), 1.0, float("inf")], [3e38, 0.0, 0.0]])
def test_an_example_without_a_length_changes_nothing_for_the_others(
    bad: list[float], arithmetic: str
) -> None:
    rows = torch.randn(6, 3)
    spoiled = torch.cat([rows, torch.tensor([bad]).mul(3)])
    found = (_sum(Zeros(), TensorDataset(data), arithmetic=arithmetic) for data in (rows, spoiled))
    assert torch.allclose(*found, atol=1e-6)
