"""Examples that torch's own loader fetches, by workers of its own where it is told so."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import torch
from torch.utils import _pytree as trees
from torch.utils.data import DataLoader

from hockeystick.adapters.loop._random import numbers
from hockeystick.adapters.torch._collate import Row, row, stacked
from hockeystick.adapters.torch._random import all_keyed
from hockeystick.errors import ParameterError

_SEED_BITS: Final = 63
_OPTIONS: Final = (
    "multiprocessing_context",
    "num_workers",
    "pin_memory",
    "prefetch_factor",
    "timeout",
    "worker_init_fn",
)


def fetching_of(
    dataset: Any,
    collate: Callable[..., Any] | None,
    pad_to: int | None,
    options: object,
    *,
    secret: bool = True,
) -> Callable[..., Any]:
    """Return what makes torch's loader of the places of each batch, or raise.

    What examples draw, to be cut or turned at random, is secret unless the caller's seeds decide.
    """
    allowed = f"a mapping of options of torch's DataLoader, of {', '.join(_OPTIONS)}"
    if not isinstance(options, Mapping) or not set(options) <= set(_OPTIONS):
        raise ParameterError("loading", options, allowed)
    examples = _OneByOne(dataset, collate, pad_to, secret)
    # Which gives workers seeds for what they draw themselves, and leaves torch's own as it is.
    source = torch.Generator().manual_seed(secrets.randbits(_SEED_BITS))
    made = partial(DataLoader, examples, collate_fn=_itself, generator=source, **options)
    try:
        made(batch_sampler=())
    except (TypeError, ValueError) as error:
        raise ParameterError("loading", options, f"{allowed} ({error})") from None
    return made


@final
@dataclass(frozen=True, slots=True)
class Stacked:
    """The examples of a batch, or what is wrong with one of them."""

    found: Row | ParameterError

    def examples(self) -> Row:
        """Return the examples, or raise."""
        if isinstance(self.found, ParameterError):
            raise self.found
        return self.found

    def pin_memory(self) -> Stacked:
        """Return the same in memory that an accelerator reads while others compute."""
        if isinstance(self.found, ParameterError):
            return self
        return Stacked(trees.tree_map(lambda part: part.pin_memory(), self.found))


@final
@dataclass(frozen=True, slots=True)
class _OneByOne:
    """A data set that is asked for one example at a time, even if it would give several."""

    dataset: Any
    collate: Callable[..., Any] | None
    pad_to: int | None
    secret: bool

    def __getitems__(self, places: list[int]) -> Stacked:
        """Return a batch, or what is wrong, which an exception of a worker would not name."""
        try:
            with all_keyed(numbers(None, "examples", 0)) if self.secret else nullcontext():
                examples = [self.dataset[place] for place in places]
                return Stacked(stacked(row(one, self.collate, self.pad_to) for one in examples))
        except ParameterError as error:
            return Stacked(error)


def _itself(batch: Stacked) -> Stacked:
    """Return a batch, which is made already."""
    return batch
