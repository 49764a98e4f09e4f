"""A private step in exact and in real arithmetic beside Opacus's: the same model and batch size.

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
from collections.abc import Callable, Iterator, Sequence
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
CLASSES: Final = 10
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
    if kind == "deep cnn":
        return deep(), torch.randn(EXAMPLES, 3, 32, 32)
    if kind == "transformer":
        return transformer(), torch.randint(1000, (EXAMPLES, 128))
    layers = (
        *(nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1)),
        *(nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10)),
    )
    return nn.Sequential(*layers), torch.randn(EXAMPLES, 1, 28, 28)


def deep() -> Any:
    """Return nine convolutions and a head."""
    from torch import nn

    layers: list[Any] = []
    before = 3
    for place, channels in enumerate((32, 32, 32, 64, 64, 64, 128, 128, 128)):
        layers += [nn.Conv2d(before, channels, 3, padding=1), nn.GroupNorm(8, channels), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if place % 3 == 2 else []
        before = channels
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, CLASSES))


def transformer() -> Any:
    """Return four layers of width 256 over embeddings, flattened by a mean over the places."""
    from torch import nn

    layers = [
        nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True) for _ in range(4)
    ]
    head = (nn.AdaptiveAvgPool2d((1, 256)), nn.Flatten(), nn.Linear(256, CLASSES))
    return nn.Sequential(nn.Embedding(1000, 256), *layers, *head)


KINDS: Final = ("small mlp", "mlp", "cnn", "text")
# Which take seconds a step: the size of their batches and how many steps are timed.
LARGE: Final = {"deep cnn": (64, 8), "transformer": (32, 4)}


def batch_of(kind: str) -> int:
    """Return the expected size of a batch."""
    return LARGE[kind][0] if kind in LARGE else EXAMPLES // RATE_OF


def _data(kind: str) -> tuple[Any, Any, Any]:
    """Return a model, its optimizer and the data."""
    import torch

    model, inputs = model_of(kind)
    dataset = torch.utils.data.TensorDataset(inputs, torch.randint(CLASSES, (EXAMPLES,)))
    return model, torch.optim.SGD(model.parameters(), lr=0.01), dataset


def here(kind: str, arithmetic: str = "exact") -> Iterator[None]:
    """Do one step of this package's after another."""
    import torch

    from hockeystick.adapters.torch import make_private

    model, optimizer, dataset = _data(kind)
    plan = hs.DPSGD(examples=EXAMPLES, batch_size=batch_of(kind), steps=10**6, noise_multiplier=1)
    private = make_private(model, optimizer, dataset, plan, clipping=1.0, arithmetic=arithmetic)
    for batch in private.loader:
        private.step(torch.nn.functional.cross_entropy, batch)
        yield


def there(kind: str) -> Iterator[None]:
    """Do one step of Opacus's after another."""
    import torch
    from opacus import PrivacyEngine
    from opacus.validators import ModuleValidator

    model, _, dataset = _data(kind)
    model = ModuleValidator.fix(model)  # has attention of its own
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(dataset, batch_size=batch_of(kind))
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


SIDES: Final[dict[str, Callable[[str], Iterator[None]]]] = {
    "exact": here,
    "real": partial(here, arithmetic="real"),
    "opacus": there,
}


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


def times(kind: str) -> list[float]:
    """Return the median times of this process's steps, each side's, which take turns.

    They are those of the processor, as others may use it as well.
    """
    sides = [side(kind) for side in SIDES.values()]
    taken: list[list[float]] = [[] for _ in sides]
    warm, steps = (1, LARGE[kind][1]) if kind in LARGE else (WARM, STEPS)
    for done in range(warm + steps):
        for side, found in zip(sides, taken, strict=True):
            start = time.process_time()
            next(side)
            if done >= warm:
                found.append(time.process_time() - start)
    return [statistics.median(found) for found in taken]


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
    for _ in range(2 if kind in LARGE else WARM):
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
    from hockeystick.adapters.loop._account import Account

    plan = hs.DPSGD(examples=60_000, batch_size=256, steps=10_000, noise_multiplier=1)
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        counted = Account(plan, hs.ApproxDP(100, 1e-5), Path(folder) / "run.account")
        for _ in range(STEPS):
            start = time.perf_counter()
            counted.count()
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def table(kinds: Sequence[str]) -> Table:
    """Return times and memory of each side, and over Opacus's those in exact arithmetic."""
    shown = Table(title="a private step, one thread; exact and real arithmetic, Opacus")
    shown.add_column("model")
    columns = ("batch", "ms exact", "ms real", "ms Opacus", "exact/real", "exact/Opacus")
    for column in (*columns, "MiB exact", "MiB real", "MiB Opacus"):
        shown.add_column(column, justify="right")
    for kind in kinds:
        exact, real, theirs = asked("times", kind)
        peaks = [asked("peak", side, kind) for side in SIDES]
        shown.add_row(
            kind,
            f"{batch_of(kind)}",
            *(f"{1e3 * taken:.2f}" for taken in (exact, real, theirs)),
            *(f"{exact / real:.2f}", f"{exact / theirs:.2f}"),
            *(f"{own / MIB:.0f}" for own in peaks),
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
    console = Console(width=140)
    console.print(table((*KINDS, *LARGE)))
    console.print(f"account of a step: {1e6 * account():.1f} us")
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} a minute")


if __name__ == "__main__":
    main()
