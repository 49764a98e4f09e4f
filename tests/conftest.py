"""Settings that all tests share: which examples Hypothesis draws.

Usually the same ones every time. With HYPOTHESIS_PROFILE=fresh they are other ones each time, as
`make test-all` has it; the seed is printed, and `--hypothesis-seed` draws the same ones again.
"""

import os
import random
import signal
from collections import defaultdict
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

# How long drawing takes says how busy the machine is, and nothing of what is tested.
_PATIENT = [HealthCheck.too_slow]
settings.register_profile(
    "repeatable", derandomize=True, database=None, suppress_health_check=_PATIENT
)
settings.register_profile(
    "fresh", derandomize=False, database=None, print_blob=True, suppress_health_check=_PATIENT
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "repeatable")
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed, before Hypothesis reads it and before other processes are given it.

    Interrupts are taken, also in runs in the background, in which the shell has them ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # On a slow machine, captured runs would say how far they are.
    os.environ["HOCKEYSTICK_PROGRESS"] = "off"
    if PROFILE == "fresh" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Share the cases of a test between the usual run, the rest, and fresh examples only."""
    tests = defaultdict[tuple[str, tuple[int, ...]], list[pytest.Item]](list)
    for item in items:
        if mark := item.get_closest_marker("shared"):
            tests[item.nodeid.partition("[")[0], mark.args].append(item)
    gone = {item for (_, given), cases in tests.items() for item in _left_over(cases, *given)}
    if gone and PROFILE != "fresh":
        config.hook.pytest_deselected(items=[item for item in items if item in gone])
        items[:] = [item for item in items if item not in gone]


def _left_over(cases: list[pytest.Item], usual: int, rest: int = 2) -> list[pytest.Item]:
    """Mark as slow what the usual run leaves to the rest; return what both leave out.

    The cases are dealt as a fixed shuffle has them: in their own order, every third one may be all
    that one of their parameters has for one value. What is slow already stays so.
    """
    cases = sorted(cases, key=lambda item: crc32(item.name.encode()))
    slow = [item for item in cases if item.get_closest_marker("slow")]
    quick = [item for item in cases if not item.get_closest_marker("slow")]
    others = [item for place, item in enumerate(quick) if place % usual]
    for item in others:
        item.add_marker(pytest.mark.slow)
    others = slow + others
    return [item for place, item in enumerate(others) if place % rest]


def pytest_report_header(config: pytest.Config) -> str:
    """Say which examples are drawn."""
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
