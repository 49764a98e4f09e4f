"""What holds around a private step: who lets the optimizer step, and whose randomness is used."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from hockeystick.adapters.loop._random import numbers
from hockeystick.adapters.torch._random import keyed
from hockeystick.errors import IncompatibleError

_STEPPING: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
_SEEDS: Final = 2**63


def guarded(optimizer: Any) -> Any:
    """Return the handle of a hook that refuses each step of an optimizer outside ``stepping``."""
    return optimizer.register_step_pre_hook(_refuse_open_step)


@contextmanager
def stepping(optimizer: Any) -> Iterator[None]:
    """Let an optimizer step."""
    _STEPPING.add(optimizer)
    try:
        yield
    finally:
        _STEPPING.discard(optimizer)


def _refuse_open_step(optimizer: Any, arguments: Any, options: Any) -> None:
    """Raise where an optimizer steps by gradients that nobody clipped, noised and counted."""
    if optimizer not in _STEPPING:
        raise IncompatibleError(
            "the optimizer of a private loop steps by private.step alone: this step would use "
            "gradients without clipping and noise, and not be counted; close the loop first"
        )


def check_precision(device: Any) -> None:
    """Raise where autocast would compute clipped sums in 16 bits."""
    if any(torch.is_autocast_enabled(kind) for kind in {"cpu", device.type}):
        raise IncompatibleError(
            "private.step runs outside autocast: norms and clipped sums in 16 bits are not within "
            "the clipping norm; use autocast inside the model's forward"
        )


@contextmanager
def secret_randomness(seed: int | None, step: int, device: Any) -> Iterator[None]:
    """Draw what the model draws, as dropout does, from a generator that is keyed for this step.

    A generator whose seed is known gives each example a mask that the others' number decides, so
    that one example more would move the gradients of all.
    """
    source = numbers(seed, "model", step)
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []), keyed(source):
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(int(source.integers(_SEEDS)))
        yield
