"""Generators seeded from the operating system's secrets unless told otherwise."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import torch

_BITS = 63


def generator(device: Any, seed: int | None, purpose: str, index: int) -> Any:
    """Return the generator of one step or epoch.

    A seed is stretched to a number of its own for each purpose and index, so that a run that is
    resumed never repeats the noise of an earlier step.
    """
    made = torch.Generator(device=device)
    if seed is None:
        made.manual_seed(secrets.randbits(_BITS))
    else:
        digest = hashlib.sha256(f"{purpose}/{index}/{seed}".encode()).digest()
        made.manual_seed(int.from_bytes(digest[:8], "big") >> (64 - _BITS))
    return made
