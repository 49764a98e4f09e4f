"""Weights and account in one file, and a digest by which they know each other."""

from __future__ import annotations

import hashlib
from itertools import chain
from typing import Any, Final

import torch

from hockeystick import _files
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
    """Write a checkpoint, which is on the disk: whole, or as it was before."""
    found = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "private": private}
    with _files.replacing(path) as part:
        torch.save(found, part)


def load(path: str, model: Any, optimizer: Any) -> Any:
    """Read weights into model and optimizer, and return what is left: the state of the account."""
    allowed = "a file that private.save wrote"
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # torch's own differ by where a file is cut
        raise ParameterError("checkpoint", path, allowed) from error
    if not isinstance(found, dict) or set(found) != _FIELDS:
        raise ParameterError("checkpoint", path, allowed)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    return found["private"]
