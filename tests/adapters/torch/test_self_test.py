"""The self-test of private loops of torch: ours pass, and each way to a wrong guarantee is named.

The twelve ways are those that the loop was found to have and refuses since; each is undone here.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import ConcatDataset, TensorDataset

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler
from hockeystick.adapters.torch import (
    Clip,
    Constant,
    LargestNorm,
    Loader,
    Online,
    Quantile,
    _checks,
)
from hockeystick.adapters.torch._batches import Stacked, _OneByOne
from hockeystick.audit import Rule, SelfTest, record
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import Zeros, make_private

LOSS = functional.cross_entropy
EXAMPLES = 40
PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=20, noise_multiplier=2)
SURE = 1 - 1e-9
# A loop that keeps all rules fails once in 10^9 runs.
FEW: dict[str, Any] = {"records": 1, "trials": 20, "draws": 40, "confidence": SURE}
Patch = pytest.MonkeyPatch


def _data(width: int = 3, scale: float = 1.0) -> Any:
    torch.manual_seed(1)
    rows = scale * torch.randn(EXAMPLES, width)
    return TensorDataset(rows, torch.randint(2, (EXAMPLES,)))


def _loop(plan: hs.DPSGD = PLAN, model: Any = None, dataset: Any = None, **options: Any) -> Any:
    torch.manual_seed(0)
    trained = nn.Linear(3, 2) if model is None else model
    data = _data() if dataset is None else dataset
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1, momentum=0.9)
    return make_private(trained, optimizer, data, plan, **options)


def _train(private: Any, loss: Any = LOSS) -> None:
    for batch in private.loader:
        private.step(loss, batch)


def _step(private: Any, loss: Any = LOSS) -> None:
    private.step(loss, next(iter(private.loader)))


# Sound loops.


@pytest.mark.parametrize("arithmetic", ["exact", "real"])
@pytest.mark.parametrize(
    "clipping",
    [Constant(1.0), Constant(0.3, per_layer=True), Quantile(1.0, bit_noise=5.0), Online(1.0)],
    ids=str,
)
def test_our_loops_pass(clipping: Clip, arithmetic: str) -> None:
    private = _loop(clipping=clipping, arithmetic=arithmetic)
    found = record(private, LOSS, confidence=SURE, trials=40, draws=100)
    assert found.names == ()
    assert dict(found.measured)["sensitivity"] > 0.9


@pytest.mark.parametrize(
    "fields",
    [
        {"batch_size": 10, "adjacency": "replace-one"},
        {"batch_size": 10, "adjacency": "zero-out"},
        {"batch_size": 10, "batch_cap": 12},
        {"batch_size": 10, "sampling": "fixed-size"},
        {"batch_size": 10, "sampling": "with-replacement", "adjacency": "replace-one"},
        {"batch_size": 10, "sampling": "shuffle", "adjacency": "zero-out"},
        {"batch_size": 10, "sampling": "random-allocation"},
        {"sampling": "full-batch"},
        {"batch_size": 10, "clipping": "batch"},
        {"batch_size": 10, "schedule": hs.schedules.Values([1.0, 0.5] * 4)},
    ],
    ids=str,
)
def test_our_loops_pass_under_each_sampling(fields: dict[str, Any]) -> None:
    plan = hs.DPSGD(examples=EXAMPLES, noise_multiplier=2, steps=8, **fields)
    assert record(_loop(plan), LOSS, **FEW).names == ()


def test_layers_of_dropout_and_data_that_are_turned_at_random_pass() -> None:
    class Turned(torch.utils.data.Dataset):  # type: ignore[misc]  # torch may have no types
        def __len__(self) -> int:
            return EXAMPLES

        def __getitem__(self, place: int) -> Any:
            row, label = _ROWS[place]
            return row + torch.randn(3), label

    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    assert record(_loop(model=model, dataset=Turned()), LOSS, **FEW).names == ()


_ROWS = _data()


def test_a_self_test_changes_nothing_of_the_loop(tmp_path: Path) -> None:
    private = _loop(checkpoint=tmp_path / "run.pt")
    _step(private)
    weights = copy.deepcopy(private.model.state_dict())
    moments = copy.deepcopy(private.optimizer.state_dict())
    random = torch.get_rng_state()
    record(private, LOSS, **FEW)
    assert private.steps == 1
    assert all(map(torch.equal, weights.values(), private.model.state_dict().values()))
    assert str(moments) == str(private.optimizer.state_dict())
    assert torch.equal(random, torch.get_rng_state())
    _step(private)
    assert private.steps == 2


def test_a_loss_or_a_training_is_given() -> None:
    private = _loop()
    given: list[dict[str, Any]] = [{}, {"loss_fn": LOSS, "train": _train}]
    for options in given:
        with pytest.raises(ParameterError, match=r"^loss_fn must be given"):
            record(private, **options)


# The twelve ways.


def _whole_batches(patch: Patch) -> None:
    """Have ``collate`` see a whole batch."""

    def whole(self: Any, places: list[int]) -> Any:
        rows = [self.dataset[place] for place in places]
        return Stacked(self.collate(rows) if rows else ())

    patch.setattr(_OneByOne, "__getitems__", whole)


def _standardised(rows: list[Any]) -> Any:
    inputs = torch.stack([row[0] for row in rows])
    return inputs - inputs.mean(dim=0), torch.stack([row[1] for row in rows])


def test_1_a_collation_that_mixes_examples(monkeypatch: Patch) -> None:
    _whole_batches(monkeypatch)
    found = record(_loop(collate=_standardised), LOSS, **FEW)
    assert Rule.MIXED in found.names


def _padded(rows: list[Any]) -> Any:
    return (nn.utils.rnn.pad_sequence(rows, batch_first=True),)


class Texts(torch.utils.data.Dataset):  # type: ignore[misc]  # torch may have no types
    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, place: int) -> Any:
        return torch.arange(1.0, 4.0) + place


def test_2_padding_to_the_longest_text(monkeypatch: Patch) -> None:
    assert record(_loop(model=Zeros(), dataset=Texts()), torch.sum, **FEW).consistent
    _whole_batches(monkeypatch)
    private = _loop(model=Zeros(), dataset=Texts(), collate=_padded)
    found = record(private, torch.sum, canaries=[torch.ones(60)], **FEW)
    longer = [one for one in found.violations if "canary 0" in one.where]
    assert Rule.MIXED in {one.name for one in longer}
    assert all("canary" in one.where for one in found.violations if one.name == Rule.MIXED)


def test_3_a_seed_that_somebody_knows() -> None:
    assert record(_loop(not_private=1), LOSS, **FEW).names == (Rule.REPEATS,)


def test_4_lengths_in_few_digits(monkeypatch: Patch) -> None:
    def stops_growing(rows: Any, limit: float) -> Any:
        squares = rows.half().square().numpy()
        with np.errstate(over="ignore"):
            total = np.add.accumulate(squares, axis=1, dtype=np.float16)[:, -1]
        return torch.from_numpy(total).double().sqrt()

    options = {"model": nn.Linear(4000, 2), "dataset": _data(4000, 0.04), "arithmetic": "real"}
    assert record(_loop(**options), LOSS, **FEW).consistent
    monkeypatch.setattr("hockeystick.adapters.torch._gradients._lengths", stops_growing)
    assert Rule.SENSITIVITY in record(_loop(clipping=0.1, **options), LOSS, **FEW).names


class Elsewhere:
    """A program that steps twice, and goes on in a loop that knows of none of these steps."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs = folder, 0

    def begun(self) -> Path:
        self.runs += 1
        return self.folder / f"{self.runs}.journal"

    def again(self, private: Any, journal: Path | None) -> Any:
        optimizer = torch.optim.SGD(private.model.parameters(), lr=0.1)
        return make_private(private.model, optimizer, _data(), PLAN, journal=journal)


def test_5_a_state_of_other_weights(monkeypatch: Patch, tmp_path: Path) -> None:
    where = Elsewhere(tmp_path)

    def train(private: Any) -> None:
        journal = where.begun()
        first = where.again(private, journal)
        backup = shutil.copy(journal, where.begun())
        stale = first.state_dict()
        _step(first)
        _step(first)
        second = where.again(private, Path(backup))
        try:
            second.load_state_dict(stale)  # the weights are those of two steps later
            _step(second)
        finally:
            first.close()
            second.close()

    with pytest.raises(ParameterError, match="that of the weights which the model has"):
        record(_loop(), train=train, **FEW)
    monkeypatch.setattr("hockeystick.adapters.torch._loop._digest", lambda model: "")
    assert Rule.COUNT in record(_loop(), train=train, **FEW).names


def test_6_a_state_without_its_journal(monkeypatch: Patch, tmp_path: Path) -> None:
    where = Elsewhere(tmp_path)

    def train(private: Any) -> None:
        stale = private.state_dict()["account"]
        _step(private)
        second = where.again(private, None)
        second._account.load(stale | {"plan": second.state_dict()["account"]["plan"]})
        _step(second)

    monkeypatch.setattr(_checks.Release, "check", lambda self, model: None)
    private = _loop(not_private=1)
    with pytest.raises(ParameterError, match="must be"):
        record(private, train=train, **FEW)
    monkeypatch.setattr(Account, "load", lambda self, state: None)
    assert Rule.COUNT in record(private, train=train, **FEW).names


def test_7_a_journal_of_two_loops(monkeypatch: Patch, tmp_path: Path) -> None:
    where = Elsewhere(tmp_path)

    def train(private: Any) -> None:
        journal = where.begun()
        loops = [where.again(private, journal) for _ in range(2)]
        for loop in loops:
            _step(loop)
        for loop in loops:
            loop.close()

    with pytest.raises(ParameterError, match="no other run has open"):
        record(_loop(), train=train, **FEW)
    monkeypatch.setattr("fcntl.flock", lambda *arguments: None)
    assert Rule.COUNT in record(_loop(), train=train, **FEW).names


def test_8_steps_of_the_optimizer_outside_the_loop(monkeypatch: Patch) -> None:
    rows, labels = _data().tensors

    def train(private: Any) -> None:
        for batch in private.loader:
            private.step(LOSS, batch)
            LOSS(private.model(rows), labels).backward()
            private.optimizer.step()

    with pytest.raises(IncompatibleError, match=r"steps by private\.step alone"):
        record(_loop(), train=train, **FEW)
    guard = "hockeystick.adapters.torch._checks._refuse_open_step"
    monkeypatch.setattr(guard, lambda *arguments: None)
    assert Rule.COUNT in record(_loop(), train=train, **FEW).names


def test_9_sums_in_16_bits(monkeypatch: Patch) -> None:
    def train(private: Any) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            _train(private)

    options = {"model": nn.Linear(300, 2), "dataset": _data(300), "arithmetic": "real"}
    with pytest.raises(IncompatibleError, match="autocast"):
        record(_loop(**options), train=train, **FEW)
    check = "hockeystick.adapters.torch._checks.check_precision"
    monkeypatch.setattr(check, lambda device: None)
    found = record(_loop(**options), train=train, **FEW)
    assert {Rule.SENSITIVITY, Rule.MIXED} & set(found.names)


def test_10_processes_that_draw_batches_of_their_own(monkeypatch: Patch) -> None:
    own = Sampler.draw

    def twice(self: Any, step: int) -> Any:
        return np.union1d(own(self, step), own(self, step))

    monkeypatch.setattr(Sampler, "draw", twice)
    assert record(_loop(), LOSS, **FEW).names == (Rule.RATE,)


def test_11_batches_that_are_left_out(monkeypatch: Patch) -> None:
    def train(private: Any) -> None:
        for batch in private.loader:
            if len(batch):
                private.step(LOSS, batch)

    def drawn_again(self: Any, end: int) -> Any:
        while self._account.counted < end:
            self._pending = None
            yield self.next()

    refused = record(_loop(), train=train, **FEW)
    assert Rule.FAILS in refused.names
    monkeypatch.setattr(Loader, "_batches", drawn_again)
    found = record(_loop(), train=train, **FEW)
    assert {Rule.STEPS_DEPEND, Rule.LEFT_OUT} <= set(found.names)


def test_12_a_divisor_that_counts_the_examples(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        Sampler, "expected", lambda self, step: float(self.rate(step)) * self._examples
    )
    assert Rule.SCALE in record(_loop(), LOSS, **FEW).names


# Other ways.


def test_a_record_at_several_places_is_named(monkeypatch: Patch) -> None:
    part = TensorDataset(*(one[:20] for one in _data().tensors))
    dataset = ConcatDataset([part, part])
    with pytest.raises(ParameterError, match="each example at one place"):
        _loop(dataset=dataset)
    monkeypatch.setattr("hockeystick.adapters.torch._checks._repeats", lambda dataset: False)
    found = record(_loop(dataset=dataset), LOSS, **FEW)
    assert found.names == (Rule.COPIES,)
    assert found.violations[0].found == 2


def test_noise_by_the_largest_norm_is_named() -> None:
    clipping = LargestNorm(1.0, not_private=True)
    assert Rule.SCALE in record(_loop(clipping=clipping), LOSS, **FEW).names


class Remembering(nn.Module):  # type: ignore[misc]  # torch may have no types
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.seen = nn.Linear(3, 2), nn.Parameter(torch.zeros(3), requires_grad=False)

    def forward(self, rows: Any) -> Any:
        return self.layer(rows)


def test_a_program_that_keeps_what_it_saw_is_named() -> None:
    def train(private: Any) -> None:
        for batch in private.loader:
            private.step(LOSS, batch)
            if len(batch):
                private.model.seen.data += batch.examples[0].nan_to_num().mean(dim=0)

    found = record(_loop(model=Remembering()), train=train, **FEW)
    assert found.names == (Rule.STATE,)


def test_a_learning_rate_that_follows_the_loss_is_named() -> None:
    def train(private: Any) -> None:
        for batch in private.loader:
            private.step(LOSS, batch)
            private.optimizer.param_groups[0]["lr"] *= 0.5 + private.not_private_loss / 10

    assert Rule.STATE in record(_loop(), train=train, **FEW).names


def test_a_stop_that_follows_the_loss_is_named() -> None:
    def train(private: Any) -> None:
        for batch in private.loader:
            private.step(LOSS, batch)
            if not private.not_private_loss < 50:
                return

    assert Rule.STEPS_DEPEND in record(_loop(), train=train, **FEW).names


Undo = Callable[[Patch], None]
PLACE = "hockeystick.adapters.torch._loop."


def _no_clipping(patch: Patch) -> None:
    def unclipped(gradients: Any, norm: float, *_: Any) -> Any:
        return {name: one.sum(dim=0) * 2**22 / norm for name, one in gradients.items()}, {}

    patch.setattr(f"{PLACE}clipped_sum", unclipped)


def _half_the_noise(patch: Patch) -> None:
    from hockeystick.adapters.torch._loop import _deviations

    def half(*arguments: Any) -> Any:
        gradient, other = _deviations(*arguments)
        return 0.5 * gradient, other

    patch.setattr(f"{PLACE}_deviations", half)


def _one_number(patch: Patch) -> None:
    from hockeystick.adapters.torch._loop import _released

    def shared(sums: Any, deviation: float, divisor: float, noisy: Any, params: Any) -> Any:
        drawn = noisy(torch.zeros(1, dtype=torch.float64), deviation)
        return _released(sums, 0.0, divisor, lambda total, _: total.double() + drawn, params)

    patch.setattr(f"{PLACE}_released", shared)


def _no_noise_on_biases(patch: Patch) -> None:
    from hockeystick.adapters.torch._loop import _released

    def bare(sums: Any, deviation: float, divisor: float, noisy: Any, params: Any) -> Any:
        found = _released(sums, deviation, divisor, noisy, params)
        again = _released(sums, 0.0, divisor, noisy, params)
        return {name: again[name] if "bias" in name else one for name, one in found.items()}

    patch.setattr(f"{PLACE}_released", bare)


@pytest.mark.parametrize(
    ("undo", "rule"),
    [
        (_no_clipping, Rule.SENSITIVITY),
        (_half_the_noise, Rule.TOO_SMALL),
        (_one_number, Rule.SHARED),
        (_no_noise_on_biases, Rule.NO_NOISE),
    ],
)
def test_what_is_broken_inside_is_named(undo: Undo, rule: Rule, monkeypatch: Patch) -> None:
    undo(monkeypatch)
    found = record(_loop(), LOSS, **FEW)
    assert isinstance(found, SelfTest)
    assert rule in found.names
