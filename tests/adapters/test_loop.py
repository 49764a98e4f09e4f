"""The parts of a private loop in numpy: nothing else is loaded, and one row moves a sum by C."""

from __future__ import annotations

import errno
import math
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler, noisy_sum
from hockeystick.errors import BudgetExhausted, ParameterError

UNIT = 2.0**-22


def _words(seed: int) -> Any:
    return np.random.Generator(np.random.Philox(seed)).bit_generator.random_raw


_NORMAL = np.random.default_rng(1).standard_normal(7)
# Long, short, tiny, hidden in rounding, infinite or undefined.
ROWS = np.array(
    [
        5 * _NORMAL,
        0.01 * _NORMAL,
        np.full(7, 1 / math.sqrt(7)),
        np.full(7, 1e-300),
        np.full(7, 1e200),
        np.full(7, 0.5 * UNIT),
        [1.0, *[0.5 * UNIT] * 6],
        np.full(7, math.nan),
        [math.inf, *[0.0] * 6],
    ]
)


def test_two_threads_count_no_more_steps_than_are_planned() -> None:
    """The journal waits, as a disk does, so that the other thread asks meanwhile."""

    class Slow:
        def add(self, _steps: int) -> None:
            time.sleep(0.05)

    account = Account(hs.DPSGD(noise_multiplier=1, examples=8, batch_size=4, steps=1))
    account._journal = Slow()  # type: ignore[assignment]

    def counted(_: int) -> bool:
        try:
            account.count()
        except BudgetExhausted:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(counted, range(2))) == [False, True]
    assert account.counted == 1


def test_a_state_that_is_loaded_beside_a_count_takes_nothing_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = Account(hs.DPSGD(noise_multiplier=1, examples=8, batch_size=4, steps=9))
    begun = threading.Event()

    def slow(*given: int) -> int:
        begun.set()
        time.sleep(0.02)
        return given[0]

    monkeypatch.setattr("hockeystick.adapters.loop.max", slow, raising=False)
    with ThreadPoolExecutor(1) as threads:
        loaded = threads.submit(account.load, account.state())
        begun.wait()
        account.count()
        loaded.result()
    assert account.counted == 1


@pytest.mark.parametrize("norm", [1e-24, 0.3, 1.0, 1e6])
@pytest.mark.parametrize("place", range(len(ROWS)))
def test_a_row_more_moves_the_integers_by_no_more_than_the_norm(place: int, norm: float) -> None:
    moved = noisy_sum(ROWS, norm=norm, noise_multiplier=0)
    moved -= noisy_sum(np.delete(ROWS, place, axis=0), norm=norm, noise_multiplier=0)
    # The sums are whole multiples of the unit but for one rounding of each.
    integers = np.rint(moved / (norm * UNIT))
    assert int(np.square(integers).sum()) <= 2**44


@pytest.mark.parametrize("length", [0.1, 0.999, 1.0, 3.0])
def test_a_sum_is_that_of_clipped_rows_to_the_grid(length: float) -> None:
    row = np.array([0.6, -0.8, 0.0]) * length
    found = noisy_sum([row] * 5, norm=1.0, noise_multiplier=0)
    assert found == pytest.approx(5 * row / max(1.0, length), abs=10 * UNIT)


def test_what_is_released_is_a_function_of_integer_sum_and_integer_noise_alone() -> None:
    rows = np.array([[0.25, -0.5]])
    noise = noisy_sum(np.zeros((0, 2)), norm=1.0, noise_multiplier=2.0, bits=_words(3))
    found = noisy_sum(rows, norm=1.0, noise_multiplier=2.0, bits=_words(3))
    assert (found - noise == rows[0]).all()
    assert (noise / UNIT == np.rint(noise / UNIT)).all()
    several = noisy_sum(np.zeros((0, 40_000)), norm=0.5, noise_multiplier=3.0, bits=_words(4)) / 1.5
    # A sum of n squares is within 6 sqrt(2 n) of n but in 2 of 10^9 runs.
    assert abs(float(np.square(several).sum()) - 40_000) < 6 * math.sqrt(80_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gradients", [["a"]]),
        ("gradients", [[1j]]),
        ("norm", 0.0),
        ("noise_multiplier", -1.0),
        ("noise_multiplier", 1e9),
    ],
)
def test_what_is_no_sum_is_refused_by_name(name: str, value: Any) -> None:
    usual: dict[str, Any] = {"gradients": [[1.0]], "norm": 1.0, "noise_multiplier": 1.0}
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        noisy_sum(**usual | {name: value})


def test_bad_arguments_of_an_account_and_a_sampler_are_named() -> None:
    plan = hs.DPSGD(examples=10, batch_size=5, steps=2, noise_multiplier=1, sampling="fixed-size")
    with pytest.raises(ParameterError, match=r"^arithmetic must be"):
        Account(plan, arithmetic="a\nb")
    with pytest.raises(ParameterError, match=r"^examples must be"):
        Sampler(plan, 11)


def test_a_loop_of_jax_learns_digits_within_its_budget() -> None:
    for needed, extra in (("jax", "jax"), ("sklearn", "examples")):
        if find_spec(needed) is None:
            pytest.skip(f"needs the extra {extra}")
    path = Path(__file__).parents[2] / "examples" / "train_jax.py"
    # In a process of its own: JAX has threads, which do not outlive the forks of other tests.
    ended = subprocess.run([sys.executable, path], check=True, capture_output=True, text=True)
    found = re.search(r"accuracy (\S+)% at \((\S+), 0.0001\)-DP", ended.stdout)
    assert found is not None
    assert float(found[1]) > 75
    assert found[2] == "3.000"


def test_a_nearly_full_disk_cuts_no_count_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that takes a part is gone on with; the rest of an epoch left out is many steps."""
    plan = hs.DPSGD(
        examples=30, batch_size=10, epochs=4, noise_multiplier=1, sampling="random-allocation"
    )
    path, write, room = tmp_path / "run.journal", os.write, [10**6]

    def short(descriptor: int, text: bytes) -> int:
        if room[0] == 0:
            raise OSError(errno.ENOSPC, "no space left")
        room[0] -= min(room[0], 1)
        return write(descriptor, text[:1])

    monkeypatch.setattr("hockeystick.release.counting.os.write", short)
    account = Account(plan, journal=path)
    for _ in range(4):
        account.count()
    account.close()
    again = Account(plan, journal=path)
    assert again.counted == 6
    assert path.read_bytes().endswith(b"\n......")
    again.count()
    again.close()
    room[0] = 1
    with pytest.raises(OSError, match="no space left"):
        Account(plan, journal=path)
