"""Power that fails at a random moment loses nothing that a ledger has acknowledged."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hockeystick as hs
from tests.ledger import auditor
from tests.ledger.power import STRACE, Disk, events_of


def traced(folder: Path) -> str:
    """Return what strace tells of a program that fills a ledger in a folder."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    trace = folder.with_name("trace")
    program = [sys.executable, "-m", "tests.ledger.power", str(folder / "l.db")]
    command = [*STRACE, "-o", str(trace), *program, str(folder.with_name("log"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr.lower():
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    return trace.read_text()


@pytest.mark.extras
def test_unsynced_writes_that_are_lost_take_nothing_acknowledged_with_them(folder: Path) -> None:
    live, after = folder / "live", folder / "after"
    live.mkdir()
    text = traced(live)
    events = [one for one in events_of(text) if str(folder) in one.path]
    logged = [index for index, one in enumerate(events) if one.kind == "append"]
    assert len(logged) == 27
    draw = random.Random(5)
    disk, acknowledged, cuts = Disk(str(live)), "", 0
    for index, event in enumerate(events):
        if event.kind == "append":
            acknowledged += event.data.decode()
        elif event.path.startswith(str(live)):
            disk.take(event)
        # Most of all when something has just been acknowledged.
        if draw.random() < (0.9 if event.kind == "append" else 0.1):
            cuts += 1
            after.mkdir()
            for path, content in disk.after_a_cut(draw).items():
                (after / Path(path).name).write_bytes(content)
            check(after / "l.db", acknowledged.splitlines())
            shutil.rmtree(after)
        assert index < logged[-1] or acknowledged.count("\n") == 27
    assert cuts > 50


def check(file: Path, acknowledged: list[str]) -> None:
    """Assert that a ledger holds all that was acknowledged, and is whole."""
    if not acknowledged:
        return
    ledger = hs.Ledger(file, "d")
    assert ledger.verify().sound
    found = {f"{entry.kind} {entry.key}" for entry in ledger.history()}
    assert {*acknowledged} <= found
    assert auditor.audit(str(file))["wrong"] == []
