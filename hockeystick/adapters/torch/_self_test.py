"""Private loops and programs of torch, done again for ``hockeystick.audit.record``.

What an optimizer finds in the gradients when it steps is what is released. A tape notes it, and
may exchange it for what the loop is to go on with.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, final
from unittest.mock import Mock, patch

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils import _pytree as trees
from torch.utils.data import Dataset, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adapters.loop import Sampler, checked_plan, numbers
from hockeystick.adapters.torch._clipping import Clip, Tensors
from hockeystick.adapters.torch._noise import all_keyed
from hockeystick.audit.recording import Kind, Neighbour, Run
from hockeystick.audit.recording.replay import FACTORS, ReplayEnded, Tape, neighbours_of
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.counting import first

Train = Callable[[Any], object]
# What has a library draw a step's noise by a key, and tells of its account's steps and divisors.
Hooks = Callable[
    [Callable[[str], Any], Callable[[], None], Callable[[float], None]],
    AbstractContextManager[None],
]
_Noting = Callable[[Any, Tensors, Tensors], None]
_CURRENT: Final[ContextVar[_Noting | None]] = ContextVar("noting", default=None)
_NORM: Final = Domain(
    symbol="C", low=0, high=np.inf, low_open=True, high_open=True, typical=(0.1, 10)
)
# A program of few steps is run again for more batches, up to so many, and so often at the most.
_MOST_DRAWS: Final = 500
_RUNS: Final = 100
# At so many examples of large data is looked for copies.
_LOOKED_AT: Final = 10_000
_SPLIT: Final = (
    "BatchMemoryManager splits batches for memory, which changes nothing that is released: "
    "leave it out of the program that is replayed"
)


class _Replays:
    """What the replays of a loop and of a program have in common, as ``audit.Replay`` has it."""

    precision = 2.0**-24
    slack = 1e-4
    assumptions: tuple[str, ...] = ()

    def __init__(self, dataset: Any, plan: hs.DPSGD, canaries: Sequence[Any]) -> None:
        self._dataset, self.plan, self.examples = dataset, plan, len(dataset)
        own = [(f"canary {place}", one) for place, one in enumerate(canaries)]
        self._far = [*_far_off(dataset[0]), *own]
        self.blocks: tuple[tuple[str, int], ...] = ()

    def neighbours(self, places: Sequence[int]) -> tuple[Neighbour, ...]:
        return neighbours_of(self.plan, places, self.examples, self._far)

    def copies(self) -> int:
        """Return at how many places the example is that is at the most, by where its tensors lie.

        Data that make tensors anew tell nothing of it.
        """
        counts: dict[Any, int] = {}
        kept = []
        for place in range(min(self.examples, _LOOKED_AT)):
            example = self._dataset[place]
            kept.append(example)  # so that no other one gets its memory
            leaves = trees.tree_leaves(example)
            if any(isinstance(part, torch.Tensor) and part.numel() for part in leaves):
                found = tuple(map(_where, leaves))
                counts[found] = counts.get(found, 0) + 1
        return max(counts.values(), default=1)


@final
class PrivateReplay(_Replays):
    """The replays of one private loop, which stays as it is; made by ``Private.as_replay``."""

    assumptions = (
        "Layers without buffers are in eval mode in replays: what they draw in training, as "
        "dropout does, is not looked at. What examples draw is the same in all replays.",
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
        super().__init__(dataset, plan, canaries)
        self._found = copy.deepcopy((model, optimizer))
        for module in self._found[0].modules():
            module.training = module.training and bool(module._buffers)
        self._again, self._train, self._seed, self._clip = again, train, seed, clip

    def draws(self, count: int) -> tuple[Any, ...]:
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
        plan = _of_length(self.plan, len(batches))
        tape, inside = Tape(plan, len(batches), frozen), [False]
        self._expected = _expected(plan)

        def note(private: Any, gradients: Tensors, answers: Tensors) -> None:
            units = self._units(tape, private.clipping_norm)
            named = [(name, value, units[0]) for name, value in gradients.items()]
            if units[1]:
                named += [(f"query {name}", value, units[1]) for name, value in answers.items()]
            _pass_on(tape, named, "" if key is None else _state_of(private))
            tape.counted = private.steps
            inside[0] = True  # until the optimizer's step that follows

        def note_open(optimizer: Any, arguments: Any, options: Any) -> None:
            if not inside[0]:
                _pass_on(tape, _found_by(optimizer, self._units(tape, self._clip.norm)[0]))
            inside[0] = False

        with ExitStack() as stack:
            loop = stack.enter_context(closing(self._loop(neighbour, key, plan)))
            epochs = self.plan.steps_per_epoch is not None
            loop.loader.sampler = _Given(loop.loader.sampler, batches, tape, repeats=epochs)
            stack.callback(_CURRENT.reset, _CURRENT.set(note))
            stack.callback(register_optimizer_step_pre_hook(note_open).remove)
            with suppress(ReplayEnded):
                self._train(loop)
            self.blocks = tape.blocks
            return tape.run(_state_of(loop), known=not epochs)

    def _units(self, tape: Tape, norm: float) -> tuple[float, float]:
        """Return the units of gradients and of the second query, both of which have the noise z.

        What two queries share is ``1 = (z/z_gradients)^2 + (z/z_query)^2``, so that a record moves
        both together by at most 1.
        """
        noise, size = tape.noise_multiplier, self._expected(len(tape.steps))
        if noise == 0:
            return norm / size, 0.0
        gradients = norm * self._clip.multiplier(noise) / noise / size
        return gradients, self._clip.noise(noise) / (noise * size)

    def _loop(self, neighbour: Neighbour | None, key: int | None, plan: hs.DPSGD) -> Any:
        model, optimizer = copy.deepcopy(self._found)
        data = _changed(self._dataset, neighbour)
        seed = self._seed if key is None else key
        return self._again(model, optimizer, data, plan, not_private=seed)


@final
class TorchProgram(_Replays):
    """A training program of torch, for ``hockeystick.audit.record``: it is run as it is.

    ``train(dataset)`` makes model, optimizer and loader, and trains: whatever an optimizer finds in
    ``grad`` when it steps is what the program releases. Loaders of that data set are given the
    batches of a replay.

    Args:
        train: The program, as a function of its data; each call begins anew.
        dataset: The data: examples by number, at least 2.
        plan: What is claimed, with its number of examples.
        norm: The clipping norm, above 0.
        divisor: What the sum is divided by on these data, above 0; None for the expected size of a
            batch, or what the library says.
        canaries: Examples to add, beside one that is scaled and one that is undefined.
        hooks: What a library needs to draw noise by a key; None where it draws from torch.

    Raises:
        ParameterError: If the plan cannot be trained by, or the norm is no positive number.

    Example:
        >>> import torch
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.torch import TorchProgram
        >>> from hockeystick.audit import record
        >>> def train(dataset):
        ...     weights = torch.zeros(4, requires_grad=True)
        ...     optimizer = torch.optim.SGD([weights], lr=0.1)
        ...     for (rows,) in torch.utils.data.DataLoader(dataset, batch_size=10):
        ...         clipped = rows / rows.norm(dim=1, keepdim=True).clamp(min=1)
        ...         weights.grad = (clipped.sum(dim=0) + torch.randn(4)) / len(rows)
        ...         optimizer.step()
        >>> data = torch.utils.data.TensorDataset(torch.randn(50, 4))
        >>> plan = hs.DPSGD(examples=50, batch_size=10, steps=5, noise_multiplier=1)
        >>> "noise-scale-depends-on-data" in record(TorchProgram(train, data, plan, norm=1.0)).names
        True
    """

    assumptions = (
        "What is released is what optimizers of torch find in the gradients when they step, no "
        "more: a clipping norm that follows a noisy count looks as if noise depended on the data.",
        "The program is deterministic given torch's, numpy's and Python's generators; layers that "
        "draw as many numbers as a batch has records look as if noise depended on the data.",
    )

    def __init__(
        self,
        train: Train,
        dataset: Any,
        plan: hs.DPSGD,
        *,
        norm: float,
        divisor: float | None = None,
        canaries: Sequence[Any] = (),
        hooks: Hooks | None = None,
    ) -> None:
        if not callable(train):
            raise ParameterError("train", train, "a function of a data set")
        super().__init__(dataset, checked_plan(plan), canaries)
        self._train, self._hooks = train, hooks
        self._norm = _validate.real("norm", norm, _NORM)
        self._divisor = None if divisor is None else _validate.real("divisor", divisor, _NORM)

    def draws(self, count: int) -> tuple[Any, ...]:
        found: list[Any] = []
        wanted = min(count, _MOST_DRAWS)

        def seen(iterator: Any, inner: Callable[[], Any]) -> Any:
            if len(found) >= wanted:
                raise ReplayEnded
            places = inner()
            found.append(np.asarray(places, dtype=np.int64))
            return places

        data, runs = _changed(self._dataset, None), 0
        while len(found) < wanted and runs < _RUNS:
            runs += 1
            source = numbers(None, "program", 0)
            with all_keyed(source), _next_batches(data, seen), suppress(ReplayEnded):
                self._train(data)
        return tuple(found)

    def run(
        self,
        neighbour: Neighbour | None,
        batches: Sequence[Any],
        *,
        key: int | None,
        frozen: Sequence[Any] | None = None,
    ) -> Run:
        if self._divisor is None:
            self._divisor = _expected(self.plan)(0)
            said: list[float] = []
            self._run(None, [np.arange(1)], Tape(self.plan, 1), 1, said.append)
            self._divisor = next(iter(said), self._divisor)
        tape = Tape(self.plan, len(batches), frozen)
        self._run(neighbour, batches, tape, key, lambda divisor: None)
        self.blocks = tape.blocks
        return tape.run("")

    def _run(
        self,
        neighbour: Neighbour | None,
        batches: Sequence[Any],
        tape: Tape,
        key: int | None,
        divided: Callable[[float], None],
    ) -> None:
        """Run the program, and call back for what a library divides by."""
        data = _changed(self._dataset, neighbour)
        unit = self._norm / (self._divisor or 1.0)

        def note(optimizer: Any, arguments: Any, options: Any) -> None:
            found = _found_by(optimizer, unit)
            params = [one for group in optimizer.param_groups for one in group["params"]]
            state = "" if key is None else _digest_of(params, optimizer.state_dict())
            _pass_on(tape, found, state)

        with ExitStack() as stack:
            # What makes a model is the same in all replays; a seed of the program's own is left.
            stack.enter_context(all_keyed(numbers(0, "program", 0)))
            seeded = Mock(side_effect=torch.manual_seed)
            stack.enter_context(patch.object(torch, "manual_seed", seeded))
            ended: list[Any] = []

            def given(iterator: Any, inner: Callable[[], Any]) -> Any:
                place = tape.given
                if place >= len(batches):
                    if iterator in ended or not ended:
                        ended.append(iterator)
                        raise StopIteration  # so that batches which workers fetched are used
                    raise ReplayEnded
                with all_keyed(numbers(0, "sampler", place)):
                    inner()  # which ends epochs, and tells who watches that a batch was drawn
                tape.given += 1
                if key is not None or (place == 0 and not seeded.called):
                    stack.enter_context(all_keyed(numbers(key, "step", place)))
                return [int(one) for one in batches[place]]

            stack.callback(register_optimizer_step_pre_hook(note).remove)
            stack.enter_context(self._hooked(tape, key, divided))
            stack.enter_context(_next_batches(data, given))
            stack.enter_context(suppress(ReplayEnded))
            self._train(data)

    def _hooked(
        self, tape: Tape, key: int | None, divided: Callable[[float], None]
    ) -> AbstractContextManager[None]:
        """Have a library draw its noise by the key and the step, and count its steps."""
        if self._hooks is None:
            return nullcontext()
        drawn, tape.counted = [0], 0

        def source(name: str) -> Any:
            drawn[0] += 1
            return None if key is None else numbers(key, name, drawn[0])

        def counted() -> None:
            tape.counted = (tape.counted or 0) + 1

        return self._hooks(source, counted, divided)


@contextmanager
def _next_batches(data: Any, found: Callable[[Any, Callable[[], Any]], Any]) -> Iterator[None]:
    """Have loaders of these data, or of parts of them, take their batches from a function."""
    before = _BaseDataLoaderIter._next_index

    def next_index(iterator: Any) -> Any:
        inner = partial(before, iterator)
        if iterator._dataset is not data:
            return inner()
        if hasattr(iterator._index_sampler, "max_batch_size"):  # of Opacus's BatchMemoryManager
            raise IncompatibleError(_SPLIT)
        return found(iterator, inner)

    with patch.object(_BaseDataLoaderIter, "_next_index", next_index):
        yield


@final
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


def note(private: Any, gradients: Tensors, answers: Tensors) -> None:
    """Have the tape that runs, if one does, note what a private loop releases, and exchange it."""
    noting = _CURRENT.get()
    if noting is not None:
        noting(private, gradients, answers)


def _pass_on(tape: Tape, parts: Sequence[tuple[str, Any, float]], before: str = "") -> None:
    """Note tensors by name, with their units, and exchange them in place."""
    flat = [(name, one.detach().double().cpu().numpy().ravel(), unit) for name, one, unit in parts]
    with torch.no_grad():
        for (_, value, _), kept in zip(parts, tape.note(flat, before), strict=False):
            value.copy_(torch.from_numpy(kept).reshape(value.shape))


def _found_by(optimizer: Any, unit: float) -> list[tuple[str, Any, float]]:
    """Return the gradients that an optimizer is about to use."""
    params = [one for group in optimizer.param_groups for one in group["params"]]
    return [
        (f"parameter {n}", one.grad, unit) for n, one in enumerate(params) if one.grad is not None
    ]


def _state_of(private: Any) -> str:
    """Return a digest of all that a loop's next step starts from."""
    model, optimizer = private.model, private.optimizer
    tensors = list(model.parameters()), list(model.buffers()), optimizer.state_dict()
    return _digest_of(*tensors, private.clipping_norm, private._memory)


def _digest_of(*trees_of_tensors: Any) -> str:
    found = hashlib.sha256()
    for leaf in trees.tree_leaves(trees_of_tensors):
        if isinstance(leaf, torch.Tensor):
            plain = leaf.detach().cpu().contiguous().reshape(-1)
            found.update(plain.view(torch.uint8).numpy().tobytes())
        else:
            found.update(repr(leaf).encode())
    return found.hexdigest()


def _expected(plan: hs.DPSGD) -> Callable[[int], float]:
    return Sampler(plan, int(plan.examples or 0)).expected


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
        if self.neighbour is None:
            return len(self.dataset)
        more = {Kind.WITHOUT: -1, Kind.ADDED: 1}.get(self.neighbour.kind, 0)
        return len(self.dataset) + more

    def __getitem__(self, place: int) -> Any:
        changed = self.neighbour
        if changed is not None and changed.kind is Kind.WITHOUT:
            place += place >= changed.place
        elif changed is not None and place == changed.place:
            return changed.value
        with all_keyed(numbers(0, "example", place)):
            return self.dataset[place]


def _changed(dataset: Any, neighbour: Neighbour | None) -> Any:
    """Return neighbouring data; of tensors again such data, which loops may read in another way."""
    if type(dataset) is not TensorDataset:
        return _Changed(dataset, neighbour)
    if neighbour is None:
        return dataset
    place = neighbour.place
    after = place if neighbour.kind is Kind.ADDED else place + 1
    parts = []
    for number, part in enumerate(dataset.tensors):
        between = part[:0]
        if neighbour.kind is not Kind.WITHOUT:
            row = torch.as_tensor(neighbour.value[number], dtype=part.dtype)
            between = row.unsqueeze(0).to(part.device)
        parts.append(torch.cat([part[:place], between, part[after:]]))
    return TensorDataset(*parts)


def _far_off(example: Any) -> list[tuple[str, Any]]:
    """Return an example whose floating parts are multiplied by large numbers, or undefined.

    An example without such parts is there once more.
    """
    if not any(map(_is_floating, trees.tree_leaves(example))):
        return [("a record again", example)]

    def times(factor: float) -> Any:
        return trees.tree_map(lambda part: part * factor if _is_floating(part) else part, example)

    return [(name, times(factor)) for name, factor in FACTORS]


def _is_floating(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and part.is_floating_point()


def _where(part: Any) -> Any:
    """Return where a tensor lies; of anything else what it is."""
    return (part.data_ptr(), part.shape) if isinstance(part, torch.Tensor) else repr(part)
