"""Clients of Flower without its engine: each node answers at once, by a function of its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.supercore.task_identity import TaskIdentity

FIRST = 100
Weights = dict[str, Any]


@contextmanager
def server() -> Iterator[None]:
    """Be the server of a run, as Flower's messages ask."""
    with patch.multiple(TaskIdentity, _run_id=1, _node_id=1, _task_id=1):
        yield


class Clients:
    """A grid of nodes; what a node makes of the weights it gets is `answer(place, weights)`.

    That is new weights, None for silence, a text for an error, or a list of several answers.
    """

    def __init__(self, nodes: int, answer: Callable[[int, Weights], Any]) -> None:
        self.nodes, self.answer = nodes, answer

    def get_node_ids(self) -> list[int]:
        return list(range(FIRST, FIRST + self.nodes))

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Message]:
        return [reply for message in messages for reply in self._replies(message)]

    def _replies(self, message: Message) -> list[Message]:
        arrays = {name: array.numpy() for name, array in message.content["arrays"].items()}
        found = self.answer(message.metadata.dst_node_id - FIRST, arrays)
        return [_reply(message, one) for one in (found if isinstance(found, list) else [found])]


def _reply(message: Message, found: Any) -> Message:
    if isinstance(found, str | None):
        return Message(Error(code=0, reason=found or "no answer in time"), reply_to=message)
    metrics = MetricRecord({"num-examples": 1})
    return Message(RecordDict({"arrays": record(found), "metrics": metrics}), reply_to=message)


def record(arrays: Weights) -> ArrayRecord:
    """Return arrays as Flower sends them; those that are Flower's already are left as they are."""
    return ArrayRecord(
        {
            name: array if isinstance(array, Array) else Array(np.asarray(array))
            for name, array in arrays.items()
        }
    )


def zeros(size: int = 3) -> ArrayRecord:
    return record({"w": np.zeros(size)})


def first_moved(by: Callable[[int], float]) -> Callable[[int, Weights], Weights]:
    """Return clients that move the first weight, each by a number of its own."""

    def answer(place: int, weights: Weights) -> Weights:
        weights["w"][0] += by(place)
        return weights

    return answer
