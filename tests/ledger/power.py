"""A disk that loses power: what a traced program wrote, less what it had not synced.

``python -m tests.ledger.power FILE LOG`` makes reservations in a new ledger, and writes the key of
each to the log once it is acknowledged. Under ``strace`` this gives every write and every sync in
their order (``events_of``), from which ``Disk`` makes what a disk may hold when the power fails.
"""

import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import hockeystick as hs

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


if __name__ == "__main__":
    main()
