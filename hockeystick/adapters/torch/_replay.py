"""A private loop that is done again, on other data and on given batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np

import hockeystick as hs
from hockeystick.adapters.torch._clipping import Clip
from hockeystick.adapters.torch._neighbours import changed, far_off, most_copies
from hockeystick.adapters.torch._tape import Full, Tape, digest_of, playing
from hockeystick.audit.recording import Neighbour, Run
from hockeystick.audit.recording.replay import neighbours_of
from hockeystick.release.counting import first

Tensors = dict[str, Any]
Train = Callable[[Any], object]
SINGLE: Final = 2.0**-24
SLACK: Final = 1e-4
_QUIET: Final = (
    "Layers without buffers are in eval mode in replays: what they draw in "
    "training, as dropout does, is not looked at. What examples draw is the same in all replays.",
)


@final
class GivenBatches:
    """A sampler that gives the batches of a replay in turn, at the plan's rate.

    Of whole epochs, which are longer than a replay, it begins again.
    """

    __slots__ = ("_batches", "_inner", "_repeats", "_tape")

    def __init__(self, inner: Any, batches: Sequence[Any], tape: Tape, *, repeats: bool) -> None:
        self._inner, self._batches, self._tape, self._repeats = inner, batches, tape, repeats

    def rate(self, step: int) -> Any:
        """Return the plan's rate."""
        return self._inner.rate(step)

    def expected(self, step: int) -> float:
        """Return the expected size of a step's batch."""
        found: float = self._inner.expected(step)
        return found

    def draw(self, step: int) -> Any:
        """Return the next batch."""
        place = self._tape.given
        if place >= len(self._batches) and not self._repeats:
            raise Full
        self._tape.given += 1
        return self._batches[place % len(self._batches)]


@final
@dataclass(frozen=True, slots=True)
class Claims:
    """What a plan and a clipping rule claim of each step."""

    plan: hs.DPSGD
    clip: Clip

    def noise(self, step: int) -> float:
        """Return the noise multiplier."""
        noises = self.plan.noise_multipliers
        return float(noises[min(step, len(noises) - 1)])

    def size(self, step: int) -> float:
        """Return the expected size of a batch, for the plan's number of examples."""
        factors = self.plan.batch_schedule
        factor = 1.0 if factors is None else float(factors.factors(self.plan.total_steps)[step])
        return min(self.plan.sampling_rate * factor, 1.0) * int(self.plan.examples or 0)

    def units(self, step: int, norm: float) -> tuple[float, float]:
        """Return the units of gradients and of the second query, both of which have the noise z.

        What two queries share is ``1 = (z/z_gradients)^2 + (z/z_query)^2``, so that a record moves
        both together by at most 1.
        """
        noise, size = self.noise(step), self.size(step)
        if noise == 0:
            return norm / size, 0.0
        return norm * self.clip.multiplier(noise) / noise / size, self.clip.noise(noise) / (
            noise * size
        )


@final
class PrivateReplay:
    """The replays of one private loop, which stays as it is; made by ``Private.as_replay``."""

    __slots__ = (
        "_again",
        "_clip",
        "_dataset",
        "_far",
        "_found",
        "_seed",
        "_train",
        "assumptions",
        "blocks",
        "examples",
        "plan",
        "precision",
        "slack",
    )

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        dataset: Any,
        again: Callable[..., Any],
        *,
        plan: hs.DPSGD,
        clip: Clip,
        seed: int | None,
        train: Train,
        canaries: Sequence[Any],
    ) -> None:
        self._found = copy.deepcopy((model, optimizer))
        for module in self._found[0].modules():
            module.training = module.training and bool(module._buffers)
        self._dataset, self._again, self._train = dataset, again, train
        self._seed, self._clip = seed, clip
        self.plan, self.examples = plan, len(dataset)
        self.precision, self.slack, self.assumptions = SINGLE, SLACK, _QUIET
        own = [(f"canary {place}", one) for place, one in enumerate(canaries)]
        self._far = [*far_off(dataset[0]), *own]
        self.blocks: tuple[tuple[str, int], ...] = ()

    def neighbours(self, places: Sequence[int]) -> tuple[Neighbour, ...]:
        """Return the plan's neighbours, with examples that are far off."""
        return neighbours_of(self.plan, places, self.examples, self._far)

    def copies(self) -> int:
        """Return at how many places one example is."""
        return most_copies(self._dataset)

    def draws(self, count: int) -> tuple[Any, ...]:
        """Return batches of loops of the same plan, each with its own random numbers."""
        found: list[Any] = []
        length = self.plan.steps_per_epoch or 1
        while not found or (len(found) < count and self._seed is None):  # or it would draw the same
            needed = -(-(count - len(found)) // length) * length
            with closing(self._loop(None, None, self.plan)) as loop:
                steps = range(min(needed, self.plan.total_steps))
                found += [np.asarray(loop.loader.sampler.draw(step)) for step in steps]
        return tuple(found)

    def run(
        self,
        neighbour: Neighbour | None,
        batches: Sequence[Any],
        *,
        key: int | None,
        frozen: Sequence[Any] | None = None,
    ) -> Run:
        """Train on given batches, on a copy of model and optimizer."""
        claims = Claims(_of_length(self.plan, len(batches)), self._clip)
        tape = Tape(len(batches), frozen, claims.noise)

        def note(private: Any, gradients: Tensors, answers: Tensors) -> None:
            units = claims.units(len(tape.steps), private.clipping_norm)
            named = [(name, value, units[0]) for name, value in gradients.items()]
            if units[1]:
                named += [(f"query {name}", value, units[1]) for name, value in answers.items()]
            tape.pass_on(named, "" if key is None else state_of(private))
            tape.counted = private.steps

        def note_open(optimizer: Any) -> None:
            unit = claims.units(len(tape.steps), self._clip.norm)[0]
            groups = [one for group in optimizer.param_groups for one in group["params"]]
            found = [
                (str(n), one.grad, unit) for n, one in enumerate(groups) if one.grad is not None
            ]
            tape.pass_on(found, "")

        with closing(self._loop(neighbour, key, claims.plan)) as loop:
            epochs = self.plan.steps_per_epoch is not None
            given = GivenBatches(loop.loader.sampler, batches, tape, repeats=epochs)
            loop.loader.sampler = given
            with playing(tape, note, note_open), suppress(Full):
                self._train(loop)
            self.blocks = tape.blocks
            return tape.run(state_of(loop), known=not epochs)

    def _loop(self, neighbour: Neighbour | None, key: int | None, plan: hs.DPSGD) -> Any:
        """Return an equal loop on a copy of the model."""
        model, optimizer = copy.deepcopy(self._found)
        data = changed(self._dataset, neighbour)
        seed = self._seed if key is None else key
        return self._again(model, optimizer, data, plan, seed=seed, not_private=seed is not None)


def state_of(private: Any) -> str:
    """Return a digest of all that a loop's next step starts from."""
    model, optimizer = private.model, private.optimizer
    return digest_of(
        list(model.parameters()),
        list(model.buffers()),
        optimizer.state_dict(),
        private.clipping_norm,
        private._memory,
    )


def _of_length(plan: hs.DPSGD, steps: int) -> hs.DPSGD:
    """Return a plan of as many steps as a replay takes, or of whole epochs with as many."""
    if plan.total_steps >= steps:
        return first(plan, steps)
    length = plan.steps_per_epoch or 1
    whole = -(-steps // length) * length
    return replace(plan, epochs=None, steps=whole, schedule=None, batch_schedule=None)
