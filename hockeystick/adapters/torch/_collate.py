"""Examples as trees of tensors, each made of one example alone, and stacked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Number
from typing import Any, Final

import torch
from torch.utils import _pytree as trees

from hockeystick.errors import ParameterError

Row = tuple[Any, ...]
_A_ROW: Final = (
    "a tensor, a tuple of tensors with the model's input first, or a mapping by the names of the "
    "model's arguments, for each example"
)
_ONE: Final = "given one example at a time, and return tensors whose length is 1"
_ALIKE: Final = "one whose examples have one shape and type; pad_to gives inputs one length"
_A_LENGTH: Final = "given where each example's input has a length"
# What the losses of torch and of Hugging Face's models leave out.
_IGNORED: Final = -100


def row(example: Any, collate: Callable[..., Any] | None, pad_to: int | None) -> Row:
    """Return an example's input and targets, which nothing but the example decides."""
    if collate is None:
        parts = _parts(example, _tensor)
    else:
        parts = trees.tree_map(lambda part: part[0], _parts(collate([example]), _of_one))
    return parts if pad_to is None else (_padded(parts[0], pad_to), *parts[1:])


def stacked(rows: Iterable[Row]) -> Row:
    """Return rows as one, where they are alike; nothing of no row."""
    found = [trees.tree_flatten(one) for one in rows]
    if not found:
        return ()
    structure = found[0][1]
    if all(one[1] == structure for one in found):
        columns = tuple(zip(*(one[0] for one in found), strict=True))
        if all(len({(part.dtype, part.shape) for part in column}) == 1 for column in columns):
            whole: Row = trees.tree_unflatten(list(map(torch.stack, columns)), structure)
            return whole
    raise ParameterError("dataset", "examples that differ", _ALIKE)


def _parts(example: Any, leaf: Callable[[Any], Any]) -> Row:
    """Return an example's input and targets, with tensors for leaves; or raise."""
    several = example if isinstance(example, tuple | list) else (example,)
    parts = tuple(_tree(part, leaf) for part in several)
    if not parts or not trees.tree_leaves(parts[0]):
        raise ParameterError("dataset", example, _A_ROW)
    return parts


def _tree(part: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return mappings as dictionaries in one order, sequences as tuples, all else as tensors."""
    if isinstance(part, Mapping):
        if not all(isinstance(name, str) for name in part):
            raise ParameterError("dataset", type(part).__name__, _A_ROW)
        return {name: _tree(part[name], leaf) for name in sorted(part)}
    if isinstance(part, tuple | list) and not _is_numbers(part):
        return tuple(_tree(one, leaf) for one in part)
    return leaf(part)


def _is_numbers(part: Any) -> bool:
    """Return whether a sequence has nothing but numbers, however deep: it is one tensor."""
    inside = isinstance(part, tuple | list)
    return all(map(_is_numbers, part)) if inside else isinstance(part, Number)


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


def _of_one(part: Any) -> Any:
    """Return a tensor that a collation made of one example; or raise."""
    if not isinstance(part, torch.Tensor):
        raise ParameterError("dataset", type(part).__name__, _A_ROW)
    if part.dim() == 0 or len(part) != 1:
        raise ParameterError("collate", tuple(part.shape), _ONE)
    return part


def _padded(given: Any, length: int) -> Any:
    """Return an input that is filled or cut to a length: of a mapping, each part that has one."""
    if isinstance(given, dict):
        return {
            name: _filled(part, length, _IGNORED if name == "labels" else 0)
            if isinstance(part, torch.Tensor) and part.dim()
            else part
            for name, part in given.items()
        }
    if not isinstance(given, torch.Tensor) or given.dim() == 0:
        raise ParameterError("pad_to", length, _A_LENGTH)
    return _filled(given, length, 0)


def _filled(part: Any, length: int, value: int) -> Any:
    """Return a tensor with a value after its end, or cut, up to a length."""
    if len(part) >= length:
        return part[:length]
    missing = part.new_full((length - len(part), *part.shape[1:]), value)
    return torch.cat([part, missing])
