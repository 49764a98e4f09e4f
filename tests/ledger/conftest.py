"""Where the ledgers of the tests are kept."""

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.ledger import postgres

_NUMBERS: Final = count()
# Nothing is lost here with the power, but nothing waits for a disk either.
_MEMORY: Final = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return an empty folder, in memory where the system has such folders."""
    if not _MEMORY.is_dir():
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(dir=_MEMORY, prefix="ledger-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """Return a PostgreSQL server that runs for the tests."""
    if reason := postgres.missing():
        pytest.skip(reason)
    with postgres.server(_MEMORY if _MEMORY.is_dir() else None) as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.extras)])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        made: Path = request.getfixturevalue("folder")
        return str(made / "ledger.db")
    running: postgres.Server = request.getfixturevalue("server")
    return running.new_database(f"test-{next(_NUMBERS)}")
