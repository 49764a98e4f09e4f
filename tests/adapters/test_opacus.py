"""Opacus on our accounts: its engine, its calibration and its checkpoints."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs

pytest.importorskip("torch")
pytest.importorskip("opacus")

import opacus.accountants.utils
import opacus.privacy_engine
import torch
from opacus import PrivacyEngine as TheirEngine
from opacus.accountants import RDPAccountant, create_accountant

from hockeystick.adapters.opacus import (
    HockeystickAccountant,
    PrivacyEngine,
    drawn_rate,
    get_noise_multiplier,
)

# Opacus and torch say so of themselves.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
    pytest.mark.filterwarnings("ignore:Optimal order is the"),
    pytest.mark.filterwarnings("ignore:GDP accounting is experimental"),
]


def _dataset(examples: int = 40) -> Any:
    generator = torch.Generator().manual_seed(1)
    return torch.utils.data.TensorDataset(
        torch.randn(examples, 3, generator=generator), torch.zeros(examples, dtype=torch.long)
    )


def _private(
    engine: TheirEngine, noise_multiplier: float = 1.0, *, workers: int = 0, **options: Any
) -> Any:
    model = torch.nn.Linear(3, 2)
    return engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(_dataset(), batch_size=10, num_workers=workers),
        noise_multiplier=noise_multiplier,
        **{"max_grad_norm": 1.0} | options,
    )


def _train(model: Any, optimizer: Any, loader: Any) -> int:
    steps = 0
    for inputs, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        steps += 1
    return steps


def _step(noise_multiplier: float, rate: float) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise_multiplier), rate)


def _by_rdp(accountant: HockeystickAccountant) -> Any:
    theirs = RDPAccountant()
    theirs.history = list(accountant.history)
    return theirs


def test_an_engine_that_trains_records_each_step_and_its_epsilon_is_that_of_the_plan() -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = _private(engine, noise_multiplier=1.3)
    steps = _train(model, optimizer, loader) + _train(model, optimizer, loader)
    assert isinstance(engine.accountant, HockeystickAccountant)
    assert len(engine.accountant) == steps == 8
    plan = _step(1.3, 0.25) ** 8
    assert engine.accountant.account().plan == plan
    assert engine.get_epsilon(1e-5) == hs.epsilon(plan, 1e-5).upper
    assert engine.get_epsilon(1e-5) < _by_rdp(engine.accountant).get_epsilon(1e-5)


def test_noise_that_changes_on_the_way_is_recorded_as_it_was() -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = _private(engine, noise_multiplier=2.0)
    _train(model, optimizer, loader)
    optimizer.noise_multiplier = 1.0
    _train(model, optimizer, loader)
    assert engine.accountant.history == [(2.0, 0.25, 4), (1.0, 0.25, 4)]
    plan = _step(2.0, 0.25) ** 4 @ _step(1.0, 0.25) ** 4
    assert engine.get_epsilon(1e-5) == hs.epsilon(plan, 1e-5).upper


def test_a_batch_that_is_split_for_memory_is_one_step() -> None:
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    engine = PrivacyEngine()
    model, optimizer, loader = _private(engine)
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=3, optimizer=optimizer
    ) as split:
        assert _train(model, optimizer, split) > 4
    assert engine.accountant.history == [(1.0, 0.25, 4)]


def test_ghost_clipping_is_recorded_like_any_other() -> None:
    engine = PrivacyEngine()
    model, optimizer, criterion, loader = _private(
        engine, criterion=torch.nn.CrossEntropyLoss(), grad_sample_mode="ghost"
    )
    for inputs, labels in loader:
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
    assert engine.accountant.history == [(1.0, 0.25, 4)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("mode", ["hooks", "functorch"])
@pytest.mark.parametrize("clipping", ["flat", "per_layer"])
def test_a_record_without_a_finite_gradient_counts_as_0(
    bad: float, mode: str, clipping: str
) -> None:
    norm = [1.0, 1.0] if clipping == "per_layer" else 1.0
    model, optimizer, _ = _private(
        PrivacyEngine(), max_grad_norm=norm, grad_sample_mode=mode, clipping=clipping
    )
    rows = torch.tensor([[1.0, 2.0, 3.0], [bad, 1.0, 1.0], [0.5, 0.0, 1.0]])
    labels = torch.tensor([0, 1, 1])
    sums = []
    for places in ([0, 1, 2], [0, 2]):
        optimizer.zero_grad()
        _backward(model, (rows[places], labels[places]))
        optimizer.clip_and_accumulate()
        sums.append(torch.cat([p.summed_grad.flatten() for p in optimizer.params]))
    assert torch.allclose(sums[0], sums[1], atol=1e-6)


def _backward(model: Any, batch: Any) -> None:
    torch.nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()


@pytest.fixture
def unchanged() -> Iterator[Callable[[Any, Any], None]]:
    """Watch a model, which must be as it was at the end, as must the account."""
    watched: list[tuple[Any, Any, Any]] = []

    def watch(engine: Any, model: Any) -> None:
        watched.append((engine, model, [one.detach().clone() for one in model.parameters()]))

    yield watch
    for engine, model, before in watched:
        assert len(engine.accountant) == 0
        assert all(map(torch.equal, before, model.parameters()))


def test_a_batch_that_is_accumulated_is_refused(unchanged: Any) -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = _private(engine)
    unchanged(engine, model)
    model.allow_grad_accumulation()
    batch = next(batch for batch in loader)
    for _ in range(2):
        _backward(model, batch)
    with pytest.raises(
        hs.errors.IncompatibleError, match="2 batches were accumulated for one step"
    ):
        optimizer.step()


def test_loaders_that_shuffle_and_noise_that_somebody_has_are_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="poisson_sampling=False"):
        _private(PrivacyEngine(), poisson_sampling=False)
    with pytest.raises(hs.errors.IncompatibleError, match="can subtract the noise"):
        _private(PrivacyEngine(), noise_generator=torch.Generator())


def test_the_steps_of_their_engine_are_refused(unchanged: Any) -> None:
    engine = TheirEngine(accountant="hockeystick")
    model, optimizer, loader = _private(engine)
    unchanged(engine, model)
    with pytest.raises(
        hs.errors.IncompatibleError, match=r"use PrivacyEngine of hockeystick\.adapters"
    ):
        _train(model, optimizer, loader)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_that_is_left_out_is_refused(workers: int, unchanged: Any) -> None:
    engine = PrivacyEngine()
    model, _optimizer, loader = _private(engine, workers=workers)
    unchanged(engine, model)
    batches = iter(loader)
    next(batches)
    with pytest.raises(
        hs.errors.IncompatibleError, match=r"drawn and no optimizer\.step made of it"
    ):
        next(batches)
    with pytest.raises(
        hs.errors.IncompatibleError, match=r"drawn and no optimizer\.step made of it"
    ):
        next(iter(loader))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_that_is_used_twice_is_refused(workers: int) -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = _private(engine, workers=workers)
    batch = next(iter(loader))
    for allowed in (True, False):
        optimizer.zero_grad()
        _backward(model, batch)
        if allowed:
            optimizer.step()
    with pytest.raises(hs.errors.IncompatibleError, match="no batch of its own"):
        optimizer.step()
    assert len(engine.accountant) == 1


def test_ghost_clipping_of_two_batches_for_one_step_is_refused(unchanged: Any) -> None:
    engine = PrivacyEngine()
    model, optimizer, criterion, loader = _private(
        engine, criterion=torch.nn.CrossEntropyLoss(), grad_sample_mode="ghost"
    )
    unchanged(engine, model)

    def in_pairs() -> None:
        for count, (inputs, labels) in enumerate(loader):
            criterion(model(inputs), labels).backward()
            if count % 2:
                optimizer.step()

    with pytest.raises(
        hs.errors.IncompatibleError, match=r"drawn and no optimizer\.step made of it"
    ):
        in_pairs()


def test_batches_that_workers_draw_are_not_split_for_memory(unchanged: Any) -> None:
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    engine = PrivacyEngine()
    model, optimizer, loader = _private(engine, workers=1)
    unchanged(engine, model)
    split = BatchMemoryManager(data_loader=loader, max_physical_batch_size=100, optimizer=optimizer)
    with split as batches, pytest.raises(hs.errors.IncompatibleError, match="num_workers=0"):
        _train(model, optimizer, batches)


def test_workers_give_the_batches_of_a_plan() -> None:
    engine = PrivacyEngine()
    assert _train(*_private(engine, workers=1)) == len(engine.accountant) == 4


def test_a_checkpoint_never_lowers_the_count(tmp_path: Path) -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = _private(engine)
    path = tmp_path / "run.pt"
    engine.save_checkpoint(path=path, module=model, optimizer=optimizer)
    _train(model, optimizer, loader)
    engine.load_checkpoint(path=path, module=model, optimizer=optimizer)
    assert len(engine.accountant) == 4
    other = PrivacyEngine()
    model, optimizer, loader = _private(other)
    _train(model, optimizer, loader)
    with pytest.raises(hs.errors.IncompatibleError, match="4 steps are recorded here"):
        other.load_checkpoint(path=path, module=model, optimizer=optimizer)
    assert len(other.accountant) == 4


def test_adaptive_clipping_is_refused_by_name() -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = _private(
        engine,
        clipping="adaptive",
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=0.2,
        max_clipbound=10,
        min_clipbound=0.1,
        unclipped_num_std=2.0,
    )
    with pytest.raises(hs.errors.IncompatibleError, match="adaptive clipping in Opacus"):
        _train(model, optimizer, loader)


def test_adaptive_ghost_clipping_is_refused_by_name_before_the_model_changes() -> None:
    from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping

    engine = PrivacyEngineAdaptiveClipping(accountant="hockeystick")
    # It asks for batches of more than ten times the noise multiplier.
    model, optimizer, criterion, loader = _private(
        engine, 0.01, criterion=torch.nn.CrossEntropyLoss(), grad_sample_mode="ghost"
    )
    before = [parameter.detach().clone() for parameter in model.parameters()]
    inputs, labels = next(batch for batch in loader if len(batch[0]))
    criterion(model(inputs), labels).backward()
    with pytest.raises(hs.errors.IncompatibleError, match="adaptive clipping in Opacus"):
        optimizer.step()
    assert len(engine.accountant) == 0
    assert all(map(torch.equal, before, model.parameters()))


@pytest.mark.parametrize("mechanism", ["rdp", "prv", "gdp"])
def test_a_state_of_theirs_is_taken_over_at_the_rate_that_their_sampler_draws(
    mechanism: str,
) -> None:
    theirs = create_accountant(mechanism)
    for _ in range(3):
        theirs.step(noise_multiplier=1.1, sample_rate=1 / 235)
    ours = HockeystickAccountant()
    state = theirs.state_dict()
    ours.load_state_dict(state)
    ours.step(noise_multiplier=1.1, sample_rate=drawn_rate(1 / 235))
    assert ours.history == [(1.1, drawn_rate(1 / 235), 4)]
    assert state["history"] == [(1.1, 1 / 235, 3)]


def test_their_checkpoint_is_resumed_by_an_engine_of_ours(tmp_path: Path) -> None:
    engine = TheirEngine(accountant="rdp")
    model, optimizer, loader = _private(engine)
    _train(model, optimizer, loader)
    engine.save_checkpoint(path=tmp_path / "run.pt", module=model, optimizer=optimizer)
    resumed = PrivacyEngine()
    model, optimizer, loader = _private(resumed)
    resumed.load_checkpoint(path=tmp_path / "run.pt", module=model, optimizer=optimizer)
    assert resumed.get_epsilon(1e-5) == hs.epsilon(_step(1.0, 0.25) ** 4, 1e-5).upper


def test_a_state_is_a_copy_and_comes_back_from_json() -> None:
    import json

    accountant = HockeystickAccountant()
    accountant.step(noise_multiplier=1 / 3, sample_rate=0.1)
    state = accountant.state_dict()
    accountant.step(noise_multiplier=1 / 3, sample_rate=0.1)
    assert (state["history"], state["mechanism"]) == ([(1 / 3, 0.1, 1)], "hockeystick")
    other = HockeystickAccountant()
    other.load_state_dict(json.loads(json.dumps(state)))
    assert other.history == [(1 / 3, 0.1, 1)]
    destination: OrderedDict[str, object] = OrderedDict()
    assert other.state_dict(destination) is destination


@pytest.mark.parametrize(
    ("state", "named"),
    [
        (None, "state_dict"),
        ({}, "state_dict"),
        ({"history": []}, "state_dict"),
        ({"history": [], "mechanism": "ours"}, "mechanism"),
        ({"history": [], "mechanism": ["rdp"]}, "mechanism"),
        ({"history": None, "mechanism": "rdp"}, "history"),
        ({"history": [(1.0, 0.1)], "mechanism": "rdp"}, "history"),
        ({"history": [(math.nan, 0.1, 1)], "mechanism": "rdp"}, "noise_multiplier"),
        ({"history": [(1.0, 1.1, 1)], "mechanism": "rdp"}, "sample_rate"),
        ({"history": [(1.0, 0.1, 1), (1.0, 0.1, -1)], "mechanism": "rdp"}, "steps"),
        ({"history": [(1.0, 0.1, 1.5)], "mechanism": "rdp"}, "steps"),
    ],
)
def test_what_is_no_state_is_refused_and_nothing_changes(
    state: Mapping[str, Any] | None, named: str
) -> None:
    accountant = HockeystickAccountant()
    accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    with pytest.raises(hs.errors.ParameterError, match=f"^{named} must be"):
        accountant.load_state_dict(state)  # type: ignore[arg-type]  # what is refused
    assert accountant.history == [(1.0, 0.1, 1)]


@pytest.mark.parametrize(
    ("noise", "rate", "named"),
    [(math.nan, 0.1, "noise_multiplier"), (-1.0, 0.1, "noise_multiplier"), (1.0, 2, "sample_rate")],
)
def test_a_step_outside_the_domain_is_refused_where_it_is_made(
    noise: float, rate: float, named: str
) -> None:
    accountant = HockeystickAccountant()
    with pytest.raises(hs.errors.ParameterError, match=named):
        accountant.step(noise_multiplier=noise, sample_rate=rate)
    assert accountant.history == []
    accountant.history = [(noise, rate, 1)]
    with pytest.raises(hs.errors.ParameterError, match=named):
        accountant.get_epsilon(1e-5)


@pytest.mark.parametrize("epsilon", [2.0, 0.01])
def test_their_calibration_meets_its_target_by_the_proven_end_and_tightly(epsilon: float) -> None:
    asked: Any = {"target_epsilon": epsilon, "target_delta": 1e-5, "sample_rate": 256 / 60_000}
    noise = get_noise_multiplier(**asked, steps=14_063, accountant="hockeystick")
    plan = _step(noise, drawn_rate(256 / 60_000)) ** 14_063
    assert epsilon * (1 - 1e-6) <= hs.epsilon(plan, 1e-5).upper <= epsilon
    by_epochs = get_noise_multiplier(
        **asked, epochs=60, accountant="hockeystick", epsilon_tolerance=1e-3, adjacency="zero-out"
    )
    assert by_epochs == noise


def test_their_calibration_is_ours_once_the_adapter_is_imported() -> None:
    assert opacus.accountants.utils.get_noise_multiplier is get_noise_multiplier
    assert opacus.privacy_engine.get_noise_multiplier is get_noise_multiplier
    asked: Any = {"target_epsilon": 1.0, "sample_rate": 0.01, "steps": 1000}
    theirs = get_noise_multiplier(**asked, target_delta=1e-5)
    assert get_noise_multiplier(**asked, target_delta=1e-5, accountant="hockeystick") < theirs
    with pytest.raises(hs.errors.InfeasibleError, match="no finite noise_multiplier"):
        get_noise_multiplier(**asked, target_delta=0.0, accountant="hockeystick")


def test_an_engine_is_made_private_with_an_epsilon() -> None:
    engine = PrivacyEngine()
    model = torch.nn.Linear(3, 2)
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(_dataset(), batch_size=10),
        target_epsilon=3.0,
        target_delta=1e-4,
        epochs=2,
        max_grad_norm=1.0,
    )
    _train(model, optimizer, loader)
    _train(model, optimizer, loader)
    assert 2.999 <= engine.get_epsilon(1e-4) <= 3.0


def test_a_negative_epsilon_of_theirs_is_zero() -> None:
    accountant = HockeystickAccountant()
    accountant.history = [(50.0, 0.001, 10)]
    assert accountant.get_epsilon(0.01) == 0.0
    assert _by_rdp(accountant).get_epsilon(0.01) < 0.0


@pytest.mark.parametrize("rate", [0.25, 1 / 3, 1 / 235, 1e-9, 1.0, 0.0, 1 - 2**-30, 0.125 + 2**-55])
def test_the_rate_recorded_is_no_less_than_that_of_their_sampler(rate: float) -> None:
    drawn = drawn_rate(rate)
    assert rate <= drawn <= min(rate * (1 + 2**-24) + 2**-24, 1.0)
    # Uniform numbers of torch are k 2^-24, all k from 0 on alike: as many are below the rate as
    # the first k that is not.
    nearest = math.floor(rate * 2**24)
    near = range(max(nearest - 3, 0), min(nearest + 4, 2**24))
    below = [k for k in near if bool(torch.tensor(k / 2**24, dtype=torch.float32) < rate)]
    assert (below[-1] + 1 if below else 0) <= drawn * 2**24
    # Where float64 is the default, uniform numbers are k 2^-53, and the rate is not rounded.
    assert Fraction(math.ceil(Fraction(rate) * 2**53), 2**53) <= Fraction(drawn)
    for dtype, places in ((torch.float32, 24), (torch.float64, 53)):
        generator = torch.Generator().manual_seed(3)
        scaled = torch.rand(1000, generator=generator, dtype=dtype).to(torch.float64) * 2**places
        assert torch.equal(scaled, torch.floor(scaled))


@pytest.mark.parametrize("examples", [100, 103, 990])
def test_a_plan_of_a_loader_has_the_rate_and_the_steps_of_opacus(examples: int) -> None:
    from opacus.data_loader import DPDataLoader
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.zeros(examples, 1)), batch_size=10, drop_last=True)
    drawn = DPDataLoader.from_data_loader(loader)
    for one in (loader, drawn):
        told: dict[str, Any] = {} if one is drawn else {"sampling": "poisson"}
        plan = hs.DPSGD.from_loader(one, epochs=3, noise_multiplier=1, **told)
        assert plan.rate is not None
        assert drawn.sample_rate <= plan.rate <= math.nextafter(drawn.sample_rate, 1)
        # Opacus has int(1 / (1 / 99)) = 98 steps.
        assert plan.total_steps == 3 * len(one)
        assert len(one) in (len(drawn), len(drawn) + 1)
