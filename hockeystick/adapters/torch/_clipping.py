"""Each example's gradient, and sums of clipped gradients a few at a time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, Final

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import parametrize
from torch.utils import _pytree as trees
from torch.utils import checkpoint

from hockeystick.adapters.torch._factors import (
    Call,
    LayerDiffersError,
    Layers,
    Part,
    Rows,
    Tensors,
    are_alike,
    length,
)
from hockeystick.adapters.torch._noise import Real
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.clipping import Clip, Online, Quantile

LossFn = Callable[..., Any]
Examples = tuple[Any, ...]
_ON_CPU: Final = 2**25
_ELSEWHERE: Final = 2**30
_FEWEST: Final = 8
_unsqueezed: Final = partial(torch.unsqueeze, dim=0)
# Words of what torch says where it takes no gradients of examples one by one.
_OF_FUNC: Final = ("torch.func", "functorch", "vmap", "transform", "data pointer", "Batching rule")
_RECURRENT: Final = (nn.RNNBase, nn.RNNCellBase)
# In place of parts of torch's, keep activations: what a microbatch has of them is little enough.
_CHECKPOINTS: Final[dict[str, Any]] = {
    "CheckpointFunction": SimpleNamespace(apply=lambda function, _, *places: function(*places)),
    "_checkpoint_without_reentrant_generator": lambda *_, **__: iter((None,)),
}
_BY_VALUES: Final = (
    "the model or loss_fn decides by the values of a tensor (if, .item(), a packed sequence), "
    "which all examples share: use torch.where, or masks"
)
_NOT_TAKEN: Final = (
    "the model or loss_fn does what torch.func takes no single gradients of, such as an "
    "autograd.Function without setup_context, or a write in place"
)
_CACHED: Final = "private.step runs outside torch.nn.utils.parametrize.cached(): gradients get lost"
_TAKEN_OUT: Final = (
    "loss_fn uses parameters of the model that were taken out of it before, whose gradient is "
    "lost: read them inside loss_fn, or detach() them"
)
_READ_ONLY: Final = (
    "free of buffers, weights and modules that its forward sets, which keep of examples what no "
    "noise hides; set them between steps"
)


def clipped_sum(
    gradients: Mapping[str, Part], norm: float, arithmetic: Real, clip: Clip
) -> tuple[Tensors, Tensors]:
    """Return the sum of clipped gradients, and that of the second query.

    Each group, of all parameters or a layer's, is clipped to ``norm / sqrt(number of groups)``.
    """
    sums: Tensors = {}
    queried: Tensors = {}
    groups: dict[str, list[str]] = {}
    for name in gradients:
        groups.setdefault(name.rpartition(".")[0] if clip.per_layer else "", []).append(name)
    for names in groups.values():
        parts = [gradients[name] for name in names]
        limit = norm / math.sqrt(len(groups))
        lengths = length(torch.stack([part.lengths(limit) for part in parts], dim=1))
        weights = torch.ones_like(lengths).unsqueeze(0)
        if isinstance(clip, Online):
            weights = torch.cat([weights, (lengths > norm).to(weights).unsqueeze(0)])
        elif isinstance(clip, Quantile):
            queried["bits"] = (lengths <= norm).double().mul(2).sub(1).sum()
        found = arithmetic.sums(parts, lengths, norm, len(groups), weights)
        for name, part, (own, *second) in zip(names, parts, found, strict=True):
            sums[name] = own.reshape(part.shape)
            for one in second:
                queried[name] = one.reshape(part.shape)
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


def individual(
    model: Any,
    loss_fn: LossFn,
    params: Tensors,
    kept: Tensors,
    chunk: Examples,
    layers: Layers,
    by_batch: bool = False,
    alone: bool = False,
) -> tuple[dict[str, Any], Any]:
    """Return the examples' gradients by the parameters, and the sum of their losses.

    They are in rows, those of chosen layers in factors; or, by batch, the gradient of that sum.
    ``alone``: always of a single example, with nothing that takes several together.
    """
    if not chunk:
        none = {name: value.new_zeros((0, *value.shape)) for name, value in params.items()}
        return {n: one.sum(dim=0) if by_batch else Rows(one) for n, one in none.items()}, 0.0
    taken: Any = partial(_loss(model, loss_fn, list(params), kept, layers), layers.probes)
    owners = {name.rpartition(".")[0] for name in params}
    whole = by_batch or (layers.whole and owners <= {name for name, _ in layers.probes})
    alone = alone and not by_batch
    count = () if alone or not whole else (len(trees.tree_leaves(chunk)[0]),)
    probes = [one.expand(*count, *one.shape) for one in layers.probes.values()]
    leaves = tuple(one.detach().requires_grad_(whole) for one in (*params.values(), *probes))
    taken = taken if whole else grad_and_value(taken, has_aux=True)
    if not alone:
        axes = *(None for _ in params), *(0 if whole else None for _ in probes)
        taken = vmap(taken, (axes, *(0 for _ in chunk)), randomness="different")
    given = trees.tree_map(itemgetter(0), chunk) if alone else chunk
    try:
        with _untouched(model, loss_fn, params | kept):
            found, (losses, seen) = ([], taken(leaves, *given)) if whole else taken(leaves, *given)
            unused = params if whole and not by_batch else ()
            found = _passed_back(model, losses, leaves if whole else (), unused) or found
        if alone:
            found, seen = (list(map(_unsqueezed, several)) for several in (found, seen))
        found = list(map(in_single_precision, found))
        sums, probed = dict(zip(params, found, strict=False)), found[len(params) :]
        parts = sums if by_batch else layers.parts(sums, probed, [one.detach() for one in seen])
        return parts, losses.detach().sum()
    except LayerDiffersError as error:
        layers.drop(str(error))
    return individual(model, loss_fn, params, kept, chunk, layers, by_batch, alone)


def _passed_back(model: Any, losses: Any, leaves: Examples, unused: Collection[str]) -> list[Any]:
    """Return the gradient of the sum of losses; raise if parameters have one that should not."""
    own = [one for one in model.parameters() if one.requires_grad]
    found: Any = [None for _ in (*leaves, *own)]
    if losses.requires_grad:
        found = torch.autograd.grad(losses.sum(), (*leaves, *own), allow_unused=True)
    if any(one is not None for one in found[len(leaves) :]):
        raise IncompatibleError(_TAKEN_OUT)
    used = [name for name, one in zip(unused, found, strict=False) if one is not None]
    if used:
        raise LayerDiffersError(used[0].rpartition(".")[0])
    pairs = zip(found, leaves, strict=False)
    return [leaf.new_zeros(()).expand_as(leaf) if one is None else one for one, leaf in pairs]


def outputs_of(model: Any, params: Tensors, kept: Tensors, inputs: Any, size: int | None) -> Any:
    """Return a model's outputs without gradients, each example's as ``individual`` has it."""

    def one(zero: Any, example: Any) -> Any:
        found = functional_call(together, given, (trees.tree_map(_unsqueezed, example),))
        return zero, trees.tree_map(lambda part: part.squeeze(0) if part.dim() else part, found)

    together, given = _WithLoss(model, None), {f"model.{n}": v for n, v in (params | kept).items()}
    # Inside a gradient, be it of nothing, torch takes recurrent layers apart, which vmap has to.
    each = vmap(grad(one, has_aux=True), (None, 0), randomness="different")
    with _untouched(model, None, params | kept), torch.no_grad():
        found = [each(torch.zeros(()), *chunk)[1] for chunk in chunks((inputs,), size)]
    return trees.tree_map(lambda *parts: torch.cat(parts), *found)


def in_single_precision(part: Any) -> Any:
    """Return a tensor in single precision at least: sums and lengths need its digits."""
    return part.detach().to(torch.promote_types(part.dtype, torch.float32))


def choose_layers(
    model: Any, loss_fn: LossFn, params: Tensors, kept: Tensors, batch: Examples, layers: Layers
) -> None:
    """Choose by a batch's first example the layers whose gradients are taken in factors."""
    first = trees.tree_map(itemgetter(slice(1)), batch)
    device = next(iter(params.values())).device
    again = partial(torch.random.fork_rng, [device] if device.type == "cuda" else [])
    loss = partial(_loss(model, loss_fn, list(params), kept, layers), None)
    recurrent = any(isinstance(one, _RECURRENT) for one in model.modules())
    taken = grad(loss, has_aux=True) if recurrent else loss  # as in outputs_of
    each = vmap(taken, (None, *(0 for _ in batch)), randomness="different")
    try:
        with _untouched(model, loss_fn, params | kept), torch.no_grad(), again():
            _, seen = each(tuple(params.values()), *first)
    except RuntimeError:  # of a loss that differentiates outputs, here without weights
        seen = {}
    with again():
        rows, _ = individual(model, loss_fn, params, kept, first, layers)
    layers.choose(seen, params)
    for one_pass in (False,) if recurrent else (True, False):
        layers.whole = one_pass
        with again():
            factored, _ = individual(model, loss_fn, params, kept, first, layers)
        others = [name for name, row in rows.items() if not are_alike(factored[name], row)]
        if not others:
            return
    for name in others:
        layers.drop(name.rpartition(".")[0])


def sensible(params: Tensors, layers: Layers) -> int:
    """Return how many examples are taken at once where nobody says: on a CPU as its cache holds."""
    first = next(iter(params.values()))
    most = (_ON_CPU if first.device.type == "cpu" else _ELSEWHERE) // first.element_size()
    return int(max(most // max(layers.entries(params), 1), _FEWEST))


def chunks(examples: Examples, size: int | None) -> Iterator[Examples]:
    """Return copies of the examples in blocks; one of no examples."""
    count = len(trees.tree_leaves(examples)[0]) if examples else 1
    for start in range(0, count, size or count):
        block = slice(start, start + (size or count))
        yield trees.tree_map(lambda part, block=block: part[block].clone(), examples)


class _WithLoss(nn.Module):  # type: ignore[misc]  # torch may have no types
    """A model with its loss, which finds the parameters that are differentiated in the model."""

    def __init__(self, model: Any, loss_fn: LossFn | None) -> None:
        super().__init__()
        self.model, self._loss_fn = model, (loss_fn,)

    def forward(self, given: Any, *targets: Any) -> Any:
        named = given if isinstance(given, dict) else {}
        places = () if isinstance(given, dict) else given if isinstance(given, tuple) else (given,)
        found = self.model(*places, **named)
        if self._loss_fn[0] is None:
            return found
        found = self._loss_fn[0](found, *targets)
        if not isinstance(found, torch.Tensor) or found.is_complex():
            raise ParameterError("loss_fn", type(found).__name__, "one that returns a real tensor")
        return found.sum()


def _loss(
    model: Any, loss_fn: LossFn, names: list[str], kept: Tensors, layers: Layers
) -> Callable[..., Any]:
    """Return the loss of one example, and what layers see, as a function of named tensors.

    After the parameters of these names come the probes of layers, if there are any.
    """
    together = _WithLoss(model, loss_fn)

    def loss(calls: Collection[Call] | None, leaves: Examples, *example: Any) -> Any:
        one = trees.tree_map(_unsqueezed, example)
        tensors = dict(zip(names, leaves, strict=False)) | kept
        given = {f"model.{name}": value for name, value in tensors.items()}
        before = dict(given)
        probes = None if calls is None else dict(zip(calls, leaves[len(names) :], strict=True))
        with layers.watched(probes) as seen:
            found = functional_call(together, given, one)
        for name, value in before.items():
            if given[name] is not value:  # functional_call says here what was put in its place
                raise ParameterError("model", name.removeprefix("model."), _READ_ONLY)
        return found, seen if calls is None else tuple(seen[call] for call in calls)

    return loss


@contextmanager
def _untouched(model: Any, loss_fn: LossFn | None, given: Tensors) -> Iterator[None]:
    """Take gradients, and put back what modules keep as it was; raise if tensors were written.

    What goes on from one microbatch to the next lets an example move the gradients of others, or
    tells how many there are.
    """
    modules = [*model.modules(), *(loss_fn.modules() if isinstance(loss_fn, nn.Module) else ())]
    before = [(one, _kept(one)) for one in modules]
    versions = [one._version for one in given.values()]
    try:
        with torch.enable_grad():
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
def single_gradients(model: Any) -> Iterator[None]:
    """Compute each layer of a model in a way that is known for an example alone; or raise."""
    if parametrize._cache_enabled:
        raise IncompatibleError(_CACHED)
    swaps = [(checkpoint, name, one) for name, one in _CHECKPOINTS.items()]
    masks: Any = sys.modules.get("transformers.masking_utils")
    if hasattr(masks, "is_tracing"):  # as in a trace, where nobody reads the masks' values
        swaps.append((masks, "is_tracing", lambda tensor=None: True))
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))  # the fused kernels have no such rule
        for holder, name, value in swaps:
            stack.callback(setattr, holder, name, getattr(holder, name))
            setattr(holder, name, value)
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
            if not any(word in said for word in _OF_FUNC):
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
