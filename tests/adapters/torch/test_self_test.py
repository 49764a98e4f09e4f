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
from torch.utils.data import ConcatDataset, TensorDataset

import hockeystick as hs
from hockeystick.adapters.loop import Sampler
from hockeystick.adapters.torch import Constant, Loader, Online, Quantile, _checks, _loop
from hockeystick.adapters.torch._batches import _OneByOne
from hockeystick.audit import Rule, record
from hockeystick.errors import ParameterError
from tests.adapters.torch.loops import LOSS, Items, Zeros, make_data, make_private

EXAMPLES = 40
PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=20, noise_multiplier=2)
# A loop that keeps all rules fails once in 10^9 runs.
FEW: dict[str, Any] = {"records": 1, "trials": 20, "draws": 40, "confidence": 1 - 1e-9}
Patch = pytest.MonkeyPatch


def _made(plan: hs.DPSGD = PLAN, model: Any = None, dataset: Any = None, **options: Any) -> Any:
    torch.manual_seed(0)
    trained = nn.Linear(3, 2) if model is None else model
    data = make_data(EXAMPLES) if dataset is None else dataset
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1, momentum=0.9)
    return make_private(trained, optimizer, data, plan, **options)


class Turned(Items):
    """Examples that are turned at random."""

    def __getitem__(self, place: int) -> Any:
        row, label = self.items[place]
        return row + torch.randn(3), label


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, {"clipping": Constant(0.3, per_layer=True), "arithmetic": "real"}),
        ({}, {"clipping": Quantile(1.0, bit_noise=5.0)}),
        ({}, {"clipping": Online(1.0), "arithmetic": "real"}),
        ({"adjacency": "zero-out"}, {}),
        ({"batch_cap": 12}, {}),
        ({"sampling": "with-replacement", "adjacency": "replace-one"}, {}),
        ({"sampling": "random-allocation"}, {}),
        ({"sampling": "full-batch", "batch_size": None}, {}),
        ({"clipping": "batch"}, {}),
        ({"schedule": hs.schedules.Values([1.0, 0.5] * 4)}, {}),
        pytest.param(
            {},
            {
                "dataset": Turned(make_data(EXAMPLES)),
                "model": nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2)),
            },
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
    private.step(LOSS)
    before = copy.deepcopy([private.model.state_dict(), private.optimizer.state_dict()])
    random = torch.get_rng_state()
    record(private, LOSS, **FEW)
    assert private.steps == 1
    assert str(before) == str([private.model.state_dict(), private.optimizer.state_dict()])
    assert torch.equal(random, torch.get_rng_state())
    wrong: tuple[dict[str, Any], ...] = ({}, {"loss_fn": LOSS, "train": _follows})
    for options in wrong:
        with pytest.raises(ParameterError, match=r"^loss_fn must be given"):
            record(private, **options)


# Faults in what is given.


def _follows(private: Any) -> None:
    for batch in private.loader:
        private.step(LOSS, batch)
        private.optimizer.param_groups[0]["lr"] *= 0.5 + private.not_private_loss / 10


def _stops(private: Any) -> None:
    for batch in private.loader:
        private.step(LOSS, batch)
        if not private.not_private_loss < 50:
            return


def _leaves_out(private: Any) -> None:
    for batch in private.loader:
        if len(batch):
            private.step(LOSS, batch)


@pytest.mark.parametrize(
    ("train", "rule"),
    [(_follows, Rule.STATE), (_stops, Rule.STEPS_DEPEND), (_leaves_out, Rule.FAILS)],
)
def test_a_program_that_looks_at_the_data_is_named(train: Any, rule: Rule) -> None:
    assert rule in record(_made(), train=train, **FEW).names


def test_batches_that_are_left_out_are_named_where_no_loader_refuses(monkeypatch: Patch) -> None:
    def drawn_again(self: Any, end: int) -> Any:
        while self.account.counted < end:
            self._pending = None
            yield self.next()

    monkeypatch.setattr(Loader, "batches", drawn_again)
    found = record(_made(), train=_leaves_out, **FEW)
    assert {Rule.STEPS_DEPEND, Rule.LEFT_OUT} <= set(found.names)


# Faults inside the loop, planted one by one.


def _whole_batches(patch: Patch) -> None:
    def whole(self: Any, places: list[int]) -> Any:
        rows = [self.dataset[place] for place in places]
        return self.collate(rows) if rows else ()

    patch.setattr(_OneByOne, "__getitems__", whole)


def _standardised(rows: list[Any]) -> Any:
    inputs = torch.stack([row[0] for row in rows])
    return inputs - inputs.mean(dim=0), torch.stack([row[1] for row in rows])


def _drawn_twice(patch: Patch) -> None:
    own = Sampler.draw
    patch.setattr(Sampler, "draw", lambda self, step: np.union1d(own(self, step), own(self, step)))


def _no_clipping(patch: Patch) -> None:
    def unclipped(gradients: Any, norm: float, *_: Any) -> Any:
        return {name: one.rows.sum(dim=0) * 2**22 / norm for name, one in gradients.items()}, {}

    patch.setattr(_loop, "clipped_sum", unclipped)


def _half_the_noise(patch: Patch) -> None:
    own = _loop.deviations
    patch.setattr(_loop, "deviations", lambda *given: (0.5 * own(*given)[0], own(*given)[1]))


_PART = TensorDataset(*(one[:20] for one in make_data(EXAMPLES).tensors))


@pytest.mark.parametrize(
    ("fault", "options", "rule"),
    [
        (_whole_batches, {"collate": _standardised}, Rule.MIXED),
        (lambda patch: None, {"not_private": 1}, Rule.REPEATS),
        (_drawn_twice, {}, Rule.RATE),
        (_no_clipping, {}, Rule.SENSITIVITY),
        (_half_the_noise, {}, Rule.TOO_SMALL),
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

    texts = Items([torch.arange(1.0, 4.0) + place for place in range(EXAMPLES)])
    assert record(_made(model=Zeros(), dataset=texts), torch.sum, **FEW).consistent
    _whole_batches(monkeypatch)
    private = _made(model=Zeros(), dataset=texts, collate=padded)
    found = record(private, torch.sum, canaries=[torch.ones(60)], **FEW)
    assert any("canary 0" in one.where for one in found.violations if one.name == Rule.MIXED)
    assert all("canary" in one.where for one in found.violations if one.name == Rule.MIXED)
