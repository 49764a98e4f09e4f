"""A ledger that the environment names, for the commands that use one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hockeystick.cli.options import LEDGER as VARIABLE

Run = Callable[..., tuple[int, str, str]]
Write = Callable[[str | bytes], str]

# rho 1/4: two of them are the whole budget.
PLAN = '[[release]]\nmechanism = "Gaussian"\nnoise_multiplier = 2.0\nrepeat = 2\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the ledger is, which the environment says."""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@pytest.fixture
def opened(run: Run, file: Path) -> Path:
    assert run("ledger", "init", "census", "--budget", "ZCDP(rho=0.5)")[0] == 0
    return file


@pytest.fixture
def plan(write: Write) -> str:
    return write(PLAN)
