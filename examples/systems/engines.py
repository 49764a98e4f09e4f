"""What carries messages between a server and its clients: a loop in this process, or Flower.

A system is written once: its server asks clients, and a client answers from what it is sent and
what it keeps. Both engines carry the same numbers, and give them back in the same order, so that a
run is the same function of its seed on either.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

# Neither of Flower's engines is to report home from an example.
os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import numpy as np

ENGINES = ("loop", "flower")
Arrays = dict[str, Any]
"""Arrays by name: what is sent, or what a client keeps from one message to the next."""
Answer = Callable[[int, Arrays, Arrays], Arrays]
"""From a client's number, what it is sent and what it keeps, which it may change, to its answer."""
Ask = Callable[[Mapping[int, Arrays]], dict[int, Arrays]]
"""From what each client is sent to the answers of those that are not lost, by rising number."""
_Found = TypeVar("_Found")


class LostError(Exception):
    """A client's process ended before it answered: what it keeps is as it was before."""


def alike(clients: Iterable[int], **arrays: Any) -> dict[int, Arrays]:
    """Return the same message for each of some clients; without arrays, one that asks for a report.

    What a client reports is compared with the account and shown; it is no part of any system.
    """
    return dict.fromkeys(clients, arrays)


def rows_of(answers: Mapping[int, Arrays], name: str, size: int) -> dict[int, Any]:
    """Return the rows of so many finite numbers that clients answered with, by rising number.

    A client that answers with anything else is taken for one that is lost.
    """
    rows = {client: np.asarray(own.get(name)) for client, own in answers.items()}
    return {
        client: row
        for client, row in rows.items()
        if row.shape == (size,) and row.dtype.kind == "f" and np.isfinite(row).all()
    }


def carried(engine: str, server: Callable[[Ask], _Found], answer: Answer, clients: int) -> _Found:
    """Return what a server came to whose messages an engine carries.

    Args:
        engine: "loop", or "flower" for Flower's simulation engine, where each message is handled by
            one of two other processes, and ``Context.state`` is what a client keeps.
        server: What the server does, given how to ask.
        answer: What a client does; for Flower a function that can be pickled.
        clients: How many there are, with numbers from 0.
    """
    if engine == "loop":
        return server(partial(_asked, answer, [Arrays() for _ in range(clients)]))
    # What a client raises comes back as its answer: ``_sent`` raises it, and no log is needed.
    return simulated(
        lambda grid: server(partial(_sent, grid, _nodes(grid, clients))),
        _app(answer),
        clients,
        logging.CRITICAL,
    )


def _asked(answer: Answer, kept: list[Arrays], sent: Mapping[int, Arrays]) -> dict[int, Arrays]:
    """Return the answers of clients in this process."""
    answers = {}
    for client, message in sorted(sent.items()):
        own = dict(kept[client])
        with suppress(LostError):
            answers[client] = answer(client, message, own)
            kept[client] = own
    return answers


def simulated(
    server: Callable[[Any], _Found], app: Any, clients: int, level: int = logging.WARNING
) -> _Found:
    """Return what a server on a grid of Flower's simulation engine came to, or raise as it did."""
    from flwr.serverapp import ServerApp
    from flwr.simulation import run_simulation

    found, failed = list[_Found](), list[Exception]()
    program = ServerApp()

    @program.main()  # type: ignore[untyped-decorator, unused-ignore]  # theirs may have no types
    def main(grid: Any, context: Any) -> None:
        try:
            found.append(server(grid))
        except Exception as error:
            failed.append(error)

    logging.getLogger("flwr").setLevel(level)
    with _programs_on_path():
        run_simulation(
            program,
            app,
            num_supernodes=clients,
            backend_config={
                "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                "init_args": {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False},
            },
        )
    for error in failed:
        raise error
    return found[0]


@contextmanager
def _programs_on_path() -> Iterator[None]:
    """Let the engine's processes import what is in this folder."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).resolve().parent), *([before] if before else [])]
    )
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _app(answer: Answer) -> Any:
    """Return what runs at each client of Flower's."""
    from flwr.app import Message, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @app.query()  # type: ignore[untyped-decorator, unused-ignore]  # the same
    def number(message: Any, context: Any) -> Any:
        record = _record({"number": np.array(context.node_config["partition-id"])})
        return Message(RecordDict({"arrays": record}), reply_to=message)

    @app.train()  # type: ignore[untyped-decorator, unused-ignore]  # the same
    def train(message: Any, context: Any) -> Any:
        kept = _arrays(context.state["kept"]) if "kept" in context.state else Arrays()
        client = int(context.node_config["partition-id"])
        answered = _record(answer(client, _arrays(message.content["arrays"]), kept))
        context.state["kept"] = _record(kept)
        return Message(RecordDict({"arrays": answered}), reply_to=message)

    return app


def _nodes(grid: Any, clients: int) -> list[int]:
    """Return Flower's numbers of the clients, by ours: clients alone know which data they hold."""
    from flwr.app import MessageType

    while len(there := list(grid.get_node_ids())) < clients:
        time.sleep(0.1)
    found = {
        int(_arrays(reply.content["arrays"])["number"]): reply.metadata.src_node_id
        for reply in _replies(grid, MessageType.QUERY, alike(there))
    }
    return [found[client] for client in range(clients)]


def _sent(grid: Any, nodes: list[int], sent: Mapping[int, Arrays]) -> dict[int, Arrays]:
    """Return the answers of Flower's clients."""
    from flwr.app import MessageType

    clients = {nodes[client]: client for client in sent}
    messages = {nodes[client]: message for client, message in sent.items()}
    answers = {}
    for reply in _replies(grid, MessageType.TRAIN, messages):
        if not reply.has_error():
            client = clients[reply.metadata.src_node_id]
            answers[client] = _arrays(reply.content["arrays"])
        elif LostError.__name__ not in reply.error.reason:
            raise RuntimeError(reply.error.reason)
    return dict(sorted(answers.items()))


def _replies(grid: Any, kind: str, messages: Mapping[int, Arrays]) -> Any:
    """Return the replies to messages, by Flower's numbers of the clients."""
    from flwr.app import Message, RecordDict

    return grid.send_and_receive(
        [
            Message(RecordDict({"arrays": _record(arrays)}), dst_node_id=node, message_type=kind)
            for node, arrays in messages.items()
        ]
    )


def _record(arrays: Mapping[str, Any]) -> Any:
    """Return arrays as Flower sends them."""
    from flwr.app import Array, ArrayRecord

    return ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})


def _arrays(record: Any) -> Arrays:
    """Return arrays that Flower sent."""
    return {name: array.numpy() for name, array in record.items()}
