"""The noise is normal, in double precision, and keyed by all the bits of a key."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from hockeystick.adapters.loop import bits, numbers
from hockeystick.adapters.torch._noise import all_keyed, keyed, normals
from hockeystick.release.samplers import secret_bits

# The same tests run on a GPU where there is one.
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# A test of the right distribution fails in one of 10^6 runs.
_LEVEL = 1e-6
_MANY = 400_000


def _drawn(seed: int | None, step: int = 0, shape: Any = (_MANY,)) -> Any:
    return normals(seed, step, DEVICE)(shape)


def test_the_noise_is_standard_normal() -> None:
    from scipy.stats import kstest

    assert float(kstest(_drawn(None).cpu().numpy(), "norm").pvalue) > _LEVEL


def test_the_noise_has_the_tails_of_a_normal_number() -> None:
    from scipy.stats import binom, norm

    far = int((_drawn(None).abs() > 4).sum())
    share = 2 * norm.sf(4)
    assert min(binom.cdf(far, _MANY, share), binom.sf(far - 1, _MANY, share)) > _LEVEL


def test_coordinates_and_steps_are_uncorrelated() -> None:
    first, second = _drawn(5, 0), _drawn(5, 1)
    for one, other in ((first, second), (first[1:], first[:-1])):
        # A sum of n products has the variance n: 6 standard deviations are one of 10^8 runs.
        assert abs(float((one * other).sum())) < 6 * _MANY**0.5


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_the_noise_is_of_double_precision_on_the_devices_of_the_gradients(shape: Any) -> None:
    found = _drawn(None, shape=torch.Size(shape))
    assert found.shape == shape
    assert found.dtype == torch.float64
    assert found.device.type == DEVICE.type
    # Numbers that were drawn in single precision would all survive the way there and back.
    assert not torch.equal(_drawn(1), _drawn(1).float().double())


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
    assert len({numbers(None, "noise", 0).random() for _ in range(50)}) == 50
    told = {
        numbers(seed, purpose, index).random()
        for seed in (1, 1 + 2**32)
        for purpose in ("noise", "batch")
        for index in (0, 1)
    }
    assert len(told) == 8
    assert numbers(7, "noise", 3).random() == numbers(7, "noise", 3).random()


def test_words_are_the_operating_systems_or_replayed_from_a_seed() -> None:
    assert bits(None, "noise", 0) is secret_bits
    first, again, other = (bits(7, "noise", step)(1000) for step in (3, 3, 4))
    assert first.dtype == "uint64"
    assert (first == again).all()
    assert not (first == other).any()
    # Of 1000 fair words some have their highest bit set, and some have not.
    assert 0 < int((first >> 63).sum()) < 1000


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
