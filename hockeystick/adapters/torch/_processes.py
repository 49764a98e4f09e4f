"""Processes that train one model together: the first draws, counts and noises for all of them.

A batch is drawn once, and each of its examples sent to a process, which clips its gradient. Which
one is drawn for it alone, so that an example more sends no other one elsewhere: each adds to the
sum what it alone decides, even where processes compute gradients differently. The shares' sums are
added at the first process, which alone counts the step, draws the noise and sends what is released.
So the batch, the sum and the noise are those of a single process. In exact arithmetic sums are
integers below 2^53, which doubles add without error, in any order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar, final

import torch
from torch import distributed
from torch.utils import _pytree as trees

from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.samplers import Bits, uniform_integers

Examples = tuple[Any, ...]
Tensors = dict[str, Any]
T = TypeVar("T")
_ON_CPU: Final = "cpu:gloo"
_LOST: Final = (
    "the processes of this loop have lost one another: one ended, was interrupted, or did not "
    "answer within the process group's time limit; start all of them again"
)


@final
class Processes:
    """All of torch's default process group, or this one where there is no group.

    Raises:
        ParameterError: If the group has no gloo for tensors on the CPU, where sums are added.
        IncompatibleError: If torchrun started several processes, and there is no group.
    """

    __slots__ = ("_lost", "_process", "first", "rank", "size")

    def __init__(self) -> None:
        self.rank, self.size = _place()
        self.first, self._lost = self.rank == 0, False
        self._process = os.getpid()
        started = _started()
        if self.size == 1 < started:
            raise IncompatibleError(
                f"torchrun started {started} processes, which are in no process group: each would "
                "draw and count alone; call torch.distributed.init_process_group first"
            )
        if self.size > 1 and _ON_CPU not in distributed.get_backend_config():
            allowed = "one with gloo for the CPU: 'gloo', or 'cpu:gloo,cuda:nccl'"
            raise ParameterError("process group", distributed.get_backend_config(), allowed)

    def check(self) -> None:
        """Raise unless the process has the place in the group in which the loop was made."""
        rank, size = _place()
        if (rank, size) != (self.rank, self.size):
            raise IncompatibleError(
                f"this loop was made in process {self.rank} of {self.size}, which is now process "
                f"{rank} of {size}: another one would draw and count; make the group first, then "
                "the loop"
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

    def from_first(self, value: T) -> T:
        found = [value]
        if self.size > 1:
            with self._exchange():
                distributed.broadcast_object_list(found)
        return found[0]

    def shares(self, examples: Examples, source: Bits) -> list[Examples]:
        """Return each process's share of the examples, which may be empty."""
        if self.size == 1 or not examples:
            return [examples] * self.size
        count = len(trees.tree_leaves(examples)[0])
        owners = torch.from_numpy(uniform_integers(self.size, count, bits=source))
        return [_those(examples, owners == rank) for rank in range(self.size)]

    def shared(self, shares: list[Examples] | None) -> Examples:
        if self.size > 1:
            found: list[Any] = [()]
            with self._exchange():
                distributed.scatter_object_list(found, shares)
            shares = found
        assert shares is not None
        return shares[0]

    def summed(self, parts: Tensors, *, largest: bool = False) -> Tensors:
        """Return at the first process the sum of all parts, or the largest; elsewhere nothing."""
        if self.size == 1:
            return parts
        how = distributed.ReduceOp.MAX if largest else distributed.ReduceOp.SUM
        doubles = {name: part.double() for name, part in parts.items()}
        return self._each(doubles, partial(distributed.reduce, dst=0, op=how))

    def sent(self, released: Tensors) -> Tensors:
        return self._each(released, partial(distributed.broadcast, src=0))

    def _each(self, tensors: Tensors, collective: Callable[[Any], object]) -> Tensors:
        if self.size == 1:
            return tensors
        found = {name: value.cpu().contiguous() for name, value in tensors.items()}
        with self._exchange():
            for value in found.values():
                collective(value)
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


def _started() -> int:
    by_torchrun = distributed.is_available() and distributed.is_torchelastic_launched()
    return int(os.environ["WORLD_SIZE"]) if by_torchrun else 1


def _those(examples: Examples, chosen: Any) -> Examples:
    if not chosen.any():
        return ()
    share: Examples = trees.tree_map(lambda part: part.detach()[chosen].cpu(), examples)
    return share


def _compare(told: list[tuple[str, str | None, dict[str, Any]]]) -> None:
    for rank, (_, said, _) in enumerate(told):
        if said is not None:
            raise IncompatibleError(f"process {rank} of {len(told)} stopped all, by {said}")
    first, _, expected = told[0]
    for rank, (doing, _, found) in enumerate(told):
        where = f"process 0 and process {rank} of {len(told)}"
        if doing != first:
            raise IncompatibleError(
                f"{where} do {first!r} and {doing!r}: each does the same in the same order"
            )
        for name, value in found.items():
            if value != expected[name]:
                raise IncompatibleError(
                    f"{name} must be the same in all processes; {where} have "
                    f"{expected[name]} and {value}"
                )
