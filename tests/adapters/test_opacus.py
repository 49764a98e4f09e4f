"""Opacus on our accounts: its engine, its calibration, its checkpoints, and runs on a ledger."""

import json
import math
import sys
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
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
from opacus.accountants import create_accountant
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping
from opacus.utils.batch_memory_manager import BatchMemoryManager

from hockeystick.adapters.opacus import (
    HockeystickAccountant,
    PrivacyEngine,
    drawn_rate,
    get_noise_multiplier,
)
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from tests.adapters.torch.loops import LOSS, make_data
from tests.ledger.forks import die, killed, outcome

# Opacus and torch say so of themselves.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
    pytest.mark.filterwarnings("ignore:Optimal order is the"),
    pytest.mark.filterwarnings("ignore:GDP accounting is experimental"),
    pytest.mark.filterwarnings("ignore:PrivacyEngine detected new dataset"),
]


def _private(
    engine: TheirEngine,
    noise_multiplier: float = 1.0,
    *,
    model: Any = None,
    workers: int = 0,
    **options: Any,
) -> Any:
    model = model or torch.nn.Linear(3, 2)
    return engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(make_data(40), batch_size=10, num_workers=workers),
        noise_multiplier=noise_multiplier,
        **{"max_grad_norm": 1.0} | options,
    )


def _backward(model: Any, batch: Any) -> None:
    LOSS(model(batch[0]), batch[1]).backward()


def _train(model: Any, optimizer: Any, loader: Any) -> int:
    steps = 0
    for batch in loader:
        optimizer.zero_grad()
        _backward(model, batch)
        optimizer.step()
        steps += 1
    return steps


def _step(noise_multiplier: float, rate: float) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise_multiplier), rate)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_engine_records_each_step_with_the_noise_that_it_had(workers: int) -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = _private(engine, noise_multiplier=2.0, workers=workers)
    _train(model, optimizer, loader)
    optimizer.noise_multiplier = 1.0
    _train(model, optimizer, loader)
    assert isinstance(engine.accountant, HockeystickAccountant)
    assert engine.accountant.history == [(2.0, 0.25, 4), (1.0, 0.25, 4)]
    plan = _step(2.0, 0.25) ** 4 @ _step(1.0, 0.25) ** 4
    assert engine.get_epsilon(1e-5) == hs.epsilon(plan, 1e-5).upper


def test_a_batch_that_is_split_for_memory_is_one_step() -> None:
    engine = PrivacyEngine()
    model, optimizer, loader = _private(engine)
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=3, optimizer=optimizer
    ) as split:
        assert _train(model, optimizer, split) > 4
    assert engine.accountant.history == [(1.0, 0.25, 4)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("mode", "clipping"), [("hooks", "flat"), ("functorch", "per_layer")])
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


def _accumulated(model: Any, optimizer: Any, loader: Any) -> None:
    model.allow_grad_accumulation()
    batch = next(batch for batch in loader)
    for _ in range(2):
        _backward(model, batch)
    optimizer.step()


def _left_out(model: Any, optimizer: Any, loader: Any) -> None:
    batches = iter(loader)
    next(batches)
    with pytest.raises(IncompatibleError, match=NOT_USED):
        next(batches)
    next(iter(loader))


def _in_pairs(model: Any, optimizer: Any, criterion: Any, loader: Any) -> None:
    for count, (inputs, labels) in enumerate(loader):
        criterion(model(inputs), labels).backward()
        if count % 2:
            optimizer.step()


def _one_by_ghosts(model: Any, optimizer: Any, criterion: Any, loader: Any) -> None:
    inputs, labels = next(batch for batch in loader if len(batch[0]))
    criterion(model(inputs), labels).backward()
    optimizer.step()


def _split(model: Any, optimizer: Any, loader: Any) -> None:
    split = BatchMemoryManager(data_loader=loader, max_physical_batch_size=100, optimizer=optimizer)
    with split as batches:
        _train(model, optimizer, batches)


_theirs = partial(TheirEngine, accountant="hockeystick")
_adaptive = partial(PrivacyEngineAdaptiveClipping, accountant="hockeystick")
NOT_USED = r"drawn and no optimizer\.step made of it"
GHOST: dict[str, Any] = {"criterion": torch.nn.CrossEntropyLoss(), "grad_sample_mode": "ghost"}
ADAPTIVE: dict[str, Any] = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10,
    "min_clipbound": 0.1,
    "unclipped_num_std": 2.0,
}
# An engine, what it is given, what is done with what it returns, and why that is refused.
MISUSES: dict[str, tuple[Any, dict[str, Any], Any, str]] = {
    "accumulated": (PrivacyEngine, {}, _accumulated, "2 batches were accumulated for one step"),
    "their engine": (_theirs, {}, _train, r"use PrivacyEngine of hockeystick\.adapters"),
    "left out": (PrivacyEngine, {}, _left_out, NOT_USED),
    "left out by workers": (PrivacyEngine, {"workers": 1}, _left_out, NOT_USED),
    "two ghosts": (PrivacyEngine, GHOST, _in_pairs, NOT_USED),
    "split by workers": (PrivacyEngine, {"workers": 1}, _split, "num_workers=0"),
    "shuffled": (PrivacyEngine, {"poisson_sampling": False}, _train, "poisson_sampling=False"),
    "known noise": (PrivacyEngine, {"noise_generator": torch.Generator()}, _train, "can subtract"),
    "adaptive": (PrivacyEngine, ADAPTIVE, _train, "adaptive clipping in Opacus"),
    # It asks for batches of more than ten times the noise multiplier.
    "adaptive ghosts": (_adaptive, GHOST | {"noise_multiplier": 0.01}, _one_by_ghosts, "adaptive"),
}


@pytest.mark.parametrize(("made", "options", "done", "why"), MISUSES.values(), ids=MISUSES)
def test_what_no_account_covers_is_refused_and_changes_nothing(
    made: Any, options: dict[str, Any], done: Any, why: str
) -> None:
    engine, model = made(), torch.nn.Linear(3, 2)
    before = [one.detach().clone() for one in model.parameters()]
    with pytest.raises(IncompatibleError, match=why):
        done(*_private(engine, model=model, **options))
    assert len(engine.accountant) == 0
    assert all(map(torch.equal, before, model.parameters()))


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
    with pytest.raises(IncompatibleError, match="no batch of its own"):
        optimizer.step()
    assert len(engine.accountant) == 1


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
    with pytest.raises(IncompatibleError, match="4 steps are recorded here"):
        other.load_checkpoint(path=path, module=model, optimizer=optimizer)
    assert len(other.accountant) == 4


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
    other = HockeystickAccountant()
    other.load_state_dict(json.loads(json.dumps(ours.state_dict())))
    assert other.history == ours.history
    assert other.get_epsilon(1e-5) == hs.epsilon(_step(1.1, drawn_rate(1 / 235)) ** 4, 1e-5).upper


@pytest.mark.parametrize(
    ("state", "named"),
    [
        (None, "state_dict"),
        ({}, "state_dict"),
        ({"history": [], "mechanism": "ours"}, "mechanism"),
        ({"history": None, "mechanism": "rdp"}, "history"),
        ({"history": [(1.0, 0.1)], "mechanism": "rdp"}, "history"),
        ({"history": [(math.nan, 0.1, 1)], "mechanism": "rdp"}, "noise_multiplier"),
        ({"history": [(1.0, 1.1, 1)], "mechanism": "rdp"}, "sample_rate"),
        ({"history": [(1.0, 0.1, 1), (1.0, 0.1, -1)], "mechanism": "rdp"}, "steps"),
    ],
)
def test_what_is_no_state_is_refused_and_nothing_changes(
    state: Mapping[str, Any] | None, named: str
) -> None:
    accountant = HockeystickAccountant()
    accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    with pytest.raises(ParameterError, match=f"^{named} must be"):
        accountant.load_state_dict(state)  # type: ignore[arg-type]  # what is refused
    assert accountant.history == [(1.0, 0.1, 1)]
    for noise, rate in ((math.nan, 0.1), (-1.0, 0.1), (1.0, 2.0)):
        with pytest.raises(ParameterError, match="must be"):
            accountant.step(noise_multiplier=noise, sample_rate=rate)
    assert accountant.history == [(1.0, 0.1, 1)]


def test_their_calibration_meets_its_target_by_the_proven_end() -> None:
    asked: Any = {"target_epsilon": 2.0, "target_delta": 1e-5, "sample_rate": 256 / 60_000}
    noise = get_noise_multiplier(**asked, epochs=60, accountant="hockeystick", epsilon_tolerance=1)
    plan = _step(noise, drawn_rate(256 / 60_000)) ** 14_063
    assert 2.0 * (1 - 1e-6) <= hs.epsilon(plan, 1e-5).upper <= 2.0
    assert opacus.accountants.utils.get_noise_multiplier is get_noise_multiplier
    assert opacus.privacy_engine.get_noise_multiplier is get_noise_multiplier


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


# On a ledger: steps are reserved, counted before the model changes, and committed.

STEP = _step(1.0, 0.25)
STEPS = 10


@pytest.fixture
def ledger(tmp_path: Path) -> hs.Ledger:
    return hs.Ledger(tmp_path / "ledger.db", "x", hs.RenyiDP({4.0: 5.0}))


def _steps(private: Any, steps: int) -> None:
    model, optimizer, loader = private
    while steps:
        for batch in loader:
            optimizer.zero_grad()
            _backward(model, batch)
            optimizer.step()
            steps -= 1
            if not steps:
                break
        loader.batch_sampler.unused = False  # an epoch that is broken off


def test_a_step_beyond_those_reserved_changes_no_weight(ledger: hs.Ledger) -> None:
    engine = PrivacyEngine()
    model = torch.nn.Linear(3, 2)
    training = _private(engine, model=model, ledger=ledger, key="cats", steps=2)
    _steps(training, 2)
    weights = model.weight.clone()
    with pytest.raises(BudgetExhausted, match="3 steps of"):
        _steps(training, 1)
    assert torch.equal(model.weight, weights)
    engine.close()
    assert ledger.history()[-1].mechanism == STEP**2
    model = torch.nn.Linear(3, 2)
    with pytest.raises(BudgetExhausted, match="on 'x'"):
        _private(PrivacyEngine(), model=model, ledger=ledger, key="dogs", steps=10_000)
    _private(PrivacyEngine(), model=model, ledger=ledger, key="dogs", steps=1)


def test_a_step_with_other_noise_is_refused_uncounted(ledger: hs.Ledger) -> None:
    engine = PrivacyEngine()
    training = _private(engine, ledger=ledger, key="cats", steps=2)
    training[1].noise_multiplier = 2.0
    with pytest.raises(IncompatibleError, match="a noise multiplier of 2 is not the 1 that"):
        _steps(training, 1)
    assert (engine.counted, len(engine.accountant)) == (0, 0)


def test_what_is_missing_or_too_much_is_named(ledger: hs.Ledger) -> None:
    for told, given in (
        ("steps must be given with a ledger", {"ledger": ledger, "key": "cats"}),
        ("key must be given", {"ledger": ledger, "steps": 3}),
        ("steps must be left out", {"steps": 3}),
        ("journal must be left out", {"journal": "journal"}),
    ):
        with pytest.raises(ParameterError, match=f"^{told}"):
            _private(PrivacyEngine(), **given)
    with pytest.raises(ParameterError, match=r"^ledger must be given to make_private"):
        PrivacyEngine().make_private_with_epsilon(ledger=ledger)
    assert len(ledger.history()) == 1


def test_an_engine_has_one_reserved_run_at_a_time(ledger: hs.Ledger) -> None:
    engine = PrivacyEngine()
    _private(engine, ledger=ledger, key="cats", steps=1)
    with pytest.raises(IncompatibleError, match="close it"):
        _private(engine, ledger=ledger, key="dogs", steps=1)
    engine.close()
    _steps(_private(engine, ledger=ledger, key="dogs", steps=1), 1)
    engine.close()
    assert ledger.history()[-1].key == "dogs"


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of threads that fork
def test_a_kill_within_a_step_leaves_it_counted(ledger: hs.Ledger, tmp_path: Path) -> None:
    released = tmp_path / "released"

    def train(dies: bool) -> None:
        torch.set_num_threads(1)  # those of the parent are not there after a fork
        engine = PrivacyEngine()
        journal = tmp_path / "journal"
        training = _private(engine, ledger=ledger, key="cats", steps=STEPS, journal=journal)
        optimizer = training[1].original_optimizer
        real = optimizer.step

        def step(*arguments: Any, **options: Any) -> Any:
            with released.open("a") as told:
                told.write("r")
            if dies and engine.counted == 3:
                die()
            return real(*arguments, **options)

        optimizer.step = step
        _steps(training, STEPS - engine.counted)
        engine.close()

    killed(lambda: train(True))
    assert ledger.status.unresolved == 1
    assert outcome(lambda: train(False)) == 0
    assert ledger.status.unresolved == 0
    alone = hs.Ledger(tmp_path / "alone.db", "x", hs.RenyiDP({4.0: 5.0}))
    alone.step(STEP**STEPS)
    assert ledger.status.spent == alone.status.spent
    assert len(released.read_text()) == STEPS
