"""The weights of a model as one vector, and what clients send back as changes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from flwr.app import Array, ArrayRecord, Message
from numpy.typing import NDArray

from hockeystick.errors import ParameterError
from hockeystick.release.federated import Cohort

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

    def changed(self, record: ArrayRecord) -> Vector:
        """Return the change that leads to a client's arrays; raise if they are another model's."""
        arrays = {name: array.numpy() for name, array in record.items()}
        shapes = {name: array.shape for name, array in arrays.items()}
        of_numbers = all(array.dtype.kind in "fiu" for array in arrays.values())
        if not of_numbers or shapes != {name: shape for name, shape, _ in self.layout}:
            allowed = "numbers with the names and shapes of the weights"
            raise ParameterError("answer", "other arrays", allowed)
        found = []
        for name, _, _ in self.layout:
            array = arrays[name]
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
class Asked:
    """The clients of a round, the weights that they were sent, and what they answered.

    What it makes of an answer depends on this answer alone, and nothing in one stops the round: a
    round that fails because of what a client holds would tell that.
    """

    server_round: int
    weights: Weights
    cohort: Cohort
    nodes: Sequence[int]

    def accept(self, replies: Iterable[Message]) -> list[tuple[int, str]]:
        """Take what is right of the answers; return nodes and why an answer of theirs is not."""
        places = {self.nodes[place]: place for place in self.cohort.clients}
        refused = list[tuple[int, str]]()
        for reply in replies:
            node = reply.metadata.src_node_id
            try:
                self.cohort.accept(places.get(node, -1), self._read(reply))
            except ParameterError as error:
                refused.append((node, _line(error)))
        silent = set(places) - {node for node, _ in refused}
        silent -= {self.nodes[place] for place in self.cohort.answered}
        return refused + [(node, "there is none") for node in sorted(silent)]

    def _read(self, reply: Message) -> Vector:
        """Return the change that an answer says, or raise."""
        try:
            if reply.has_error():
                raise ParameterError(
                    "answer", f"the error {_line(reply.error.reason)}", "an update"
                )
            records = list(reply.content.array_records.values())
            if len(records) != 1:
                raise ParameterError("answer", f"{len(records)} records of arrays", "one of them")
            with np.errstate(all="ignore"):
                return self.weights.changed(records[0])
        except ParameterError:
            raise
        except Exception as error:  # whatever a client sends: the round goes on without it
            told = f"{type(error).__name__}: {_line(error)}"
            raise ParameterError("answer", told, "one that can be read") from error


def _line(text: object) -> str:
    """Return a text that a client may have written as one short line."""
    return " ".join(str(text).split())[:160]
