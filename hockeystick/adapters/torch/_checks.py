"""What no private training can be made of or runs under, refused by name."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, final

import torch
from torch.utils.weak import WeakIdKeyDictionary

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import Composed
from hockeystick.release.counting import first

Tensors = dict[str, Any]
_PRECISE: Final = (torch.float32, torch.float64)
_EACH_ITS_OWN: Final = (
    "the module inside: this wrapper would have each device or process draw noise of its own, and "
    "the account covers one; a process group is found by itself, and DistributedDataParallel is "
    "taken off a whole model"
)
_AS_WRITTEN: Final = "not compiled, as single gradients are taken through its Python code"
# By name, so that no part of torch is loaded to tell that a model is none of these.
_WRAPPERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DataParallel": _EACH_ITS_OWN,
        "DistributedDataParallel": _EACH_ITS_OWN,
        "FullyShardedDataParallel": _EACH_ITS_OWN,
        "FSDPModule": _EACH_ITS_OWN,
        "OptimizedModule": _AS_WRITTEN,
        "ScriptModule": _AS_WRITTEN,
    }
)
# What the loops of this process released of each parameter, by the names of their runs.
_RELEASED: Final[Any] = WeakIdKeyDictionary()
_STEPPING: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def unwrapped(model: Any) -> Any:
    """Return a model without torch's wrapper for several processes, which sums by itself."""
    return model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model


def check_model(model: Any) -> None:
    """Raise unless each example's gradient is its own; asked in each step."""
    if not isinstance(model, torch.nn.Module):
        raise ParameterError("model", type(model).__name__, "a torch.nn.Module")
    for name, module in model.named_modules():
        found = f"{type(module).__name__} at {name or 'the top'}"
        for kind in type(module).__mro__:
            if kind.__name__ in _WRAPPERS:
                raise ParameterError("model", found, _WRAPPERS[kind.__name__])
        if module._compiled_call_impl is not None:
            raise ParameterError("model", found, _AS_WRITTEN)
        if _mixes(module):
            allowed = (
                "made of layers that keep examples apart and nothing of them; use GroupNorm or "
                "LayerNorm in place of a batch's statistics, or leave those of public data by "
                "eval() of these layers, and no max_norm"
            )
            raise ParameterError("model", found, allowed)
        if getattr(module, "sparse", False) is True:
            raise ParameterError("model", f"{found} with sparse=True", "of dense gradients")
        if getattr(module, "gradient_checkpointing", False) is True:
            allowed = (
                "without activation checkpointing, which torch.func does not take of single "
                "examples; a smaller microbatch= saves memory as well"
            )
            raise ParameterError("model", f"{found} with gradient_checkpointing", allowed)


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
    found = {name: value for name, value in model.named_parameters() if value.requires_grad}
    if not found:
        allowed = "a module with at least one parameter that requires a gradient"
        raise ParameterError("model", type(model).__name__, allowed)
    for name, value in found.items():
        if isinstance(value, torch.nn.parameter.UninitializedParameter):
            raise ParameterError("model", f"lazy parameter {name}", "initialised by a first call")
        if value.dtype not in _PRECISE:
            wrong = f"{value.dtype} at {name}"
            raise ParameterError("model", wrong, "of float32 or float64, in which norms are kept")
        if value._backward_hooks or value._post_accumulate_grad_hooks:
            raise ParameterError("model", f"a hook on {name}", "free of hooks on its gradients")
        if type(value.data).__name__ == "DTensor":
            raise ParameterError("model", f"distributed parameter {name}", _EACH_ITS_OWN)
    places = {value.device for value in found.values()}
    if len(places) > 1 or next(iter(places)).type == "mps":
        there = " and ".join(sorted(map(str, places)))
        allowed = "on one device that knows double precision, in which noise is drawn"
        raise ParameterError("model", f"parameters on {there}", allowed)
    return found


def copies(model: Any) -> tuple[Tensors, Tensors]:
    """Return copies of the parameters that a step trains and of a model's other tensors, or raise.

    A forward is given these, so that it can reach nothing else.
    """
    names = trained(model)
    both = chain(model.named_parameters(), model.named_buffers())
    found = {name: one.detach().clone() for name, one in both}
    return {name: found.pop(name) for name in names}, found


def check_optimizer(optimizer: Any, model: Any) -> None:
    """Raise unless the optimizer steps once for each gradient, and only by those of the model."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ParameterError("optimizer", type(optimizer).__name__, "a torch.optim.Optimizer")
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        allowed = "one that takes one gradient for each step"
        raise ParameterError("optimizer", type(optimizer).__name__, allowed)
    if any(group.get("differentiable") for group in optimizer.param_groups):
        raise ParameterError("optimizer", "differentiable=True", "one whose step is not")
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise ParameterError("optimizer", "SparseAdam", "one that takes dense gradients, as Adam")
    check_groups(optimizer, model)


def check_groups(optimizer: Any, model: Any) -> None:
    """Raise where an optimizer has parameters whose gradients are not the model's."""
    own = set(map(id, model.parameters()))
    if any(id(one) not in own for group in optimizer.param_groups for one in group["params"]):
        found = "a parameter that the model does not have"
        raise ParameterError("optimizer", found, "one of the model's parameters alone")


def examples_of(dataset: Any) -> int:
    """Return the number of examples, each at one place; or raise."""
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        allowed = "one with a length and an example at each place: batches are drawn from all"
        raise ParameterError("dataset", type(dataset).__name__, allowed)
    if _repeats(dataset):
        allowed = "one with each example at one place: copies of one are clipped one by one"
        raise ParameterError("dataset", f"{type(dataset).__name__} with a part twice", allowed)
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


def check_precision(device: Any) -> None:
    """Raise where autocast would compute clipped sums in 16 bits, or nothing is differentiated."""
    if torch.is_inference_mode_enabled():
        raise IncompatibleError("private.step runs outside torch.inference_mode()")
    if any(torch.is_autocast_enabled(kind) for kind in {"cpu", device.type}):
        raise IncompatibleError(
            "private.step runs outside autocast: norms and clipped sums in 16 bits are not within "
            "the clipping norm; use autocast inside the model's forward"
        )


def guarded(optimizer: Any) -> Any:
    """Return the handle of a hook that refuses each step of an optimizer outside ``stepping``."""
    return optimizer.register_step_pre_hook(_refuse_open_step)


@contextmanager
def stepping(optimizer: Any) -> Iterator[None]:
    """Let an optimizer step."""
    _STEPPING.add(optimizer)
    try:
        yield
    finally:
        _STEPPING.discard(optimizer)


def _refuse_open_step(optimizer: Any, arguments: Any, options: Any) -> None:
    """Raise where an optimizer steps by gradients that nobody clipped, noised and counted."""
    if optimizer not in _STEPPING:
        raise IncompatibleError(
            "the optimizer of a private loop steps by private.step alone: this step would use "
            "gradients without clipping and noise, and not be counted; close the loop first"
        )


@final
@dataclass(slots=True)
class Release:
    """What one loop released of the parameters that it trains.

    Args:
        run: The name of the run.
        plan: What it is planned to release.
        joined: The ledger that adds it to what else is released, and the data set there; or None.
    """

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
                    "another private loop trained these parameters, and what both cost adds up: "
                    "let this plan have extra= the other loop's .plan, or give both one ledger "
                    "(ledger=, key=); or train a new model"
                )

    def note(self, model: Any, steps: int) -> None:
        """Note how many steps of this loop the parameters have seen."""
        self.steps = steps
        for one in model.parameters() if steps else ():
            if one.requires_grad:
                _RELEASED.setdefault(one, {})[self.run] = self


def _beside(plan: Any) -> list[hs.mechanisms.Mechanism]:
    """Return what a plan says is released besides its steps, and besides that."""
    extra = getattr(plan, "extra", None)
    if extra is None:
        return []
    parts = extra.parts if isinstance(extra, Composed) else (extra,)
    return [found for part in parts for found in (part, *_beside(part))]


def forget(model: Any) -> None:
    """Forget what was released of parameters that were overwritten since."""
    for one in model.parameters():
        _RELEASED.pop(one, None)
