"""Train on handwritten digits of ten clients on Flower, in three ways with certified privacy.

    pip install 'hockeystick[flower,torch]' scikit-learn
    python examples/systems/table.py --only flower_digits

Flower's simulation engine runs 20 rounds of each, and of Flower's ``FedAvg`` without privacy:

1. Flower's own strategy with fixed clipping at the server, 9 of 10 clients a round, with our
   accountant beside Flower's: a client is hidden, and what Flower does costs twice what it says.
2. ``PrivateFedAvg`` with Poisson samples of 9 clients on average: as much noise costs half.
3. Flower's ``FedAvg`` of clients that train privately: a record of a client is hidden, from the
   server too.

Ten clients are too few to be hidden and learnt from: the noise of 1 and 2 drowns what they say. 3
learns. The accuracy is told for images that no client holds; no guarantee covers it.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

# No engine is to report home from an example, and its processes import what is in this folder.
os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")]
).rstrip(os.pathsep)

import numpy as np
from digits import Outcome, Settings
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, SamplingMethod
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

import hockeystick as hs
from hockeystick.adapters.flower import HockeystickAccountant, PrivateFedAvg, train_locally

SYSTEM = "On Flower"
CLIENTS, COHORT, ROUNDS, DELTA = 10, 9, 20, 1e-5
NOISE, CLIPPING_NORM, LOCAL_STEPS = 4.0, 1.0, 5
CLIENT_LEVEL = hs.federated.FedSDP(
    noise_multiplier=NOISE,
    total_clients=CLIENTS,
    clients_per_round=COHORT,
    rounds=ROUNDS,
    sampling="poisson",
)
RECORD_LEVEL = hs.DPSGD(
    examples=144, batch_size=36, steps=ROUNDS * LOCAL_STEPS, noise_multiplier=3.0
)
Found = tuple[dict[str, float], hs.Certified, bool]
"""The figures of a way, what it spent, and whether it released as often as was planned."""
_Any = TypeVar("_Any")


def with_flower(grid: Any) -> Found:
    """Train by Flower's own strategy, with our accountant in the place of theirs."""
    from flwr.serverapp import RdpAccountant

    config = PrivacyConfig(
        DELTA, CLIENTS, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION
    )
    accountant, theirs = HockeystickAccountant(config), RdpAccountant(config)
    averaging = FedAvg(
        fraction_train=COHORT / CLIENTS,
        fraction_evaluate=0.0,
        min_train_nodes=COHORT,
        min_available_nodes=CLIENTS,
    )
    strategy = DifferentialPrivacyServerSideFixedClipping(
        averaging, NOISE, CLIPPING_NORM, COHORT, accountant=accountant
    )
    arrays, counted = strategy.start(grid, untrained(), ROUNDS).arrays, accountant.num_releases
    theirs.compose(GaussianPrivacyEvent(NOISE, COHORT, CLIENTS), counted)
    result = accuracy(arrays) | {"Flower says": theirs.get_epsilon(DELTA)}
    return result, accountant.spent(DELTA), counted == ROUNDS


def with_poisson_samples(grid: Any) -> Found:
    """Train by our strategy."""
    strategy = PrivateFedAvg(CLIENT_LEVEL, clipping_norm=CLIPPING_NORM)
    arrays = strategy.start(grid, untrained()).arrays
    return accuracy(arrays), strategy.spent(DELTA), strategy.counted == ROUNDS


def with_private_clients(grid: Any) -> Found:
    """Train by Flower's plain averaging of clients that are private themselves."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = averaged(grid, folder)
        counted = [
            one.read_bytes().partition(b"\n")[2].count(b".") for one in Path(folder).iterdir()
        ]
    spent = hs.epsilon(RECORD_LEVEL, DELTA)
    return accuracy(arrays), spent, max(counted) == RECORD_LEVEL.total_steps


def averaged(grid: Any, folder: str = "") -> ArrayRecord:
    """Return what Flower's plain averaging comes to; clients with a folder train privately."""
    averaging = FedAvg(fraction_evaluate=0.0, min_available_nodes=CLIENTS)
    config = ConfigRecord({"folder": folder})
    return averaging.start(grid, untrained(), ROUNDS, train_config=config).arrays


app = ClientApp()


@app.train()  # type: ignore[untyped-decorator, unused-ignore]  # theirs may have no types
def train(message: Message, context: Any) -> Message:
    """Answer as a client: with its weights after some steps, private ones where there is a folder.

    All clients weigh the same.
    """
    client = int(context.node_config["partition-id"])
    images, labels = (one[client::CLIENTS] for one in digits()[:2])
    if folder := message.content["config"].get("folder"):
        return improved_privately(
            message, images, labels, Path(str(folder), f"client-{client}.journal")
        )
    arrays = improved(message.content["arrays"], images, labels)
    metrics = MetricRecord({"num-examples": 1})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


def improved(arrays: ArrayRecord, images: Any, labels: Any) -> ArrayRecord:
    """Return the weights after some steps of gradient descent on one client's images."""
    weight, bias = arrays["weight"].numpy().copy(), arrays["bias"].numpy().copy()
    for _ in range(10):
        scores = images @ weight.T + bias
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        wrong = shares / shares.sum(axis=1, keepdims=True) - np.eye(10)[labels]
        weight -= (wrong.T @ images / len(images)).astype(np.float32)
        bias -= (wrong.mean(axis=0)).astype(np.float32)
    return ArrayRecord({"weight": Array(weight), "bias": Array(bias)})


def improved_privately(message: Message, images: Any, labels: Any, journal: Path) -> Message:
    """Return a client's answer after some steps of its plan."""
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 10)
    dataset = torch.utils.data.TensorDataset(
        torch.as_tensor(images, dtype=torch.float32), torch.as_tensor(labels)
    )
    return train_locally(
        message,
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        dataset=dataset,
        plan=RECORD_LEVEL,
        loss_fn=torch.nn.functional.cross_entropy,
        steps=LOCAL_STEPS,
        journal=journal,
    )


@cache
def digits() -> tuple[Any, Any, Any, Any]:
    """Return images and labels to train on, and those to test by."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16.0, labels, test_size=0.2, stratify=labels, random_state=0)
    seen, unseen, seen_labels, unseen_labels = parts
    return seen, seen_labels, unseen, unseen_labels


def untrained() -> ArrayRecord:
    """Return the weights of a linear classifier that has learnt nothing."""
    weight, bias = np.zeros((10, 64), np.float32), np.zeros(10, np.float32)
    return ArrayRecord({"weight": Array(weight), "bias": Array(bias)})


def accuracy(arrays: ArrayRecord) -> dict[str, float]:
    """Return the share of test images that are read rightly."""
    _, _, images, labels = digits()
    scores = images @ arrays["weight"].numpy().T + arrays["bias"].numpy()
    return {"accuracy": float((scores.argmax(axis=1) == labels).mean())}


def simulated(server: Callable[[Any], _Any], app: ClientApp, clients: int) -> _Any:
    """Return what a server on a grid of Flower's simulation engine came to, or raise as it did."""
    from flwr.serverapp import ServerApp
    from flwr.simulation import run_simulation

    found, failed, program = list[_Any](), list[Exception](), ServerApp()

    @program.main()  # type: ignore[untyped-decorator, unused-ignore]  # the same
    def main(grid: Any, context: Any) -> None:
        try:
            found.append(server(grid))
        except Exception as error:
            failed.append(error)

    logging.getLogger("flwr").setLevel(logging.WARNING)
    resources = {"num_cpus": 1, "num_gpus": 0.0}
    engine = {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False}
    backend = {"client_resources": resources, "init_args": engine}
    run_simulation(program, app, num_supernodes=clients, backend_config=backend)
    for error in failed:
        raise error
    return found[0]


@cache
def openly() -> dict[str, float]:
    """Return what training without privacy comes to."""
    return accuracy(simulated(averaged, app, CLIENTS))


def run(seed: int | None = 0, *, way: Callable[[Any], Found]) -> Outcome:
    """Train in one way; the seed draws nothing, as noise is of secret bits."""
    result, spent, as_planned = simulated(way, app, CLIENTS)
    return Outcome(result, openly(), spent.upper, DELTA, {"releases": as_planned})


def settings() -> Settings:
    """Return what the system is shown in."""
    return {
        "Flower's strategy, 9 of 10 clients": partial(run, way=with_flower),
        "PrivateFedAvg, 9 of 10 clients by coins": partial(run, way=with_poisson_samples),
        "FedAvg of clients that train privately": partial(run, way=with_private_clients),
    }
