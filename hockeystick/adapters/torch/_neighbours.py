"""Data sets that differ in one record."""

from __future__ import annotations

from typing import Any, Final, final

import torch
from torch.utils import _pytree as trees
from torch.utils.data import Dataset, TensorDataset

from hockeystick.adapters.loop._random import numbers
from hockeystick.adapters.torch._random import all_keyed
from hockeystick.audit.recording import Kind, Neighbour

_FACTORS: Final = (
    ("a record times 1000", 1000.0),
    ("a record times -1000", -1000.0),
    ("an undefined one", float("nan")),
)


@final
class Changed(Dataset):  # type: ignore[misc]  # torch may have no types
    """A data set without an example, with one more, or with another one in its place.

    What an example draws, to be cut or turned at random, is decided by its place in the data alone.
    """

    def __init__(self, dataset: Any, neighbour: Neighbour | None) -> None:
        self.dataset, self.neighbour = dataset, neighbour

    def __len__(self) -> int:
        if self.neighbour is None:
            return len(self.dataset)
        more = {Kind.WITHOUT: -1, Kind.ADDED: 1}.get(self.neighbour.kind, 0)
        return len(self.dataset) + more

    def __getitem__(self, place: int) -> Any:
        changed = self.neighbour
        if changed is not None and changed.kind is Kind.WITHOUT:
            place += place >= changed.place
        elif changed is not None and place == changed.place:
            return changed.value
        with all_keyed(numbers(0, "example", place)):
            return self.dataset[place]


def changed(dataset: Any, neighbour: Neighbour | None) -> Any:
    """Return neighbouring data; of tensors again such data, which loops may read in another way."""
    if type(dataset) is not TensorDataset:
        return Changed(dataset, neighbour)
    if neighbour is None:
        return dataset
    own = (None,) * len(dataset.tensors)
    rows = own if neighbour.kind is Kind.WITHOUT else neighbour.value
    parts = zip(dataset.tensors, rows, strict=True)
    return TensorDataset(*(_with(part, neighbour, row) for part, row in parts))


def _with(part: Any, neighbour: Neighbour, row: Any) -> Any:
    """Return a part of all examples without that at a place, or with another one there."""
    place = neighbour.place
    between = part[:0] if row is None else torch.as_tensor(row, dtype=part.dtype).unsqueeze(0)
    after = part[place:] if neighbour.kind is Kind.ADDED else part[place + 1 :]
    return torch.cat([part[:place], between.to(part.device), after])


def far_off(example: Any) -> list[tuple[str, Any]]:
    """Return an example whose floating parts are multiplied by large numbers, or undefined.

    An example without such parts is there once more.
    """
    leaves = trees.tree_leaves(example)
    if not any(map(_is_floating, leaves)):
        return [("a record again", example)]

    def times(factor: float) -> Any:
        return trees.tree_map(lambda part: part * factor if _is_floating(part) else part, example)

    return [(name, times(factor)) for name, factor in _FACTORS]


def _is_floating(part: Any) -> bool:
    """Return whether a part of an example has numbers that can be large."""
    return isinstance(part, torch.Tensor) and part.is_floating_point()


def most_copies(dataset: Any, limit: int = 10_000) -> int:
    """Return at how many places the example is that is at the most, by where its tensors lie.

    Data that make tensors anew tell nothing of it; of large data the first examples are looked at.
    """
    counts: dict[Any, int] = {}
    kept = []
    for place in range(min(len(dataset), limit)):
        example = dataset[place]
        kept.append(example)  # so that no other one gets its memory
        leaves = trees.tree_leaves(example)
        if any(isinstance(part, torch.Tensor) and part.numel() for part in leaves):
            found = tuple(map(_where, leaves))
            counts[found] = counts.get(found, 0) + 1
    return max(counts.values(), default=1)


def _where(part: Any) -> Any:
    """Return where a tensor lies; of anything else what it is."""
    return (part.data_ptr(), part.shape) if isinstance(part, torch.Tensor) else repr(part)
