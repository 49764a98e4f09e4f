"""A private step in exact and in real arithmetic beside Opacus's: the same model and batch size.

Prints a page, `TORCH.md`: the times of steps that take turns, each side in a process of its own,
whose memory is measured as well.
"""

import argparse
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
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import hockeystick as hs
from benchmarks.pages import table

EXAMPLES: Final = 1280
CLASSES: Final = 10
WORDS: Final = 1000
MIB: Final = 2**20


class Case(NamedTuple):
    """A model, the expected size of its batches, and how many steps are timed in each run."""

    kind: str
    batch: int
    steps: int


SMALL: Final = tuple(Case(kind, 128, 40) for kind in ("small mlp", "mlp", "cnn", "text"))
LARGE: Final = (
    Case("deep cnn", 64, 3),
    Case("deep cnn", 256, 2),
    Case("transformer", 32, 1),
    Case("transformer", 64, 1),
    Case("bert lora", 32, 5),
)
WARM: Final = 1
# What has torch on Linux take memory in pages of 2 MiB, of which a step needs few.
LARGE_PAGES: Final = {"THP_MEM_ALLOC_ENABLE": "1"}


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
        words = (nn.Embedding(WORDS, 32), nn.Flatten(), nn.Linear(640, 64), nn.ReLU())
        return nn.Sequential(*words, nn.Linear(64, 10)), torch.randint(WORDS, (EXAMPLES, 20))
    if kind == "deep cnn":
        return deep(), torch.randn(EXAMPLES, 3, 32, 32)
    if kind == "transformer":
        return transformer(), torch.randint(WORDS, (EXAMPLES, 128))
    if kind == "bert lora":
        return bert(), torch.randint(WORDS, (EXAMPLES, 128))
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
    return nn.Sequential(nn.Embedding(WORDS, 256), *layers, *head)


def bert() -> Any:
    """Return a small BERT with a head, which is trained with matrices of low rank."""
    import peft
    import transformers

    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(
        vocab_size=WORDS,
        intermediate_size=512,
        num_labels=CLASSES,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **sizes,
    )
    adapted = peft.LoraConfig(task_type="SEQ_CLS", r=8, target_modules=["query", "value"])
    model = peft.get_peft_model(transformers.BertForSequenceClassification(config), adapted)
    model.register_forward_hook(_logits)
    return model


def _logits(model: Any, given: Any, answer: Any) -> Any:
    return answer.logits


def _data(kind: str) -> tuple[Any, Any, Any]:
    import torch

    model, inputs = model_of(kind)
    dataset = torch.utils.data.TensorDataset(inputs, torch.randint(CLASSES, (EXAMPLES,)))
    return model, _optimizer(model), dataset


def _optimizer(model: Any) -> Any:
    import torch

    return torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.01)


def here(kind: str, batch: int, arithmetic: Literal["exact", "real"] = "exact") -> Iterator[None]:
    """Do one step of this package's after another."""
    import torch

    from hockeystick.adapters.torch import make_private

    model, optimizer, dataset = _data(kind)
    plan = hs.DPSGD(
        examples=EXAMPLES,
        batch_size=batch,
        steps=10**6,
        noise_multiplier=1,
        sampling="fixed-size",
        adjacency="replace-one",
    )
    private = make_private(model, optimizer, dataset, plan, clipping=1.0, arithmetic=arithmetic)
    for drawn in private.loader:
        private.step(torch.nn.functional.cross_entropy, drawn)
        yield


def there(kind: str, batch: int, mode: str = "hooks") -> Iterator[None]:
    """Do one step of Opacus's after another."""
    import torch
    from opacus import PrivacyEngine
    from opacus.validators import ModuleValidator

    model, _, dataset = _data(kind)
    model = ModuleValidator.fix(model)  # has attention of its own
    loss_fn = torch.nn.CrossEntropyLoss()
    model, optimizer, *ghost, loader = PrivacyEngine(accountant="rdp").make_private(
        module=model.train(),
        optimizer=_optimizer(model),
        criterion=loss_fn,
        data_loader=torch.utils.data.DataLoader(dataset, batch_size=batch),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
        poisson_sampling=False,
    )
    (loss_fn,) = ghost or (loss_fn,)
    while True:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss_fn(model(inputs), targets).backward()
            optimizer.step()
            yield


Steps: TypeAlias = Callable[[str, int], Iterator[None]]
US: Final[dict[str, Steps]] = {"exact": here, "real": partial(here, arithmetic="real")}
THEM: Final[dict[str, Steps]] = {"Opacus": there, "Opacus ghost": partial(there, mode="ghost")}
SIDES: Final = US | THEM


def _peak() -> int:
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def serve(asked: Any, side: str, case: Case) -> None:
    """Do a step each time that it is asked, and answer with its seconds and the memory until then.

    Seconds are those of the processor, as others may use it as well. Memory is what this process
    grows by after a step of a small model. What a side cannot run, it says in words.
    """
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    next(SIDES[side]("small mlp", 128))
    before = _peak()
    try:
        steps = SIDES[side](case.kind, case.batch)
        while asked.recv():
            start = time.process_time()
            next(steps)
            asked.send((time.process_time() - start, _peak() - before))
    except Exception as error:  # whatever a package cannot run
        asked.send(f"{type(error).__name__}: {str(error).splitlines()[0]}")


class Found(NamedTuple):
    seconds: float  # the median of a step
    memory: int  # the largest, in bytes


def measured(case: Case) -> dict[str, Any]:
    """Return what each side takes, as `Found`, or why it cannot run, in steps that take turns."""
    for library in ("opacus", "peft", "hockeystick.adapters.torch"):
        import_module(library)  # once, before processes are forked
    told: dict[str, list[Any]] = {side: [] for side in SIDES}
    apart = get_context("fork")
    asked = {}
    for side in SIDES:
        asked[side], other = apart.Pipe()
        apart.Process(target=serve, args=(other, side, case), daemon=True).start()
        other.close()
    for _ in range(WARM + case.steps):
        for side, found in told.items():
            if not found or not isinstance(found[-1], str):
                asked[side].send(True)
                found.append(asked[side].recv())
    for side, found in told.items():
        if not isinstance(found[-1], str):
            asked[side].send(False)
    for process in apart.active_children():
        process.join()
    return {side: _summary(found) for side, found in told.items()}


def _summary(answers: list[Any]) -> Found | str:
    if isinstance(answers[-1], str):
        return answers[-1]
    return Found(statistics.median(taken for taken, _ in answers[WARM:]), answers[-1][1])


def account() -> float:
    """Return the median time in which a step is counted, with a journal."""
    from hockeystick.adapters.loop import Account

    plan = hs.DPSGD(examples=60_000, batch_size=256, steps=10_000, noise_multiplier=1)
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        counted = Account(plan, hs.ApproxDP(100, 1e-5), Path(folder) / "run.account")
        for _ in range(100):
            start = time.perf_counter()
            counted.count()
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def _ratio(runs: list[dict[str, Any]], first: str, second: str) -> str:
    both = [(run[first], run[second]) for run in runs]
    if any(isinstance(one, str) for pair in both for one in pair):
        return "-"
    return f"{statistics.median(one.seconds / other.seconds for one, other in both):.2f}"


def _cell(found: list[Any]) -> str:
    words = [one for one in found if isinstance(one, str)]
    if words:
        return f"cannot: {words[0]}"
    seconds = statistics.median(one.seconds for one in found)
    return f"{1e3 * seconds:.4g} ms, {max(one.memory for one in found) / MIB:.0f} MiB"


PAGE: Final = """# Private steps beside Opacus

Medians of {runs} runs, of the processor's time of a step with one thread, and the largest memory
that a process grew by: 40 steps a run of small models, 1 to 5 of large ones. The sides take turns,
each in a process of its own; all batches of a row have the same number of examples. "Exact" and
"real" are what `make_private(arithmetic=...)` names. `python -m benchmarks.bench_torch >
benchmarks/TORCH.md` measures anew.
"""
AGAIN: Final = """
Much of a small model's step goes to getting pages of memory from the system again and again. With
`THP_MEM_ALLOC_ENABLE=1`, for which torch on Linux takes larger ones:
"""


def _table(cases: tuple[Case, ...], runs: int) -> str:
    pairs = [("exact", "real"), *((one, side) for one in US for side in THEM)]
    heads = ("model", "batch", *SIDES, *map(" / ".join, pairs))
    rows = []
    for case in cases:
        found = [measured(case) for _ in range(runs)]
        cells = [_cell([run[side] for run in found]) for side in SIDES]
        ratios = [_ratio(found, *pair) for pair in pairs]
        rows.append((case.kind, str(case.batch), *cells, *ratios))
    return f"\n{table(heads, rows)}\n"


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="the table of small models alone")
    options = parser.parse_args()
    if options.small:
        sys.stdout.write(_table(SMALL, options.runs))
        return
    sys.stdout.write(PAGE.format(runs=options.runs) + _table((*SMALL, *LARGE), options.runs))
    sys.stdout.write(AGAIN)
    sys.stdout.flush()
    command = [sys.executable, "-m", "benchmarks.bench_torch", "--small", f"--runs={options.runs}"]
    subprocess.run(command, check=True, env=os.environ | LARGE_PAGES)
    sys.stdout.write(f"\nA step is counted in a journal in {1e6 * account():.1f} us.\n")
    load = os.getloadavg()[0]
    sys.stdout.write(f"{os.cpu_count()} cores; {load:.1f} processes ran on them at the end.\n")


if __name__ == "__main__":
    main()
