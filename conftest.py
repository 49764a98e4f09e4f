"""What needs an extra: it is marked so, and not collected where the extra is missing."""

import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest

# Imported the usual way before pytest collects its doctests: it would make each module anew whose
# package has imported it already, and what tests patch by name would be in one copy of two.
import hockeystick.release  # noqa: F401 - for the reason above

ROOT = Path(__file__).parent
PLUGS = {
    "dp_accounting": "dp_accounting",
    "flwr": "flower",
    "opacus": "opacus",
    "optuna": "optuna",
    "ray": "ray",
    "torch": "torch",
}
# Whatever is tested here is left to the run that has every extra.
FOLDERS = ("hockeystick/adapters", "tests/adapters", "benchmarks")

collect_ignore_glob = [
    pattern
    for library, plug in PLUGS.items()
    if find_spec(library) is None
    for pattern in (
        f"hockeystick/adapters/{plug}.py",
        f"hockeystick/adapters/{plug}/*.py",
        f"tests/adapters/{plug}/*.py",
    )
]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what lies in a folder of those that need extras."""
    if any(item.path.is_relative_to(ROOT / folder) for folder in FOLDERS):
        item.add_marker(pytest.mark.extras)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI is set, only what needs an extra may skip itself: nothing else is run later."""
    report = yield
    if report.skipped and os.environ.get("CI") and not item.get_closest_marker("extras"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and not marked extras: {report.longrepr}"
    return report
