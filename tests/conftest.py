"""Settings that all tests share: which examples Hypothesis draws.

Usually the same ones every time. With HYPOTHESIS_PROFILE=fresh they are other ones each time, as
`make test-all` has it; the seed is printed, and `--hypothesis-seed` draws the same ones again.
"""

import os
import random
from collections import Counter

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
    """Draw the seed, before Hypothesis reads it and before other processes are given it."""
    if PROFILE == "fresh" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Share the cases of a test between the usual run, the rest, and fresh examples only."""
    seen, left = Counter[str](), []
    for item in items:
        mark = item.get_closest_marker("shared")
        if mark is None:
            continue
        test = item.nodeid.partition("[")[0]
        usual, rest = (*mark.args, 2)[:2]
        turn, place = divmod(seen[test], usual)
        seen[test] += 1
        if place:
            item.add_marker(pytest.mark.slow)
            others = turn * (usual - 1) + place - 1
            if others % rest and PROFILE != "fresh":
                left.append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


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
