"""Examples as tensors, each made of one example alone, and stacked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch

from hockeystick.errors import ParameterError

Row = tuple[Any, ...]
_A_ROW: Final = "a tensor, or a tuple of tensors with the model's input first, for each example"
_ONE: Final = "given one example at a time, and return tensors whose length is 1"
_ALIKE: Final = "one whose examples have one shape and type; pad_to gives inputs one length"
_A_LENGTH: Final = "given where each example's input has a length"


def row(example: Any, collate: Callable[..., Any] | None, pad_to: int | None) -> Row:
    """Return the tensors of an example, which nothing but the example decides."""
    parts = _plain(example) if collate is None else _collated(collate([example]))
    return parts if pad_to is None else (_padded(parts[0], pad_to), *parts[1:])


def stacked(rows: Iterable[Row]) -> Row:
    """Return rows as one, where they are alike."""
    found = list(rows)
    try:
        columns = tuple(zip(*found, strict=True))
        if all(len({part.dtype for part in column}) == 1 for column in columns):
            return tuple(map(torch.stack, columns))
    except (RuntimeError, ValueError):  # of shapes, or numbers of parts, that differ
        pass
    raise ParameterError("dataset", "examples that differ", _ALIKE)


def _plain(example: Any) -> Row:
    """Return the tensors of an example as it is."""
    parts = tuple(example) if isinstance(example, tuple | list) else (example,)
    if not parts:
        raise ParameterError("dataset", example, _A_ROW)
    return tuple(map(_tensor, parts))


def _tensor(part: Any) -> Any:
    """Return a tensor, numbers as torch's own collation has them; or raise."""
    if isinstance(part, torch.Tensor):
        return part
    if isinstance(part, float):
        return torch.tensor(part, dtype=torch.float64)
    try:
        return torch.as_tensor(part)
    except (TypeError, ValueError, RuntimeError):
        raise ParameterError("dataset", type(part).__name__, _A_ROW) from None


def _collated(found: Any) -> Row:
    """Return what a collation made of one example, without the place of the batch; or raise."""
    parts = (found,) if isinstance(found, torch.Tensor) else found
    if not isinstance(parts, tuple | list) or not parts:
        raise ParameterError("dataset", type(found).__name__, _A_ROW)
    for part in parts:
        if not isinstance(part, torch.Tensor):
            raise ParameterError("dataset", type(part).__name__, _A_ROW)
        if part.dim() == 0 or len(part) != 1:
            raise ParameterError("collate", tuple(part.shape), _ONE)
    return tuple(part[0] for part in parts)


def _padded(part: Any, length: int) -> Any:
    """Return an input with zeros after its end, or cut, up to a length."""
    if part.dim() == 0:
        raise ParameterError("pad_to", length, _A_LENGTH)
    if len(part) >= length:
        return part[:length]
    missing = part.new_zeros((length - len(part), *part.shape[1:]))
    return torch.cat([part, missing])
