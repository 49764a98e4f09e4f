"""A private step beside Opacus's: the same model, batch size and optimizer, in one run.

``make timings`` times both. Run as a program, it prints the ratios of the times of steps that take
turns in one process, of the peaks of memory in processes of their own, and the time of the account.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console
from rich.table import Table

import hockeystick as hs

EXAMPLES: Final = 1280
RATE_OF: Final = 10
STEPS: Final = 100
WARM: Final = 20
MIB: Final = 2**20


def model_of(kind: str) -> tuple[Any, Any]:
    """Return a model and its inputs."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    if kind == "small mlp":
        small = (nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        return nn.Sequential(*small), torch.randn(EXAMPLES, 64)
    if kind == "mlp":
        wide = (nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
        return nn.Sequential(*wide), torch.randn(EXAMPLES, 784)
    if kind == "text":
        words = (nn.Embedding(1000, 32), nn.Flatten(), nn.Linear(640, 64), nn.ReLU())
        return nn.Sequential(*words, nn.Linear(64, 10)), torch.randint(1000, (EXAMPLES, 20))
    layers = (
        *(nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1)),
        *(nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10)),
    )
    return nn.Sequential(*layers), torch.randn(EXAMPLES, 1, 28, 28)


KINDS: Final = ("small mlp", "mlp", "cnn", "text")


def _data(kind: str) -> tuple[Any, Any, Any]:
    """Return a model, its optimizer and the data."""
    import torch

    model, inputs = model_of(kind)
    dataset = torch.utils.data.TensorDataset(inputs, torch.randint(10, (EXAMPLES,)))
    return model, torch.optim.SGD(model.parameters(), lr=0.01), dataset


def here(kind: str) -> Iterator[None]:
    """Do one step of this package's after another."""
    import torch

    from hockeystick.adapters.torch import make_private

    model, optimizer, dataset = _data(kind)
    batch_size = EXAMPLES // RATE_OF
    plan = hs.DPSGD(examples=EXAMPLES, batch_size=batch_size, steps=10**6, noise_multiplier=1)
    private = make_private(model, optimizer, dataset, plan, clipping=1.0)
    for batch in private.loader:
        private.step(torch.nn.functional.cross_entropy, batch)
        yield


def there(kind: str) -> Iterator[None]:
    """Do one step of Opacus's after another."""
    import torch
    from opacus import PrivacyEngine

    model, optimizer, dataset = _data(kind)
    loader = torch.utils.data.DataLoader(dataset, batch_size=EXAMPLES // RATE_OF)
    model, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    while True:
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            yield


SIDES: Final[dict[str, Callable[[str], Iterator[None]]]] = {"hockeystick": here, "opacus": there}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", KINDS)
def bench_step(benchmark: Any, kind: str, side: str) -> None:
    pytest.importorskip("torch", reason="needs the extra torch")
    if side == "opacus":
        pytest.importorskip("opacus", reason="needs the extra opacus")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus warns of its hooks and its generator
        steps = SIDES[side](kind)
        next(steps)
        benchmark(partial(next, steps))


def times(kind: str) -> tuple[float, float]:
    """Return the median times of this process's steps here and there, which take turns.

    They are those of the processor, as others may use it as well.
    """
    sides = [side(kind) for side in SIDES.values()]
    taken: tuple[list[float], list[float]] = ([], [])
    for done in range(WARM + STEPS):
        for steps, found in zip(sides, taken, strict=True):
            start = time.process_time()
            next(steps)
            if done >= WARM:
                found.append(time.process_time() - start)
    return statistics.median(taken[0]), statistics.median(taken[1])


def peak(side: str, kind: str) -> int:
    """Return how much this process's largest size grows by steps of one side, in bytes."""
    import resource

    # Both sides have in memory what both import.
    for library in ("opacus", "hockeystick.adapters.torch"):
        import_module(library)
    steps = SIDES[side]("small mlp")
    next(steps)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    steps = SIDES[side](kind)
    for _ in range(WARM):
        next(steps)
    unit = 1 if sys.platform == "darwin" else 1024
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit


def asked(*arguments: str) -> Any:
    """Return what a process of its own finds, with one thread."""
    command = [sys.executable, os.fspath(Path(__file__)), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return json.loads(subprocess.run(command, check=True, stdout=-1, env=environment).stdout)


def account() -> float:
    """Return the median time in which a step is counted, with a journal."""
    from hockeystick.adapters.torch._account import Account

    plan = hs.DPSGD(examples=60_000, batch_size=256, steps=10_000, noise_multiplier=1)
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        counted = Account(plan, hs.ApproxDP(100, 1e-5), Path(folder) / "run.account")
        for _ in range(STEPS):
            start = time.perf_counter()
            counted.count()
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def table() -> Table:
    """Return times and memory, here over there."""
    shown = Table(title=f"a private step, batches of about {EXAMPLES // RATE_OF}, one thread")
    shown.add_column("model")
    for column in ("ms here", "ms Opacus", "ratio", "MiB here", "MiB Opacus", "ratio"):
        shown.add_column(column, justify="right")
    for kind in KINDS:
        ours, theirs = asked("times", kind)
        own, other = (asked("peak", side, kind) for side in SIDES)
        shown.add_row(
            kind,
            *(f"{1e3 * ours:.2f}", f"{1e3 * theirs:.2f}", f"{ours / theirs:.2f}"),
            *(f"{own / MIB:.0f}", f"{other / MIB:.0f}", f"{own / max(other, 1):.2f}"),
        )
    return shown


def main() -> None:
    """Print the table, or what one process of it finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("question", nargs="*")
    question = parser.parse_args().question
    if question:
        answers: dict[str, Callable[..., Any]] = {"times": times, "peak": peak}
        sys.stdout.write(json.dumps(answers[question[0]](*question[1:])) + "\n")
        return
    console = Console(width=100)
    console.print(table())
    console.print(f"account of a step: {1e6 * account():.1f} us")
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} a minute")


if __name__ == "__main__":
    main()
