"""Files are locked by one opener, not by its forks, and replaced once they are on the disk."""

import os
from pathlib import Path
from typing import Any

import pytest

from hockeystick import _files
from hockeystick.errors import ParameterError

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_a_file_is_locked_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = _files.locked(path, "journal", 0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    path.read_bytes()  # which closes another descriptor
    with pytest.raises(ParameterError, match=r"^journal must be one that no other run has open"):
        _files.locked(path, "journal")
    file.write(b"once")
    file.close()
    with _files.locked(path, "out") as again:
        assert again.readall() == b"once"


def test_a_file_system_without_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    fcntl = pytest.importorskip("fcntl", reason="files are locked otherwise on Windows")
    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(ParameterError, match=r"^out must be on a file system that locks files"):
        _files.locked(tmp_path / "file", "out")


def test_a_file_that_was_removed_before_it_was_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl", reason="files are locked otherwise on Windows")
    path, lock = tmp_path / "file", fcntl.flock

    def late(file: Any, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        path.unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with _files.locked(path, "out") as file:
        file.write(b"once")
    assert path.read_bytes() == b"once"


def test_two_that_replace_one_file_write_in_two(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.touch()
    target.chmod(0o600)
    with _files.replacing(target) as one, _files.replacing(target) as two:
        Path(one).write_text("whole")
        Path(two).write_text("cut")
    assert target.read_text() == "whole"
    assert target.stat().st_mode & 0o777 == 0o600


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_neither_writes_nor_holds_what_its_killed_parent_had_locked(tmp_path: Path) -> None:
    path, (reading, writing), (waiting, ending) = tmp_path / "file", os.pipe(), os.pipe()
    if (parent := os.fork()) == 0:
        try:
            file = _files.locked(path, "journal")
            if os.fork() == 0:
                os.close(ending)
                os.write(writing, b"closed" if file.closed else b"open")
                os.read(waiting, 1)  # until the test is over
        finally:
            os._exit(0)
    os.waitpid(parent, 0)
    assert os.read(reading, 9) == b"closed"
    _files.locked(path, "journal").close()
    for descriptor in (reading, writing, waiting, ending):
        os.close(descriptor)


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_that_ends_leaves_its_parent_the_lock(tmp_path: Path) -> None:
    file = _files.locked(tmp_path / "file", "journal")
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)
    file.write(b"still")
    with pytest.raises(ParameterError, match="no other run has open"):
        _files.locked(tmp_path / "file", "journal")
    file.close()


def test_a_file_is_on_the_disk_before_it_replaces_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order: its content, its name in place of the other's, and that in its folder."""
    done: list[Any] = []
    replace, link = os.replace, tmp_path / "link"
    (tmp_path / "file").write_text("old")
    link.symlink_to("file")
    monkeypatch.setattr(_files, "force", lambda one: done.append(os.fstat(one).st_size))
    monkeypatch.setattr(_files, "force_name", lambda path: done.append(os.path.basename(path)))
    monkeypatch.setattr(os, "replace", lambda *two: done.append(replace(*two)))
    with pytest.raises(FileNotFoundError), _files.replacing(link):
        Path("nowhere").read_text()
    assert (link.read_text(), done) == ("old", [])
    with _files.replacing(link) as part:
        Path(part).write_text("whole")
    assert (link.read_text(), done) == ("whole", [5, None, "file"])
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]
