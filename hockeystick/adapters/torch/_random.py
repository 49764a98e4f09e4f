"""Normal numbers of torch, keyed for each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from hockeystick.adapters.loop._random import numbers

_TORCH_SEEDS: Final = 2**63


def normals(seed: int | None, step: int, device: Any) -> Callable[[Any], Any]:
    """Return what draws a step's standard normal numbers of a shape, where its gradients are.

    Single precision would cut the tails off: its uniform numbers know nothing below 2^-24.
    """
    source = numbers(seed, "noise", step)
    if device.type == "cpu":
        return lambda shape: torch.as_tensor(source.standard_normal(shape), dtype=torch.float64)
    there = torch.Generator(device=device)
    there.manual_seed(int(source.integers(_TORCH_SEEDS)))  # all of which it uses, unlike a CPU's
    return lambda shape: torch.randn(shape, generator=there, dtype=torch.float64, device=device)
