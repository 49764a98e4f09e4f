"""What holds around a private step: who lets the optimizer step, and whose randomness is used."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, final

import torch
from torch.utils.weak import WeakIdKeyDictionary

import hockeystick as hs
from hockeystick.adapters.loop._random import numbers
from hockeystick.adapters.torch._random import keyed
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Composed
from hockeystick.release.counting import first

# What the loops of this process released of each parameter, by the names of their runs.
_RELEASED: Final[Any] = WeakIdKeyDictionary()
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


@final
@dataclass(slots=True)
class Release:
    """What one loop released of the parameters that it trains.

    Args:
        run: The name of the run.
        plan: What it is planned to release.
        joined: The ledger that adds it to what else is released, and the data set there; or None.
    """

    run: str
    plan: hs.mechanisms.Mechanism
    joined: object
    steps: int = 0

    def check(self, model: Any) -> None:
        """Raise where another loop trained the same parameters, whose cost is not in this plan."""
        runs = [_RELEASED.get(one, {}) for one in model.parameters()]
        others = {run: one for found in runs for run, one in found.items() if run != self.run}
        beside = _beside(self.plan)
        for other in others.values():
            covered = [one for one in beside if one in (other.plan, first(other.plan, other.steps))]
            if covered:
                beside.remove(covered[0])
            elif self.joined is None or self.joined != other.joined:
                raise IncompatibleError(
                    "another private loop trained these parameters, and what both cost adds up: "
                    "let this plan have extra= the other loop's .plan, or give both one ledger "
                    "(ledger=, key=); or train a new model"
                )

    def note(self, model: Any, steps: int) -> None:
        """Note how many steps of this loop the parameters have seen."""
        self.steps = steps
        for one in model.parameters() if steps else ():
            if not one.requires_grad:
                continue
            _RELEASED.setdefault(one, {})[self.run] = self


def _beside(plan: Any) -> list[hs.mechanisms.Mechanism]:
    """Return what a plan says is released besides its steps, and besides that."""
    extra = getattr(plan, "extra", None)
    if extra is None:
        return []
    parts = extra.parts if isinstance(extra, Composed) else (extra,)
    return [found for part in parts for found in (part, *_beside(part))]


def forget(model: Any) -> None:
    """Forget what was released of parameters that were overwritten since."""
    for one in model.parameters():
        _RELEASED.pop(one, None)


def check_precision(device: Any) -> None:
    """Raise where autocast would compute clipped sums in 16 bits, or nothing is differentiated."""
    if torch.is_inference_mode_enabled():
        raise IncompatibleError("private.step runs outside torch.inference_mode()")
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
