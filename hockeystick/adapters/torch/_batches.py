"""Batches that are drawn as the plan says, one for each step, of examples made each alone.

Several processes may train one model together. A batch is drawn once, and each of its examples sent
to a process that is drawn for it alone, so that an example more sends no other one elsewhere: each
adds to the sum what it alone decides, even where processes compute gradients differently. The sums
are added at the first process, which alone counts the step, draws the noise and sends what is
released. So batch, sum and noise are those of a single process. In exact arithmetic sums are
integers below 2^53, which doubles add without error, in any order.

Of a model that ``fully_shard`` split, each process has all weights while it takes the gradients of
its examples, so that it clips them whole. The rows of a sum are added at the process that has the
parameter's, each at one; that process draws their noise, by randomness of its own, once it knows
that the first one has counted the step. So the joint noise is that of a single process.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from numbers import Number
from typing import Any, Final, NoReturn, final

import torch
from torch import distributed
from torch.utils import _pytree as trees
from torch.utils.data import DataLoader

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters.loop import Account, Indices, bits, numbers
from hockeystick.adapters.torch import _checks
from hockeystick.adapters.torch._noise import Tensors, all_keyed
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.counting import length_of
from hockeystick.release.samplers import Bits, uniform_integers

Row = tuple[Any, ...]
_LENGTH: Final = whole_numbers("L", 1, (8, 4096))
_A_ROW: Final = "a tensor, a tuple of tensors or a mapping by names of arguments for each example"
_ONE: Final = "given one example at a time, and return tensors whose length is 1"
_ALIKE: Final = "one whose examples have one shape and type; pad_to gives inputs one length"
# What the losses of torch and of Hugging Face's models leave out.
_IGNORED: Final = -100


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What one step uses: its number from 0, and the model's input and targets, stacked.

    Examples are empty where none was drawn; they stay secret, and their number does.
    """

    step: int
    examples: Row

    def __len__(self) -> int:
        return len(trees.tree_leaves(self.examples)[0]) if self.examples else 0

    def __iter__(self) -> NoReturn:
        raise IncompatibleError("private.step takes a batch whole; its tensors are batch.examples")


@final
@dataclass(slots=True, eq=False, repr=False)
class Loader:
    """Gives the batch of the next step until the plan is done, and the same again until it is used.

    A batch that was drawn cannot be exchanged for another one: choosing among batches would not be
    the sampling that is accounted for.
    """

    account: Account[Any]
    sampler: Any
    _fetching: Callable[..., Any]
    _tensors: Any
    processes: Processes
    seed: int | None
    draw: Callable[[int], Indices] | None = None  # in place of the sampler's, in replays
    _fetched: Iterator[Any] = field(init=False, default_factory=lambda: iter(()))
    _at: int = field(init=False, default=-1)  # the step whose batch is fetched next
    _drawn: dict[int, Indices] = field(init=False, default_factory=dict)
    _pending: Batch | None = field(init=False, default=None)
    _versions: list[int] = field(init=False, default_factory=list)

    def __len__(self) -> int:
        return self.account.limit - self.account.counted

    def __iter__(self) -> Iterator[Batch]:
        """Give one batch for each step that is left of the plan, or raise where a budget ends."""
        return self.batches(length_of(self.account.plan))

    def batches(self, end: int) -> Iterator[Batch]:
        while self.account.counted < end:
            batch = self.next()
            yield batch
            if batch.step == self.account.counted:
                self.refuse(
                    f"the batch of step {batch.step} was drawn and not used: each takes a "
                    "private step, also one without examples, or it is not the plan's sampling"
                )

    def refuse(self, reason: str) -> NoReturn:
        with self.processes.together("batch"):
            raise IncompatibleError(reason)

    def check(self, batch: object) -> None:
        given = self._pending
        if given is None or batch is not given or given.step != self.account.counted:
            allowed = "the one that private.loader gave last, each used once"
            raise ParameterError("batch", type(batch).__name__, allowed)
        if versions_of(given.examples) != self._versions:
            allowed = "as it was drawn: what is computed across a batch mixes its examples"
            raise ParameterError("batch", "tensors that were changed", allowed)

    def next(self) -> Batch:
        """Return the batch of the next step, or this process's share, drawn where it is not yet."""
        step, processes, shares = self.account.counted, self.processes, None
        if self._pending is not None and self._pending.step == step:
            self.account.check()
            return self._pending
        with processes.together("batch", lambda: {"run": self.account.run, "step": step}):
            self.account.check()
            processes.check()
            if processes.first:
                shares = processes.shares(self._examples(step), bits(self.seed, "process", step))
        self._pending = Batch(step, processes.shared(shares))
        self._versions = versions_of(self._pending.examples)
        self._drawn = {later: one for later, one in self._drawn.items() if later > step}
        return self._pending

    def _examples(self, step: int) -> Row:
        """Return the examples of a step; after an interruption, of the batch that was drawn."""
        if self._tensors is not None:
            places = self._places(step)
            return tuple(self._tensors[places]) if len(places) else ()
        if self._at != step:
            batches = map(self._places, range(step, self.account.limit))
            lists = (places.tolist() for places in batches)
            self._fetched, self._at = iter(self._fetching(batch_sampler=lists)), step
        try:
            found = next(self._fetched)
            if isinstance(found, ParameterError):
                raise found
        except BaseException:
            self.close()
            raise
        self._at += 1
        return tuple(_tree(part, False) for part in found)  # of what is pinned lists are made

    def one_example(self) -> Row:
        """Return a batch of the first of the data, for the kind and shape of its tensors."""
        (found,) = self._fetching(batch_sampler=[[0]])
        if isinstance(found, ParameterError):
            raise found
        return tuple(_tree(part, False) for part in found)

    def _places(self, step: int) -> Indices:
        """Return the places of a step's examples, drawn once, be it ahead of the step."""
        if step not in self._drawn:
            self._drawn[step] = torch.from_numpy((self.draw or self.sampler.draw)(step))
        return self._drawn[step]

    def close(self) -> None:
        self._fetched, self._at = iter(()), -1


def without_rows(examples: Any) -> Any:
    """Return tensors of no example, of the shape that each example has."""
    return trees.tree_map(lambda part: part[:0], examples)


def versions_of(examples: Any) -> list[int]:
    """Return how often each tensor was written to."""
    return [part._version for part in trees.tree_leaves(examples)]


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

    Example:
        >>> from hockeystick.adapters.torch import Loading
        >>> Loading(pad_to=128, num_workers=2).pad_to
        128
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
        length = self.pad_to
        if length is not None:
            length = _validate.count("pad_to", length, _LENGTH)
        made = partial(
            DataLoader,
            _OneByOne(dataset, self.collate, length, secret),
            collate_fn=_itself,
            # Which gives workers seeds for what they draw themselves, and leaves torch's own be.
            generator=torch.Generator().manual_seed(secrets.randbits(63)),
            **{one.name: getattr(self, one.name) for one in fields(self)[2:]},
        )
        try:
            made(batch_sampler=())
        except (TypeError, ValueError) as error:
            raise ParameterError("loading", self, f"what DataLoader takes ({error})") from None
        return made


@final
@dataclass(frozen=True, slots=True)
class _OneByOne:
    """A data set that is asked for one example at a time, even if it would give several."""

    dataset: Any
    collate: Callable[..., Any] | None
    pad_to: int | None
    secret: bool

    def __getitems__(self, places: list[int]) -> Row | ParameterError:
        """Return a batch's examples, or what is wrong, which a worker's exception does not name."""
        try:
            with all_keyed(numbers(None, "examples", 0)) if self.secret else nullcontext():
                examples = [self.dataset[place] for place in places]
                return _stacked([_row(one, self.collate, self.pad_to) for one in examples])
        except ParameterError as error:
            return error


def _itself(batch: Any) -> Any:
    return batch


def _row(example: Any, collate: Callable[..., Any] | None, pad_to: int | None) -> Row:
    """Return an example's input and targets, which nothing but the example decides."""
    given = example if collate is None else collate([example])
    several = given if isinstance(given, tuple | list) else (given,)
    parts = tuple(_tree(part, collate is not None) for part in several)
    if not parts or not trees.tree_leaves(parts[0]):
        raise ParameterError("dataset", example, _A_ROW)
    return parts if pad_to is None else (_padded(parts[0], pad_to), *parts[1:])


def _stacked(rows: list[Row]) -> Row:
    """Return rows as one, where they are alike; nothing of no row."""
    found = [trees.tree_flatten(one) for one in rows or [()]]
    kinds = [(tree, [(part.dtype, part.shape) for part in leaves]) for leaves, tree in found]
    if any(kind != kinds[0] for kind in kinds):
        raise ParameterError("dataset", "examples that differ", _ALIKE)
    columns = zip(*(leaves for leaves, _ in found), strict=True)
    return trees.tree_unflatten(list(map(torch.stack, columns)), found[0][1])  # type: ignore[no-any-return]


def _tree(part: Any, collated: bool) -> Any:
    """Return mappings as dictionaries in one order, sequences as tuples, all else as tensors."""
    if isinstance(part, Mapping) and all(isinstance(name, str) for name in part):
        return {name: _tree(part[name], collated) for name in sorted(part)}
    if isinstance(part, tuple | list) and not _is_numbers(part):
        return tuple(_tree(one, collated) for one in part)
    if collated and isinstance(part, torch.Tensor):
        if part.dim() == 0 or len(part) != 1:
            raise ParameterError("collate", tuple(part.shape), _ONE)
        return part[0]
    try:
        if isinstance(part, Mapping) or collated:
            raise TypeError
        return torch.as_tensor(part, dtype=torch.float64 if isinstance(part, float) else None)
    except (TypeError, ValueError, RuntimeError):
        raise ParameterError("dataset", type(part).__name__, _A_ROW) from None


def _is_numbers(part: Any) -> bool:
    """Return whether a sequence has nothing but numbers, however deep: it is one tensor."""
    inside = isinstance(part, tuple | list)
    return all(map(_is_numbers, part)) if inside else isinstance(part, Number)


def _padded(given: Any, length: int) -> Any:
    """Return an input that is filled or cut to a length: of a mapping, each part that has one."""
    if isinstance(given, dict):
        fill = {"labels": _IGNORED}
        return {name: _filled(part, length, fill.get(name, 0)) for name, part in given.items()}
    if not isinstance(given, torch.Tensor) or given.dim() == 0:
        raise ParameterError("pad_to", length, "given where each example's input has a length")
    return _filled(given, length, 0)


def _filled(part: Any, length: int, value: int) -> Any:
    if not isinstance(part, torch.Tensor) or part.dim() == 0:
        return part
    missing = part.new_full((max(length - len(part), 0), *part.shape[1:]), value)
    return torch.cat([part[:length], missing])


# Processes that train one model together.

_ON_CPU: Final = "cpu:gloo"
_LOST: Final = "the processes of this loop have lost one another: start all of them again"


@final
class Processes:
    """All of torch's default process group, or this one where there is no group."""

    rank: int
    size: int

    def __init__(self) -> None:
        self.rank, self.size = _place()
        self.first: bool = self.rank == 0
        self._lost, self._process = False, os.getpid()
        by_torchrun = distributed.is_available() and distributed.is_torchelastic_launched()
        if self.size == 1 and by_torchrun and int(os.environ["WORLD_SIZE"]) > 1:
            raise IncompatibleError(
                "torchrun started several processes, which are in no process group and would draw "
                "and count alone; call torch.distributed.init_process_group first"
            )
        if self.size > 1 and _ON_CPU not in distributed.get_backend_config():
            allowed = "one with gloo for the CPU: 'gloo', or 'cpu:gloo,cuda:nccl'"
            raise ParameterError("process group", distributed.get_backend_config(), allowed)

    def check(self) -> None:
        """Raise unless the process has the place in the group in which the loop was made."""
        if _place() != (self.rank, self.size):
            raise IncompatibleError(
                f"this loop was made in process {self.rank} of {self.size}, which has another "
                "place now; make the group first"
            )

    @contextmanager
    def together(self, doing: str, facts: Callable[[], dict[str, Any]] = dict) -> Iterator[None]:
        """Raise in all processes where one of them raises, or does or finds something else."""
        if self.size == 1:
            yield
            return
        failure, found = None, {}
        try:
            yield
            found = facts()
        except BaseException as error:
            failure = error
        told: list[Any] = [None] * self.size
        said = None if failure is None else f"{type(failure).__name__}: {failure}"
        try:
            with self._exchange():
                distributed.all_gather_object(told, (doing, said, found))
        finally:
            if failure is not None:
                raise failure
        _compare(told)

    def shares(self, examples: Row, source: Bits) -> list[Row]:
        """Return each process's share of the examples, which may be empty."""
        if self.size == 1 or not examples:
            return [examples] * self.size
        count = len(trees.tree_leaves(examples)[0])
        owners = torch.from_numpy(uniform_integers(self.size, count, bits=source))
        each = [owners == rank for rank in range(self.size)]
        return [
            trees.tree_map(lambda part, own=own: part.detach()[own].cpu(), examples)
            if own.any()
            else ()
            for own in each
        ]

    def shared(self, shares: list[Any] | None) -> Any:
        """Return this process's of what the first one has for each."""
        found: list[Any] = [()] if shares is None or self.size > 1 else shares
        if self.size > 1:
            with self._exchange():
                distributed.scatter_object_list(found, shares)
        return found[0]

    def gathered(self, model: Any) -> Tensors:
        """Return copies of the tensors of which each process has a shard."""
        found = Tensors()
        with self.together("gather", lambda: {"shards": {n: v.shape for n, v in found.items()}}):
            _checks.check_model(model)
            found |= _checks.shards(model)
        with self._exchange():
            return {name: one.detach().full_tensor().clone() for name, one in found.items()}

    def summed(self, parts: Tensors, *, by_rows: bool = False) -> Tensors:
        """Return at the first process the sum of all parts, or at each that of its own rows."""
        doubles = {n: part.double() for n, part in parts.items()} if self.size > 1 else parts
        return self._each(doubles, partial(self._sum, by_rows=by_rows))

    def _sum(self, value: Any, *, by_rows: bool) -> Any:
        rows = [value]
        if by_rows:
            count = -(-len(value) // self.size)  # as torch.chunk has it, and so has fully_shard
            rows = [value[rank * count : (rank + 1) * count] for rank in range(self.size)]
        for rank, part in enumerate(rows):
            distributed.reduce(part, dst=rank)
        return rows[self.rank if by_rows else 0]

    def sent(self, released: Tensors) -> Tensors:
        return self._each(released, lambda value: distributed.broadcast(value, src=0) or value)

    def _each(self, tensors: Tensors, collective: Callable[[Any], Any]) -> Tensors:
        if self.size == 1:
            return tensors
        with self._exchange():
            found = {name: collective(one.cpu().contiguous()) for name, one in tensors.items()}
        return {name: value.to(tensors[name].device) for name, value in found.items()}

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        """Let nothing be exchanged by a fork, or after an exchange that did not come to its end."""
        if self._lost or os.getpid() != self._process:
            raise IncompatibleError(_LOST)
        self._lost = True
        try:
            yield
        except (RuntimeError, ValueError) as error:
            raise IncompatibleError(_LOST) from error
        self._lost = False


def _place() -> tuple[int, int]:
    grouped = distributed.is_available() and distributed.is_initialized()
    return (distributed.get_rank(), distributed.get_world_size()) if grouped else (0, 1)


def _compare(told: list[tuple[str, str | None, dict[str, Any]]]) -> None:
    first, _, expected = told[0]
    for rank, (_, said, _) in enumerate(told):
        if said is not None:
            raise IncompatibleError(f"process {rank} of {len(told)} stopped all, by {said}")
    for rank, (doing, _, found) in enumerate(told):
        where = f"process 0 and process {rank} of {len(told)}"
        if doing != first:
            raise IncompatibleError(f"{where} do {first!r} and {doing!r}, not the same")
        for name, value in found.items():
            if value != expected[name]:
                same = f"{name} must be the same in all processes"
                raise IncompatibleError(f"{same}; {where} have {expected[name]} and {value}")
