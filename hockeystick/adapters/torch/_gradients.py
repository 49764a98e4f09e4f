"""Sums of clipped gradients, of each example or of whole batches, a few examples at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from hockeystick.adapters.torch._clipping import Clip, Tensors

LossFn = Callable[..., Any]
Examples = tuple[Any, ...]


def layers(names: Iterator[str] | list[str]) -> list[list[str]]:
    """Return the parameters' names by the module that has them."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    return list(groups.values())


def clipped_sum(gradients: Tensors, norm: float, groups: list[list[str]]) -> tuple[Tensors, Any]:
    """Return the sum of the clipped gradients, and each one's length in the last group before.

    Each group of parameters is clipped to ``norm / sqrt(number of groups)``. A gradient without a
    finite length counts as 0: an infinite or undefined one would be in the sum for all to see.
    """
    sums: Tensors = {}
    limit = norm / math.sqrt(len(groups))
    for names in groups:
        parts = [gradients[name] for name in names]
        lengths = torch.stack([_lengths(part) for part in parts]).norm(dim=0)
        finite = torch.isfinite(lengths)
        if not bool(finite.all()):
            parts = [_zeroed(part, finite) for part in parts]
        scales = torch.where(finite, limit / lengths.clamp(min=limit), 0.0)
        for name, part in zip(names, parts, strict=True):
            gradients[name] = part
            sums[name] = torch.tensordot(scales, part, dims=1)
    return sums, lengths


def individual(
    model: Any, loss_fn: LossFn, params: Tensors, chunk: Examples, clip: Clip, norm: float
) -> tuple[Tensors, Tensors]:
    """Return the sum of the examples' clipped gradients, and that of the second query."""
    axes = (None, *(0 for _ in chunk))
    each = vmap(grad(_loss(model, loss_fn)), in_dims=axes, randomness="different")
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernels have no rule for single examples
        gradients = {name: one.detach() for name, one in each(params, *chunk).items()}
    groups = layers(list(params)) if clip.per_layer else [list(params)]
    sums, lengths = clipped_sum(gradients, norm, groups)
    return sums, clip.query(gradients, lengths, norm)


def whole(model: Any, loss_fn: LossFn, params: Tensors, chunk: Examples) -> Tensors:
    """Return the gradient of the sum of the examples' losses, unclipped."""
    axes = (None, *(0 for _ in chunk))
    each = vmap(_loss(model, loss_fn), in_dims=axes, randomness="different")

    def total(given: Tensors) -> Any:
        return each(given, *chunk).sum()

    with sdpa_kernel(SDPBackend.MATH):
        return {name: one.detach() for name, one in grad(total)(params).items()}


def chunks(examples: Examples, size: int | None) -> Iterator[Examples]:
    """Return the examples, so many at a time."""
    count = len(examples[0]) if examples else 0
    for start in range(0, count, size or max(count, 1)):
        yield tuple(part[start : start + (size or count)] for part in examples)


def _loss(model: Any, loss_fn: LossFn) -> Callable[..., Any]:
    """Return the loss of one example as a function of the parameters."""

    def loss(params: Tensors, first: Any, *targets: Any) -> Any:
        output = functional_call(model, params, (first.unsqueeze(0),))
        return loss_fn(output, *(target.unsqueeze(0) for target in targets)).sum()

    return loss


def _lengths(part: Any) -> Any:
    """Return the length of each example's part of a gradient."""
    return torch.linalg.vector_norm(part.flatten(1), dim=1)


def _zeroed(part: Any, kept: Any) -> Any:
    """Return parts of gradients, 0 in place of those that are not kept."""
    return torch.where(kept.reshape(-1, *(1 for _ in part.shape[1:])), part, 0.0)
