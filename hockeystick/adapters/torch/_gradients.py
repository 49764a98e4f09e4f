"""Sums of clipped gradients, of each example or of whole batches, a few examples at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Final

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap
from torch.utils import _pytree as trees

from hockeystick.adapters.torch._arithmetic import Arithmetic
from hockeystick.adapters.torch._checks import READ_ONLY, untouched
from hockeystick.adapters.torch._clipping import Clip, Tensors
from hockeystick.adapters.torch._single import single_gradients
from hockeystick.errors import IncompatibleError, ParameterError

LossFn = Callable[..., Any]
Examples = tuple[Any, ...]
# In single precision a sum of so many squares is right to six digits; one of 10^8 stops growing.
_BLOCK: Final = 1024
_ON_CPU: Final = 2**25
_ELSEWHERE: Final = 2**30
_FEWEST: Final = 8
# Squares of what is far below this vanish in single precision.
_TINY: Final = 1e-10


def layers(names: Iterator[str] | list[str]) -> list[list[str]]:
    """Return the parameters' names by the module that has them."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    return list(groups.values())


def clipped_sum(
    gradients: Tensors, norm: float, groups: list[list[str]], arithmetic: Arithmetic, clip: Clip
) -> tuple[Tensors, Tensors]:
    """Return the sum of the clipped gradients, and that of the second query.

    Each group of parameters is clipped to ``norm / sqrt(number of groups)``. Lengths are those of
    32-bit gradients to six digits, however many entries there are.
    """
    sums: Tensors = {}
    queried: Tensors = {}
    for names in groups:
        parts = [gradients[name].reshape(len(gradients[name]), -1) for name in names]
        limit = norm / math.sqrt(len(groups))
        lengths = _length(torch.stack([_lengths(part, limit) for part in parts], dim=1))
        weights = clip.weights(lengths, norm)
        found = arithmetic.sums(parts, lengths, norm, len(groups), weights)
        for name, rows in zip(names, found, strict=True):
            shape = gradients[name].shape[1:]
            sums[name] = rows[0].reshape(shape)
            if len(rows) > 1:
                queried[name] = rows[1].reshape(shape)
        queried |= clip.counted(lengths, norm)
    return sums, queried


def individual(
    model: Any, loss_fn: LossFn, params: Tensors, kept: Tensors, chunk: Examples
) -> tuple[Tensors, Any]:
    """Return the examples' gradients in rows, and the sum of their losses.

    Args:
        model: The model.
        loss_fn: The loss of its outputs.
        params: What is differentiated by, by name.
        kept: The other tensors of the model.
        chunk: The examples.
    """
    places = (None, None, *(0 for _ in chunk))
    each = vmap(grad_and_value(_loss(model, loss_fn)), places, randomness="different")
    with _one_microbatch(model, loss_fn, params | kept):
        found, losses = each(params, kept, *chunk)
        _check_all_reached(model, losses)
    return {name: one.detach() for name, one in found.items()}, losses.detach().sum()


def whole(
    model: Any, loss_fn: LossFn, params: Tensors, kept: Tensors, chunk: Examples
) -> tuple[Tensors, Any]:
    """Return the gradient of the sum of the examples' losses, unclipped, and that sum."""
    places = (None, None, *(0 for _ in chunk))
    each = vmap(_loss(model, loss_fn), places, randomness="different")

    def total(given: Tensors, beside: Tensors) -> Any:
        return each(given, beside, *chunk).sum()

    with _one_microbatch(model, loss_fn, params | kept):
        found, losses = grad_and_value(total)(params, kept)
        _check_all_reached(model, losses)
    return {name: one.detach() for name, one in found.items()}, losses.detach()


@contextmanager
def _one_microbatch(model: Any, loss_fn: LossFn, given: Tensors) -> Iterator[None]:
    """Let nothing of a microbatch be there for the next one."""
    modules = [*model.modules(), *(loss_fn.modules() if isinstance(loss_fn, nn.Module) else ())]
    with untouched(modules, given), torch.enable_grad(), single_gradients(model):
        yield


def sensible(params: Tensors) -> int:
    """Return how many examples' gradients are computed at once where nobody says: 8 or more.

    As many as have gradients of 32 MiB on a CPU, 1 GiB on an accelerator: a model's size decides,
    no data do. A CPU is fastest where gradients are few enough for its cache and no fewer than 8.
    """
    gradient = sum(value.numel() * value.element_size() for value in params.values())
    on_cpu = next(iter(params.values())).device.type == "cpu"
    return int(max((_ON_CPU if on_cpu else _ELSEWHERE) // max(gradient, 1), _FEWEST))


def chunks(examples: Examples, size: int | None) -> Iterator[Examples]:
    """Return copies of the examples in blocks, which a forward may write to."""
    count = len(trees.tree_leaves(examples)[0])
    for start in range(0, count, size or count):
        block = slice(start, start + (size or count))
        yield trees.tree_map(torch.clone, trees.tree_map(itemgetter(block), examples))


class _WithLoss(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model with its loss, which finds the parameters that are differentiated in the model."""

    def __init__(self, model: Any, loss_fn: LossFn) -> None:
        super().__init__()
        self.model, self._loss_fn = model, (loss_fn,)

    def forward(self, given: Any, *targets: Any) -> Any:
        named = given if isinstance(given, dict) else {}
        places = () if isinstance(given, dict) else given if isinstance(given, tuple) else (given,)
        found = self._loss_fn[0](self.model(*places, **named), *targets)
        if not isinstance(found, torch.Tensor) or found.is_complex():
            raise ParameterError("loss_fn", type(found).__name__, "one that returns a real tensor")
        return found.sum()


def _loss(model: Any, loss_fn: LossFn) -> Callable[..., Any]:
    """Return the loss of one example as a function of the parameters and other tensors."""
    together = _WithLoss(model, loss_fn)

    def loss(params: Tensors, kept: Tensors, *example: Any) -> Any:
        one = trees.tree_map(lambda part: part.unsqueeze(0), example)
        given = {f"model.{name}": value for name, value in (params | kept).items()}
        before = dict(given)
        found = functional_call(together, given, one)
        for name, value in before.items():
            if given[name] is not value:  # functional_call says here what was put in its place
                raise ParameterError("model", name.removeprefix("model."), READ_ONLY)
        return found

    return loss


def _check_all_reached(model: Any, losses: Any) -> None:
    """Raise where the losses depend on parameters by a way that no gradient was taken along."""
    if not losses.requires_grad:
        return
    own = [one for one in model.parameters() if one.requires_grad]
    past = torch.autograd.grad(losses.sum(), own, allow_unused=True)
    if any(one is not None for one in past):
        raise IncompatibleError(
            "loss_fn uses parameters of the model that were taken out of it before, whose gradient "
            "would be lost: read them from the model inside loss_fn, or detach() them"
        )


def _lengths(rows: Any, limit: float) -> Any:
    """Return the length of each row in double precision, of blocks in the rows' own."""
    if limit < _TINY:
        return _length(rows.double())
    width = rows.shape[1]
    whole = width - width % _BLOCK
    if whole == 0:
        found = _length(rows).double()
    else:
        blocks = _length(rows[:, :whole].unflatten(1, (-1, _BLOCK))).double()
        found = _length(torch.cat([blocks, _length(rows[:, whole:]).double().unsqueeze(1)], dim=1))
    if not bool(torch.isfinite(found).all()):  # squares of 10^19 are infinite in single precision
        largest = rows.abs().amax(dim=1).double().clamp(min=1.0)
        found = largest * _length(rows.double() / largest.unsqueeze(1))
    return found


def _length(rows: Any) -> Any:
    """Return the length of each row, in the rows' precision."""
    return torch.linalg.vector_norm(rows, dim=-1)
