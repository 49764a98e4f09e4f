"""The self-test of private loops of torch: ours pass, and each planted fault is named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import ConcatDataset, Dataset, TensorDataset

import hockeystick as hs
from hockeystick.adapters.loop import Sampler
from hockeystick.adapters.torch import Constant, Loader, Online, Quantile, _checks, _loop
from hockeystick.adapters.torch._batches import _OneByOne
from hockeystick.audit import Rule, record
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import Zeros, make_private

LOSS = functional.cross_entropy
EXAMPLES = 40
PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=20, noise_multiplier=2)
# A loop that keeps all rules fails once in 10^9 runs.
FEW: dict[str, Any] = {"records": 1, "trials": 20, "draws": 40, "confidence": 1 - 1e-9}
Patch = pytest.MonkeyPatch


def _data(width: int = 3, scale: float = 1.0) -> Any:
    torch.manual_seed(1)
    rows = scale * torch.randn(EXAMPLES, width)
    return TensorDataset(rows, torch.randint(2, (EXAMPLES,)))


def _made(plan: hs.DPSGD = PLAN, model: Any = None, dataset: Any = None, **options: Any) -> Any:
    torch.manual_seed(0)
    trained = nn.Linear(3, 2) if model is None else model
    data = _data() if dataset is None else dataset
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1, momentum=0.9)
    return make_private(trained, optimizer, data, plan, **options)


def _train(private: Any) -> None:
    for batch in private.loader:
        private.step(LOSS, batch)


def _step(private: Any) -> None:
    private.step(LOSS, next(iter(private.loader)))


# Sound loops.


class Turned(Dataset):  # type: ignore[misc]  # torch may have no types
    """Examples that are turned at random."""

    def __init__(self) -> None:
        self.rows = _data()

    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, place: int) -> Any:
        row, label = self.rows[place]
        return row + torch.randn(3), label


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, {}),
        ({}, {"clipping": Constant(0.3, per_layer=True), "arithmetic": "real"}),
        ({}, {"clipping": Quantile(1.0, bit_noise=5.0)}),
        ({}, {"clipping": Online(1.0), "arithmetic": "real"}),
        ({"adjacency": "zero-out"}, {}),
        ({"batch_cap": 12}, {}),
        ({"sampling": "fixed-size"}, {}),
        ({"sampling": "with-replacement", "adjacency": "replace-one"}, {}),
        ({"sampling": "shuffle", "adjacency": "zero-out"}, {}),
        ({"sampling": "random-allocation"}, {}),
        ({"sampling": "full-batch", "batch_size": None}, {}),
        ({"clipping": "batch"}, {}),
        ({"schedule": hs.schedules.Values([1.0, 0.5] * 4)}, {}),
        pytest.param(
            {},
            {"dataset": Turned(), "model": nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))},
            id="random",
        ),
    ],
    ids=str,
)
def test_sound_loops_pass(fields: dict[str, Any], options: dict[str, Any]) -> None:
    plan = hs.DPSGD(
        **{"examples": EXAMPLES, "noise_multiplier": 2, "steps": 8, "batch_size": 10, **fields}
    )
    found = record(_made(plan, **options), LOSS, **FEW)
    assert found.names == ()
    assert dict(found.measured)["sensitivity"] > 0.5


def test_a_self_test_changes_nothing_of_the_loop(tmp_path: Path) -> None:
    private = _made(checkpoint=tmp_path / "run.pt")
    _step(private)
    before = copy.deepcopy([private.model.state_dict(), private.optimizer.state_dict()])
    random = torch.get_rng_state()
    record(private, LOSS, **FEW)
    assert private.steps == 1
    assert str(before) == str([private.model.state_dict(), private.optimizer.state_dict()])
    assert torch.equal(random, torch.get_rng_state())
    wrong: tuple[dict[str, Any], ...] = ({}, {"loss_fn": LOSS, "train": _train})
    for options in wrong:
        with pytest.raises(ParameterError, match=r"^loss_fn must be given"):
            record(private, **options)


# Faults in what is given.


class Texts(Dataset):  # type: ignore[misc]  # torch may have no types
    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, place: int) -> Any:
        return torch.arange(1.0, 4.0) + place


def _keeps(private: Any) -> None:
    for batch in private.loader:
        private.step(LOSS, batch)
        if len(batch):
            private.model[0].weight.data += batch.examples[0].nan_to_num().mean()


def _follows(private: Any) -> None:
    for batch in private.loader:
        private.step(LOSS, batch)
        private.optimizer.param_groups[0]["lr"] *= 0.5 + private.not_private_loss / 10


def _stops(private: Any) -> None:
    for batch in private.loader:
        private.step(LOSS, batch)
        if not private.not_private_loss < 50:
            return


@pytest.mark.parametrize(
    ("train", "rule"), [(_keeps, Rule.STATE), (_follows, Rule.STATE), (_stops, Rule.STEPS_DEPEND)]
)
def test_a_program_that_looks_at_the_data_is_named(train: Any, rule: Rule) -> None:
    frozen = nn.Linear(3, 3).requires_grad_(False)
    private = _made(model=nn.Sequential(frozen, nn.Linear(3, 2)))
    assert rule in record(private, train=train, **FEW).names


# Faults inside the loop, planted one by one.


def _whole_batches(patch: Patch) -> None:
    def whole(self: Any, places: list[int]) -> Any:
        rows = [self.dataset[place] for place in places]
        return self.collate(rows) if rows else ()

    patch.setattr(_OneByOne, "__getitems__", whole)


def _standardised(rows: list[Any]) -> Any:
    inputs = torch.stack([row[0] for row in rows])
    return inputs - inputs.mean(dim=0), torch.stack([row[1] for row in rows])


def _lengths_in_16_bits(patch: Patch) -> None:
    def stops_growing(rows: Any, limit: float) -> Any:
        squares = rows.half().square().numpy()
        with np.errstate(over="ignore"):
            total = np.add.accumulate(squares, axis=1, dtype=np.float16)[:, -1]
        return torch.from_numpy(total).double().sqrt()

    patch.setattr("hockeystick.adapters.torch._factors._lengths", stops_growing)


def _drawn_twice(patch: Patch) -> None:
    own = Sampler.draw
    patch.setattr(Sampler, "draw", lambda self, step: np.union1d(own(self, step), own(self, step)))


def _counted_divisor(patch: Patch) -> None:
    def counted(self: Any, step: int) -> float:
        return float(self.rate(step) * self._examples)

    patch.setattr(Sampler, "expected", counted)


def _no_clipping(patch: Patch) -> None:
    def unclipped(gradients: Any, norm: float, *_: Any) -> Any:
        return {name: one.rows.sum(dim=0) * 2**22 / norm for name, one in gradients.items()}, {}

    patch.setattr(_loop, "clipped_sum", unclipped)


def _half_the_noise(patch: Patch) -> None:
    own = _loop.deviations
    patch.setattr(_loop, "deviations", lambda *given: (0.5 * own(*given)[0], own(*given)[1]))


def _one_number(patch: Patch) -> None:
    own = _loop._released

    def shared(sums: Any, deviation: float, divisor: float, noisy: Any, params: Any) -> Any:
        drawn = noisy("", torch.zeros(1, dtype=torch.float64), deviation)
        return own(sums, 0.0, divisor, lambda name, total, _: total.double() + drawn, params)

    patch.setattr(_loop, "_released", shared)


def _no_noise_on_biases(patch: Patch) -> None:
    own = _loop._released

    def bare(sums: Any, deviation: float, *given: Any) -> Any:
        found, again = own(sums, deviation, *given), own(sums, 0.0, *given)
        return {name: again[name] if "bias" in name else one for name, one in found.items()}

    patch.setattr(_loop, "_released", bare)


class _InRows(nn.Linear):  # type: ignore[misc]  # torch may have no types
    """A layer whose gradients are taken in rows."""


_PART = TensorDataset(*(one[:20] for one in _data().tensors))
_WIDE: dict[str, Any] = {"dataset": _data(4000, 0.04), "arithmetic": "real", "clipping": 0.1}


@pytest.mark.parametrize(
    ("fault", "options", "rule"),
    [
        (_whole_batches, {"collate": _standardised}, Rule.MIXED),
        (lambda patch: None, {"not_private": 1}, Rule.REPEATS),
        (_lengths_in_16_bits, _WIDE | {"model": _InRows(4000, 2)}, Rule.SENSITIVITY),
        (_drawn_twice, {}, Rule.RATE),
        (_counted_divisor, {}, Rule.SCALE),
        (_no_clipping, {}, Rule.SENSITIVITY),
        (_half_the_noise, {}, Rule.TOO_SMALL),
        (_one_number, {}, Rule.SHARED),
        (_no_noise_on_biases, {}, Rule.NO_NOISE),
        (
            lambda patch: patch.setattr(_checks, "_repeats", lambda dataset: False),
            {"dataset": ConcatDataset([_PART, _PART])},
            Rule.COPIES,
        ),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_a_fault_inside_the_loop_is_named(
    fault: Callable[[Patch], None], options: Any, rule: Rule, monkeypatch: Patch
) -> None:
    fault(monkeypatch)
    assert rule in record(_made(**options), LOSS, **FEW).names


def test_padding_to_the_longest_text_is_named_by_a_canary(monkeypatch: Patch) -> None:
    def padded(rows: list[Any]) -> Any:
        return (nn.utils.rnn.pad_sequence(rows, batch_first=True),)

    assert record(_made(model=Zeros(), dataset=Texts()), torch.sum, **FEW).consistent
    _whole_batches(monkeypatch)
    private = _made(model=Zeros(), dataset=Texts(), collate=padded)
    found = record(private, torch.sum, canaries=[torch.ones(60)], **FEW)
    assert any("canary 0" in one.where for one in found.violations if one.name == Rule.MIXED)
    assert all("canary" in one.where for one in found.violations if one.name == Rule.MIXED)


# Ways around what is counted: each is refused, and named where the refusal is taken out.


def test_a_step_in_16_bits_is_refused_or_named(monkeypatch: Patch) -> None:
    def train(private: Any) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            _train(private)

    wide: Any = {"model": nn.Linear(300, 2), "dataset": _data(300), "arithmetic": "real"}
    with pytest.raises(IncompatibleError, match="autocast"):
        record(_made(**wide), train=train, **FEW)
    monkeypatch.setattr(_checks, "check_precision", lambda device, **_: None)
    found = record(_made(**wide), train=train, **FEW)
    assert {Rule.SENSITIVITY, Rule.MIXED} & set(found.names)


def test_batches_that_are_left_out_are_refused_or_named(monkeypatch: Patch) -> None:
    def train(private: Any) -> None:
        for batch in private.loader:
            if len(batch):
                private.step(LOSS, batch)

    def drawn_again(self: Any, end: int) -> Any:
        while self.account.counted < end:
            self._pending = None
            yield self.next()

    assert Rule.FAILS in record(_made(), train=train, **FEW).names
    monkeypatch.setattr(Loader, "batches", drawn_again)
    found = record(_made(), train=train, **FEW)
    assert {Rule.STEPS_DEPEND, Rule.LEFT_OUT} <= set(found.names)
