"""Batches that are drawn as the plan says, one for each step, of examples made each alone."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from numbers import Number
from typing import Any, Final, NoReturn, final

import torch
from torch.utils import _pytree as trees
from torch.utils.data import DataLoader

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters.loop import Account, Indices, bits, numbers
from hockeystick.adapters.torch._noise import all_keyed
from hockeystick.adapters.torch._processes import Processes
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.counting import length_of

Row = tuple[Any, ...]
_ROUNDING: Final = 1e-6  # of an epoch's last step, where the rate as a float is not exact
_SEED_BITS: Final = 63
_LENGTH: Final = whole_numbers("L", 1, (8, 4096))
_A_ROW: Final = (
    "a tensor, a tuple of tensors with the model's input first, or a mapping by the names of the "
    "model's arguments, for each example"
)
_ONE: Final = "given one example at a time, and return tensors whose length is 1"
_ALIKE: Final = "one whose examples have one shape and type; pad_to gives inputs one length"
_A_LENGTH: Final = "given where each example's input has a length"
# What the losses of torch and of Hugging Face's models leave out.
_IGNORED: Final = -100


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What one step uses: none, one or many examples, which stay secret with their number.

    Args:
        step: The number of the step, from 0.
        examples: The model's input and the targets, stacked, where the input is a tensor, a tuple
            or a dictionary of them; empty where no example was drawn.
    """

    step: int
    examples: Row

    def __len__(self) -> int:
        return len(trees.tree_leaves(self.examples)[0]) if self.examples else 0

    def _versions(self) -> list[int]:
        """Return the number of in-place writes to each tensor."""
        return [part._version for part in trees.tree_leaves(self.examples)]


@final
@dataclass(slots=True, eq=False, repr=False)
class Loader:
    """Gives the batch of the next step until the plan is done, and the same again until it is used.

    A batch that was drawn cannot be exchanged for another one: choosing among batches would not be
    the sampling that is accounted for.
    """

    _account: Account[Any]
    sampler: Any
    _fetching: Callable[..., Any]
    _tensors: Any
    _processes: Processes
    _seed: int | None
    _fetched: Iterator[Any] = field(init=False, default_factory=lambda: iter(()))
    _at: int = field(init=False, default=-1)  # the step whose batch is fetched next
    _drawn: dict[int, Indices] = field(init=False, default_factory=dict)
    _pending: Batch | None = field(init=False, default=None)
    _versions: list[int] = field(init=False, default_factory=list)

    def __len__(self) -> int:
        return self._account.limit - self._account.counted

    def __iter__(self) -> Iterator[Batch]:
        """Give one batch for each step that is left of the plan.

        Raises:
            BudgetExhausted: If the budget ends before the plan does.
            IncompatibleError: If a batch was left unused, as one without examples may have been.
        """
        return self._batches(length_of(self._account.plan))

    def epochs(self) -> Iterator[Iterator[Batch]]:
        """Give the batches that are left in epochs of ``1/rate`` steps, or raise if one is left.

        The first one goes on where the last one ended, also within an epoch.
        """
        total, ended, end = length_of(self._account.plan), 0, 0
        while self._account.counted < total:
            while end <= self._account.counted:
                ended += 1
                end = min(math.ceil(ended / self.sampler.share - _ROUNDING), total)
            yield self._batches(end)
            if self._account.counted < end:
                self._refuse(
                    f"an epoch that ends with step {end} was left after {self._account.counted}: "
                    "an epoch is used to its end; to stop early, leave the epochs as well"
                )

    def _batches(self, end: int) -> Iterator[Batch]:
        """Give a batch for each step up to a number of steps."""
        while self._account.counted < end:
            batch = self.next()
            yield batch
            if batch.step == self._account.counted:
                self._refuse(
                    f"the batch of step {batch.step} was drawn and not used: batches that are left "
                    "out are not the plan's sampling; call private.step with each, also with one "
                    "that has no example, whose step releases noise"
                )

    def _refuse(self, reason: str) -> NoReturn:
        with self._processes.together("batch"):
            raise IncompatibleError(reason)

    def check(self, batch: object) -> None:
        given = self._pending
        if given is None or batch is not given or given.step != self._account.counted:
            allowed = "the one that private.loader gave last, each used once"
            raise ParameterError("batch", type(batch).__name__, allowed)
        if given._versions() != self._versions:
            allowed = "as it was drawn: what is computed across a batch mixes its examples"
            raise ParameterError("batch", "tensors that were changed", allowed)

    def next(self) -> Batch:
        """Return the batch of the next step, drawing it where it is not drawn yet."""
        step = self._account.counted
        if self._pending is not None and self._pending.step == step:
            self._account.check()
            return self._pending
        self._pending = Batch(step, self._shared(step))
        self._versions = self._pending._versions()
        self._drawn = {later: one for later, one in self._drawn.items() if later > step}
        return self._pending

    def _shared(self, step: int) -> Row:
        """Return this process's share of a step's examples, which the first one draws for all."""
        processes, shares = self._processes, None
        with processes.together("batch", lambda: {"run": self._account.run, "step": step}):
            self._account.check()
            processes.check()
            if processes.first:
                source = bits(self._seed, "process", step)
                shares = processes.shares(self._examples(step), source)
        return processes.shared(shares)

    def _examples(self, step: int) -> Row:
        """Return the examples of a step; after an interruption, of the batch that was drawn."""
        if self._tensors is not None:
            places = self._places(step)
            return tuple(self._tensors[places]) if len(places) else ()
        if self._at != step:
            batches = map(self._places, range(step, self._account.limit))
            lists = (places.tolist() for places in batches)
            self._fetched, self._at = iter(self._fetching(batch_sampler=lists)), step
        try:
            found: Row = next(self._fetched).examples()
        except BaseException:
            self.close()
            raise
        self._at += 1
        return found

    def _places(self, step: int) -> Indices:
        """Return the places of a step's examples, drawn once, be it ahead of the step."""
        if step not in self._drawn:
            self._drawn[step] = torch.from_numpy(self.sampler.draw(step))
        return self._drawn[step]

    def close(self) -> None:
        self._fetched, self._at = iter(()), -1


# Examples that torch's own loader fetches, by workers of its own where it is told so.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """How examples become tensors, each alone, and which processes of torch fetch them.

    Args:
        collate: What makes tensors of a list of one example: of more it could mix them.
        pad_to: The length that each example's input is padded to with zeros, or cut to; None to
            leave inputs be. Of a mapping it is each part with a length, "labels" with the -100 that
            losses leave out.
        num_workers: As in torch's ``DataLoader``, and so are the others: workers fetch the batches
            of later steps while this one runs.
    """

    collate: Callable[..., Any] | None = None
    pad_to: int | None = None
    num_workers: int = 0
    pin_memory: bool = False
    prefetch_factor: int | None = None
    timeout: float = 0
    worker_init_fn: Callable[[int], object] | None = None
    multiprocessing_context: Any = None

    def at_once(self, dataset: Any) -> Any:
        """Return the data if a batch may be indexed at once, which of subclasses may mix it."""
        whole = type(dataset) is torch.utils.data.TensorDataset and self == Loading()
        return dataset if whole else None

    def fetching(self, dataset: Any, *, secret: bool) -> Callable[..., Any]:
        """Return what makes torch's loader of the places of each batch, or raise."""
        pad_to = self.pad_to
        if pad_to is not None:
            pad_to = _validate.count("pad_to", pad_to, _LENGTH)
        # Which gives workers seeds for what they draw themselves, and leaves torch's own as it is.
        source = torch.Generator().manual_seed(secrets.randbits(_SEED_BITS))
        made = partial(
            DataLoader,
            _OneByOne(dataset, self.collate, pad_to, secret),
            collate_fn=_itself,
            generator=source,
            num_workers=self.num_workers,
            pin_memory=self.pin_memory,
            prefetch_factor=self.prefetch_factor,
            timeout=self.timeout,
            worker_init_fn=self.worker_init_fn,
            multiprocessing_context=self.multiprocessing_context,
        )
        try:
            made(batch_sampler=())
        except (TypeError, ValueError) as error:
            raise ParameterError("loading", self, f"what DataLoader takes ({error})") from None
        return made


@final
@dataclass(frozen=True, slots=True)
class Stacked:
    """The examples of a batch, or what is wrong with one of them."""

    found: Row | ParameterError

    def examples(self) -> Row:
        if isinstance(self.found, ParameterError):
            raise self.found
        return self.found

    def pin_memory(self) -> Stacked:
        if isinstance(self.found, ParameterError):
            return self
        return Stacked(trees.tree_map(lambda part: part.pin_memory(), self.found))


@final
@dataclass(frozen=True, slots=True)
class _OneByOne:
    """A data set that is asked for one example at a time, even if it would give several."""

    dataset: Any
    collate: Callable[..., Any] | None
    pad_to: int | None
    secret: bool

    def __getitems__(self, places: list[int]) -> Stacked:
        """Return a batch, or what is wrong, which an exception of a worker would not name."""
        try:
            with all_keyed(numbers(None, "examples", 0)) if self.secret else nullcontext():
                examples = [self.dataset[place] for place in places]
                return Stacked(_stacked(_row(one, self.collate, self.pad_to) for one in examples))
        except ParameterError as error:
            return Stacked(error)


def _itself(batch: Stacked) -> Stacked:
    return batch


def _row(example: Any, collate: Callable[..., Any] | None, pad_to: int | None) -> Row:
    """Return an example's input and targets, which nothing but the example decides."""
    if collate is None:
        parts = _parts(example, _tensor)
    else:
        parts = trees.tree_map(lambda part: part[0], _parts(collate([example]), _of_one))
    return parts if pad_to is None else (_padded(parts[0], pad_to), *parts[1:])


def _stacked(rows: Iterable[Row]) -> Row:
    """Return rows as one, where they are alike; nothing of no row."""
    found = [trees.tree_flatten(one) for one in rows]
    if not found:
        return ()
    structure = found[0][1]
    if all(one[1] == structure for one in found):
        columns = tuple(zip(*(one[0] for one in found), strict=True))
        if all(len({(part.dtype, part.shape) for part in column}) == 1 for column in columns):
            whole: Row = trees.tree_unflatten(list(map(torch.stack, columns)), structure)
            return whole
    raise ParameterError("dataset", "examples that differ", _ALIKE)


def _parts(example: Any, leaf: Callable[[Any], Any]) -> Row:
    """Return an example's input and targets, with tensors for leaves; or raise."""
    several = example if isinstance(example, tuple | list) else (example,)
    parts = tuple(_tree(part, leaf) for part in several)
    if not parts or not trees.tree_leaves(parts[0]):
        raise ParameterError("dataset", example, _A_ROW)
    return parts


def _tree(part: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return mappings as dictionaries in one order, sequences as tuples, all else as tensors."""
    if isinstance(part, Mapping):
        if not all(isinstance(name, str) for name in part):
            raise ParameterError("dataset", type(part).__name__, _A_ROW)
        return {name: _tree(part[name], leaf) for name in sorted(part)}
    if isinstance(part, tuple | list) and not _is_numbers(part):
        return tuple(_tree(one, leaf) for one in part)
    return leaf(part)


def _is_numbers(part: Any) -> bool:
    """Return whether a sequence has nothing but numbers, however deep: it is one tensor."""
    inside = isinstance(part, tuple | list)
    return all(map(_is_numbers, part)) if inside else isinstance(part, Number)


def _tensor(part: Any) -> Any:
    if isinstance(part, torch.Tensor):
        return part
    if isinstance(part, float):
        return torch.tensor(part, dtype=torch.float64)
    try:
        return torch.as_tensor(part)
    except (TypeError, ValueError, RuntimeError):
        raise ParameterError("dataset", type(part).__name__, _A_ROW) from None


def _of_one(part: Any) -> Any:
    if not isinstance(part, torch.Tensor):
        raise ParameterError("dataset", type(part).__name__, _A_ROW)
    if part.dim() == 0 or len(part) != 1:
        raise ParameterError("collate", tuple(part.shape), _ONE)
    return part


def _padded(given: Any, length: int) -> Any:
    """Return an input that is filled or cut to a length: of a mapping, each part that has one."""
    if isinstance(given, dict):
        return {
            name: _filled(part, length, _IGNORED if name == "labels" else 0)
            if isinstance(part, torch.Tensor) and part.dim()
            else part
            for name, part in given.items()
        }
    if not isinstance(given, torch.Tensor) or given.dim() == 0:
        raise ParameterError("pad_to", length, _A_LENGTH)
    return _filled(given, length, 0)


def _filled(part: Any, length: int, value: int) -> Any:
    if len(part) >= length:
        return part[:length]
    missing = part.new_full((length - len(part), *part.shape[1:]), value)
    return torch.cat([part, missing])
