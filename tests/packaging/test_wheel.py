"""The wheel has all that the package is made of, and works where no tree lies around it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.documents import ROOT

PACKAGE = ROOT / "hockeystick"
# What Python and numba compile, and tools leave behind, is no part of it.
COMPILED = {".pyc", ".nbc", ".nbi"}
# Each reads a file of the package that is no module: a page, its scripts, the claims, the help.
COMMANDS = {
    "--help": "Commands:",
    "report 'Gaussian(4)' --delta 1e-5 -o report.html": "report.html",
}
ALONE = """
import shlex, sys
import hockeystick
from hockeystick.cli import main

assert "/site/" in hockeystick.__file__
assert [main(shlex.split(line)) for line in sys.argv[1:]] == [0] * (len(sys.argv) - 1)
"""


def of_the_tree() -> set[str]:
    files = (path for path in PACKAGE.rglob("*") if path.is_file())
    kept = (path for path in files if path.suffix not in COMPILED)
    return {str(path.relative_to(ROOT)) for path in kept if "_cache" not in str(path)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel that was built from a copy, so that no earlier build is in it."""
    if find_spec("setuptools") is None or find_spec("pip") is None:
        pytest.skip("setuptools and pip are not installed")
    tree = tmp_path_factory.mktemp("tree")
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    for folder in ("hockeystick", "docs", "notebooks"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("_build"))
    command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-index", "-q"]
    subprocess.run([*command, "--no-build-isolation", "-w", "dist"], cwd=tree, check=True)
    (built,) = (tree / "dist").glob("*.whl")
    return built


@pytest.mark.extras
def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    ours = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    assert ours == of_the_tree()
    assert "hockeystick/reports/templates/report.html" in ours


@pytest.mark.extras
def test_the_metadata_of_the_wheel_has_no_link_that_is_dead_elsewhere(wheel: Path) -> None:
    (name,) = (one for one in ZipFile(wheel).namelist() if one.endswith("/METADATA"))
    text = ZipFile(wheel).read(name).decode()
    assert "\n# hockeystick\n" in text
    assert "](docs/" not in text
    assert text.count("Project-URL: ") == 4


@pytest.mark.extras
def test_commands_work_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    ZipFile(wheel).extractall(tmp_path / "site")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-c", ALONE, *COMMANDS],
        cwd=elsewhere,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [said for said in COMMANDS.values() if said not in done.stdout] == []
