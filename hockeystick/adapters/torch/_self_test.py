"""Private loops of torch, done again for ``hockeystick.audit.record``.

A tape notes what the loop releases, and may exchange it for what the loop is to go on with.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, Final, final

import torch
from torch.utils import _pytree as trees
from torch.utils.data import Dataset

import hockeystick as hs
from hockeystick.adapters.loop import Sampler, numbers
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._factors import Tensors
from hockeystick.adapters.torch._noise import all_keyed
from hockeystick.audit.recording import Kind, Neighbour, Run
from hockeystick.audit.recording.replay import FACTORS, ReplayEnded, Tape, neighbours_of
from hockeystick.release.counting import first

# At so many examples of large data is looked for copies.
_LOOKED_AT: Final = 10_000


@final
class PrivateReplay:
    """The replays of one private loop, which stays as it is; made by ``Private.as_replay``."""

    precision: float = 2.0**-24
    slack: float = 1e-4
    assumptions: tuple[str, ...] = (
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
        self._again, self._train, self._dataset = again, train, dataset
        self._seed, self._clip = private._seed, private._clip
        self.plan: hs.DPSGD = plan
        self.examples: int = len(dataset)
        own = [(f"canary {place}", one) for place, one in enumerate(canaries)]
        self._far = [*_far_off(dataset[0]), *own]
        self.blocks: tuple[tuple[str, int], ...] = ()

    def neighbours(self, places: Sequence[int]) -> tuple[Neighbour, ...]:
        return neighbours_of(self.plan, places, self.examples, self._far)

    def copies(self) -> int:
        """Return at how many places the example is that is at most, by where its tensors lie."""

        def where(part: Any) -> Any:
            return (part.data_ptr(), part.shape) if isinstance(part, torch.Tensor) else repr(part)

        # All are kept, so that no later one gets the memory of another.
        looked_at = range(min(self.examples, _LOOKED_AT))
        kept = [trees.tree_leaves(self._dataset[place]) for place in looked_at]
        counts = Counter(
            tuple(map(where, leaves))
            for leaves in kept
            if any(isinstance(part, torch.Tensor) and part.numel() for part in leaves)
        )
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
        plan, epochs, length = self.plan, self.plan.steps_per_epoch is not None, len(batches)
        if plan.total_steps >= length:
            plan = first(plan, length)
        else:  # or whole epochs with as many
            whole = -(-length // (plan.steps_per_epoch or 1)) * (plan.steps_per_epoch or 1)
            plan = replace(plan, epochs=None, steps=whole, schedule=None, batch_schedule=None)
        tape = Tape(plan, len(batches), frozen)
        expected = Sampler(plan, int(plan.examples or 0)).expected

        def noting(private: Any, gradients: Tensors, answers: Tensors) -> None:
            # In these units both have the noise z, as 1 = (z/z_gradients)^2 + (z/z_query)^2.
            noise, size = tape.noise_multiplier, expected(len(tape.steps))
            own, other = self._clip.noises(noise) if noise else (1.0, 0.0)
            unit, second = private.clipping_norm * own / (noise or 1.0), other / (noise or 1.0)
            named = [(name, value, unit / size) for name, value in gradients.items()]
            named += [(f"query {name}", one, second / size) for name, one in answers.items()]
            flat = [(name, one.double().cpu().numpy().ravel(), unit) for name, one, unit in named]
            kept = tape.note(flat, "" if key is None else _state_of(private))
            with torch.no_grad():
                for (_, value, _), one in zip(named, kept, strict=False):
                    value.copy_(torch.from_numpy(one).reshape(value.shape))
            tape.counted = private.steps

        def draw(step: int) -> Any:
            place, tape.given = tape.given, tape.given + 1
            if place >= len(batches) and not epochs:  # whole epochs may be longer
                raise ReplayEnded
            return batches[place % len(batches)]

        model, optimizer = copy.deepcopy(self._found)
        data, seed = _Changed(self._dataset, neighbour), self._seed if key is None else key
        with closing(self._again(model, optimizer, data, plan, not_private=seed)) as loop:
            loop.loader.draw, loop._noting = draw, noting
            with suppress(ReplayEnded):
                self._train(loop)
            self.blocks = tape.blocks
            return tape.run(_state_of(loop), known=not epochs)


def _state_of(private: Any) -> str:
    beside = private.optimizer.state_dict(), private.clipping_norm, private._memory
    return _checks.digest(private.model, *beside)


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

    def floats(part: Any) -> bool:
        return isinstance(part, torch.Tensor) and part.is_floating_point()

    if not any(map(floats, trees.tree_leaves(example))):
        return [("a record again", example)]

    def times(factor: float) -> Any:
        return trees.tree_map(lambda part: part * factor if floats(part) else part, example)

    return [(name, times(factor)) for name, factor in FACTORS]
