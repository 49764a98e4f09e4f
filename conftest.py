"""Which tests are slow, and which need an extra.

``tests/slow.txt`` lists every case of more than 0.05 s of processor time. It is measured, not kept
by hand: ``python -m pytest --retime PATHS`` measures the cases of some files (with ``-m``, some of
their cases), and lists them anew. What is not listed is quick.
"""

import os
import random
import resource
import signal
from collections import defaultdict
from collections.abc import Generator, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

# Imported the usual way before pytest collects its doctests: it would make each module anew whose
# package has imported it already, and what tests patch by name would be in one copy of two.
import hockeystick.release  # noqa: F401 - for the reason above

ROOT: Final = Path(__file__).parent
SLOW: Final = ROOT / "tests" / "slow.txt"
QUICK: Final = 0.05  # seconds of the processor, children included
PLUGS: Final = {
    "dp_accounting": "dp_accounting",
    "flwr": "flower",
    "opacus": "opacus",
    "optuna": "optuna",
    "ray": "ray",
    "torch": "torch",
    "transformers": "huggingface",
}
# Whatever is tested here is left to the run that has every extra.
FOLDERS: Final = ("hockeystick/adapters/", "tests/adapters/", "benchmarks/")

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
_BEGAN: Final = pytest.StashKey[float]()


class Stopped(BaseException):
    """A case is known to be slow."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take a share of the tests, or measure them."""
    parser.addoption("--one-in", type=int, default=1, help="run one of so many cases")
    parser.addoption("--draw", default="", help="a text: which of them")
    parser.addoption(
        "--retime",
        action="store_true",
        help=f"write into {SLOW.name} what takes over {QUICK:g} s, and stop it soon after",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Measure, if asked to."""
    if config.option.retime:
        config.option.tbstyle = "no"
        config.pluginmanager.register(_Retiming())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow and what lies in a folder that needs extras; draw a share."""
    slow = _listed()
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(FOLDERS):
            item.add_marker(pytest.mark.extras)
        if isinstance(item, pytest.DoctestItem) and item.path.suffix == ".py":
            item.dtest.globs = {"__name__": "__main__"}  # examples bring along all that they name
    share = config.option.one_in
    if share > 1:
        seed = config.option.draw
        left = [one for one in items if random.Random(seed + one.nodeid).random() * share >= 1]
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [one for one in items if one not in gone]


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


def _listed() -> set[str]:
    """Return the slow cases."""
    found, file = set[str](), ""
    for line in SLOW.read_text(encoding="utf-8").splitlines() if SLOW.exists() else ():
        if line.startswith(" "):
            found.add(f"{file}::{line[1:]}")
        else:
            file = line
    return found


def _list(slow: Iterable[str]) -> None:
    """Write down the slow cases, those of a file below its name, if the test is still there."""
    files = defaultdict[str, list[str]](list)
    for file, _, case in (one.partition("::") for one in sorted(slow)):
        path, head = ROOT / file, f"def {case.partition('[')[0]}("
        if path.exists() and (file.startswith("hockeystick") or head in path.read_text("utf-8")):
            files[file].append(case)
    lines = [line for file in files for line in (file, *(f" {case}" for case in files[file]))]
    SLOW.write_text("\n".join(lines) + "\n", encoding="utf-8")


class _Retiming:
    """Measures the processor time of cases, and stops those that take twice as long as is quick."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}

    @staticmethod
    def spent() -> float:
        """Return the processor time of this process and of the children that ended."""
        both = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
        return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, both))

    @staticmethod
    def stop(signum: int, frame: Any) -> None:
        """Raise in a test or a fixture, but in no import or compilation, which does not survive."""
        names = set[str]()
        while frame is not None:
            names |= {frame.f_code.co_name, *{"numba"} & set(Path(frame.f_code.co_filename).parts)}
            frame = frame.f_back
        if names & {"runtest", "call_fixture_func"} and not names & {"numba", "_find_and_load"}:
            raise Stopped

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Start the clock."""
        item.stash[_BEGAN] = self.spent()
        signal.signal(signal.SIGPROF, self.stop)
        signal.setitimer(signal.ITIMER_PROF, 2.0 * QUICK, QUICK)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Stop the clock."""
        report = yield
        # What a fixture was stopped in may have caught that, and raised something else.
        broken = call.when == "setup" and report.failed
        if broken or (call.excinfo is not None and call.excinfo.errisinstance(Stopped)):
            report.user_properties.append(("processor", 2.0 * QUICK))
        if call.when == "teardown":
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            report.user_properties.append(("processor", self.spent() - item.stash[_BEGAN]))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what every process measured."""
        for name, seconds in report.user_properties:
            if name == "processor":
                self.took[report.nodeid] = max(
                    self.took.get(report.nodeid, 0.0), float(str(seconds))
                )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """List what was measured anew, and the rest as it was."""
        if hasattr(session.config, "workerinput"):
            return
        slow = {case for case, seconds in self.took.items() if seconds > QUICK}
        _list(slow | (_listed() - self.took.keys()))
