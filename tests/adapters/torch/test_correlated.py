"""A loop with correlated noise: whose turn it is, what is released, and that no noise is reused."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import hockeystick as hs
from hockeystick.adapters.torch import make_correlated
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from tests.adapters.torch.loops import LOSS, Items, make_data

EXAMPLES = 24
BLT = hs.mechanisms.Encoder.buffered_toeplitz(
    [0.25, 0.25], [0.5, 0.875], 12, participations=4, separation=3
)
FACTORIZED = hs.mechanisms.MatrixFactorization(2.0, BLT)
CYCLIC = hs.mechanisms.CyclicPoisson(
    2.0, (1.0, 0.5, 0.25), rounds=12, cycle=3, rate=0.5, adjacency="zero-out"
)
each_plan = pytest.mark.parametrize("plan", [FACTORIZED, CYCLIC], ids=["factorized", "cyclic"])


class Tracked(Items):
    """Examples that note when they are asked for."""

    def __init__(self, examples: int = EXAMPLES) -> None:
        super().__init__(make_data(examples))
        self.asked: list[int] = []

    def __getitem__(self, place: int) -> Any:
        self.asked.append(place)
        return self.items[place]


class Moves(torch.optim.SGD):  # type: ignore[misc]  # torch may have no types
    """An optimizer that keeps the gradients that it was given."""

    def __init__(self, model: Any) -> None:
        super().__init__(model.parameters(), lr=0.1)
        self.released: list[Any] = []

    def step(self, closure: Any = None) -> Any:
        parts = [one.grad.reshape(-1) for group in self.param_groups for one in group["params"]]
        self.released.append(torch.cat(parts).double())
        return super().step(closure)


def loop(plan: Any, dataset: Any = None, **options: Any) -> Any:
    """Return a loop on a small model that always begins alike."""
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 2)
    data = Tracked() if dataset is None else dataset
    return make_correlated(model, Moves(model), data, plan, **{"batch_size": 8.0, **options})


def done(private: Any, steps: int | None = None) -> Any:
    """Do steps, all that are left unless told, and return what was released."""
    for _ in range(private.left if steps is None else steps):
        private.step(LOSS)
    return torch.stack(private.optimizer.released)


def test_each_group_is_used_whole_in_its_rounds() -> None:
    data = Tracked()
    private = loop(FACTORIZED, data)
    for step in range(12):
        data.asked.clear()
        private.step(LOSS)
        assert data.asked == list(range(step % 3, EXAMPLES, 3))


def test_samples_are_of_the_group_whose_turn_it_is_at_the_rate() -> None:
    data = Tracked(3000)
    private = loop(CYCLIC, data, groups=np.arange(3000) // 1000)
    for step in range(12):
        data.asked.clear()
        private.step(LOSS)
        assert {place // 1000 for place in data.asked} == {step % 3}
        assert 420 < len(data.asked) < 580


@each_plan
def test_noise_is_what_the_encoder_turns_into_independent_noise(plan: Any) -> None:
    torch.manual_seed(1)
    model = torch.nn.Linear(400, 30)
    data = torch.utils.data.TensorDataset(torch.zeros(6, 400), torch.zeros(6, dtype=torch.long))
    private = make_correlated(model, Moves(model), data, plan, batch_size=5.0, clipping=0.5)
    while private.left:
        private.step(lambda output, target: 0.0 * output.sum())
    released = 5.0 * torch.stack(private.optimizer.released).numpy()
    if plan is FACTORIZED:
        assert BLT.strategy is not None
        diagonals = [float(one) for one in BLT.strategy.diagonals(12)]
    else:
        diagonals = [*CYCLIC.coefficients, *[0.0] * 9]
    matrix = np.array([[diagonals[i - j] * (i >= j) for j in range(12)] for i in range(12)])
    fresh = matrix @ released
    # 2.0 * 0.5; a covariance of 12,030 numbers errs by a hundredth.
    covariance = fresh @ fresh.T / fresh.shape[1]
    assert np.abs(covariance - np.eye(12)).max() < 0.06
    assert np.abs(released @ released.T / fresh.shape[1] - np.eye(12)).max() > 0.2


@each_plan
def test_the_account_is_the_plans_and_that_of_its_first_rounds(plan: Any) -> None:
    private = loop(plan)
    assert float(private.spent(1e-5)) == 0.0
    done(private, 5)
    part = private.spent(1e-5)
    done(private)
    whole = private.spent(1e-5)
    assert 0 < part.upper < whole.upper == hs.epsilon(plan, 1e-5).upper
    with pytest.raises(IncompatibleError, match="not replayed"):
        hs.audit.record(private, LOSS)
    assert whole.accountant.endswith("in real arithmetic")
    assert "floating point" in whole.assumptions[-1]
    assert (whole.adjacency is None) is any("replaced is not" in one for one in whole.assumptions)
    with pytest.raises(BudgetExhausted, match="the 12 that are planned"):
        private.step(LOSS)


def _row(private: Any) -> Any:
    params = dict(private.model.named_parameters())
    noisy = private._arithmetic.noise(None, 4, params)
    return torch.cat([noisy(n, torch.zeros_like(p), 1.0).flatten() for n, p in params.items()])


@each_plan
@pytest.mark.parametrize("seed", [11, None])
def test_another_process_goes_on_with_the_same_noise(
    plan: Any, seed: int | None, tmp_path: Path
) -> None:
    first = loop(plan, not_private=seed, journal=tmp_path / "journal")
    done(first, 4)
    state, weights = first.state_dict(), first.model.state_dict()
    first.close()
    again = loop(plan, not_private=seed, journal=tmp_path / "journal")
    assert again.steps == 4
    with pytest.raises(IncompatibleError, match="load the state"):
        again.step(LOSS)
    again.model.load_state_dict(weights)
    again.load_state_dict(state)
    if seed is None:
        assert torch.equal(_row(first), _row(again))
    else:
        whole = done(loop(plan, not_private=seed))
        assert torch.allclose(done(again), whole[4:], rtol=1e-9, atol=1e-12)
        assert again.spent(1e-5).upper == math.inf


def test_an_older_state_is_refused(tmp_path: Path) -> None:
    private = loop(FACTORIZED, journal=tmp_path / "journal")
    done(private, 3)
    state, weights = private.state_dict(), copy.deepcopy(private.model.state_dict())
    done(private, 1)
    later = private
    for _ in range(2):
        later.model.load_state_dict(weights)
        with pytest.raises(ParameterError, match=r"steps must be 4.*past noise"):
            later.load_state_dict(state)
        later.close()
        later = loop(FACTORIZED, journal=tmp_path / "journal")
    with pytest.raises(IncompatibleError, match="load the state"):
        later.step(LOSS)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"norm": 2.0}, "norm"),
        ({"account": {}}, "state"),
        ({"key": "secret"}, "key"),
        ({"weights": "others"}, "state"),
        ({"more": 1}, "state"),
    ],
)
def test_what_is_no_state_of_this_run_is_refused(change: dict[str, Any], name: str) -> None:
    private = loop(CYCLIC)
    done(private, 2)
    with pytest.raises(ParameterError) as caught:
        private.load_state_dict({**private.state_dict(), **change})
    assert caught.value.name == name
    done(private, 1)


def test_a_step_that_fails_after_its_noise_ends_the_loop() -> None:
    private = loop(FACTORIZED)
    done(private, 2)
    state = private.state_dict()

    def broken(closure: Any = None) -> None:
        raise RuntimeError("no step")

    private.optimizer.step = broken
    with pytest.raises(RuntimeError, match="no step"):
        private.step(LOSS)
    del private.optimizer.step
    assert private.steps == 3
    with pytest.raises(IncompatibleError, match="ended by an error"):
        private.step(LOSS)
    with pytest.raises(IncompatibleError, match="ended by an error"):
        private.state_dict()
    with pytest.raises(ParameterError, match="steps must be 3"):
        private.load_state_dict(state)


def test_what_the_first_step_trained_is_trained_to_the_end() -> None:
    private = loop(FACTORIZED)
    done(private, 1)
    private.model.bias.requires_grad_(False)
    with pytest.raises(ParameterError, match="other trained parameters"):
        private.step(LOSS)
    encoder = hs.mechanisms.Encoder.square_root(12, participations=3, separation=3)
    with pytest.raises(IncompatibleError, match="takes part in 4 of 12 rounds"):
        loop(hs.mechanisms.MatrixFactorization(2.0, encoder))


NO_STRATEGY = hs.mechanisms.Encoder.of_matrix([[1.0, 0.0], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("name", "plan", "options"),
    [
        ("plan", hs.DPSGD(noise_multiplier=1, rate=0.1, steps=3), {}),
        ("noise_multiplier", hs.mechanisms.CyclicPoisson(math.inf, (1,), 6, 2, 0.5), {}),
        ("encoder", hs.mechanisms.MatrixFactorization(1.0, NO_STRATEGY), {}),
        ("encoder", hs.mechanisms.CyclicPoisson(1.0, (0.0, 1.0), 6, 2, 0.5, "zero-out"), {}),
        ("groups", hs.mechanisms.CyclicPoisson(1.0, (1.0, 0.5), 6, 2, 0.5), {}),
        ("batch_size", CYCLIC, {"batch_size": 0.0}),
        ("groups", CYCLIC, {"groups": [0] * 23}),
        ("groups", CYCLIC, {"groups": [3] * 24}),
        ("groups", CYCLIC, {"groups": [0.5] * 24}),
    ],
)
def test_a_value_outside_its_domain_is_refused_by_name(
    name: str, plan: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(ParameterError) as caught:
        loop(plan, **options)
    assert caught.value.name == name
