"""Train on handwritten digits of ten clients on Flower, in three ways with certified privacy.

    pip install 'hockeystick[flower,torch]' scikit-learn
    python examples/systems/flower_digits.py

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

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from digits import Outcome, Setting, show_lines
from engines import simulated
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, SamplingMethod
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

import hockeystick as hs
from hockeystick.adapters.flower import HockeystickAccountant, PrivateFedAvg, train_locally

SYSTEM = "On Flower"
CLIENTS, DELTA = 10, 1e-5
NOISE, CLIPPING_NORM = 4.0, 1.0
COHORT = 9
LOCAL_STEPS, LOCAL_BATCH, LOCAL_NOISE = 5, 36, 3.0
WAYS = ("flower", "poisson", "local", "open")


def digits() -> tuple[Any, Any, Any, Any]:
    """Return images and labels to train on, and those to test by."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16.0, labels, test_size=0.2, stratify=labels, random_state=0)
    seen, unseen, seen_labels, unseen_labels = parts
    return seen, seen_labels, unseen, unseen_labels


def spread(folder: str) -> None:
    """Give each client its images, in a file of its own."""
    images, labels, _, _ = digits()
    for client in range(CLIENTS):
        own = {"images": images[client::CLIENTS], "labels": labels[client::CLIENTS]}
        np.savez(Path(folder, f"client-{client}.npz"), **own)


def shard(folder: str, client: int) -> tuple[Any, Any]:
    """Return the images and labels of one client."""
    with np.load(Path(folder, f"client-{client}.npz")) as own:
        return own["images"], own["labels"]


def untrained() -> ArrayRecord:
    """Return the weights of a linear classifier that has learnt nothing."""
    weight, bias = np.zeros((10, 64), np.float32), np.zeros(10, np.float32)
    return ArrayRecord({"weight": Array(weight), "bias": Array(bias)})


def accuracy(arrays: ArrayRecord) -> float:
    """Return the share of test images that are read rightly."""
    _, _, images, labels = digits()
    scores = images @ arrays["weight"].numpy().T + arrays["bias"].numpy()
    return float((scores.argmax(axis=1) == labels).mean())


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


def local_plan(rounds: int) -> hs.DPSGD:
    """Return what each client runs on its own images in all rounds."""
    return hs.DPSGD(
        examples=144,
        batch_size=LOCAL_BATCH,
        steps=rounds * LOCAL_STEPS,
        noise_multiplier=LOCAL_NOISE,
    )


def improved_privately(message: Message, client: int, rounds: int, folder: str) -> Message:
    """Return a client's answer after some steps of its plan."""
    import torch

    torch.set_num_threads(1)
    images, labels = shard(folder, client)
    model = torch.nn.Linear(64, 10)
    dataset = torch.utils.data.TensorDataset(
        torch.as_tensor(images, dtype=torch.float32), torch.as_tensor(labels)
    )
    return train_locally(
        message,
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        dataset=dataset,
        plan=local_plan(rounds),
        loss_fn=torch.nn.functional.cross_entropy,
        steps=LOCAL_STEPS,
        journal=Path(folder) / f"client-{client}.journal",
    )


def client_app(rounds: int, folder: str) -> ClientApp:
    """Return what runs at each client."""
    app = ClientApp()

    @app.train()  # type: ignore[untyped-decorator, unused-ignore]  # theirs may have no types
    def train(message: Message, context: Any) -> Message:
        client = int(context.node_config["partition-id"])
        if message.content["config"].get("way") == "local":
            return improved_privately(message, client, rounds, folder)
        arrays = improved(message.content["arrays"], *shard(folder, client))
        metrics = MetricRecord({"num-examples": 1})  # all clients weigh the same
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    return app


def with_flower(grid: Any, rounds: int) -> Outcome:
    """Train by Flower's own strategy, with our accountant in the place of theirs."""
    from flwr.serverapp import RdpAccountant

    config = PrivacyConfig(
        DELTA, CLIENTS, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION
    )
    accountant = HockeystickAccountant(config)
    averaging = FedAvg(
        fraction_train=COHORT / CLIENTS,
        fraction_evaluate=0.0,
        min_train_nodes=COHORT,
        min_available_nodes=CLIENTS,
    )
    strategy = DifferentialPrivacyServerSideFixedClipping(
        averaging, NOISE, CLIPPING_NORM, COHORT, accountant=accountant
    )
    arrays = strategy.start(grid, untrained(), rounds).arrays
    counted, theirs = accountant.num_releases, RdpAccountant(config)
    theirs.compose(GaussianPrivacyEvent(NOISE, COHORT, CLIENTS), counted)
    plan = f"{rounds} rounds of {COHORT} of {CLIENTS} clients, noise multiplier {NOISE:g}"
    spent = accountant.spent(DELTA)
    found = outcome("flower", "a client", arrays, plan, spent, counted, rounds)
    return replace(found, result=found.result | {"Flower says": theirs.get_epsilon(DELTA)})


def with_poisson_samples(grid: Any, rounds: int) -> Outcome:
    """Train by our strategy."""
    plan = hs.federated.FedSDP(
        noise_multiplier=NOISE,
        total_clients=CLIENTS,
        clients_per_round=COHORT,
        rounds=rounds,
        sampling="poisson",
    )
    strategy = PrivateFedAvg(plan, clipping_norm=CLIPPING_NORM)
    arrays = strategy.start(grid, untrained()).arrays
    spent, counted = strategy.spent(DELTA), strategy.counted
    return outcome("poisson", "a client", arrays, str(plan), spent, counted, rounds)


def with_private_clients(grid: Any, rounds: int, folder: str) -> Outcome:
    """Train by Flower's plain averaging of clients that are private themselves."""
    averaging = FedAvg(fraction_evaluate=0.0, min_available_nodes=CLIENTS)
    config = ConfigRecord({"way": "local"})
    arrays = averaging.start(grid, untrained(), rounds, train_config=config).arrays
    journals = [Path(folder, f"client-{client}.journal") for client in range(CLIENTS)]
    counted = [journal.read_bytes().partition(b"\n")[2].count(b".") for journal in journals]
    plan = local_plan(rounds)
    spent = hs.epsilon(plan, DELTA)
    return outcome("local", "a record", arrays, str(plan), spent, max(counted), plan.total_steps)


def openly(grid: Any, rounds: int) -> Outcome:
    """Train by Flower's plain averaging without privacy."""
    averaging = FedAvg(fraction_evaluate=0.0, min_available_nodes=CLIENTS)
    arrays = averaging.start(grid, untrained(), rounds).arrays
    return Outcome("open, hides nothing", {"accuracy": accuracy(arrays)}, "", float("inf"), DELTA)


def outcome(
    way: str,
    hidden: str,
    arrays: ArrayRecord,
    plan: str,
    spent: hs.Certified,
    counted: int,
    planned: int,
) -> Outcome:
    """Return what a private way of training came to."""
    result = {"accuracy": accuracy(arrays), "releases": float(counted)}
    checks = {"releases": counted == planned}
    return Outcome(f"{way}, hides {hidden}", result, plan, spent.upper, DELTA, checks)


def run(seed: int = 0, *, way: str = "poisson", rounds: int = 20) -> Outcome:
    """Train in one way.

    The seed draws nothing here: what is private is drawn from secret bits, and the rest is fixed.
    """
    return trained((way,), rounds)[way]


def trained(ways: Sequence[str], rounds: int) -> dict[str, Outcome]:
    """Train in some ways, one after the other, in one run of Flower's simulation engine."""
    with tempfile.TemporaryDirectory() as folder:
        spread(folder)
        trainers = {
            "flower": with_flower,
            "poisson": with_poisson_samples,
            "local": partial(with_private_clients, folder=folder),
            "open": openly,
        }
        return simulated(
            lambda grid: {way: trainers[way](grid, rounds) for way in ways},
            client_app(rounds, folder),
            CLIENTS,
        )


def settings(rounds: int = 20, ways: Sequence[str] = WAYS) -> dict[str, Setting]:
    """Return what the system is shown in."""
    told = {
        "flower": "Flower's strategy, 9 of 10 clients",
        "poisson": "PrivateFedAvg, 9 of 10 clients by coins",
        "local": "FedAvg of clients that train privately",
        "open": "FedAvg",
    }

    @cache
    def all_ways(seed: int) -> dict[str, Outcome]:
        return trained(ways, rounds)

    return {
        told[way]: Setting(lambda seed, way=way: all_ways(seed)[way], beside="FedAvg", figures=own)
        for way in ways
        for own in [("accuracy", "Flower says") if way == "flower" else ("accuracy",)]
    }


def main() -> None:
    """Train in each way, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    given = parser.parse_args()
    show_lines(settings(given.rounds, given.ways), given.seed, 1)


if __name__ == "__main__":
    main()
