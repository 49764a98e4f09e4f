"""What no private training can be made of or runs under."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, final

import torch
from torch import distributed
from torch.utils import _pytree as trees
from torch.utils.weak import WeakIdKeyDictionary

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import Composed
from hockeystick.release.counting import first

Tensors = dict[str, Any]
_EACH_ITS_OWN: Final = (
    "the module inside: this wrapper would have each device or process draw noise of its own; a "
    "process group is found by itself, and DistributedDataParallel taken off a whole model"
)
SPLIT: Final = (
    "whole, or split over all processes by fully_shard alone, before make_private, with a constant "
    "clipping norm, independent noise, no seed and no checkpoint (but a journal), for private.step"
)
_AS_WRITTEN: Final = "not compiled, as single gradients are taken through its Python code"
_APART: Final = (
    "made of layers that keep examples apart and nothing of them, as GroupNorm and LayerNorm do; "
    "leave statistics of public data by eval() of these layers, and use no max_norm"
)
# By name, so that no part of torch is loaded to tell that a model is none of these.
_SPREAD: Final = frozenset({"DataParallel", "DistributedDataParallel", "FullyShardedDataParallel"})
_FSDP: Final = "torch.distributed.fsdp."
_COMPILED: Final = frozenset({"OptimizedModule", "ScriptModule"})
_PRECISE: Final = (torch.float32, torch.float64, torch.bfloat16)
# What the loops of this process released of each parameter, by the names of their runs.
_RELEASED: Final[Any] = WeakIdKeyDictionary()


def refuse(name: str, *rows: tuple[object, object, str]) -> None:
    """Raise by the first row that is true, of what was found and what is allowed."""
    for refused, found, allowed in rows:
        if refused:
            raise ParameterError(name, found, allowed)


def check_model(model: Any) -> None:
    """Raise unless each example's gradient is its own; asked in each step."""
    whole = isinstance(model, torch.nn.Module)
    refuse("model", (not whole, type(model).__name__, "a torch.nn.Module"))
    for name, module in model.named_modules():
        kinds = {kind.__name__ for kind in type(module).__mro__}
        compiled = kinds & _COMPILED or module._compiled_call_impl is not None
        found = f"{type(module).__name__} at {name or 'the top'}"
        refuse(
            "model",
            (kinds & _SPREAD, found, _EACH_ITS_OWN),
            (compiled, found, _AS_WRITTEN),
            (_mixes(module), found, _APART),
            (getattr(module, "sparse", False) is True, found, "of dense gradients"),
        )


def _mixes(module: Any) -> bool:
    """Return whether a layer's output of one example depends on others, or it keeps what it saw."""
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
        return bool(module.training) or module.running_mean is None
    if isinstance(module, torch.nn.Embedding | torch.nn.EmbeddingBag):
        return module.max_norm is not None  # rescales, without noise, the rows that were looked up
    normalises = isinstance(module, torch.nn.modules.batchnorm._NormBase)
    return normalises and bool(module.track_running_stats and module.training)


def trained(model: Any) -> Tensors:
    """Return the parameters that a step trains, or raise."""
    kind, split = type(model).__name__, bool(shards(model))
    found = {name: value for name, value in model.named_parameters() if value.requires_grad}
    refuse("model", (not found, kind, "one with a parameter that requires a gradient"))
    for name, value in found.items():
        lazy = isinstance(value, torch.nn.parameter.UninitializedParameter)
        hooks = not lazy and (value._backward_hooks or value._post_accumulate_grad_hooks)
        precise = lazy or value.dtype in _PRECISE
        other = split and not (hasattr(model, "reshard") and _is_by_rows(value))
        refuse(
            "model",
            (lazy, f"lazy parameter {name}", "initialised by a first call"),
            (not precise, f"{value.dtype} at {name}", "of float32, float64 or bfloat16"),
            (hooks, f"a hook on {name}", "free of hooks on its gradients"),
            (other, f"parameter {name} of a split model", SPLIT),
        )
    return found


def copies(model: Any, gathered: Tensors) -> tuple[Tensors, Tensors]:
    """Return copies of what a step trains and of a model's other tensors, for a forward."""
    names = trained(model)
    other = gathered.keys() != shards(model).keys()
    refuse("model", (other, "split otherwise than it was", SPLIT))
    found = {n: one.detach().clone() for n, one in _tensors(model) if n not in gathered} | gathered
    return {name: found.pop(name) for name in names}, found


def _tensors(model: Any) -> Iterator[tuple[str, Any]]:
    return chain(at_rest(model).named_parameters(), model.named_buffers())


def digest(model: Any, *beside: Any, gathered: Tensors | None = None) -> str:
    """Return a hash of a model's parameters and buffers, and of tensors and numbers beside.

    Shards that are not gathered, of which each process has its own, count by their shape alone.
    """
    found = hashlib.sha256()

    def update(value: Any) -> None:
        plain = value.detach().cpu().contiguous().reshape(-1)
        found.update(plain.view(torch.uint8).numpy())

    for name, value in _tensors(model):
        found.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        whole = (gathered or {}).get(name, value)
        if not _is_shard(whole):
            update(whole)
    for leaf in trees.tree_leaves(beside):
        update(leaf) if isinstance(leaf, torch.Tensor) else found.update(repr(leaf).encode())
    return found.hexdigest()


def check_optimizer(optimizer: Any, model: Any) -> None:
    """Raise unless it is one of the model's parameters alone; asked in each step."""
    other = not isinstance(optimizer, torch.optim.Optimizer)
    refuse("optimizer", (other, type(optimizer).__name__, "a torch.optim.Optimizer"))
    own = set(map(id, model.parameters()))
    more = any(id(one) not in own for group in optimizer.param_groups for one in group["params"])
    found = "a parameter that the model does not have"
    refuse("optimizer", (more, found, "one of the model's parameters alone"))


def examples_of(dataset: Any) -> int:
    """Return the number of examples, each at one place; or raise."""
    kind = type(dataset).__name__
    places = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    refuse("dataset", (not places, kind, "one with a length and places, as loader.dataset"))
    once = "one with each example at one place: copies of one are clipped one by one"
    refuse("dataset", (_repeats(dataset), f"{kind} with a part twice", once))
    return len(dataset)


def _repeats(dataset: Any) -> bool:
    """Return whether a data set of torch's own kinds has an example or a part at two places."""
    if isinstance(dataset, torch.utils.data.ConcatDataset):
        parts = dataset.datasets
        return len(set(map(id, parts))) < len(parts) or any(map(_repeats, parts))
    if isinstance(dataset, torch.utils.data.Subset):
        places = list(map(int, dataset.indices))
        return len(set(places)) < len(places) or _repeats(dataset.dataset)
    return False


def check_precision(device: Any, *, is_exact: bool) -> None:
    """Raise where sums would be computed in 16 bits, or nothing is differentiated."""
    if torch.is_inference_mode_enabled():
        raise IncompatibleError("private.step runs outside torch.inference_mode()")
    if any(torch.is_autocast_enabled(kind) for kind in {"cpu", device.type}):
        raise IncompatibleError(
            "private.step runs outside autocast, as sums in 16 bits are not within the clipping "
            "norm; use it inside the model's forward"
        )
    if not is_exact and torch.get_float32_matmul_precision() != "highest":
        raise IncompatibleError(
            "clipped sums in floats need torch.set_float32_matmul_precision('highest')"
        )


def are_of(optimizer: Any, model: Any) -> bool:
    """Return whether an optimizer has parameters of a model, unlike that of a copy."""
    given = {id(one) for group in optimizer.param_groups for one in group["params"]}
    return any(id(one) in given for one in at_rest(model).parameters())


@final
@dataclass(slots=True)
class Release:
    """What one loop released of its parameters; joined says which ledger adds it to the rest."""

    run: str
    plan: hs.mechanisms.Mechanism
    joined: object
    steps: int = 0

    def check(self, model: Any) -> None:
        """Raise where another loop trained the same parameters, whose cost is not in this plan."""
        runs = [_RELEASED.get(one, {}) for one in model.parameters()]
        others = {run: one for found in runs for run, one in found.items() if run != self.run}
        beside = _beside(self.plan)
        for other in others.values():
            covered = [one for one in beside if one in (other.plan, first(other.plan, other.steps))]
            if covered:
                beside.remove(covered[0])
            elif self.joined is None or self.joined != other.joined:
                raise IncompatibleError(
                    "another private loop trained these parameters: let this plan have extra= the "
                    "other loop's .plan, or give both one ledger; or train a new model"
                )

    def note(self, model: Any, steps: int) -> None:
        self.steps = steps
        for one in model.parameters() if steps else ():
            if one.requires_grad:
                _RELEASED.setdefault(one, {})[self.run] = self


def _beside(plan: Any) -> list[hs.mechanisms.Mechanism]:
    """Return what a plan says is released besides its steps, and besides that."""
    extra = getattr(plan, "extra", None)
    parts = () if extra is None else extra.parts if isinstance(extra, Composed) else (extra,)
    return [found for part in parts for found in (part, *_beside(part))]


def forget(model: Any) -> None:
    """Forget what was released of parameters that were overwritten since."""
    for one in model.parameters():
        _RELEASED.pop(one, None)


# Models that torch.distributed.fsdp.fully_shard split: a process has some rows of each parameter.


def at_rest(model: Any) -> Any:
    """Return a model of which fully_shard holds but shards, as it does not after a forward."""
    for module in _split(model):
        module.reshard()
    return model


def _split(model: Any) -> Iterator[Any]:
    """Give the modules that fully_shard was called with."""
    for module in model.modules():
        if any(kind.__name__ == "FSDPModule" for kind in type(module).__mro__):
            yield module


def shards(model: Any) -> Tensors:
    """Return the tensors of a model of which this process has a part."""
    return {name: one for name, one in _tensors(model) if _is_shard(one)}


def _is_shard(value: Any) -> bool:
    return type(value).__name__ == "DTensor"


def _is_by_rows(value: Any) -> bool:
    """Return whether each process has some rows of a parameter, in the order of ranks."""
    ranks = list(range(distributed.get_world_size()))
    by_rank = _is_shard(value) and value.device_mesh.mesh.tolist() == ranks
    return by_rank and bool(value.placements[0].is_shard(0))


@contextmanager
def unhooked(model: Any) -> Iterator[None]:
    """Let no forward put weights that fully_shard gathers in the place of those it is given."""
    with ExitStack() as stack:
        for module in _split(model):
            for name in ("_forward_pre_hooks", "_forward_hooks"):
                hooks = getattr(module, name)
                left = {key: one for key, one in hooks.items() if _FSDP not in str(one.__module__)}
                stack.callback(setattr, module, name, hooks)
                setattr(module, name, type(hooks)(left))
        yield


def in_shards(model: Any, rows: Tensors) -> Tensors:
    """Return gradients as the parameters are, of the rows that this process has of each."""
    found = Tensors()
    for name, one in trained(model).items():
        like = {"shape": one.shape, "stride": one.stride(), "run_check": False}
        found[name] = type(one).from_local(rows[name], one.device_mesh, one.placements, **like)
    return found
