"""What no private training can be made of, refused by name."""

from __future__ import annotations

from typing import Any, Final

import torch

import hockeystick as hs
from hockeystick.adapters.torch._loader import SUPPORTED
from hockeystick.errors import ParameterError

_PRECISE: Final = (torch.float32, torch.float64)


def checked_plan(plan: object) -> hs.DPSGD:
    """Return a plan that can be trained by, or raise."""
    if not isinstance(plan, hs.DPSGD):
        raise ParameterError("plan", plan, "an hs.DPSGD")
    if plan.sampling not in SUPPORTED:
        allowed = f"one of {', '.join(sorted(SUPPORTED))}"
        raise ParameterError("sampling", plan.sampling, allowed)
    if plan.sampling_rate == 0:
        raise ParameterError("rate", plan.sampling_rate, "above 0: a batch is divided by its size")
    if plan.noise_multiplier == float("inf"):
        raise ParameterError("noise_multiplier", plan.noise_multiplier, "finite")
    return plan


def check_model(model: Any) -> None:
    """Raise unless each example's gradient is its own, and there is one."""
    if not isinstance(model, torch.nn.Module):
        raise ParameterError("model", type(model).__name__, "a torch.nn.Module")
    for name, module in model.named_modules():
        if _mixes(module):
            found = f"{type(module).__name__} at {name or 'the top'}"
            allowed = (
                "made of layers that keep examples apart and nothing of them; use GroupNorm or "
                "LayerNorm in place of a batch's statistics, and no max_norm"
            )
            raise ParameterError("model", found, allowed)
    trained = [one for one in model.named_parameters() if one[1].requires_grad]
    if not trained:
        allowed = "a module with at least one parameter that requires a gradient"
        raise ParameterError("model", type(model).__name__, allowed)
    for name, value in trained:
        if isinstance(value, torch.nn.parameter.UninitializedParameter):
            raise ParameterError("model", f"lazy parameter {name}", "initialised by a first call")
        if value.dtype not in _PRECISE:
            found = f"{value.dtype} at {name}"
            raise ParameterError("model", found, "of float32 or float64, in which norms are kept")
    places = sorted({str(value.device) for _, value in trained})
    if len(places) > 1 or places[0].startswith("mps"):
        allowed = "on one device that knows double precision, in which noise is drawn"
        raise ParameterError("model", f"parameters on {' and '.join(places)}", allowed)


def check_optimizer(optimizer: Any, model: Any) -> None:
    """Raise unless the optimizer steps once for each gradient, and only by those of the model."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ParameterError("optimizer", type(optimizer).__name__, "a torch.optim.Optimizer")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ParameterError("optimizer", "LBFGS", "one that takes one gradient for each step")
    own = {id(value) for value in model.parameters()}
    if any(id(one) not in own for group in optimizer.param_groups for one in group["params"]):
        found = "a parameter that the model does not have"
        raise ParameterError("optimizer", found, "one of the model's parameters alone")


def check_dataset(dataset: Any, plan: hs.DPSGD) -> None:
    """Raise unless the data have the length that the plan says, and places."""
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        allowed = "one with a length and an example at each place: batches are drawn from all"
        raise ParameterError("dataset", type(dataset).__name__, allowed)
    if plan.examples != len(dataset):
        allowed = f"the number of examples in the dataset, {len(dataset)}"
        raise ParameterError("examples", plan.examples, allowed)


def _mixes(module: Any) -> bool:
    """Return whether a layer's output of one example depends on others, or it keeps what it saw."""
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
        return True
    if isinstance(module, torch.nn.Embedding | torch.nn.EmbeddingBag):
        return module.max_norm is not None  # rescales, without noise, the rows that were looked up
    normalises = isinstance(module, torch.nn.modules.batchnorm._NormBase)
    return normalises and bool(module.track_running_stats)
