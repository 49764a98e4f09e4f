"""What other libraries release, audited against what they say it costs.

Opacus and Flower are run here, diffprivlib and OpenDP by an interpreter that has them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
from audited import CONFIDENCE, Audited, Found, certified, each, until_refuted, variation
from click import echo
from mistakes import SMALL, reached
from party_releases import LONG, opacus_steps, torch_model

import hockeystick as hs

THERE = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np

def diffprivlib_laplace():
    from diffprivlib.mechanisms import Laplace
    noise = Laplace(epsilon=1.0, delta=0.0, sensitivity=1.0)
    return lambda inside: noise.randomise(float(inside))

def diffprivlib_geometric():
    from diffprivlib.mechanisms import Geometric
    noise = Geometric(epsilon=1.0, sensitivity=1)
    return lambda inside: noise.randomise(int(inside))

def diffprivlib_sum():
    from diffprivlib.tools import sum
    return lambda inside: sum(np.ones(64) * ([1.0] * 63 + [inside]), epsilon=1.0, bounds=(0, 1))

def diffprivlib_int8():
    from diffprivlib.tools import sum
    def one(inside):
        rows = np.array([1] * 127 + [int(inside)])
        return -sum(rows, epsilon=1.0, bounds=(0, 1), dtype=np.int8)
    return one

def opendp_laplace():
    import opendp.prelude as dp
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    noise = dp.m.make_laplace(*space, scale=1.0)
    return lambda inside: noise(float(inside))

name, inside, trials = sys.argv[1], sys.argv[2] == "True", int(sys.argv[3])
run = globals()[name]()
json.dump([float(run(inside)) for _ in range(trials)], sys.stdout)
"""

# Flower divides by the length of an update, and ends with an error where that is 0.
NOTHING = 1e-9


@dataclass(frozen=True)
class Peer:
    """A release of another library.

    Args:
        library: Its name at the package index.
        audited: What it claims, and what runs.
    """

    library: str
    audited: Audited


def opacus_engine(*, poisson: bool) -> Callable[[bool], Any]:
    """Return the score of a training by Opacus; whatever the batches, it accounts for Poisson."""
    import opacus
    import torch

    examples = 20

    def run(inside: bool) -> Any:
        model, optimizer, _ = torch_model(False)
        inputs = torch.zeros(examples, 1)
        inputs[0] = LONG * inside
        data = torch.utils.data.TensorDataset(inputs, torch.zeros(examples))
        engine = opacus.PrivacyEngine()
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=torch.utils.data.DataLoader(data, batch_size=2, shuffle=True),
            noise_multiplier=SMALL,
            max_grad_norm=1.0,
            poisson_sampling=poisson,
        )
        seen = np.array(opacus_steps(model, optimizer, loader, 10))
        assert engine.accountant.history == [(SMALL, 0.1, 10)]
        return np.logaddexp.reduce((seen - 0.5) / SMALL**2)

    return run


def opacus_divisor(inside: bool) -> float:
    """Return how large the noise of a step is, by Opacus, on 40 records or on 39, all of zeros."""
    import opacus
    import torch

    model = torch.nn.Linear(2000, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    inputs = torch.zeros(39 + inside, 2000)
    data = torch.utils.data.TensorDataset(inputs, torch.zeros(39 + inside))
    model, optimizer, loader = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=torch.utils.data.DataLoader(data, batch_size=10),
        noise_multiplier=2.0,
        max_grad_norm=1.0,
    )
    before = model._module.weight.detach().clone()
    for rows, _ in loader:
        optimizer.zero_grad()
        model(rows).sum().backward()
        optimizer.step()
        break
    return -float((model._module.weight.detach() - before).square().sum())


def of_opacus() -> list[Peer]:
    """Return trainings by Opacus: Poisson samples, shuffled batches, noise over a count."""
    loop = hs.DPSGD(examples=20, batch_size=2, steps=10, noise_multiplier=SMALL)
    counted = hs.DPSGD(examples=40, batch_size=10, steps=1, noise_multiplier=2.0)
    tv = variation(loop)
    poisson, shuffled = (each(opacus_engine(poisson=one)) for one in (True, False))
    return [
        Peer("opacus", Audited("Poisson samples", (), loop, poisson, implied=tv)),
        Peer("opacus", Audited("poisson_sampling=False", (), loop, shuffled, implied=tv)),
        Peer("opacus", Audited("noise over the counted batch", (), counted, each(opacus_divisor))),
    ]


def flower_round(counts: tuple[int, ...]) -> Callable[[bool], float]:
    """Return a round of Flower's strategy in which the first client's update is long, or 0."""
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.server.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

    def run(inside: bool) -> float:
        strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, len(counts))
        strategy.current_round_params = [np.zeros(1)]
        updates = [LONG if inside else NOTHING, *[NOTHING] * (len(counts) - 1)]
        sent = [ndarrays_to_parameters([np.full(1, one)]) for one in updates]
        done = Status(Code.OK, "")
        answers = [
            (None, FitRes(done, one, number, {})) for one, number in zip(sent, counts, strict=True)
        ]
        found, _ = strategy.aggregate_fit(1, answers, [])
        return float(parameters_to_ndarrays(found)[0][0])

    return run


def of_flower() -> list[Peer]:
    """Return rounds of Flower: clients with as many examples each, or one with most of them."""
    round_ = hs.federated.FedSDP(
        noise_multiplier=1.0,
        total_clients=5,
        clients_per_round=5,
        rounds=1,
        sampling="revealed",
        adjacency="zero-out",
    )
    alike, unlike = each(flower_round((10,) * 5)), each(flower_round((1000, 1, 1, 1, 1)))
    return [
        Peer("flwr", Audited("fixed clipping, equal num_examples", (), round_, alike)),
        Peer("flwr", Audited("fixed clipping, unequal num_examples", (), round_, unlike)),
    ]


def elsewhere(python: str, name: str) -> Callable[[bool, int], Any]:
    """Return what a library releases in a process of its own."""

    def scores(inside: bool, trials: int) -> Any:
        command = [python, "-c", THERE, name, str(inside), str(trials)]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        return np.array(json.loads(done.stdout))

    return scores


def low_bits(scores: Callable[[bool, int], Any]) -> Callable[[bool, int], Any]:
    """Return scores of Laplace noise by the floats that textbook noise on 0 and 1 reaches."""

    def attacked(inside: bool, trials: int) -> Any:
        seen = scores(inside, trials)
        told = np.array([float(reached(one, 1.0)) - float(reached(one, 0.0)) for one in seen])
        return 10.0 * told + np.clip(seen, 0.0, 1.0)

    return attacked


def of_others(python: str) -> list[Peer]:
    """Return releases of diffprivlib and OpenDP, on neighbours with one record changed."""
    laplace, counts = hs.Laplace(1.0), hs.DiscreteLaplace(1.0)

    def row(library: str, name: str, plan: Any, run: str, attack: Any = None) -> Peer:
        seen = elsewhere(python, run)
        return Peer(library, Audited(name, (), plan, attack(seen) if attack else seen))

    pure = hs.ApproxDP(1.0, 0.0)
    return [
        row("diffprivlib", "Laplace", laplace, "diffprivlib_laplace"),
        row("diffprivlib", "Laplace, its floats", laplace, "diffprivlib_laplace", low_bits),
        row("diffprivlib", "Geometric", counts, "diffprivlib_geometric"),
        row("diffprivlib", "tools.sum", pure, "diffprivlib_sum"),
        row("diffprivlib", "tools.sum, dtype=int8", pure, "diffprivlib_int8"),
        row("opendp", "make_laplace", laplace, "opendp_laplace"),
        row("opendp", "make_laplace, its floats", laplace, "opendp_laplace", low_bits),
    ]


def peers(python: str | None) -> Iterator[Peer]:
    """Yield what can be run."""
    if find_spec("opacus"):
        yield from of_opacus()
    if find_spec("flwr"):
        yield from of_flower()
    if python:
        yield from of_others(python)


MOST = {"opacus": 800}


def audited(peer: Peer) -> Found:
    """Return what doubling numbers of trials say of a release."""
    return until_refuted(peer.audited, MOST.get(peer.library, 12_800))


def release_of(peer: Peer, python: str | None) -> str:
    """Return a library's version."""
    if find_spec(peer.library) or not python:
        return version(peer.library)
    told = f"from importlib.metadata import version; print(version({peer.library!r}))"
    done = subprocess.run([python, "-c", told], capture_output=True, check=True, text=True)
    return done.stdout.strip()


def report(python: str | None) -> None:
    """Print what was found of each release."""
    echo(f"confidence {CONFIDENCE:g} over all looks of a row\n")
    echo("| library | runs | claimed | epsilon | trials | found, at least | verdict |")
    echo("|---|---|---|---:|---:|---:|---|")
    for peer in peers(python):
        found, row = audited(peer), peer.audited
        assert found.verdict.epsilon is not None
        values = f"{certified(row.plan):.3f} | {found.trials} | {found.verdict.epsilon.value:.3f}"
        told = f"{values} | {type(found.verdict).__name__}"
        echo(f"| {peer.library} {release_of(peer, python)} | {row.name} | {row.plan} | {told} |")
