"""Power that fails at a random moment loses nothing that a ledger has acknowledged.

``python -m tests.ledger.test_power FILE LOG`` makes reservations in a new ledger, and logs the key
of each once it is acknowledged. Of what ``strace`` tells of it, ``Disk`` makes what a disk may hold
when the power fails.
"""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import hockeystick as hs
from tests.ledger import auditor

CALLS: Final = "openat,pwrite64,write,ftruncate,fsync,fdatasync,unlink,link,linkat"
STRACE: Final = ["strace", "-y", "-xx", "-s", "100000", "-e", f"trace={CALLS}"]
SECTOR: Final = 512

_CALL: Final = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+)")
_TEXT: Final = re.compile(r"<((?:\\x..)*)>|\"((?:\\x..)*)\"")


class Event(NamedTuple):
    """What a program did: ``create``, ``write``, ``truncate``, ``sync``, ``unlink`` or ``link``."""

    kind: str
    path: str
    offset: int = 0
    data: bytes = b""


def events_of(trace: str) -> Iterator[Event]:
    """Yield what a program did to files, as strace tells it."""
    for line in trace.splitlines():
        found = _CALL.match(line)
        if found is None or int(found[3]) < 0:
            continue
        texts = [bytes.fromhex((a or b).replace("\\x", "")) for a, b in _TEXT.findall(found[2])]
        yield from _of_call(found[1], found[2], texts)


def _of_call(call: str, arguments: str, texts: list[bytes]) -> Iterator[Event]:
    path = os.fsdecode(texts[0]) if texts else ""
    last = arguments.rpartition(", ")[2]
    if call == "openat" and "O_CREAT" in arguments:
        yield Event("create", os.fsdecode(texts[-2] if arguments.endswith(">") else texts[-1]))
    elif call == "pwrite64":
        yield Event("write", path, int(last), texts[1])
    elif call == "write" and len(texts) > 1:
        yield Event("append", path, 0, texts[1])
    elif call == "ftruncate":
        yield Event("truncate", path, int(last))
    elif call in ("fsync", "fdatasync"):
        yield Event("sync", path)
    elif call == "unlink":
        yield Event("unlink", path)
    elif call in ("link", "linkat"):
        old, new = [one for one in map(os.fsdecode, texts) if not os.path.isdir(one)]
        yield Event("link", new, data=old.encode())


class Disk:
    """Files of one folder: what is on the disk, and what only waits to be written."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.written: list[bytearray] = []
        self.waiting: list[list[Event]] = []
        self.names: dict[str, int] = {}
        self.kept: dict[str, int] = {}
        self.changes: list[tuple[str, int | None]] = []

    def take(self, event: Event) -> None:
        path = event.path
        if event.kind == "create" and path not in self.names:
            self.names[path] = len(self.written)
            self.written.append(bytearray())
            self.waiting.append([])
            self.changes.append((path, self.names[path]))
        elif event.kind == "unlink":
            del self.names[path]
            self.changes.append((path, None))
        elif event.kind == "link":
            self.names[path] = self.names[event.data.decode()]
            self.changes.append((path, self.names[path]))
        elif event.kind == "sync" and path == self.folder:
            self.kept, self.changes = dict(self.names), []
        elif event.kind == "sync":
            file = self.names[path]
            for change in self.waiting[file]:
                _apply(self.written[file], change)
            self.waiting[file] = []
        elif event.kind in ("write", "truncate"):
            self.waiting[self.names[path]].append(event)

    def after_a_cut(self, draw: random.Random) -> dict[str, bytes]:
        """Return what the disk may hold: some of what waited, sector by sector, and some names."""
        names = dict(self.kept)
        for path, file in self.changes[: draw.randint(0, len(self.changes))]:
            if file is None:
                names.pop(path, None)
            else:
                names[path] = file
        found = {}
        for path, file in names.items():
            content = bytearray(self.written[file])
            for change in self.waiting[file]:
                for part in _sectors(change):
                    if draw.random() < 0.5:
                        _apply(content, part)
            found[path] = bytes(content)
        return found


def _apply(content: bytearray, change: Event) -> None:
    if change.kind == "truncate":
        del content[change.offset :]
        return
    content.extend(bytes(max(0, change.offset - len(content))))
    content[change.offset : change.offset + len(change.data)] = change.data


def _sectors(change: Event) -> Iterator[Event]:
    """Yield the parts of a change that a disk writes whole or not at all."""
    if change.kind == "truncate":
        yield change
        return
    for start in range(0, len(change.data), SECTOR):
        part = change.data[start : start + SECTOR]
        yield Event("write", change.path, change.offset + start, part)


def main() -> None:
    """Reserve, commit and release, and note what is acknowledged."""
    ledger = hs.Ledger(Path(sys.argv[1]), "d", hs.ZCDP(rho=1000.0))
    log = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for index in range(20):
        held = ledger.reserve(hs.Gaussian(2.0), key=f"k{index}", by="ana", note="x" * 500)
        os.write(log, f"reserve k{index}\n".encode())
        if index % 3 == 0:
            held.commit()
            os.write(log, f"commit k{index}\n".encode())


def traced(folder: Path) -> str:
    """Return what strace tells of a program that fills a ledger in a folder."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    trace = folder.with_name("trace")
    program = [sys.executable, "-m", "tests.ledger.test_power", str(folder / "l.db")]
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


if __name__ == "__main__":
    main()
