"""Sums of clipped gradients, of each example or of whole batches, a few examples at a time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from typing import Any, Final

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import parametrize
from torch.utils import _pytree as trees

from hockeystick.adapters.torch._clipping import Clip, Tensors
from hockeystick.adapters.torch._noise import Arithmetic
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
# Words of what torch says where it takes no gradients of examples one by one.
_OF_TORCH_FUNC: Final = ("torch.func", "functorch", "vmap", "transform", "data pointer")
_READ_ONLY: Final = (
    "free of buffers, weights and modules that its forward sets: they keep of examples, or of how "
    "many there were, what no noise hides; set them between steps, or by eval() of the layer"
)


def clipped_sum(
    gradients: Tensors, norm: float, arithmetic: Arithmetic, clip: Clip
) -> tuple[Tensors, Tensors]:
    """Return the sum of clipped gradients in rows, and that of the second query.

    Each of the groups, all parameters or those of a layer, is clipped to
    ``norm / sqrt(number of groups)``. Lengths are those of 32-bit gradients to six digits, however
    many entries there are.
    """
    sums: Tensors = {}
    queried: Tensors = {}
    groups: dict[str, list[str]] = {}
    for name in gradients:
        groups.setdefault(name.rpartition(".")[0] if clip.per_layer else "", []).append(name)
    for names in groups.values():
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
    return torch.linalg.vector_norm(rows, dim=-1)


def individual(
    model: Any, loss_fn: LossFn, params: Tensors, kept: Tensors, chunk: Examples
) -> tuple[Tensors, Any]:
    """Return the examples' gradients by the parameters in rows, and the sum of their losses."""
    with _one_microbatch(model, loss_fn, params | kept):
        each = _of_each(grad_and_value(_loss(model, loss_fn)), chunk)
        found, losses = each(params, kept, *chunk)
        _check_all_reached(model, losses)
    return {name: one.detach() for name, one in found.items()}, losses.detach().sum()


def whole(
    model: Any, loss_fn: LossFn, params: Tensors, kept: Tensors, chunk: Examples
) -> tuple[Tensors, Any]:
    """Return the gradient of the sum of the examples' losses, unclipped, and that sum."""
    each = _of_each(_loss(model, loss_fn), chunk)

    def total(given: Tensors, beside: Tensors) -> Any:
        return each(given, beside, *chunk).sum()

    with _one_microbatch(model, loss_fn, params | kept):
        found, losses = grad_and_value(total)(params, kept)
        _check_all_reached(model, losses)
    return {name: one.detach() for name, one in found.items()}, losses.detach()


def _of_each(function: Callable[..., Any], chunk: Examples) -> Callable[..., Any]:
    """Return a function of one example as one of several, each of which draws its own numbers."""
    places = (None, None, *(0 for _ in chunk))
    found: Callable[..., Any] = vmap(function, places, randomness="different")
    return found


def sensible(params: Tensors) -> int:
    """Return how many examples' gradients are computed at once where nobody says.

    A model's size decides, no data do. A CPU is fastest where gradients are few enough for its
    cache and no fewer than 8.
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
                raise ParameterError("model", name.removeprefix("model."), _READ_ONLY)
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


@contextmanager
def _one_microbatch(model: Any, loss_fn: LossFn, given: Tensors) -> Iterator[None]:
    """Let nothing of a microbatch be there for the next one."""
    modules = [*model.modules(), *(loss_fn.modules() if isinstance(loss_fn, nn.Module) else ())]
    with _untouched(modules, given), torch.enable_grad(), _single_gradients(model):
        yield


@contextmanager
def _untouched(modules: list[Any], given: Tensors) -> Iterator[None]:
    """Put back what modules keep as it was before a microbatch; raise if tensors were written.

    What goes on from one microbatch to the next lets an example move the gradients of others, or
    tells how many there are.
    """
    before = [(one, _kept(one)) for one in modules]
    versions = [one._version for one in given.values()]
    try:
        yield
    finally:
        changed = [
            f"{kind[1:-1]} {name} of {type(module).__name__}"
            for module, (_, held) in before
            for kind in ("_buffers", "_parameters", "_modules")
            for name in held[kind].keys() | getattr(module, kind).keys()
            if held[kind].get(name) is not getattr(module, kind).get(name)
        ]
        for module, (attributes, held) in before:
            module.__dict__.clear()
            module.__dict__.update(attributes)
            for name, contents in held.items():
                own = attributes[name]
                own.clear()
                (own.extend if isinstance(own, list) else own.update)(contents)
        written = zip(given.items(), versions, strict=True)
        changed += [name for (name, one), version in written if one._version != version]
        if changed:
            raise ParameterError("model", changed[0], _READ_ONLY)


def _kept(module: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    own = dict(module.__dict__)
    holders = {name: one for name, one in own.items() if isinstance(one, dict | list | set)}
    return own, {name: one.copy() for name, one in holders.items()}


# What lets the gradients of single examples be taken of layers that were not made for it.


@contextmanager
def _single_gradients(model: Any) -> Iterator[None]:
    """Compute each layer of a model in a way that is known for an example alone; or raise.

    What asks for the value of a tensor, or what torch takes no single gradients of, is refused.
    """
    if parametrize._cache_enabled:
        raise IncompatibleError(
            "private.step runs outside torch.nn.utils.parametrize.cached(): weights that are kept "
            "from one microbatch to the next lose their gradients"
        )
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))  # the fused kernels have no such rule
        stack.enter_context(_masks_as_traced())
        stack.enter_context(_states_of_their_own(model))
        try:
            yield
        except RuntimeError as error:
            said = str(error)
            if "data-dependent control flow" in said:
                raise IncompatibleError(
                    "the model or loss_fn decides by the values of a tensor (by if or .item()): "
                    "single gradients are taken of all examples at once; use torch.where, or masks"
                ) from error
            if not any(word in said for word in _OF_TORCH_FUNC):
                raise
            raise IncompatibleError(
                "the model or loss_fn does what torch.func takes no single gradients of, such as "
                "activation checkpointing, an autograd.Function without setup_context, or a write "
                f"in place: {said.splitlines()[0]}"
            ) from error


@contextmanager
def _masks_as_traced() -> Iterator[None]:
    """Have Hugging Face's attention masks made as in a trace, where nobody reads their values."""
    masks: Any = sys.modules.get("transformers.masking_utils")
    if not hasattr(masks, "is_tracing"):
        yield
        return
    before, masks.is_tracing = masks.is_tracing, lambda tensor=None: True
    try:
        yield
    finally:
        masks.is_tracing = before


@contextmanager
def _states_of_their_own(model: Any) -> Iterator[None]:
    """Give recurrent layers their first state: they make one that all examples would share.

    The layers of oneDNN, which have no rule for single examples, are turned off meanwhile.
    """
    found = [
        module for module in model.modules() if isinstance(module, nn.RNNBase | nn.RNNCellBase)
    ]
    if not found:
        yield
        return
    handles = [one.register_forward_pre_hook(_first_state, with_kwargs=True) for one in found]
    enabled, *_ = torch.backends.mkldnn.set_flags(_enabled=False)
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=enabled)
        for handle in handles:
            handle.remove()


def _first_state(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return a recurrent layer's arguments, with a state of zeros made from its own input."""
    rows, *state = (*given, *(named[name] for name in ("input", "hx") if name in named))
    if isinstance(rows, nn.utils.rnn.PackedSequence):
        raise IncompatibleError(
            "a packed sequence has the lengths of its texts as values: single gradients are taken "
            "of all examples at once; give tensors of one length, and mask the outputs"
        )
    if state and state[0] is not None:
        return None
    if isinstance(module, nn.RNNCellBase):
        hidden = rows.new_zeros(*rows.shape[:-1], module.hidden_size)
        return (rows, (hidden, hidden) if isinstance(module, nn.LSTMCell) else hidden), {}
    layers = module.num_layers * (2 if module.bidirectional else 1)
    sizes = () if rows.dim() == 2 else (rows.shape[0 if module.batch_first else 1],)
    hidden = rows.new_zeros(layers, *sizes, module.proj_size or module.hidden_size)
    if not isinstance(module, nn.LSTM):
        return (rows, hidden), {}
    return (rows, (hidden, rows.new_zeros(layers, *sizes, module.hidden_size))), {}
