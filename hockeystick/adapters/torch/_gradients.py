"""Sums of clipped gradients, of each example or of whole batches, a few examples at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, Final

import torch
from torch.func import functional_call, grad, vmap
from torch.utils import _pytree as trees

from hockeystick.adapters.torch._clipping import Clip, Tensors
from hockeystick.adapters.torch._single import single_gradients

LossFn = Callable[..., Any]
Examples = tuple[Any, ...]
# In single precision a sum of so many squares is right to six digits; one of 10^8 stops growing.
_BLOCK: Final = 1024
# Squares of what is far below this vanish in single precision.
_TINY: Final = 1e-10
# Below this, numbers in single precision have fewer digits.
_LEAST: Final = 2.0**-126


def layers(names: Iterator[str] | list[str]) -> list[list[str]]:
    """Return the parameters' names by the module that has them."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    return list(groups.values())


def clipped_sum(gradients: Tensors, norm: float, groups: list[list[str]]) -> tuple[Tensors, Any]:
    """Return the sum of the clipped gradients, and each one's length in the last group before.

    Each group of parameters is clipped to ``norm / sqrt(number of groups)``. A gradient without a
    finite length counts as 0: an infinite or undefined one would be in the sum for all to see. So
    does one of 10^37 clipping norms, which no scale in single precision brings down to one.
    Lengths are those of 32-bit gradients to six digits, however many entries there are.
    """
    sums: Tensors = {}
    limit = norm / math.sqrt(len(groups))
    for names in groups:
        parts = [gradients[name].reshape(len(gradients[name]), -1) for name in names]
        lengths = _length(torch.stack([_lengths(part, limit) for part in parts], dim=1))
        scales = limit / lengths.clamp(min=limit)
        kept = scales >= _LEAST  # which no infinite or undefined length is
        if not bool(kept.all()):
            scales = torch.where(kept, scales, 0.0)
            parts = [torch.where(kept.unsqueeze(1), part, 0.0) for part in parts]
        for name, part in zip(names, parts, strict=True):
            shape = gradients[name].shape
            gradients[name] = part.reshape(shape)
            sums[name] = (scales.to(part.dtype) @ part).reshape(shape[1:])
    return sums, lengths


def individual(
    model: Any, loss_fn: LossFn, params: Tensors, chunk: Examples, clip: Clip, norm: float
) -> tuple[Tensors, Tensors]:
    """Return the sum of the examples' clipped gradients, and that of the second query."""
    each = vmap(partial(grad(_loss(model, loss_fn)), params), randomness="different")
    with single_gradients(model):
        gradients = {name: one.detach() for name, one in each(*chunk).items()}
    groups = layers(list(params)) if clip.per_layer else [list(params)]
    sums, lengths = clipped_sum(gradients, norm, groups)
    return sums, clip.query(gradients, lengths, norm)


def whole(model: Any, loss_fn: LossFn, params: Tensors, chunk: Examples) -> Tensors:
    """Return the gradient of the sum of the examples' losses, unclipped."""
    loss = _loss(model, loss_fn)

    def total(given: Tensors) -> Any:
        return vmap(partial(loss, given), randomness="different")(*chunk).sum()

    with single_gradients(model):
        return {name: one.detach() for name, one in grad(total)(params).items()}


def chunks(examples: Examples, size: int | None) -> Iterator[Examples]:
    """Return the examples in blocks."""
    count = len(trees.tree_leaves(examples)[0])
    for start in range(0, count, size or count):
        block = slice(start, start + (size or count))
        yield trees.tree_map(itemgetter(block), examples)


def _loss(model: Any, loss_fn: LossFn) -> Callable[..., Any]:
    """Return the loss of one example as a function of the parameters."""

    def loss(params: Tensors, first: Any, *targets: Any) -> Any:
        given, *rest = trees.tree_map(lambda part: part.unsqueeze(0), (first, *targets))
        named = given if isinstance(given, dict) else {}
        places = () if isinstance(given, dict) else given if isinstance(given, tuple) else (given,)
        return loss_fn(functional_call(model, params, places, named), *rest).sum()

    return loss


def _lengths(rows: Any, limit: float) -> Any:
    """Return the length of each row in double precision, of blocks in the rows' own."""
    if limit < _TINY:
        return _length(rows.double())
    width = rows.shape[1]
    whole = width - width % _BLOCK
    if whole == 0:
        return _length(rows).double()
    blocks = _length(rows[:, :whole].unflatten(1, (-1, _BLOCK))).double()
    return _length(torch.cat([blocks, _length(rows[:, whole:]).double().unsqueeze(1)], dim=1))


def _length(rows: Any) -> Any:
    """Return the length of each row, in the rows' precision."""
    return torch.linalg.vector_norm(rows, dim=-1)
