"""Where and with what a report is made."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

LIBRARIES: Final = (
    *("hockeystick", "numpy", "scipy", "numba", "mpmath"),
    *("dp-accounting", "prv-accountant", "opake-accounting", "opacus", "torch"),
)
ROOT: Final = Path(__file__).parents[2]


def versions() -> dict[str, str]:
    """Return the versions of this package, its peers and what they stand on."""
    return {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def described() -> dict[str, str]:
    """Return the machine and the moment."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": platform.platform(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "commit": _commit(),
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }


def load() -> str:
    """Return the load of the last minute, and of the last quarter of an hour."""
    now, _, before = os.getloadavg()
    return f"{now:.1f} (last quarter of an hour: {before:.1f})"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    command = ["git", "-C", os.fspath(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
