"""The programs of examples as modules, for tests."""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDER, AUDIT = EXAMPLES / "systems", EXAMPLES / "audit"


@cache
def program(name: str, folder: Path = FOLDER) -> Any:
    """Return a program as a module, without running it."""
    sys.path.insert(0, str(folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(folder))


def without(data: Any, client: int, record: int | None = None) -> Any:
    """Return shards in which a client, or one of its records, contributes nothing; none for -1.

    Features of zero, the last column included, have a gradient of zero.
    """
    if client < 0:
        return data
    rows, labels = data[client]
    rows = rows.copy()
    rows[slice(None) if record is None else record] = 0.0
    return [*data[:client], (rows, labels), *data[client + 1 :]]
