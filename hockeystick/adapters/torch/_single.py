"""What lets the gradients of single examples be taken of layers that were not made for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch.nn.attention import SDPBackend, sdpa_kernel

from hockeystick.errors import IncompatibleError


@contextmanager
def single_gradients(model: Any) -> Iterator[None]:
    """Compute each layer of a model in a way that is known for an example alone.

    Raises:
        IncompatibleError: If the model or the loss asks for the value of a tensor.
    """
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))  # the fused kernels have no such rule
        stack.enter_context(_masks_as_traced())
        try:
            yield
        except RuntimeError as error:
            if "data-dependent control flow" not in str(error):
                raise
            raise IncompatibleError(
                "the model or loss_fn decides by the values of a tensor (by if or .item()): single "
                "gradients are taken of all examples at once; use torch.where, or masks"
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
