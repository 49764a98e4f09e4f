"""A journal's count is on the disk before anything of a step is released."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.release.counting import Journal
from hockeystick.release.federated import ClientRounds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks for Linux's fsync")


class Disk:
    """What is forced to the disk: a file's bytes, and the names in a folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: dict[int, int] = {}
        self.folders: dict[int, list[str]] = {}
        self._force = os.fsync
        monkeypatch.setattr(os, "fsync", self.force)

    def force(self, descriptor: int) -> None:
        self._force(descriptor)
        found = os.fstat(descriptor)
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            self.folders[found.st_ino] = os.listdir(descriptor)
        else:
            self.files[found.st_ino] = found.st_size

    def kept(self, path: Path) -> int:
        """Return how many bytes of a file would be left by a machine that stops now."""
        named = path.name in self.folders.get(path.parent.stat().st_ino, ())
        return self.files.get(path.stat().st_ino, 0) if named else 0


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_each_entry_is_on_the_disk_when_it_is_counted(tmp_path: Path, disk: Disk) -> None:
    path = tmp_path / "steps"
    journal = Journal(path, "plan")
    title = len(b"plan ") + 32 + 1
    assert disk.kept(path) == path.stat().st_size == title
    for done in range(1, 4):
        journal.add(1)
        assert disk.kept(path) == title + done
    journal.add(5)
    assert disk.kept(path) == title + 8
    journal.close()


def test_the_name_of_a_journal_is_on_the_disk(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that was there, of one in this folder, and of one that a link leads to."""
    Journal(tmp_path / "steps", "plan").close()
    disk.folders.clear()
    Journal(tmp_path / "steps", "plan").close()
    assert disk.kept(tmp_path / "steps") == (tmp_path / "steps").stat().st_size
    monkeypatch.chdir(tmp_path)
    Journal("here", "plan").close()
    assert disk.kept(tmp_path / "here") > 0
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to("far/steps")
    Journal(tmp_path / "near", "plan").close()
    assert disk.kept(tmp_path / "far" / "steps") > 0


def test_a_round_is_on_the_disk_before_its_cohort_is_known(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = tmp_path / "rounds", []
    plan = hs.federated.FedSDP(
        noise_multiplier=2, total_clients=9, clients_per_round=3, rounds=2, sampling="poisson"
    )
    run = ClientRounds(plan, size=2, norm=0.5, journal=path)
    draw = "hockeystick.release.federated.draw_clients"

    def drawn(*_: Any, **__: Any) -> Any:
        kept.append(disk.kept(path))
        raise KeyboardInterrupt

    before = disk.kept(path)
    monkeypatch.setattr(draw, drawn)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run.draw()
    assert kept == [before + 1, before + 2]
    run.close()


def test_a_disk_that_fails_is_an_error_and_leaves_the_file_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: int) -> None:
        raise OSError(5, "Input/output error")

    path = tmp_path / "steps"
    journal = Journal(path, "plan")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="Input/output"):
            journal.add(1)
    journal.close()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="Input/output"):
            Journal(path, "plan")
    again = Journal(path, "plan")
    assert again.counted == 1
    again.close()
