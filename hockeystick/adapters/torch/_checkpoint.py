"""Weights and account in one file, and a digest by which they know each other."""

from __future__ import annotations

import hashlib
import os
from itertools import chain
from typing import Any, Final

import torch

from hockeystick.errors import ParameterError

_FIELDS: Final = frozenset({"model", "optimizer", "private"})


def digest(model: Any) -> str:
    """Return a text that differs for models whose parameters or buffers differ."""
    found = hashlib.sha256()
    for name, value in chain(model.named_parameters(), model.named_buffers()):
        found.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        plain = value.detach().cpu().contiguous().reshape(-1)
        found.update(plain.view(torch.uint8).numpy())
    return found.hexdigest()


def save(path: str, model: Any, optimizer: Any, private: dict[str, Any]) -> None:
    """Write a checkpoint, which is there whole or as it was before."""
    found = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "private": private,
    }
    unfinished = f"{path}.new"
    torch.save(found, unfinished)
    os.replace(unfinished, path)


def load(path: str, model: Any, optimizer: Any) -> Any:
    """Read weights into model and optimizer, and return what is left: the state of the account."""
    found = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(found, dict) or set(found) != _FIELDS:
        raise ParameterError("checkpoint", path, "a file that private.save wrote")
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    return found["private"]
