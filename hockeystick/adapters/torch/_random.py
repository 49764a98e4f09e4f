"""Normal numbers of torch, keyed for each step, and a key for what users' code draws."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from hockeystick.adapters.loop._random import numbers

if TYPE_CHECKING:
    from numpy.random import Generator

_TORCH_SEEDS: Final = 2**63
# Where in the state of torch's generator on a CPU the 624 words of the Mersenne twister are.
_WORDS: Final = slice(24, 24 + 8 * 624)
_WORD: Final = 2**32


@contextmanager
def keyed(source: Generator) -> Iterator[None]:
    """Have all that draws from torch by itself, on a CPU, draw by a key of a source.

    A seed would not do: of it a CPU uses 32 bits, and who sees what is released could try all of
    them. What others draw afterwards is as if nothing had been drawn here.
    """
    with torch.random.fork_rng(devices=[]):
        state = torch.default_generator.manual_seed(0).get_state()
        words = source.integers(_WORD, size=624, dtype=np.int64)
        state[_WORDS].view(torch.int64).copy_(torch.from_numpy(words))
        torch.default_generator.set_state(state)
        yield


@contextmanager
def all_keyed(source: Generator) -> Iterator[None]:
    """Do so with all that draws from numpy or Python by itself as well, which takes longer."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002 - users' code draws from it
    try:
        random.seed(source.bytes(32))
        np.random.seed(source.integers(_WORD, size=8))  # noqa: NPY002 - users' code draws from it
        with keyed(source):
            yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002 - users' code draws from it


def normals(seed: int | None, step: int, device: Any) -> Callable[[Any], Any]:
    """Return what draws a step's standard normal numbers of a shape, where its gradients are.

    Single precision would cut the tails off: its uniform numbers know nothing below 2^-24.
    """
    source = numbers(seed, "noise", step)
    if device.type == "cpu":
        return lambda shape: torch.as_tensor(source.standard_normal(shape), dtype=torch.float64)
    there = torch.Generator(device=device)
    there.manual_seed(int(source.integers(_TORCH_SEEDS)))  # all of which it uses, unlike a CPU's
    return lambda shape: torch.randn(shape, generator=there, dtype=torch.float64, device=device)
