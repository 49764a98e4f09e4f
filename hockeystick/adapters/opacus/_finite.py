"""Records whose gradients are no finite numbers: they count as 0, each by itself."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch


def finite(optimizer: Any) -> Any:
    """Have an optimizer of Opacus count gradients without a finite length as 0.

    An infinite or undefined one would be in the released sum, for all to see. As 0 it is a function
    of its record alone, no longer than the clipping norm, so that the sensitivity is what it was.
    """
    kind: Any = type(optimizer)
    optimizer.__class__ = _counting_finite(kind)
    return optimizer


@cache
def _counting_finite(kind: Any) -> Any:
    """Return a class of optimizers that does so; copies of an optimizer do, too."""

    class Finite(kind):  # type: ignore[misc]  # theirs has no types
        def clip_and_accumulate(self) -> None:
            _drop_without_length([p for p in self.params if p.grad_sample is not None])
            super().clip_and_accumulate()

    Finite.__name__ = Finite.__qualname__ = kind.__name__
    return Finite


def _drop_without_length(parameters: list[Any]) -> None:
    """Set to 0 all gradients, of all parameters, of the records of which one has no length."""
    pieces = [_pieces(p.grad_sample) for p in parameters]
    for together in zip(*pieces, strict=True):
        if not len(together[0]):
            continue
        lengths = [_lengths(one).to(together[0].device) for one in together]
        bad = ~torch.stack(lengths).sum(dim=0).isfinite()
        with torch.no_grad():
            for one in together:
                one[bad.to(one.device)] = 0.0


def _lengths(gradients: Any) -> Any:
    """Return the length of each record's gradient."""
    return gradients.reshape(len(gradients), -1).norm(2, dim=-1)


def _pieces(gradients: Any) -> list[Any]:
    """Return the gradients of each backward pass."""
    return gradients if isinstance(gradients, list) else [gradients]
