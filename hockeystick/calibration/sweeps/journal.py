"""The journal of a sweep: what is answered is on the disk, whatever becomes of the process."""

from __future__ import annotations

import json
import os
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedRandom
from pathlib import Path
from typing import Final, final

from hockeystick import _files
from hockeystick.calibration.sweeps.cells import Columns, Grid
from hockeystick.calibration.sweeps.table import WRITERS
from hockeystick.errors import ParameterError

_SECONDS_BETWEEN_SYNCS: Final = 1.0
_MARK: Final = "hockeystick sweep"
_ABSENT: Final = -1
_REPLACE: Final = "give replace=True"


def journal_of(target: Path) -> Path:
    """Return where the answers of a sweep are until its file is whole."""
    return target.with_name(target.name + ".journal")


def kept_for(target: Path) -> int | None:
    """Return how many answers the journal of a file has; None where there is no journal."""
    try:
        with open(journal_of(target), "rb") as file:
            whole = sum(line.endswith(b"\n") for line in file)
    except FileNotFoundError:
        return None
    return max(0, whole - 1)


@final
class Memory:
    """Where answers wait for their turn, if there is no file."""

    __slots__ = ("_answers", "answered")

    answered: int

    def __init__(self) -> None:
        self.answered = 0
        self._answers: dict[int, Columns] = {}

    def __contains__(self, index: int) -> bool:
        """Return whether a cell is answered."""
        return index in self._answers

    def take(self, index: int) -> Columns:
        """Return a cell's answer, once."""
        return self._answers.pop(index)

    def add(self, answers: Iterable[tuple[int, Columns]]) -> None:
        """Keep answers."""
        self._answers.update(answers)

    def finish(self) -> None:
        """Do nothing: there is no file to make."""

    def close(self) -> None:
        """Do nothing: there is no file to close."""


@final
class Journal:
    """Answers in the order in which they come, one line each, from which the file is made.

    What is written leaves the process at once: when it is killed, all of that stays. The disk is
    made to catch up about once a second, so a machine that loses power loses about as much. The
    first line says what the sweep is of. A last line that was cut off is dropped.
    """

    __slots__ = ("_file", "_grid", "_path", "_places", "_replace", "_synced", "_target", "answered")

    answered: int

    def __init__(
        self, target: Path, grid: Grid, heading: Mapping[str, str], *, replace: bool = False
    ) -> None:
        self._target, self._grid, self._replace = target, grid, replace
        self._path = journal_of(target)
        if not self._path.exists():
            self._refuse_finished()
        self._places = array("q", [_ABSENT]) * len(grid)
        self._synced = time.monotonic()
        self.answered = 0
        self._file = BufferedRandom(_files.locked(self._path, "out"))
        try:
            self._take_up({_MARK: {**heading, "cells": str(len(grid))}})
        except BaseException:
            self._file.close()
            raise

    def __contains__(self, index: int) -> bool:
        """Return whether a cell is answered."""
        return self._places[index] != _ABSENT

    def take(self, index: int) -> Columns:
        """Return a cell's answer."""
        self._file.seek(self._places[index])
        _, columns = json.loads(self._file.readline())
        return dict(columns)

    def add(self, answers: Iterable[tuple[int, Columns]]) -> None:
        """Write answers."""
        lines = [(index, _line([index, columns])) for index, columns in answers]
        place = self._file.seek(0, os.SEEK_END)
        self._file.write(b"".join(line for _, line in lines))
        self._file.flush()
        for index, line in lines:
            self._note(index, place)
            place += len(line)
        if time.monotonic() - self._synced > _SECONDS_BETWEEN_SYNCS:
            self._sync()

    def finish(self) -> None:
        """Make the file, all at once, and remove the journal."""
        self._sync()
        with _files.replacing(self._target) as part, open(part, "wb") as file:
            WRITERS[self._target.suffix.lower()](file, self._rows, self._grid.names)
        if sys.platform == "win32":  # which removes no file that is open
            self._file.close()
        self._path.unlink()
        self._file.close()

    def close(self) -> None:
        """Let go of the file; what is written stays."""
        if not self._file.closed:
            self._sync()
            self._file.close()

    def _rows(self) -> Iterator[Columns]:
        """Yield all rows in the order of the grid."""
        for index in range(len(self._grid)):
            yield self._grid.row(index, self.take(index))

    def _note(self, index: int, place: int) -> None:
        """Remember where a cell's answer is."""
        self.answered += index not in self
        self._places[index] = place

    def _sync(self) -> None:
        """Make the disk catch up."""
        self._file.flush()
        _files.force(self._file.fileno())
        self._synced = time.monotonic()

    def _take_up(self, heading: object) -> None:
        """Find what is answered already, or begin."""
        expected = _line(heading)
        first = self._file.readline()
        if first == expected:
            self._scan(len(first))
        elif _begins(expected, first) or (self._replace and _is_heading(first)):
            self._file.truncate(0)
            self._file.seek(0)
            self._file.write(expected)
            self._sync()
        else:
            self._refuse(first, expected)
        if self.answered < len(self._grid):
            self._refuse_finished()

    def _scan(self, place: int) -> None:
        """Note the answers that there are, and cut off what is none."""
        for line in self._file:
            index = _index(line, len(self._grid))
            if index is None:
                break
            self._note(index, place)
            place += len(line)
        self._file.truncate(place)

    def _refuse_finished(self) -> None:
        """Raise where there is a file, which a sweep would replace, and nobody said it may."""
        if self._target.exists() and not self._replace:
            allowed = "a file that is not there yet, unless replace=True"
            raise ParameterError("out", str(self._target), allowed)

    def _kept(self) -> str:
        """Return how many answers there are, in words."""
        kept = kept_for(self._target) or 0
        return f"with {kept:,} {'answer' if kept == 1 else 'answers'}"

    def _refuse(self, found: bytes, expected: bytes) -> None:
        """Raise because a journal is of something else; say of what."""
        try:
            theirs, ours = json.loads(found)[_MARK], json.loads(expected)[_MARK]
            other = [name for name in ours if theirs.get(name) != ours[name]]
            what = f"a sweep of another {' and '.join(other)}, {self._kept()}"
            remedy = f"finish that one, {_REPLACE} to begin anew without its answers"
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            what, remedy = "no journal of a sweep", "remove it"
        allowed = (
            f"the file of the sweep that was begun there; {self._path.name} beside it is {what}: "
            f"{remedy}, or choose another file"
        )
        raise ParameterError("out", str(self._target), allowed)


def _begins(expected: bytes, first: bytes) -> bool:
    """Return whether a first line was cut off while it was written, or is not there yet."""
    return not first.endswith(b"\n") and expected.startswith(first)


def _is_heading(first: bytes) -> bool:
    """Return whether a line is the first one of some sweep's journal."""
    try:
        heading = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(heading, dict) and _MARK in heading


def _line(value: object) -> bytes:
    """Return a value as one line of ASCII."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _index(line: bytes, cells: int) -> int | None:
    """Return the cell that a line answers, None where it is no whole line."""
    try:
        index, columns = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    whole = line.endswith(b"\n") and isinstance(index, int) and isinstance(columns, dict)
    return index if whole and 0 <= index < cells else None
