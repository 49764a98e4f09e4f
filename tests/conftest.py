"""Settings that all tests share: which examples Hypothesis draws.

Usually the same ones every time. With HYPOTHESIS_PROFILE=fresh they are other ones each time, as
`make test-all` has it; the seed is printed, and `--hypothesis-seed` draws the same ones again.
"""

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long anything takes says how busy the machine is, and nothing of what is tested.
_PATIENT = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _PATIENT, derandomize=True)
settings.register_profile("fresh", _PATIENT, derandomize=False, print_blob=True)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "repeatable")
settings.load_profile(PROFILE)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], str]:
    """Return what writes a plan file, and returns its path."""

    def written(content: str | bytes) -> str:
        path = tmp_path / "plan.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return written


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed, before Hypothesis reads it and before other processes are given it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # On a slow machine, captured runs would say how far they are.
    os.environ["HOCKEYSTICK_PROGRESS"] = "off"
    if PROFILE == "fresh" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    return _which(config)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say again how to draw the same examples, below what failed."""
    if PROFILE == "fresh" and terminalreporter.stats.get("failed"):
        terminalreporter.write_line(_which(config))


def _which(config: pytest.Config) -> str:
    """Return a line that says which examples are drawn, and how to draw them again."""
    if PROFILE != "fresh":
        return f"hypothesis: the same examples every time (profile {PROFILE})"
    seed = config.option.hypothesis_seed
    again = f"HYPOTHESIS_PROFILE=fresh python -m pytest --hypothesis-seed={seed}"
    return f"hypothesis: fresh examples, seed {seed}; the same ones again: {again}"
