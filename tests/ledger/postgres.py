"""A PostgreSQL server of the tests' own, in a folder of its own, on a socket in that folder."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

# PostgreSQL refuses to run as root; Debian's package makes this user.
USER: Final = "postgres"


def missing() -> str | None:
    """Return why no server can be started here, None where one can."""
    if program("initdb") is None:
        return "PostgreSQL is not installed"
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    if os.geteuid() == 0 and USER not in {one.pw_name for one in pwd.getpwall()}:
        return f"PostgreSQL does not run as root, and there is no user {USER}"
    return None


def program(name: str) -> str | None:
    """Return the path of one of PostgreSQL's programs, which Debian does not put on the path."""
    found = sorted(glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return found[-1] if found else shutil.which(name)


class Server:
    """A server that runs, and can be stopped as by a crash and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._run("initdb", "-D", str(self.data), "-U", "ledger", "-A", "trust", "-E", "UTF8")
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder}"
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "-w", "-D", str(self.data), "-l", log, "-o", options)

    def stop(self, how: str = "fast") -> None:
        """Stop it; "immediate" is as a crash of its processes is."""
        self._run("pg_ctl", "stop", "-w", "-m", how, "-D", str(self.data))

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://ledger@/{database}?host={self.folder}"

    def new_database(self, name: str) -> str:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)

    def _run(self, name: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as a user that it accepts."""
        found = program(name)
        assert found is not None
        who: dict[str, Any] = {}
        if os.geteuid() == 0:
            account = pwd.getpwnam(USER)
            who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        with open(os.devnull, "r+b") as nothing:
            done = subprocess.run(
                [found, *arguments],
                stdin=nothing,
                stdout=nothing,
                stderr=subprocess.PIPE if name == "initdb" else nothing,
                cwd=self.folder,
                timeout=600,
                check=False,
                **who,
            )
        if done.returncode:
            log = self.folder / "log"
            said = log.read_text() if log.exists() else (done.stderr or b"").decode()
            raise RuntimeError(f"{name} failed: {said}")


@contextmanager
def server(where: Path | None = None) -> Iterator[Server]:
    """Start a server, and stop it and remove all of it in the end."""
    # Sockets have short paths, so no folder of pytest's.
    folder = Path(tempfile.mkdtemp(prefix="ledger-", dir=where))
    if os.geteuid() == 0:
        account = pwd.getpwnam(USER)
        os.chown(folder, account.pw_uid, account.pw_gid)
    try:
        running = Server(folder)
        try:
            yield running
        finally:
            running.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
