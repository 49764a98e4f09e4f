"""What is slow is measured, a share of it is drawn, and what cannot run here says so."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT

# What `make test` does not install.
EXTRAS = (
    *("dp_accounting", "flwr", "jax", "opacus", "optuna", "prv_accountant", "psycopg", "ray"),
    *("sklearn", "torch", "transformers"),
)
SKIPPING = """
import pytest

@pytest.mark.extras
def test_what_is_marked():
    pytest.skip("no browser")

def test_what_is_not():
    pytest.skip("no matplotlib")
"""
TIMED = """
import sys, time
import pytest

@pytest.fixture(scope="module")
def dear():
    burn(9.0)

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.mark.parametrize("seconds", [0.0, 0.3, 9.0])
def test_burns(seconds):
    burn(seconds)

def test_waits():
    time.sleep(0.5)

def test_stands_on_what_is_dear(dear):
    pass

@pytest.mark.parametrize("case", range(300))
def test_of_many(case):
    pass
"""


def _ran(folder: Path, *arguments: str, ci: str = "") -> str:
    """Return the last line of a run of pytest in a folder that has the settings of this one."""
    (folder / "tests").mkdir(exist_ok=True)
    for name in ("conftest.py", "setup.cfg"):
        shutil.copy(ROOT / name, folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    env = os.environ | {"PYTHONPATH": str(ROOT), "CI": ci}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=folder)
    return done.stdout


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_is_slow_is_measured_stopped_and_left_out(tmp_path: Path, processes: str) -> None:
    (tmp_path / "test_timed.py").write_text(TIMED, encoding="utf-8")
    said = _ran(tmp_path, "--retime", "-n", processes, "test_timed.py")
    assert "test_burns[9.0] - conftest.Stopped" in said
    assert (tmp_path / "tests/slow.txt").read_text(encoding="utf-8").splitlines() == [
        "test_timed.py",
        " test_burns[0.3]",
        " test_burns[9.0]",
        " test_stands_on_what_is_dear",
    ]
    assert "302 passed, 3 deselected" in _ran(tmp_path, "test_timed.py")
    # Measured again, a case that has become quick is listed no more, and others stay.
    (tmp_path / "test_timed.py").write_text(
        TIMED.replace("    burn(seconds)", "    burn(seconds / 9)"), encoding="utf-8"
    )
    _ran(tmp_path, "--retime", "-m", "", "test_timed.py::test_burns")
    listed = (tmp_path / "tests/slow.txt").read_text(encoding="utf-8")
    assert listed.split() == ["test_timed.py", "test_burns[9.0]", "test_stands_on_what_is_dear"]


def test_a_share_is_the_same_for_the_same_draw_and_another_for_another(tmp_path: Path) -> None:
    (tmp_path / "test_timed.py").write_text(TIMED, encoding="utf-8")
    drawn = [
        _ran(tmp_path, "--one-in", "10", "--draw", draw, "-vv", "test_timed.py::test_of_many")
        for draw in ("a", "a", "b")
    ]
    first, again, other = (set(re.findall(r"test_of_many\[\d+\]", text)) for text in drawn)
    assert first == again != other
    assert 10 < len(first) < 60


def test_what_is_listed_as_slow_is_there() -> None:
    file = ""
    for line in (ROOT / "tests/slow.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            file = (ROOT / line).read_text(encoding="utf-8")
        elif not line.startswith(" hockeystick"):  # an example in a docstring
            assert f"def {line[1:].partition('[')[0]}(" in file, line


def test_a_module_that_needs_an_extra_is_marked_so() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        needed = re.findall(r'^(?:\w+ = )?pytest\.importorskip\("(\w+)', text, re.MULTILINE)
        if set(needed) & set(EXTRAS) and "adapters" not in path.parts:
            assert re.search(r"^pytestmark = .*pytest\.mark\.extras", text, re.MULTILINE), path


def test_in_ci_nothing_but_extras_skips_itself(tmp_path: Path) -> None:
    (tmp_path / "test_skipping.py").write_text(SKIPPING, encoding="utf-8")
    assert "2 skipped in" in _ran(tmp_path, "test_skipping.py")
    said = _ran(tmp_path, "test_skipping.py", ci="true")
    assert "1 failed, 1 skipped in" in said
    assert "skipped, and not marked extras" in said
    assert "no matplotlib" in said
