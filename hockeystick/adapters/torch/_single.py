"""What lets the gradients of single examples be taken of layers that were not made for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import parametrize

from hockeystick.errors import IncompatibleError

# Words of what torch says where it takes no gradients of examples one by one.
_OF_TORCH_FUNC: Final = ("torch.func", "functorch", "vmap", "transform", "data pointer")


@contextmanager
def single_gradients(model: Any) -> Iterator[None]:
    """Compute each layer of a model in a way that is known for an example alone.

    Raises:
        IncompatibleError: If the model or the loss asks for the value of a tensor, or torch takes
            no single gradients of a part of them.
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
