"""Private loops of torch, done again for ``hockeystick.audit.record``.

What an optimizer finds in the gradients when it steps is what is released. A tape notes it, and
may exchange it for what the loop is to go on with.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, final

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils import _pytree as trees
from torch.utils.data import Dataset

import hockeystick as hs
from hockeystick.adapters.loop import Sampler, numbers
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._clipping import Tensors
from hockeystick.adapters.torch._noise import all_keyed
from hockeystick.audit.recording import Kind, Neighbour, Run
from hockeystick.audit.recording.replay import FACTORS, ReplayEnded, Tape, neighbours_of
from hockeystick.release.counting import first

_CURRENT: Final[ContextVar[Callable[..., None] | None]] = ContextVar("noting", default=None)
# At so many examples of large data is looked for copies.
_LOOKED_AT: Final = 10_000


def note(private: Any, gradients: Tensors, answers: Tensors) -> None:
    """Have the tape that runs, if one does, note what a private loop releases, and exchange it."""
    noting = _CURRENT.get()
    if noting is not None:
        noting(private, gradients, answers)


@final
class PrivateReplay:
    """The replays of one private loop, which stays as it is; made by ``Private.as_replay``."""

    precision = 2.0**-24
    slack = 1e-4
    assumptions = (
        "Layers without buffers are in eval mode in replays: what they draw in training, as "
        "dropout does, is not looked at. What examples draw is the same in all replays.",
    )

    def __init__(
        self,
        dataset: Any,
        again: Callable[..., Any],
        plan: hs.DPSGD,
        private: Any,
        train: Callable[[Any], object],
        canaries: Sequence[Any],
    ) -> None:
        self._found = copy.deepcopy((private.model, private.optimizer))
        for module in self._found[0].modules():
            module.training = module.training and bool(module._buffers)
        self._again, self._train, self._seed, self._clip = (
            again,
            train,
            private._seed,
            private._clip,
        )
        self._dataset, self.plan, self.examples = dataset, plan, len(dataset)
        own = [(f"canary {place}", one) for place, one in enumerate(canaries)]
        self._far = [*_far_off(dataset[0]), *own]
        self.blocks: tuple[tuple[str, int], ...] = ()

    def neighbours(self, places: Sequence[int]) -> tuple[Neighbour, ...]:
        return neighbours_of(self.plan, places, self.examples, self._far)

    def copies(self) -> int:
        """Return at how many places the example is that is at most, by where its tensors lie."""

        def where(part: Any) -> Any:
            return (part.data_ptr(), part.shape) if isinstance(part, torch.Tensor) else repr(part)

        counts, kept = Counter[Any](), []
        for place in range(min(self.examples, _LOOKED_AT)):
            example = self._dataset[place]
            kept.append(example)  # so that no other one gets its memory
            leaves = trees.tree_leaves(example)
            if any(isinstance(part, torch.Tensor) and part.numel() for part in leaves):
                counts[tuple(map(where, leaves))] += 1
        return max(counts.values(), default=1)

    def draws(self, count: int) -> tuple[Any, ...]:
        found: list[Any] = []
        length = self.plan.steps_per_epoch or 1
        while not found or (len(found) < count and self._seed is None):  # or it would draw the same
            sampler = Sampler(self.plan, self.examples, self._seed)
            needed = -(-(count - len(found)) // length) * length
            found += map(sampler.draw, range(min(needed, self.plan.total_steps)))
        return tuple(found)

    def run(
        self,
        neighbour: Neighbour | None,
        batches: Sequence[Any],
        *,
        key: int | None,
        frozen: Sequence[Any] | None = None,
    ) -> Run:
        plan = _of_length(self.plan, len(batches))
        tape, inside = Tape(plan, len(batches), frozen), [False]
        expected = Sampler(plan, int(plan.examples or 0)).expected

        def units(norm: float) -> tuple[float, float]:
            # In these both have the noise z, as 1 = (z/z_gradients)^2 + (z/z_query)^2.
            noise, size = tape.noise_multiplier, expected(len(tape.steps))
            own, other = self._clip.noises(noise) if noise else (1.0, 0.0)
            return norm * own / (noise or 1.0) / size, other / ((noise or 1.0) * size)

        def noting(private: Any, gradients: Tensors, answers: Tensors) -> None:
            own, other = units(private.clipping_norm)
            named = [(name, value, own) for name, value in gradients.items()]
            named += [(f"query {name}", value, other) for name, value in answers.items()]
            _pass_on(tape, named, "" if key is None else _state_of(private))
            tape.counted = private.steps
            inside[0] = True  # until the optimizer's step that follows

        def note_open(optimizer: Any, arguments: Any, options: Any) -> None:
            if not inside[0]:
                params = [one for group in optimizer.param_groups for one in group["params"]]
                own, _ = units(self._clip.norm)
                named = [(f"parameter {n}", one.grad, own) for n, one in enumerate(params)]
                _pass_on(tape, [one for one in named if one[1] is not None])
            inside[0] = False

        with ExitStack() as stack:
            loop = stack.enter_context(closing(self._loop(neighbour, key, plan)))
            epochs = self.plan.steps_per_epoch is not None
            loop.loader.sampler = _Given(loop.loader.sampler, batches, tape, repeats=epochs)
            stack.callback(_CURRENT.reset, _CURRENT.set(noting))
            stack.callback(register_optimizer_step_pre_hook(note_open).remove)
            with suppress(ReplayEnded):
                self._train(loop)
            self.blocks = tape.blocks
            return tape.run(_state_of(loop), known=not epochs)

    def _loop(self, neighbour: Neighbour | None, key: int | None, plan: hs.DPSGD) -> Any:
        model, optimizer = copy.deepcopy(self._found)
        data = _Changed(self._dataset, neighbour)
        seed = self._seed if key is None else key
        return self._again(model, optimizer, data, plan, not_private=seed)


@dataclass(slots=True)
class _Given:
    """The batches of a replay in turn, and again where whole epochs are longer."""

    _inner: Any
    _batches: Sequence[Any]
    _tape: Tape
    repeats: bool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def draw(self, step: int) -> Any:
        place = self._tape.given
        if place >= len(self._batches) and not self.repeats:
            raise ReplayEnded
        self._tape.given += 1
        return self._batches[place % len(self._batches)]


def _pass_on(tape: Tape, parts: Sequence[tuple[str, Any, float]], before: str = "") -> None:
    flat = [(name, one.detach().double().cpu().numpy().ravel(), unit) for name, one, unit in parts]
    with torch.no_grad():
        for (_, value, _), kept in zip(parts, tape.note(flat, before), strict=False):
            value.copy_(torch.from_numpy(kept).reshape(value.shape))


def _state_of(private: Any) -> str:
    beside = private.optimizer.state_dict(), private.clipping_norm, private._memory
    return _checks.digest(private.model, *beside)


def _of_length(plan: hs.DPSGD, steps: int) -> hs.DPSGD:
    """Return a plan of as many steps as a replay takes, or of whole epochs with as many."""
    if plan.total_steps >= steps:
        return first(plan, steps)
    length = plan.steps_per_epoch or 1
    whole = -(-steps // length) * length
    return replace(plan, epochs=None, steps=whole, schedule=None, batch_schedule=None)


@final
class _Changed(Dataset):  # type: ignore[misc]  # torch may have no types
    """Data without an example, with one more, or with another one in its place."""

    def __init__(self, dataset: Any, neighbour: Neighbour | None) -> None:
        self.dataset, self.neighbour = dataset, neighbour

    def __len__(self) -> int:
        kind = None if self.neighbour is None else self.neighbour.kind
        return len(self.dataset) + (kind is Kind.ADDED) - (kind is Kind.WITHOUT)

    def __getitem__(self, place: int) -> Any:
        changed = self.neighbour
        if changed is not None and changed.kind is Kind.WITHOUT:
            place += place >= changed.place
        elif changed is not None and place == changed.place:
            return changed.value
        with all_keyed(numbers(0, "example", place)):
            return self.dataset[place]


def _far_off(example: Any) -> list[tuple[str, Any]]:
    """Return an example times large numbers, and undefined; once more if nothing in it floats."""

    def times(part: Any, factor: float) -> Any:
        return (
            part * factor if isinstance(part, torch.Tensor) and part.is_floating_point() else part
        )

    leaves = trees.tree_leaves(example)
    if all(times(part, 2.0) is part for part in leaves):
        return [("a record again", example)]
    return [
        (name, trees.tree_map(partial(times, factor=factor), example)) for name, factor in FACTORS
    ]
