"""Training loops of one's own: a model and batches with which each step of an optimizer is private.

The model gives each example's output in a pass of its own. The loss's backward pass brings the
gradient of each output, by which the optimizer's step does what ``private.step`` does.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from operator import is_
from typing import Any, Final, Literal, final

import torch
from torch import nn
from torch.utils import _pytree as trees

from hockeystick import _validate
from hockeystick.adapters.torch._batches import Batch, versions_of, without_rows
from hockeystick.adapters.torch._clipping import in_single_precision
from hockeystick.errors import IncompatibleError, ParameterError

Reduction = Literal["mean", "sum"]
_KEY_BITS: Final = 128
_LAST: Final = "the tensors that the private loader gave last, as they are, each batch once"
_NO_BACKWARD: Final = (
    "the optimizer of a private loop steps once for each batch, after one backward pass of a loss "
    "of its outputs: these gradients are neither clipped nor noised nor counted"
)
_TOUCHED: Final = (
    "a parameter has a gradient that is not the private loop's, of a loss that reads weights, "
    "say: it would be lost; use the optimizer's weight_decay, or private.step"
)


class _Recorded(torch.autograd.Function):  # type: ignore[misc]  # torch may have no types
    """Outputs as they are, whose gradients are noted."""

    @staticmethod
    def forward(ctx: Any, loop: OwnLoop, anchor: Any, *outputs: Any) -> Any:
        ctx.loop = loop
        return tuple(one.view_as(one) for one in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.loop.note(gradients)
        return (None, None, *(None for _ in gradients))


@final
class Batches:
    """What a loop of another's is given for each step that is left."""

    def __init__(self, private: Any, give: Callable[[Batch], Any]) -> None:
        self._private, self._give = private, give

    def __len__(self) -> int:
        return int(self._private.left)

    def __iter__(self) -> Iterator[Any]:
        return map(self._give, self._private.loader)


@final
class OwnLoop(nn.Module):  # type: ignore[misc]  # torch may have no types
    """The model of a loop of one's own, and by ``give`` what it is called with.

    Without gradients, as in validation, it is the model as it is.
    """

    def __init__(self, private: Any, reduction: Reduction) -> None:
        super().__init__()
        self.module = private.model
        self._private = (private,)  # so that the loop is no part of the model
        self.reduction = _validate.one_of("reduction", reduction, ("mean", "sum"))
        self._batch: Batch | None = None
        self._examples: Any = ()
        self._like: Any = ()
        self._written: list[int] = []
        self._modes: list[bool] = []
        self._called: tuple[int, int | None] | None = None  # by which key, how many at once
        self._gradients: tuple[Any, ...] | None = None

    def give(self, batch: Batch) -> Any:
        """Return the inputs and targets of a batch, on the model's device; of no rows if empty."""
        (private,) = self._private
        device = next(private.model.parameters()).device
        self._batch, self._called, self._gradients = batch, None, None
        examples = batch.examples or private.loader.one_example()
        examples = self._like = trees.tree_map(lambda part: part.to(device), examples)
        self._examples = examples if len(batch) else without_rows(examples)
        self._written = versions_of(self._examples)
        return self._examples if len(self._examples) > 1 else self._examples[0]

    def forward(self, *places: Any, **named: Any) -> Any:
        """Return the model's outputs for the batch given last, each example's of its own pass."""
        if not torch.is_grad_enabled():
            return self.module(*places, **named)
        (private,) = self._private
        given, own = (trees.tree_leaves(one) for one in ((places, named), self._examples[:1]))
        same = len(given) == len(own) and all(map(is_, given, own))
        batch, changed = self._batch, versions_of(self._examples) != self._written
        if batch is None or self._called is not None or not same or changed:
            raise ParameterError("inputs", "others, or changed, or the same again", _LAST)
        key = secrets.randbits(_KEY_BITS) if private._seed is None else private._seed
        found, size = private._outputs(self._like[0], key)
        self._called, found = (key, size), found if len(batch) else without_rows(found)
        flat, tree = trees.tree_flatten(found)
        if any(one.is_complex() for one in flat):
            raise ParameterError("model", "complex outputs", "one with real outputs")
        # In 16 bits the rounding of a mean would tell how many examples there are.
        floats = [in_single_precision(one) for one in flat if one.is_floating_point()]
        noted = iter(_Recorded.apply(self, torch.zeros((), requires_grad=True), *floats))
        self._modes = [one.training for one in private.model.modules()]
        return trees.tree_unflatten(
            [next(noted) if one.is_floating_point() else one for one in flat], tree
        )

    def note(self, gradients: tuple[Any, ...]) -> None:
        if self._gradients is not None:
            raise IncompatibleError(_NO_BACKWARD)
        self._gradients = gradients

    def sum(self) -> None:
        """Have the private loop sum the clipped gradients of the batch, for the step to release."""
        (private,) = self._private
        batch, called, gradients = self._batch, self._called, self._gradients
        if batch is None or called is None or gradients is None:
            raise IncompatibleError(_NO_BACKWARD)
        if self._modes != [one.training for one in private.model.modules()]:
            raise IncompatibleError("the model was put in another mode since it was called")
        for name, one in private.model.named_parameters():
            if one.grad is not None and not self._is_own(name, one.grad):
                raise IncompatibleError(_TOUCHED)
        scale = len(batch) if self.reduction == "mean" else 1
        examples = (batch.examples[0], *(one * scale for one in gradients)) if len(batch) else ()
        self._batch = self._gradients = None
        private._sum(_inner, batch, examples, *called)

    def _is_own(self, name: str, gradient: Any) -> bool:
        (private,) = self._private
        same = gradient is private._gradients.get(name)
        return same and (gradient._version == private._written.get(name) or not gradient.any())


def _inner(outputs: Any, *gradients: Any) -> Any:
    """Return the loss of an example whose gradient by the outputs is the given one."""
    floats = [one for one in trees.tree_leaves(outputs) if one.is_floating_point()]
    return sum((one * other).sum() for one, other in zip(floats, gradients, strict=True))
