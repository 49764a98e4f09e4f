import csv
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs

PLAN = hs.DPSGD(noise_multiplier=1, examples=60_000, batch_size=256, epochs=1)
ENDINGS = [".csv", ".jsonl"]

# What a killed process was doing: every cell that it begins is a line in a log.
PROGRAM = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
import hockeystick as hs

PLAN = hs.DPSGD(noise_multiplier=1, examples=60_000, batch_size=256, epochs=1)
GRID = {{"epochs": list(range(1, 21)), "noise_multiplier": [1 + 0.1 * k for k in range(10)]}}

def ask(**parameters):
    log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, (repr(parameters) + "\\n").encode())
    os.close(log)
    return hs.calibration.AskEpsilon(PLAN, 1e-5)(**parameters)

if __name__ == "__main__":
    if {processes}:
        spawning = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=spawning) as executor:
            list(hs.sweep(GRID, ask, executor, out={out!r}, in_flight=4))
    else:
        list(hs.sweep(GRID, ask, out={out!r}))
"""


def third(k: int, j: int) -> dict[str, object]:
    """Have columns of every kind, not all of them in every row."""
    if k % 7 == 5:
        raise hs.errors.ParameterError("k", k, "another one")
    if k % 7 == 6:
        return {"late": math.inf, "value": None}
    return {"value": k / 3, "whole": k, "word": f"é,\n{k}", "yes": k > j, "big": 10**k}


def third_of(j: int, k: int) -> dict[str, object]:
    """Have the same with parameters in another order."""
    return third(k, j)


GRID = {"j": [0, 2], "k": range(25)}


def swept(path: Path, **how: Any) -> list[dict[str, Any]]:
    return list(hs.sweep(GRID, third, out=path, **how))


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(params=ENDINGS)
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"results{request.param}"


def journal_of(out: Path) -> Path:
    return out.with_name(out.name + ".journal")


def interrupted(out: Path, after: int) -> None:
    """Leave a sweep as it is after so many rows."""
    rows = hs.sweep(GRID, third, out=out)
    for _ in range(after):
        next(rows)
    getattr(rows, "close")()  # noqa: B009  # Iterator has no close


def test_csv_has_every_digit_and_nothing_where_there_is_nothing(tmp_path: Path) -> None:
    rows = swept(tmp_path / "a.csv")
    names = ["j", "k", "value", "whole", "word", "yes", "big", "late", "error"]
    found = read(tmp_path / "a.csv")
    assert list(found[0]) == names
    for row, texts in zip(rows, found, strict=True):
        expected = {name: "" if row.get(name) is None else str(row.get(name)) for name in names}
        assert texts == expected
        if texts["value"]:
            assert float(texts["value"]) == row["value"]


def test_json_lines_are_the_rows_and_what_json_lacks_is_a_text(tmp_path: Path) -> None:
    rows = swept(tmp_path / "a.jsonl")
    assert any(row.get("late") == math.inf for row in rows)
    assert read(tmp_path / "a.jsonl") == [
        {name: "inf" if one == math.inf else one for name, one in row.items()} for row in rows
    ]


def test_the_file_is_there_with_the_last_row_and_nothing_beside_it(out: Path) -> None:
    rows = hs.sweep(GRID, third, out=out)
    for _ in range(49):
        next(rows)
        assert os.listdir(out.parent) == [journal_of(out).name]
    next(rows)
    assert os.listdir(out.parent) == [out.name]


@pytest.mark.parametrize("after", [0, 20, 49])
def test_a_sweep_that_was_left_is_taken_up_where_it_was(out: Path, after: int) -> None:
    whole = swept(out.with_stem("whole"))
    interrupted(out, after)
    told: list[tuple[int, int]] = []
    rows = swept(out, progress=lambda *one: told.append(one))
    assert rows == whole
    assert told[0] == (after, 50)
    assert len(told) == 51 - after
    assert out.read_bytes() == out.with_stem("whole").read_bytes()


def test_a_journal_cut_off_anywhere_is_taken_up_to_the_same_file(tmp_path: Path) -> None:
    out, whole = tmp_path / "a.csv", tmp_path / "b.csv"
    swept(whole)
    interrupted(out, 3)
    journal = journal_of(out).read_bytes()
    ends = [k for k, letter in enumerate(journal, 1) if letter == ord("\n")]
    for length in range(len(journal) + 1):
        out.unlink(missing_ok=True)
        journal_of(out).write_bytes(journal[:length])
        told: list[int] = []
        swept(out, progress=lambda done, _, told=told: told.append(done))
        assert told[0] == max(0, sum(end <= length for end in ends) - 1)
        assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    "garbage", [b"\0" * 50, b"[3]\n", b"[8,{}]\n[1", b"[9,3]\n", b"{}\n", b"[" * 100_000]
)
def test_what_is_no_answer_is_dropped_from_the_journal(tmp_path: Path, garbage: bytes) -> None:
    out, whole = tmp_path / "a.csv", tmp_path / "b.csv"
    swept(whole)
    interrupted(out, 9)
    with open(journal_of(out), "ab") as file:
        file.write(garbage)
    swept(out)
    assert out.read_bytes() == whole.read_bytes()


def test_a_fault_in_the_middle_keeps_what_is_answered(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    broken = [7]

    def ask(k: int) -> int:
        asked.append(k)
        if k in broken:
            raise KeyboardInterrupt
        return k

    # Under the name, the parameters and the journal of one that holds nothing.
    monkeypatch.setattr("hockeystick.calibration.sweeps.sweep._described", lambda _: "ask")
    with pytest.raises(KeyboardInterrupt):
        list(hs.sweep({"k": range(10)}, ask, out=out))
    broken.clear()
    assert [row["value"] for row in hs.sweep({"k": range(10)}, ask, out=out)] == list(range(10))
    assert asked == [*range(8), *range(7, 10)]


def test_a_kill_between_the_file_and_the_end_of_its_journal_does_no_harm(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            swept(out)
    before = out.read_bytes()
    assert journal_of(out).exists()
    told: list[tuple[int, int]] = []
    assert len(swept(out, progress=lambda *one: told.append(one))) == 50
    assert told == [(50, 50)]
    assert out.read_bytes() == before
    assert not journal_of(out).exists()


def test_nobody_takes_up_a_sweep_while_its_journal_is_removed(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = Path.unlink

    def refused(path: Path) -> None:
        with pytest.raises(hs.errors.ParameterError, match="no other run has open"):
            swept(out)
        remove(path)

    monkeypatch.setattr(Path, "unlink", refused)
    swept(out)
    assert os.listdir(out.parent) == [out.name]


def started(program: Path) -> subprocess.Popen[bytes]:
    """Start a sweep as a group of processes of its own, which can be killed together."""
    return subprocess.Popen([sys.executable, str(program)], start_new_session=True)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize(
    ("out", "processes"), [(".csv", True), (".jsonl", False)], indirect=["out"]
)
def test_a_sweep_killed_in_the_middle_is_taken_up_with_nothing_lost(
    out: Path, processes: bool
) -> None:
    program, log = out.with_name("program.py"), out.with_name("log")
    program.write_text(
        textwrap.dedent(PROGRAM).format(log=str(log), out=str(out), processes=processes)
    )
    running = started(program)
    deadline = time.monotonic() + 600
    while len(lines_of(journal_of(out))) < 60:
        assert running.poll() is None, "the sweep was over before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(running.pid, signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    kept = {json.loads(line)[0] for line in lines_of(journal_of(out))[1:-1]}
    begun = len(lines_of(log))
    assert not out.exists()
    assert 58 <= len(kept) < 200

    assert started(program).wait() == 0
    again = [cell for cell, times in Counter(lines_of(log)).items() if times > 1]
    cells = [
        repr({"epochs": epochs, "noise_multiplier": 1 + 0.1 * k})
        for epochs, k in itertools.product(range(1, 21), range(10))
    ]
    # Nothing that was written was asked again: only what had begun and was not.
    assert sorted(set(lines_of(log))) == sorted(cells)
    assert not {cells[index] for index in kept} & set(again)
    assert len(again) <= begun - len(kept)
    if not processes:
        assert len(again) <= 1

    whole = out.with_stem("whole")
    grid: Any = {"epochs": list(range(1, 21)), "noise_multiplier": [1 + 0.1 * k for k in range(10)]}
    assert len(list(hs.sweep(grid, hs.calibration.AskEpsilon(PLAN, 1e-5), out=whole))) == 200
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("grid", "ask"),
    [
        ({"j": [0, 2], "k": range(24)}, third),
        ({"k": range(25), "j": [0, 2]}, third),
        (GRID, third_of),
        ({"j": [0.0, 2], "k": range(25)}, third),
    ],
)
def test_a_journal_of_another_sweep_is_refused_and_kept(
    out: Path, grid: Any, ask: Callable[..., object]
) -> None:
    interrupted(out, 5)
    before = journal_of(out).read_bytes()
    with pytest.raises(hs.errors.ParameterError, match="is of another grid, question") as caught:
        list(hs.sweep(grid, ask, out=out))
    assert caught.value.name == "out"
    assert journal_of(out).read_bytes() == before
    whole = list(hs.sweep(grid, ask))
    assert list(hs.sweep(grid, ask, out=out, replace=True)) == whole
    assert not journal_of(out).exists()


def scaled(k: int, j: int, factor: float) -> float:
    """Have one column, with a number from elsewhere."""
    return factor * k


def times(factor: float) -> Callable[..., float]:
    """Return a question that holds a number besides its parameters."""

    def ask(k: int, j: int) -> float:
        return factor * k

    return ask


@pytest.mark.parametrize("made", [times, lambda factor: partial(scaled, factor=factor)])
def test_functions_of_one_code_are_told_apart_by_what_they_hold(
    out: Path, made: Callable[[float], Callable[..., float]]
) -> None:
    next(hs.sweep(GRID, made(2.0), out=out))
    with pytest.raises(hs.errors.ParameterError, match="is of another grid, question"):
        next(hs.sweep(GRID, made(3.0), out=out))
    assert len(list(hs.sweep(GRID, made(2.0), out=out))) == 50


@pytest.mark.parametrize(
    ("values", "ask"),
    [
        ([1], lambda k: k),
        ([1], partial(lambda k, more: k, more=1)),
        ([1], times(lambda: 1)),  # type: ignore[arg-type]  # what is refused
        ([1], object.__new__(type("Nameless", (), {"__call__": lambda self, k: k}))),
        ([object()], third),
    ],
)
def test_what_cannot_be_recognised_has_no_file(
    tmp_path: Path, values: list[object], ask: Any
) -> None:
    with pytest.raises(hs.errors.ParameterError, match="what says in its repr what it is"):
        hs.sweep({"k": values}, ask, out=tmp_path / "a.csv")


def test_what_a_function_does_is_not_read(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(out, 5)
    monkeypatch.setattr(third, "__code__", (lambda k, j: 0).__code__)
    told: list[int] = []
    swept(out, progress=lambda done, _: told.append(done))
    assert told[0] == 5


def test_a_journal_of_another_version_is_refused(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(out, 5)
    monkeypatch.setattr("hockeystick.calibration.sweeps.sweep.__version__", "99.0")
    with pytest.raises(hs.errors.ParameterError, match="is of another grid, question"):
        swept(out)


@pytest.mark.parametrize("content", [b"my notes\n", b"my notes", b'{"a": 1}'])
def test_a_file_of_somebody_else_is_left_alone(out: Path, content: bytes) -> None:
    journal_of(out).write_bytes(content)
    for replace in (False, True):
        with pytest.raises(hs.errors.ParameterError, match="no journal of a sweep"):
            list(hs.sweep(GRID, third, out=out, replace=replace))
    assert journal_of(out).read_bytes() == content


@pytest.mark.parametrize("begun", [False, True])
def test_a_file_that_is_there_is_not_replaced_unless_asked(out: Path, begun: bool) -> None:
    if begun:
        interrupted(out, 5)
    out.write_text("results of a week")
    with pytest.raises(hs.errors.ParameterError, match="out must be a file that is not there yet"):
        swept(out)
    assert out.read_text() == "results of a week"
    assert journal_of(out).exists() is begun
    assert len(list(hs.sweep(GRID, third, out=out, replace=True))) == 50
    assert out.read_text() != "results of a week"


def test_two_sweeps_cannot_have_one_file(out: Path) -> None:
    rows = hs.sweep(GRID, third, out=out)
    next(rows)
    with pytest.raises(hs.errors.ParameterError, match="out must be one that no other run has"):
        next(hs.sweep(GRID, third, out=out))
    assert len(list(rows)) == 49


@pytest.mark.parametrize("name", ["a.txt", "a.csv.gz", "a\0.csv", "folder.csv"])
def test_a_file_of_another_kind_is_refused_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(hs.errors.ParameterError, match=r"out must be"):
        hs.sweep(GRID, third, out=tmp_path / name)
