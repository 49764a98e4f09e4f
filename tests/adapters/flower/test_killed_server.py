"""A server on Flower's simulation engine that is killed in the middle of a round."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("flwr")

ROOT = Path(__file__).parents[3]


def _ran(folder: Path, killed: int) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tests.adapters.flower.killed_server", str(folder)]
    return subprocess.run(
        [*program, str(killed)], cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False
    )


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.extras
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_round_is_counted_before_a_client_is_asked_and_a_killed_one_never_runs_again(
    tmp_path: Path,
) -> None:
    """Killed in the second of four rounds; the two that are left run, and then none."""
    asked, released = tmp_path / "asked-2", tmp_path / "released"
    first = _ran(tmp_path, killed=2)
    assert first.returncode == -signal.SIGKILL, first.stderr
    # Each client found its own round in the journal when it was asked.
    assert _lines(asked)[:2] == ["1", "1"]
    assert set(_lines(asked)[2:]) == {"2"}
    assert len(_lines(released)) == 1
    asked = tmp_path / "asked-0"
    second = _ran(tmp_path, killed=0)
    assert second.returncode == 0, second.stderr
    assert second.stdout.split()[-1] == "2"
    assert _lines(asked) == ["3", "3", "4", "4"]
    assert len(set(_lines(released))) == 3
    third = _ran(tmp_path, killed=0)
    assert third.returncode != 0
    assert "BudgetExhausted: the budget does not cover 5 rounds" in third.stderr
    assert _lines(asked) == ["3", "3", "4", "4"]
