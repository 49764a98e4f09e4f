"""The programs in examples/systems, as modules."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "examples" / "systems"


def loaded(name: str) -> Any:
    """Return a program as a module, without running it; it may import its neighbours."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return import_module(name)
