"""Small runs of each system on either engine; those on Flower in a process of their own.

python -m tests.systems.engine_runs FILE
"""

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hockeystick as hs
from tests.systems.programs import program

alike, carried, LostError = (
    getattr(program("engines"), name) for name in ("alike", "carried", "LostError")
)
SEED, CLIENTS = 5, 4


def few(data: Any) -> Any:
    """Return the first clients of a federation."""
    return replace(data, clients=data.clients[:CLIENTS])


def fed_sdp(system: Any, engine: str) -> Any:
    """Return the model of a run with noise at the clients, and who took part."""
    plan = replace(system.planned("clients"), total_clients=CLIENTS, clients_per_round=2, rounds=3)
    data = few(system.digits(12, "writer"))
    rounds = system.ClientRounds(plan, 650, 1.0, noise_at="clients", bits=system.source(SEED))
    answer = partial(system.answer, data, plan, 1.0, "clients", SEED)
    return system.carried(engine, partial(system.serve, rounds, 650), answer, CLIENTS)


def fed_cdp(system: Any, engine: str) -> Any:
    """Return the model of a run whose noise falls, and what its clients report."""
    plan = replace(
        system.planned("staircase"), total_clients=CLIENTS, clients_per_round=2, rounds=5
    )
    return system.trained(plan, few(system.digits(24, "writer")), seed=SEED, engine=engine)


def prifedsync(system: Any, engine: str) -> Any:
    """Return the global model of a run, and the helper models, which stay at the clients."""
    plan = replace(system._with_noise(1.0), rounds=4)
    data = few(system.digits(system.CLIENTS, "label", 1, system.EXAMPLES))
    return system.trained(plan, data, seed=SEED, engine=engine)


def clustered(system: Any, engine: str) -> Any:
    """Return the hypotheses after a run, how often each client sent, and what was clipped."""
    people = system.people(6, np.random.default_rng(SEED))
    return system.trained("within distance 2", people, 3, 2, SEED, engine)


def asynchronous(system: Any, engine: str) -> Any:
    """Return the model of a run of growing batches in which clients are killed, and its counts."""
    plan = hs.DPSGD(
        noise_multiplier=1.0,
        examples=system.EXAMPLES,
        batch_size=10,
        steps=6,
        batch_schedule=hs.schedules.Linear(4.0),
    )
    system.KILLED = 0.2
    data = few(system.digits(system.CLIENTS, "writer", 0, system.EXAMPLES))
    server, reports = system.trained(plan, data, SEED, engine)
    return server.model, server.begun, server.killed, reports


def counting(client: int, sent: Any, kept: Any) -> Any:
    """Return how often a client was asked, twice what it was sent; one is lost, one is wrong."""
    kept["asked"] = kept.get("asked", np.array(0)) + 1
    if client == 1 and sent["turn"] == 2:
        raise LostError
    if sent["turn"] == 4:
        raise ZeroDivisionError("nothing to divide by")
    return {"asked": kept["asked"], "twice": 2 * np.asarray(sent["turn"])}


def asked_four_times(ask: Any) -> Any:
    """Return the answers of three rounds, and the text of what is raised in the fourth."""
    answers = [ask(alike([2, 1], turn=turn)) for turn in (1, 2, 3)]
    try:
        ask(alike([2], turn=4))
    except (ZeroDivisionError, RuntimeError) as error:
        return answers, str(error)
    return answers, ""


def lost(system: Any, engine: str) -> Any:
    """Return what became of a client that is lost, and of one that fails."""
    return carried(engine, asked_four_times, counting, 3)


RUNS: tuple[Callable[[Any, str], Any], ...] = (
    fed_sdp,
    fed_cdp,
    prifedsync,
    clustered,
    asynchronous,
    lost,
)


def ran(run: Callable[[Any, str], Any], engine: str) -> Any:
    """Return what a run came to."""
    return run(program("engines" if run is lost else run.__name__), engine)


if __name__ == "__main__":
    found = {run.__name__: ran(run, "flower") for run in RUNS}
    Path(sys.argv[1]).write_bytes(pickle.dumps(found))
