"""In exact arithmetic what is released is a function of an integer sum and integer noise alone."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import numpy as np
import torch

import hockeystick as hs
from hockeystick.adapters.loop import Sampler, bits, numbers
from hockeystick.adapters.torch import Constant, Online, Quantile, _noise
from hockeystick.adapters.torch._factors import Rows
from hockeystick.adapters.torch._noise import Exact, all_keyed, keyed, normals
from hockeystick.errors import ParameterError
from hockeystick.release.samplers import rounded_gaussian
from tests.adapters.torch.loops import DEVICE, clipped, make_private

UNITS = 2**22
EXAMPLES = 8
FULL = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=4, noise_multiplier=1)


def _loop(rows: Any, plan: hs.DPSGD = FULL, **options: Any) -> Any:
    model = torch.nn.Linear(rows.shape[1], 1, bias=False).to(DEVICE, rows.dtype)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    dataset = torch.utils.data.TensorDataset(rows)
    return make_private(model, optimizer, dataset, plan, **options)


def _seeded(rows: Any, plan: hs.DPSGD = FULL, **options: Any) -> Any:
    return _loop(rows, plan, not_private=5, **options)


def _trained(private: Any, steps: int = 1) -> Any:
    for batch in private.loader:
        private.step(torch.sum, batch)
        if private.steps == steps:
            break
    return private.model.weight.detach().flatten().cpu().double()


def _integers(gradients: dict[str, Any], norm: float, *, layers: bool = False) -> list[Any]:
    clip = Constant(1.0, per_layer=layers)
    alone = [{name: one[n : n + 1].to(DEVICE) for name, one in gradients.items()} for n in range(2)]
    found = [clipped(one, norm, Exact(), clip)[0] for one in alone]
    return [np.concatenate([one.cpu().numpy().ravel() for one in part.values()]) for part in found]


def _square(integers: Any) -> int:
    whole = integers.astype(np.int64)
    assert np.array_equal(whole, integers)
    blocks = range(0, len(whole), 1 << 16)
    # 2^16 squares of at most 2^22 each are within 64 bits.
    assert np.abs(whole).max(initial=0) <= UNITS
    return sum(int(np.square(whole[start : start + (1 << 16)]).sum()) for start in blocks)


def _any_floats(entries: int, dtype: Any) -> Any:
    """Return two rows of any bits at all, among them what is infinite, undefined or denormal."""
    generator = torch.Generator().manual_seed(entries)
    whole = torch.int32 if dtype is torch.float32 else torch.int64
    least, most = torch.iinfo(whole).min, torch.iinfo(whole).max
    return torch.randint(least, most, (2, entries), generator=generator, dtype=whole).view(dtype)


def _flat(value: float) -> Callable[[int, Any], Any]:
    return lambda entries, dtype: torch.full((2, entries), value, dtype=dtype)


def _near(entries: int, dtype: Any) -> Any:
    one = torch.full((entries,), (round(UNITS / math.sqrt(entries)) + 0.5) / UNITS, dtype=dtype)
    return torch.stack([one.nextafter(one + 1), one.nextafter(one - 1)])


def _one_large(entries: int, dtype: Any) -> Any:
    """Return rows of one number that hides all the others, and of one that nearly does."""
    rows = torch.full((2, entries), 1e-7, dtype=dtype)
    rows[0, 0], rows[1, -1] = 1e8, 1.0
    return rows


ROWS = {
    "any": _any_floats,
    "huge": _flat(1e38),
    "half": _flat(0.5 / UNITS),
    "near": _near,
    "one large": _one_large,
}


@pytest.mark.parametrize("entries", [1, 2, 1000, 70_001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
@pytest.mark.parametrize("rows", ROWS)
def test_no_gradient_becomes_integers_beyond_the_clipping_norm(
    rows: str, dtype: Any, entries: int
) -> None:
    for norm in (1e-24, 1e-10, 1.0, 1e8):
        gradient = ROWS[rows](entries, dtype) * (norm if rows in ("near", "half") else 1.0)
        for one in _integers({"w": gradient}, norm):
            assert _square(one) <= UNITS**2


@pytest.mark.parametrize("rows", ["any", "near"])
def test_layers_that_are_clipped_one_by_one_are_within_the_norm_together(rows: str) -> None:
    sizes = ("a.w", 3), ("b.w", 9)
    gradients = {name: ROWS[rows](entries, torch.float32) for name, entries in sizes}
    gradients["c.w"] = ROWS[rows](1001, torch.float32)
    for one in _integers(gradients, 1.0, layers=True):
        assert _square(one) <= UNITS**2


@pytest.mark.parametrize("told", [0.0, 0.5, 0.999, 0.99999, 1e-30, math.nan, math.inf])
def test_the_limit_is_kept_where_lengths_are_wrong(told: float) -> None:
    rows = torch.randn(2, 500, dtype=torch.float64, device=DEVICE)
    lengths = rows.norm(dim=1) * told
    each = torch.eye(2, dtype=torch.float64, device=DEVICE)
    (found,) = Exact().sums([Rows(rows)], lengths, 1.0, 1, each)
    for one in found:
        square = _square(one.cpu().numpy())
        assert square <= UNITS**2
        # What is a little too long is made shorter, not left out.
        assert (square > 0.98 * UNITS**2) is (0.99 < told < 1)


def test_one_beyond_the_limit_is_too_much() -> None:
    rows = torch.tensor([[UNITS, 1.0], [UNITS, 0.0]], device=DEVICE)
    each = torch.eye(2, dtype=torch.float64, device=DEVICE)
    # Lengths of 1 are wrong, so that both are left as they are.
    (found,) = Exact().sums([Rows(rows)], torch.ones(2, device=DEVICE).double(), UNITS, 1, each)
    assert 0.98 * UNITS**2 < _square(found[0].cpu().numpy()) < UNITS**2
    assert found[1].tolist() == [UNITS, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
def test_an_accelerator_adds_the_very_integers_that_a_cpu_adds(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_noise, "_BLOCK", 1000)
    rows = torch.randn(7, 1300, generator=torch.Generator().manual_seed(2)).to(dtype)
    scales = torch.linspace(0, 1, 7, dtype=torch.float64) * UNITS / 40
    weights = torch.eye(2, 7, dtype=torch.float64).fliplr()
    sums = torch.zeros(2, 1300, dtype=torch.float64)
    squares = torch.zeros(7, 1, dtype=torch.float64)
    _noise._add_rounded(rows, scales, weights, sums, squares)
    (found,), lengths = _noise._rounded([rows], scales, weights)
    assert torch.equal(found, sums)
    assert torch.equal(lengths, squares.flatten())
    assert sums.any(dim=1).all()


# What is released.


def _rows(seed: int) -> Any:
    """Return rows whose lengths are within 1, on a grid that is finer than that of the sums."""
    generator = torch.Generator().manual_seed(seed)
    fine = torch.randint(-(2**20), 2**20, (EXAMPLES, 4), generator=generator)
    return fine.double() / 2**21 * 0.5


def test_the_release_is_the_integer_sum_plus_the_integer_noise() -> None:
    rows = _rows(1)
    weights = _trained(_seeded(rows))
    noise = rounded_gaussian(float(UNITS), 4, bits=bits(5, "noise", 0))
    for place, weight in enumerate(weights.tolist()):
        total = sum(round(Fraction(one) * UNITS) for one in rows[:, place].tolist())
        assert Fraction(weight) == -Fraction(total + int(noise[place]), UNITS * EXAMPLES)


@pytest.mark.parametrize("clipping", [0.3, Quantile(0.3, bit_noise=2.0), Online(0.3)])
def test_microbatches_change_nothing(clipping: Any) -> None:
    rows = torch.randn(EXAMPLES, 30, generator=torch.Generator().manual_seed(1))
    found = [
        _trained(_seeded(rows, clipping=clipping, microbatch=size), 4) for size in (None, 1, 3)
    ]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize("noise_multiplier", [0.1, 1.1, 0.7, 3.3, 1e-3, 4e6])
def test_the_noise_is_at_least_that_of_the_plan_however_it_is_read(noise_multiplier: float) -> None:
    deviation = Fraction(Exact().deviation(noise_multiplier, UNITS))
    readings = Fraction(noise_multiplier), Fraction(repr(noise_multiplier))
    assert deviation >= max(readings) * UNITS
    assert deviation <= max(readings) * UNITS * Fraction(1 + 2.0**-50)


@pytest.mark.parametrize("clipping", [1.0, Online(1.0)], ids=["constant", "online"])
def test_noise_beyond_64_bits_is_refused_at_the_start(clipping: Any) -> None:
    plan = hs.DPSGD(examples=8, sampling="full-batch", steps=4, noise_multiplier=5e6)
    with pytest.raises(ParameterError, match=r"at most 2\^22 .* arithmetic='real'"):
        _loop(torch.zeros(8, 1), plan, clipping=clipping)
    assert _loop(torch.zeros(8, 1), plan, clipping=clipping, arithmetic="real").steps == 0


def test_the_quantiles_bits_are_counted_in_halves_and_paid_for_by_the_gradients() -> None:
    # All are longer than the norm: 8 times -1/2, and noise with a standard deviation of 1/2.
    clip = Quantile(1e-3, quantile=0.5, rate=1.0, bit_noise=0.6)
    private = _seeded(torch.zeros(EXAMPLES, 2).double() + 1, clipping=clip)
    source = bits(5, "noise", 0)
    deviation = hs.calibration.clipping_noise(1.0, 0.6) * UNITS
    drawn = torch.from_numpy(rounded_gaussian(deviation, 2, bits=source)) * 1e-3 / UNITS
    (noise,) = rounded_gaussian(1.2, 1, bits=source).tolist()
    weights = _trained(private)
    clipped = EXAMPLES * 1e-3 / math.sqrt(2)
    assert (-weights * EXAMPLES - clipped).tolist() == pytest.approx(drawn.tolist(), abs=1e-7)
    share = (noise - EXAMPLES) / 2 / EXAMPLES + 0.5
    assert private.clipping_norm == pytest.approx(1e-3 * math.exp(0.5 - share), rel=1e-12)


def test_the_online_rules_directions_are_the_clipped_integers() -> None:
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.5], [0.0, -200.0]], device=DEVICE)
    gradients = {"w": rows.double()}
    sums, directions = clipped(gradients, 1.0, Exact(), Online(1.0))
    assert (sums["w"] / UNITS).tolist() == pytest.approx([0.6, 0.3], abs=1e-5)
    assert (directions["w"] / UNITS).tolist() == pytest.approx([0.6, -0.2], abs=1e-5)


def test_each_example_is_included_by_a_coin_of_the_plans_very_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []

    def coin(rate: Any, size: int, *, bits: Any) -> Any:
        told.append(rate)
        return np.zeros(size, dtype=np.bool_)

    monkeypatch.setattr("hockeystick.adapters.loop.bernoulli", coin)
    schedule = hs.schedules.Values([0.1, 1.0])
    for fields in (
        {"batch_size": 7, "steps": 1},
        {"rate": 0.1, "steps": 1},
        {"rate": 0.3, "steps": 2, "batch_schedule": schedule},
    ):
        plan = hs.DPSGD(examples=49, noise_multiplier=1, **fields)
        for step in range(plan.total_steps):
            Sampler(plan, 49, None).draw(step)
    assert told == [Fraction(1, 7), Fraction(1, 10), Fraction(3, 100), Fraction(3, 10)]


# A generator that fails.


def _broken(count: int) -> bytes:
    raise OSError("no random bits")


def test_without_random_bits_for_noise_a_step_counts_and_releases_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    private = _loop(torch.ones(EXAMPLES, 3), journal=tmp_path / "run.journal")
    batch = next(iter(private.loader))
    with monkeypatch.context() as patched:
        patched.setattr("hockeystick.release.samplers.bits.os.urandom", _broken)
        patched.setattr("hockeystick.adapters.loop.secrets.token_bytes", bytes)
        with pytest.raises(OSError, match="no random bits"):
            private.step(torch.sum, batch)
    assert private.steps == 1
    assert (tmp_path / "run.journal").read_bytes().endswith(b"\n.")
    assert private.model.weight.grad is None
    assert not private.model.weight.any()
    assert bool(_trained(private, 2).all())
    assert private.steps == 2


def test_floats_are_said_to_be_floats() -> None:
    exact, alone, real = (
        _loop(torch.zeros(EXAMPLES, 1), **options)
        for options in ({}, {"microbatch": 1}, {"arithmetic": "real"})
    )
    for private in (exact, alone, real):
        _trained(private, 4)
    assert alone.spent(1e-5) == hs.epsilon(FULL, 1e-5)
    assert real.spent(1e-5).upper == exact.spent(1e-5).upper == alone.spent(1e-5).upper
    assert "real arithmetic" in real.spent(1e-5).assumptions[-1]
    assert "whichever examples share its microbatch" in exact.spent(1e-5).assumptions[-1]
    with pytest.raises(ParameterError, match="arithmetic must be one of 'exact', 'real'"):
        _loop(torch.zeros(EXAMPLES, 1), arithmetic="floats")


# What is drawn, by which secrets.


def test_the_noise_is_in_double_precision() -> None:
    # Numbers that were drawn in single precision would all survive the way there and back.
    found = normals(None, 0, DEVICE)((1000,))
    assert not torch.equal(found, found.float().double())


def test_each_bit_of_the_secret_key_changes_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    # torch's own generators on a CPU know 32 bits of a seed, which can all be tried.
    keys = [0, *(1 << bit for bit in range(128))]
    asked: list[int] = []

    def token(size: int) -> bytes:
        asked.append(size)
        return keys[len(asked) - 1].to_bytes(size, "big")

    monkeypatch.setattr("hockeystick.adapters.loop.secrets.token_bytes", token)
    drawn = {numbers(None, "noise", 0).random() for _ in keys}
    assert asked == [16] * 129
    assert len(drawn) == 129


def test_each_step_and_purpose_has_a_secret_of_its_own() -> None:
    keys = product((1, 1 + 2**32), ("noise", "batch"), (0, 1))
    assert len({numbers(*key).random() for key in keys}) == 8
    assert numbers(7, "noise", 3).random() == numbers(7, "noise", 3).random()


def test_what_models_draw_is_not_decided_by_the_32_bits_that_torch_uses_of_a_seed() -> None:
    with keyed(numbers(None, "model", 0)):
        found = torch.default_generator.get_state()
    words = found[24 : 24 + 8 * 624].view(torch.int64)
    assert 0 <= int(words.min()) <= int(words.max()) < 2**32
    assert len(set(words.tolist())) > 620
    # The only seed that could lead there is the first word.
    of_seed = torch.Generator().manual_seed(int(words[0])).get_state()
    assert not torch.equal(of_seed[24 : 24 + 8 * 624].view(torch.int64), words)


def test_what_users_code_draws_is_keyed_and_leaves_their_generators_as_they_were() -> None:
    def drawn() -> tuple[float, ...]:
        return float(torch.rand(())), np.random.random(), random.random()  # noqa: NPY002

    def seeded() -> None:
        torch.manual_seed(3)
        np.random.seed(3)  # noqa: NPY002
        random.seed(3)

    seeded()
    usual, found = drawn(), list[tuple[float, ...]]()
    for key in (None, None, 1, 2, 1):
        seeded()
        with all_keyed(numbers(key, "examples", 0)):
            found.append(drawn())
        assert drawn() == usual
    assert all(len({one[kind] for one in found}) == 4 for kind in range(3))
    assert found[2] == found[4]
