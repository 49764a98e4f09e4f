"""Each example's gradient, and sums of clipped gradients a few at a time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from typing import Any, Final
from unittest.mock import patch

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import parametrize
from torch.utils import _pytree as trees

from hockeystick.adapters.torch._noise import Real
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.clipping import Clip, Online, Quantile

Tensors = dict[str, Any]
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
_RECURRENT: Final = (nn.RNNBase, nn.RNNCellBase)
_BY_VALUES: Final = (
    "the model or loss_fn decides by the values of a tensor (if, .item(), a packed sequence): "
    "single gradients are taken of all examples at once; use torch.where, or masks"
)
_NOT_TAKEN: Final = (
    "the model or loss_fn does what torch.func takes no single gradients of, such as activation "
    "checkpointing, an autograd.Function without setup_context, or a write in place"
)
_CACHED: Final = "private.step runs outside torch.nn.utils.parametrize.cached(): gradients get lost"
_TAKEN_OUT: Final = (
    "loss_fn uses parameters of the model that were taken out of it before, whose gradient is "
    "lost: read them from the model inside loss_fn, or detach() them"
)
_READ_ONLY: Final = (
    "free of buffers, weights and modules that its forward sets: they keep of examples what no "
    "noise hides; set them between steps, or by eval() of the layer"
)


# Sums of clipped gradients, of each example or of whole batches.


def clipped_sum(
    gradients: Tensors, norm: float, arithmetic: Real, clip: Clip
) -> tuple[Tensors, Tensors]:
    """Return the sum of clipped gradients in rows, and that of the second query.

    Each group, of all parameters or a layer's, is clipped to ``norm / sqrt(number of groups)``.
    """
    sums: Tensors = {}
    queried: Tensors = {}
    groups: dict[str, list[str]] = {}
    for name in gradients:
        groups.setdefault(name.rpartition(".")[0] if clip.per_layer else "", []).append(name)
    for names in groups.values():
        given = [gradients[name] for name in names]
        parts = [one.reshape(len(one), math.prod(one.shape[1:])) for one in given]
        limit = norm / math.sqrt(len(groups))
        lengths = _length(torch.stack([_lengths(part, limit) for part in parts], dim=1))
        weights = torch.ones_like(lengths).unsqueeze(0)
        if isinstance(clip, Online):
            weights = torch.cat([weights, (lengths > norm).to(weights).unsqueeze(0)])
        elif isinstance(clip, Quantile):
            queried["bits"] = (lengths <= norm).double().mul(2).sub(1).sum()
        found = arithmetic.sums(parts, lengths, norm, len(groups), weights)
        for name, rows in zip(names, found, strict=True):
            sums[name] = rows[0].reshape(gradients[name].shape[1:])
            if len(rows) > 1:
                queried[name] = rows[1].reshape(gradients[name].shape[1:])
    return sums, queried


def next_norm(
    clip: Clip, norm: float, memory: Tensors, gradients: Tensors, answers: Tensors
) -> float:
    """Return the norm of the next step, from noisy means alone; memory keeps those for later."""
    if isinstance(clip, Quantile):
        return clip.moved(norm, float(answers["bits"]) + 0.5)
    before = dict(memory)
    memory.clear()
    memory.update(answers)
    if before.keys() != gradients.keys():  # the first step, or one that trains something else
        return norm
    pairs = ((one, before[name].to(one)) for name, one in gradients.items())
    return clip.moved(norm, sum(float(torch.sum(one * other)) for one, other in pairs))


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
    model: Any, loss_fn: LossFn, params: Tensors, kept: Tensors, chunk: Examples, by_batch: bool
) -> tuple[Tensors, Any]:
    """Return the examples' gradients by the parameters in rows, and the sum of their losses.

    Or the gradient of that sum alone. Nothing of a microbatch is there for the next one.
    """
    if not chunk:
        rows = () if by_batch else (0,)
        return {name: value.new_zeros((*rows, *value.shape)) for name, value in params.items()}, 0.0
    own = [one for one in model.parameters() if one.requires_grad]
    modules = [*model.modules(), *(loss_fn.modules() if isinstance(loss_fn, nn.Module) else ())]
    places = (None, None, *(0 for _ in chunk))
    loss = _loss(model, loss_fn)
    each = vmap(loss if by_batch else grad_and_value(loss), places, randomness="different")
    total = grad_and_value(lambda *both: each(*both, *chunk).sum())
    with _untouched(modules, params | kept), torch.enable_grad(), _single_gradients(model):
        found, losses = total(params, kept) if by_batch else each(params, kept, *chunk)
        if losses.requires_grad:  # by a way that no gradient was taken along
            past = torch.autograd.grad(losses.sum(), own, allow_unused=True)
            if any(one is not None for one in past):
                raise IncompatibleError(_TAKEN_OUT)
    return {name: one.detach() for name, one in found.items()}, losses.detach().sum()


def sensible(params: Tensors) -> int:
    """Return how many examples' gradients are computed at once where nobody says.

    No data decide it. A CPU is fastest where gradients fit its cache, and no fewer than 8.
    """
    gradient = sum(value.numel() * value.element_size() for value in params.values())
    on_cpu = next(iter(params.values())).device.type == "cpu"
    return int(max((_ON_CPU if on_cpu else _ELSEWHERE) // max(gradient, 1), _FEWEST))


def chunks(examples: Examples, size: int | None) -> Iterator[Examples]:
    """Return copies of the examples in blocks, which a forward may write to; one of no examples."""
    count = len(trees.tree_leaves(examples)[0]) if examples else 1
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
    """Compute each layer of a model in a way that is known for an example alone; or raise."""
    if parametrize._cache_enabled:
        raise IncompatibleError(_CACHED)
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))  # the fused kernels have no such rule
        masks: Any = sys.modules.get("transformers.masking_utils")
        if hasattr(masks, "is_tracing"):  # as in a trace, where nobody reads the masks' values
            stack.enter_context(patch.object(masks, "is_tracing", lambda tensor=None: True))
        recurrent = [one for one in model.modules() if isinstance(one, _RECURRENT)]
        for module in recurrent:
            hook = module.register_forward_pre_hook(_first_state, with_kwargs=True)
            stack.callback(hook.remove)
        if recurrent:  # those of oneDNN have no rule for single examples
            enabled, *_ = torch.backends.mkldnn.set_flags(_enabled=False)
            stack.callback(torch.backends.mkldnn.set_flags, _enabled=enabled)
        try:
            yield
        except RuntimeError as error:
            said = str(error)
            if "data-dependent control flow" in said:
                raise IncompatibleError(_BY_VALUES) from error
            if not any(word in said for word in _OF_TORCH_FUNC):
                raise
            raise IncompatibleError(f"{_NOT_TAKEN}: {said.splitlines()[0]}") from error


def _first_state(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return a recurrent layer's arguments with a state of zeros, which examples do not share."""
    rows, *state = (*given, *(named[name] for name in ("input", "hx") if name in named))
    if isinstance(rows, nn.utils.rnn.PackedSequence):
        raise IncompatibleError(_BY_VALUES)
    if state and state[0] is not None:
        return None
    if isinstance(module, nn.RNNCellBase):
        sizes, size = tuple(rows.shape[:-1]), module.hidden_size
    else:
        batch = () if rows.dim() == 2 else (rows.shape[0 if module.batch_first else 1],)
        sizes = (module.num_layers * (2 if module.bidirectional else 1), *batch)
        size = module.proj_size or module.hidden_size
    hidden = rows.new_zeros(*sizes, size)
    cells = rows.new_zeros(*sizes, module.hidden_size)
    return (rows, (hidden, cells) if isinstance(module, nn.LSTM | nn.LSTMCell) else hidden), {}
