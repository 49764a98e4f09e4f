"""Private loops of torch, for tests that name the options of counting and loading at once."""

from dataclasses import fields
from typing import Any

import torch

import hockeystick as hs
from hockeystick.adapters.torch import Counting, Loading
from hockeystick.adapters.torch import make_private as made
from hockeystick.adapters.torch._clipping import clipped_sum
from hockeystick.adapters.torch._factors import Rows

# The same tests run on a GPU where there is one; the data stay on the CPU, as usual.
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LOSS = torch.nn.functional.cross_entropy
EXAMPLES = 8
FULL: Any = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=5, noise_multiplier=1)


def make_private(*given: Any, **options: Any) -> Any:
    """Return what ``make_private`` does, with values made of the options that are theirs."""
    values: dict[str, Any] = {}
    for name, kind in {"counting": Counting, "loading": Loading}.items():
        own = {one.name for one in fields(kind)} & options.keys()
        if own:
            values[name] = kind(**{one: options.pop(one) for one in own})
    return made(*given, **options | values)


def clipped(gradients: dict[str, Any], *how: Any) -> Any:
    """Return the clipped sum of gradients in rows, and that of the second query."""
    return clipped_sum({name: Rows(rows) for name, rows in gradients.items()}, *how)


def make_data(examples: int = EXAMPLES) -> Any:
    """Return random rows of 3 numbers with labels."""
    torch.manual_seed(1)
    rows = torch.randn(examples, 3), torch.randint(2, (examples,))
    return torch.utils.data.TensorDataset(*rows)


def make_loop(
    plan: hs.DPSGD = FULL, model: Any = None, dataset: Any = None, lr: float = 0.1, **options: Any
) -> Any:
    """Return a private loop on such data that begins alike."""
    torch.manual_seed(0)
    trained = (torch.nn.Linear(3, 2) if model is None else model).to(DEVICE)
    data = make_data(int(plan.examples or 0)) if dataset is None else dataset
    optimizer = torch.optim.SGD(trained.parameters(), lr=lr)
    return make_private(trained, optimizer, data, plan, **options)


def do_step(private: Any, loss: Any = LOSS) -> Any:
    return private.step(loss, next(iter(private.loader)))


def do_steps(private: Any, steps: int = 10**6) -> Any:
    """Return a loop after so many steps more."""
    for batch in private.loader:
        if steps == 0:
            break
        private.step(LOSS, batch)
        steps -= 1
    return private


def weights_of(private: Any) -> Any:
    """Return a model's weights as one vector."""
    return torch.cat([one.detach().flatten() for one in private.model.parameters()])


class Items(torch.utils.data.Dataset):  # type: ignore[misc]  # torch may have no types
    """A list as a data set."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> Any:
        return self.items[place]


class Zeros(torch.nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model whose gradient knows how many zeros its input was padded with."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.nn.Parameter(torch.ones(1))
        self.zeros = torch.nn.Parameter(torch.zeros(1))

    def forward(self, rows: Any) -> Any:
        return self.mean * rows.mean(dim=1) + self.zeros * (rows == 0).sum(dim=1)
