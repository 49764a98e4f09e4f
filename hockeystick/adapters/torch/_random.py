"""Random numbers of torch, keyed for each step, and rows of noise that is correlated."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import torch

from hockeystick.adapters.loop._random import numbers
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import Encoder
from hockeystick.release import CorrelatedNoise

if TYPE_CHECKING:
    from numpy.random import Generator

_TORCH_SEEDS: Final = 2**63
# Where in the state of torch's generator on a CPU the 624 words of the Mersenne twister are.
_WORDS: Final = slice(24, 24 + 8 * 624)
_WORD: Final = 2**32
_KEY_BITS: Final = 128


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
                torch.cuda.manual_seed(int(source.integers(_TORCH_SEEDS)))
        yield


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


@final
class Rows:
    """The rows of ``C^-1 Z`` for each parameter, computed again from a key after a restart.

    Past noise is secret state: whoever goes on from an older state with new noise releases two sums
    with the same past noise, which no account covers. So rows go on only where all rows before are
    known: from the first step, or from the state after the last one that was counted.
    """

    __slots__ = ("_at", "_encoder", "_noise", "key")

    def __init__(self, encoder: Encoder, seed: int | None) -> None:
        CorrelatedNoise(encoder)  # which refuses encoders without a strategy
        self._encoder, self._noise = encoder, dict[str, CorrelatedNoise]()
        self._at = 0  # the steps that have come to their end, with noise that is known
        self.key = secrets.randbits(_KEY_BITS) if seed is None else seed

    def check(self, steps: int, params: Any = None) -> None:
        """Raise unless the rows go on after some steps, for these parameters."""
        if self._at != steps:
            raise IncompatibleError(
                "this loop was ended by an error, or its journal has steps whose noise is not "
                "known here: load the state that was saved after the last of them"
            )
        if params is not None and self._noise and set(self._noise) != set(params):
            allowed = "the module whose parameters the first step trained: noise goes on with each"
            raise ParameterError("model", "other trained parameters", allowed)

    def next(self, step: int, params: dict[str, Any], deviation: float) -> dict[str, Any]:
        """Return the row of a step, the next one."""
        drawn = normals(self.key, step, next(iter(params.values())).device)
        self._noise = self._noise or {name: CorrelatedNoise(self._encoder) for name in params}
        return {
            name: self._noise[name].next(drawn(value.shape).mul_(deviation))
            for name, value in params.items()
        }

    def done(self, steps: int) -> None:
        """Note that so many steps have come to their end."""
        self._at = steps

    def load(self, key: object, steps: int, params: dict[str, Any], deviation: float) -> None:
        """Go on after some steps with the noise of a key; or raise, and change nothing."""
        if type(key) is not int or not 0 <= key < 2**_KEY_BITS:
            raise ParameterError("key", type(key).__name__, "what state_dict returned")
        self.key, self._noise = key, {}
        for step in range(steps):
            self.next(step, params, deviation)
        self._at = steps
