"""A training program of torch as it is, which is run again on other data and on given batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Final, final
from unittest.mock import patch

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data.dataloader import _BaseDataLoaderIter

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adapters.loop._random import numbers
from hockeystick.adapters.loop._sampler import checked_plan
from hockeystick.adapters.torch._clipping import Constant
from hockeystick.adapters.torch._neighbours import changed, far_off, most_copies
from hockeystick.adapters.torch._random import all_keyed
from hockeystick.adapters.torch._replay import SINGLE, SLACK, Claims
from hockeystick.adapters.torch._tape import Full, Tape, digest_of
from hockeystick.audit.recording import Neighbour, Run
from hockeystick.audit.recording.replay import neighbours_of
from hockeystick.errors import IncompatibleError, ParameterError

Train = Callable[[Any], object]
# What has a library draw a step's noise by a key, and tells of its account's steps and divisors.
Hooks = Callable[
    [Callable[[str], Any], Callable[[], None], Callable[[float], None]],
    AbstractContextManager[None],
]
_NORM: Final = Domain(
    symbol="C", low=0, high=np.inf, low_open=True, high_open=True, typical=(0.1, 10)
)
# A program of few steps is run again for more batches, up to so many, and so often at the most.
_MOST_DRAWS: Final = 500
_RUNS: Final = 100
_SPLIT: Final = (
    "BatchMemoryManager splits batches for memory, which changes nothing that is released: "
    "leave it out of the program that is replayed"
)
_SEES: Final = (
    "What is released is what optimizers of torch find in the gradients when they step, no more: a "
    "clipping norm that follows a noisy count looks as if noise depended on the data.",
    "The program is deterministic given torch's, numpy's and Python's generators; layers that draw "
    "as many numbers as a batch has records look as if noise depended on the data.",
)


@final
class TorchProgram:
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

    __slots__ = (
        "_claims",
        "_dataset",
        "_divisor",
        "_far",
        "_hooks",
        "_norm",
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
        self._train, self._dataset, self.plan = train, dataset, checked_plan(plan)
        self._norm = _validate.real("norm", norm, _NORM)
        self._claims = Claims(plan, Constant(1.0))
        self._hooks = hooks
        self._divisor = None if divisor is None else _validate.real("divisor", divisor, _NORM)
        self.examples = len(dataset)
        own = [(f"canary {place}", one) for place, one in enumerate(canaries)]
        self._far = [*far_off(dataset[0]), *own]
        self.precision, self.slack, self.assumptions = SINGLE, SLACK, _SEES
        self.blocks: tuple[tuple[str, int], ...] = ()

    def neighbours(self, places: Sequence[int]) -> tuple[Neighbour, ...]:
        """Return the plan's neighbours, with examples that are far off."""
        return neighbours_of(self.plan, places, self.examples, self._far)

    def copies(self) -> int:
        """Return at how many places one example is."""
        return most_copies(self._dataset)

    def draws(self, count: int) -> tuple[Any, ...]:
        """Return batches of the program's own loader, which is asked again and again."""
        found: list[Any] = []
        wanted = min(count, _MOST_DRAWS)

        def seen(iterator: Any, inner: Callable[[], Any]) -> Any:
            if len(found) >= wanted:
                raise Full
            places = inner()
            found.append(np.asarray(places, dtype=np.int64))
            return places

        data = changed(self._dataset, None)
        for _ in range(_RUNS):
            if len(found) < wanted:
                with _unknown(), _next_batches(data, seen), suppress(Full):
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
        """Run the program until it has stepped once for each batch, or ends."""
        if self._divisor is None:
            self._divisor = self._claims.size(0)
            said: list[float] = []
            self._run(None, [np.arange(1)], 1, None, said.append)
            self._divisor = next(iter(said), self._divisor)
        return self._run(neighbour, batches, key, frozen, lambda divisor: None)

    def _run(
        self,
        neighbour: Neighbour | None,
        batches: Sequence[Any],
        key: int | None,
        frozen: Sequence[Any] | None,
        divided: Callable[[float], None],
    ) -> Run:
        """Run the program, and call back for what a library divides by."""
        tape = Tape(len(batches), frozen, self._claims.noise)
        data = changed(self._dataset, neighbour)

        def hook(optimizer: Any, arguments: Any, options: Any) -> None:
            self._note(tape, optimizer, digests=key is not None)

        with ExitStack() as stack:
            randomness = stack.enter_context(_Randomness(key))

            ended: list[Any] = []

            def given(iterator: Any, inner: Callable[[], Any]) -> Any:
                place = tape.given
                if place >= len(batches):
                    if iterator in ended or not ended:
                        ended.append(iterator)
                        raise StopIteration  # so that batches which workers fetched are used
                    raise Full
                with all_keyed(numbers(0, "sampler", place)):
                    inner()  # which ends epochs, and tells who watches that a batch was drawn
                tape.given += 1
                randomness.step(place)
                return [int(one) for one in batches[place]]

            stack.callback(register_optimizer_step_pre_hook(hook).remove)
            stack.enter_context(self._hooked(tape, key, divided))
            stack.enter_context(_next_batches(data, given))
            stack.enter_context(suppress(Full))
            self._train(data)
        self.blocks = tape.blocks
        return tape.run("")

    def _note(self, tape: Tape, optimizer: Any, *, digests: bool) -> None:
        """Note the gradients that an optimizer is about to use, and what it starts from."""
        unit = self._norm / (self._divisor or 1.0)
        params = [one for group in optimizer.param_groups for one in group["params"]]
        given = [(f"parameter {n}", one.grad, unit) for n, one in enumerate(params)]
        state = digest_of(params, optimizer.state_dict()) if digests else ""
        tape.pass_on([one for one in given if one[1] is not None], state)

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


@final
class _Randomness:
    """What a program draws: as its model is made always the same, then by a key or by secrets.

    A program that seeds torch by itself is left with its seed where the key is None.
    """

    __slots__ = ("_key", "_seeded", "_stack")

    def __init__(self, key: int | None) -> None:
        self._key, self._seeded, self._stack = key, False, ExitStack()

    def __enter__(self) -> _Randomness:
        self._stack.enter_context(all_keyed(numbers(0, "program", 0)))
        before = torch.manual_seed

        def seeded(seed: int) -> Any:
            self._seeded = True
            return before(seed)

        self._stack.enter_context(patch.object(torch, "manual_seed", seeded))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def step(self, place: int) -> None:
        """Draw what follows in a step by the key; without one by secrets, from the first on."""
        if self._key is not None or (place == 0 and not self._seeded):
            self._stack.enter_context(all_keyed(numbers(self._key, "step", place)))


def _unknown() -> AbstractContextManager[None]:
    """Draw by a key that nobody knows."""
    return all_keyed(numbers(None, "program", 0))


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

    _BaseDataLoaderIter._next_index = next_index
    try:
        yield
    finally:
        _BaseDataLoaderIter._next_index = before
