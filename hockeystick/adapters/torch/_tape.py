"""What a loop releases while it is replayed: noted, and exchanged for what it is to go on with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, final

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils import _pytree as trees

from hockeystick.audit.recording import Run, Step

Parts = Sequence[tuple[str, Any, float]]
Noting = Callable[[Any, dict[str, Any], dict[str, Any]], None]
_CURRENT: Final[ContextVar[Noting | None]] = ContextVar("noting", default=None)


class Full(BaseException):
    """As many steps as were asked for are done; no error, so that no loop handles it as one."""


@final
class Tape:
    """The releases of one replay.

    Args:
        length: After how many releases the next one ends the replay.
        frozen: What the loop goes on with, in units of the claims; None for what it released.
        noise: The plan's noise multiplier of a step.
    """

    __slots__ = ("_frozen", "_length", "_noise", "blocks", "counted", "given", "inside", "steps")

    def __init__(
        self, length: int, frozen: Sequence[Any] | None, noise: Callable[[int], float]
    ) -> None:
        self._length, self._frozen, self._noise = length, frozen, noise
        self.steps: list[Step] = []
        self.blocks: tuple[tuple[str, int], ...] = ()
        self.given = 0
        self.counted: int | None = None
        self.inside = False

    def pass_on(self, parts: Parts, before: str) -> None:
        """Note a release, made of named tensors with their units, and exchange it in place."""
        place = len(self.steps)
        if place >= self._length:
            raise Full
        flat = [value.detach().double().cpu().numpy().ravel() / unit for _, value, unit in parts]
        released = np.concatenate(flat) if flat else np.zeros(0)
        blocks = tuple((name, value.numel()) for name, value, _ in parts)
        self.blocks = self.blocks or blocks
        self.steps.append(Step(released, self._noise(place), before))
        if self._frozen is None or place >= len(self._frozen):
            return
        kept = np.asarray(self._frozen[place])
        if kept.shape == released.shape:
            _exchange(parts, kept)

    def run(self, after: str, *, known: bool = True) -> Run:
        """Return what was noted, and how many batches were given where that is known."""
        return Run(tuple(self.steps), after, self.given if known else None, self.counted)


def _exchange(parts: Parts, kept: Any) -> None:
    """Write numbers in place of a release."""
    ends = np.cumsum([value.numel() for _, value, _ in parts])
    with torch.no_grad():
        for (_, value, unit), one in zip(parts, np.split(kept, ends[:-1]), strict=True):
            value.copy_(torch.from_numpy(one * unit).reshape(value.shape))


def note(private: Any, gradients: dict[str, Any], answers: dict[str, Any]) -> None:
    """Have the tape that runs, if one does, note what a private loop releases, and exchange it."""
    noting = _CURRENT.get()
    if noting is not None:
        noting(private, gradients, answers)


@contextmanager
def playing(tape: Tape, noting: Noting, note_open: Callable[[Any], None]) -> Iterator[None]:
    """Note what private loops release, and each step of an optimizer that no such loop takes."""

    def hook(optimizer: Any, arguments: Any, options: Any) -> None:
        if not tape.inside:
            note_open(optimizer)
        tape.inside = False

    def inside(private: Any, gradients: dict[str, Any], answers: dict[str, Any]) -> None:
        noting(private, gradients, answers)
        tape.inside = True  # until the optimizer's step that follows

    token = _CURRENT.set(inside)
    handle = register_optimizer_step_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()
        _CURRENT.reset(token)


def digest_of(*trees_of_tensors: Any) -> str:
    """Return a text that differs where tensors, numbers or their order differ."""
    found = hashlib.sha256()
    for leaf in trees.tree_leaves(trees_of_tensors):
        if isinstance(leaf, torch.Tensor):
            plain = leaf.detach().cpu().contiguous().reshape(-1)
            found.update(plain.view(torch.uint8).numpy().tobytes())
        else:
            found.update(repr(leaf).encode())
    return found.hexdigest()
