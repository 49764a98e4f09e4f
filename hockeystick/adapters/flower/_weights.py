"""The weights of a model as one vector, and what clients send back as changes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from flwr.app import Array, ArrayRecord, Message
from numpy.typing import NDArray

from hockeystick.errors import ParameterError

Vector = NDArray[np.float64]
_ARRAYS = "a flwr.app.ArrayRecord of floating-point arrays, one at least"


@final
@dataclass(frozen=True, slots=True)
class Weights:
    """The arrays of a model: their names, shapes, types, and numbers one after the other."""

    layout: tuple[tuple[str, tuple[int, ...], str], ...]
    numbers: Vector

    @classmethod
    def of(cls, record: object) -> Self:
        """Return the weights in a record, or raise."""
        if not isinstance(record, ArrayRecord) or not record:
            raise ParameterError("arrays", record, _ARRAYS)
        found = {name: array.numpy() for name, array in record.items()}
        for name, array in found.items():
            if array.dtype.kind != "f":
                raise ParameterError("arrays", f"{name!r} of {array.dtype}", _ARRAYS)
        numbers = np.concatenate([array.ravel().astype(np.float64) for array in found.values()])
        if not np.isfinite(numbers).all():
            raise ParameterError("arrays", "weights that are infinite or undefined", "finite")
        layout = tuple((name, array.shape, array.dtype.str) for name, array in found.items())
        return cls(layout, numbers)

    def changed(self, record: ArrayRecord) -> Vector | None:
        """Return the change that leads to a client's arrays; None if they are not of this model."""
        if set(record) != {name for name, _, _ in self.layout}:
            return None
        found = []
        for name, shape, _ in self.layout:
            array = record[name].numpy()
            if array.shape != shape or array.dtype.kind not in "fiu":
                return None
            found.append(array.ravel().astype(np.float64))
        return np.concatenate(found) - self.numbers

    def moved(self, change: Vector) -> ArrayRecord:
        """Return the arrays after a change."""
        numbers = self.numbers + change
        arrays, start = {}, 0
        for name, shape, dtype in self.layout:
            stop = start + math.prod(shape)
            with np.errstate(over="ignore"):
                arrays[name] = Array(numbers[start:stop].reshape(shape).astype(dtype))
            start = stop
        return ArrayRecord(arrays)


@final
@dataclass(frozen=True, slots=True)
class Cohort:
    """The clients of a round and the weights that they were sent.

    What it makes of an answer depends on this answer alone, and nothing in one stops the round: a
    round that fails because of what a client holds would tell that.
    """

    server_round: int
    nodes: frozenset[int]
    weights: Weights

    def rows(self, replies: Iterable[Message]) -> tuple[Vector, dict[int, str]]:
        """Return a row for each client whose first answer is one, and why others count as 0."""
        found: dict[int, Vector | None] = {}
        ignored: dict[int, str] = {}
        for reply in replies:
            node = reply.metadata.src_node_id
            if node not in self.nodes:
                ignored[node] = "was not asked"
            elif node in found:
                ignored[node] = "answered more than once: the first answer counts"
            else:
                found[node], why = self._read(reply)
                ignored |= {node: why} if why else {}
        ignored |= dict.fromkeys(self.nodes - set(found), "did not answer")
        rows = [change for change in found.values() if change is not None]
        return np.array(rows).reshape(len(rows), len(self.weights.numbers)), ignored

    def _read(self, reply: Message) -> tuple[Vector | None, str]:
        """Return the change that an answer says, or None and why there is none."""
        try:
            if reply.has_error():
                return None, f"answered with an error: {_line(reply.error.reason)}"
            records = list(reply.content.array_records.values())
            if len(records) != 1:
                return None, f"sent {len(records)} records of arrays in place of one"
            with np.errstate(all="ignore"):
                change = self.weights.changed(records[0])
        except Exception as error:  # whatever a client sends: the round goes on without it
            return None, f"sent what cannot be read: {type(error).__name__}: {_line(error)}"
        if change is None:
            return None, "sent arrays of other names, shapes or types"
        if not np.isfinite(change).all():
            return None, "sent numbers that are infinite or undefined"
        return change, ""


def _line(text: object) -> str:
    """Return a text that a client may have written as one short line."""
    return " ".join(str(text).split())[:80]
