"""The self-test of programs of torch and Opacus as they are: what is wrong in them is named."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("opacus")

import torch
from opacus import PrivacyEngine as TheirEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader, TensorDataset

import hockeystick as hs
from hockeystick.adapters.opacus import PrivacyEngine, program
from hockeystick.adapters.torch import TorchProgram
from hockeystick.audit import Rule, record
from hockeystick.errors import IncompatibleError, ParameterError

# Opacus and torch say so of themselves.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
    pytest.mark.filterwarnings("ignore:Optimal order is the"),
]
LOSS = torch.nn.functional.cross_entropy
FEW: dict[str, Any] = {"records": 1, "trials": 20, "draws": 40, "confidence": 1 - 1e-9}
# Beside any number of examples Opacus divides by int(examples/ceil(examples/batch)), and a record
# without a finite gradient makes the whole sum undefined.
OF_OPACUS = {Rule.SCALE, Rule.NOT_FINITE}


def _data(examples: int = 40) -> Any:
    torch.manual_seed(1)
    return TensorDataset(torch.randn(examples, 3), torch.randint(2, (examples,)))


def _plan(examples: int = 40, batches: int = 4) -> hs.DPSGD:
    return hs.DPSGD(examples=examples, rate=1 / batches, steps=100, noise_multiplier=2)


class Opacus:
    """A program that trains by Opacus, for two epochs."""

    def __init__(self, engine: type = TheirEngine, **options: Any) -> None:
        self.engine, self.options = engine, options

    def __call__(self, data: Any) -> None:
        model = torch.nn.Linear(3, 2)
        model, optimizer, loader = self.engine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(data, batch_size=10),
            noise_multiplier=2.0,
            max_grad_norm=1.0,
            **self.options,
        )
        for _ in range(2):
            self.train(model, optimizer, loader)

    def train(self, model: Any, optimizer: Any, loader: Any) -> None:
        for inputs, labels in loader:
            optimizer.zero_grad()
            LOSS(model(inputs), labels).backward()
            optimizer.step()


def _tested(train: Any, examples: int = 40, **options: Any) -> Any:
    batches = -(-examples // 10)
    replay = program(train, _data(examples), _plan(examples, batches), norm=1.0)
    return record(replay, **FEW | options)


@pytest.mark.parametrize(
    ("engine", "names"), [(TheirEngine, OF_OPACUS), (PrivacyEngine, OF_OPACUS - {Rule.NOT_FINITE})]
)
def test_the_divisor_of_opacus_counts_the_examples(engine: Any, names: set[Rule]) -> None:
    found = _tested(Opacus(engine))
    assert set(found.names) == names
    without = [one for one in found.violations if one.where.startswith("without")]
    assert [one.found for one in without] == [pytest.approx(10 / 9, rel=1e-4)]


def test_a_divisor_that_neighbours_share_is_not_named() -> None:
    """Of 36, 37 and 38 examples in batches of 10 Opacus divides by 9."""
    found = _tested(Opacus(PrivacyEngine), 37)
    assert found.consistent
    assert dict(found.measured)["sensitivity"] <= 1 + 1e-4


def test_loaders_of_opacus_that_shuffle_are_named() -> None:
    found = _tested(Opacus(poisson_sampling=False))
    assert {Rule.FIXED, Rule.SHUFFLED, Rule.FAILS} <= set(found.names)


def test_noise_of_opacus_that_somebody_knows_is_named() -> None:
    def train(data: Any) -> None:
        Opacus(noise_generator=torch.Generator().manual_seed(3))(data)

    assert Rule.REPEATS in _tested(train).names


def test_a_program_that_seeds_torch_is_named() -> None:
    def train(data: Any) -> None:
        torch.manual_seed(0)
        Opacus()(data)

    assert Rule.REPEATS in _tested(train).names


class LeavesOut(Opacus):
    def train(self, model: Any, optimizer: Any, loader: Any) -> None:
        for inputs, labels in loader:
            if len(inputs):
                optimizer.zero_grad()
                LOSS(model(inputs), labels).backward()
                optimizer.step()


def test_batches_that_are_left_out_are_named() -> None:
    assert {Rule.STEPS_DEPEND, Rule.LEFT_OUT} <= set(_tested(LeavesOut()).names)


def test_expanded_weights_of_opacus_fail_on_an_empty_batch() -> None:
    found = _tested(Opacus(grad_sample_mode="ew"), 38)
    assert set(found.names) == {Rule.FAILS, Rule.NOT_FINITE}
    assert "Batch size must be positive" in str(found)


class Split(Opacus):
    def train(self, model: Any, optimizer: Any, loader: Any) -> None:
        with BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=3, optimizer=optimizer
        ) as parts:
            super().train(model, optimizer, parts)


def test_a_program_that_splits_batches_for_memory_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="leave it out of the program"):
        _tested(Split())


class Uncounted(Opacus):
    """One whose accountant hears of nothing."""

    def train(self, model: Any, optimizer: Any, loader: Any) -> None:
        optimizer.attach_step_hook(lambda optimizer: None)
        super().train(model, optimizer, loader)


def test_steps_that_no_accountant_hears_of_are_not_counted() -> None:
    found = _tested(Uncounted())
    assert Rule.COUNT in found.names


class Unnoised(Opacus):
    """One that steps by an optimizer of its own as well."""

    def train(self, model: Any, optimizer: Any, loader: Any) -> None:
        for inputs, labels in loader:
            optimizer.zero_grad()
            LOSS(model(inputs), labels).backward()
            optimizer.original_optimizer.step()


def test_steps_around_the_private_optimizer_are_named() -> None:
    assert Rule.SENSITIVITY in _tested(Unnoised()).names


# Programs that have no library.


def _sound(data: Any) -> None:
    """Draw Poisson batches by a sampler of one's own, clip, and divide by what is expected."""
    weights = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.1)
    batches = [(torch.rand(len(data)) < 0.25).nonzero().flatten().tolist() for _ in range(20)]
    loader = DataLoader(
        data, batch_sampler=batches, collate_fn=lambda rows: [row[0] for row in rows]
    )
    for rows in loader:
        found = [row * 0 if not row.isfinite().all() else row for row in rows]
        found = [row.nan_to_num() / max(float(row.nan_to_num().norm()), 1.0) for row in found]
        total = torch.stack(found).sum(dim=0) if found else torch.zeros(3)
        weights.grad = (total + 2 * torch.randn(3)) / 10
        optimizer.step()


def test_a_sound_program_passes() -> None:
    replay = TorchProgram(_sound, _data(), _plan(), norm=1.0)
    found = record(replay, **FEW)
    assert found.names == ()
    assert dict(found.measured)["sensitivity"] > 0.9


def test_a_program_whose_workers_fetch_batches_ahead_is_replayed() -> None:
    class WithWorkers(Opacus):
        def __call__(self, data: Any) -> None:
            model = torch.nn.Linear(3, 2)
            model, optimizer, loader = TheirEngine().make_private(
                module=model,
                optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
                data_loader=DataLoader(data, batch_size=10, num_workers=1),
                noise_multiplier=2.0,
                max_grad_norm=1.0,
            )
            for _ in range(4):
                self.train(model, optimizer, loader)

    found = _tested(WithWorkers(), 38, trials=8, draws=20)
    assert set(found.names) == {Rule.NOT_FINITE}
    assert dict(found.measured)["sensitivity"] > 0.9


def test_a_program_that_forgets_the_clip_is_named() -> None:
    def train(data: Any) -> None:
        weights = torch.zeros(3, requires_grad=True)
        optimizer = torch.optim.SGD([weights], lr=0.1)
        for rows, _ in DataLoader(data, batch_size=10, shuffle=True):
            weights.grad = (rows.sum(dim=0) + 2 * torch.randn(3)) / 10
            optimizer.step()

    found = record(TorchProgram(train, _data(), _plan(), norm=1.0), **FEW)
    assert {Rule.SENSITIVITY, Rule.FIXED, Rule.SHUFFLED} <= set(found.names)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"norm": 0.0}, "norm"), ({"train": None}, "train"), ({"plan": 1}, "plan")],
)
def test_bad_programs_are_refused_by_name(options: dict[str, Any], name: str) -> None:
    given = {"train": _sound, "dataset": _data(), "plan": _plan(), "norm": 1.0} | options
    with pytest.raises(ParameterError, match=rf"^{name} must be"):
        TorchProgram(**given)
