"""Where a ledger is kept, SQLite files and PostgreSQL: nothing else knows SQLAlchemy."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any, Final, final
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from hockeystick import _files
from hockeystick.errors import HockeystickError, LedgerError, ParameterError
from hockeystick.ledger.entries import Entry, EntryKind

VERSION: Final = 2
# Any number will do that no other program on the same server locks.
_OPENING: Final = 0x686F636B6579

TABLES: Final = sa.MetaData()
SCHEMA: Final = sa.Table(
    "hockeystick_schema",
    TABLES,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("since", sa.Text, nullable=False),
)
# One row for each dataset, which is locked while entries are added: where its chain ends.
DATASETS: Final = sa.Table(
    "hockeystick_datasets",
    TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("entries", sa.Integer, nullable=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("spent", sa.Text, nullable=False),
    sa.Column("unresolved", sa.Integer, nullable=False),
)
# Rows are added and never changed. Each has the hash of the one before.
ENTRIES: Final = sa.Table(
    "hockeystick_entries",
    TABLES,
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    *(sa.Column(one.name, sa.Text, nullable=False) for one in fields(Entry)[2:]),
    # With seq, so that no planner goes through all of a dataset to have it in order.
    sa.Index("hockeystick_entries_by_key", "dataset", "key", "seq", unique=True),
)
# Version 1 did not count what is reserved and not resolved.
_TO_VERSION_2: Final = (
    "ALTER TABLE hockeystick_datasets ADD COLUMN unresolved INTEGER NOT NULL DEFAULT 0",
    "UPDATE hockeystick_datasets SET unresolved = (SELECT SUM(CASE kind WHEN 'reserve' THEN 1 WHEN "
    "'commit' THEN -1 WHEN 'release' THEN -1 ELSE 0 END) FROM hockeystick_entries WHERE dataset = "
    "name)",
)
# By how much an entry changes how many reservations are not resolved.
_OPENED: Final = {"reserve": 1, "commit": -1, "release": -1}


@final
class Transaction:
    """What one transaction reads of the tables, and adds to them."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def names(self, *, lock: bool = False) -> list[str]:
        """Return the names of all datasets, sorted; locked, no other transaction opens one."""
        if lock:
            _wait_to_open(self._connection)
        return sorted(self._connection.execute(sa.select(DATASETS.c.name)).scalars())

    def ends(self, datasets: Sequence[str], *, lock: bool = False) -> dict[str, Entry]:
        """Return the last entries of chains; locked, no other transaction adds to them meanwhile.

        Rows are locked in the order of their names: no two transactions wait for one another.

        Raises:
            LedgerError: If one is missing, or its last entry is not the one that its row names.
        """
        query = sa.select(DATASETS).where(DATASETS.c.name.in_(datasets)).order_by(DATASETS.c.name)
        query = query.with_for_update() if lock else query
        found = {}
        for row in self._connection.execute(query).mappings().all():
            name, end = row["name"], {one: row[one] for one in ("entries", "head", "spent")}
            backwards = self._entries(ENTRIES.c.dataset == name, order=ENTRIES.c.seq.desc(), most=1)
            last = next(backwards, None)
            if last is None or _end_of(last) != end or not isinstance(row["unresolved"], int):
                raise LedgerError(
                    f"the ledger is damaged: dataset {name!r} should have {row['entries']} entries "
                    f"up to {row['head']}, and they are not what it has; nothing was written"
                )
            found[name] = last
        missing = [name for name in datasets if name not in found]
        if missing:
            raise LedgerError(f"the ledger is damaged: dataset {missing[0]!r} has lost its row")
        return found

    def unresolved(self, dataset: str) -> int:
        """Return how many reservations are neither committed nor released."""
        query = sa.select(DATASETS.c.unresolved).where(DATASETS.c.name == dataset)
        return int(self._connection.execute(query).scalar_one())

    def entries(self, dataset: str) -> Iterator[Entry]:
        """Yield all entries of a dataset, in their order."""
        return self._entries(ENTRIES.c.dataset == dataset)

    def first_entry(self, dataset: str) -> Entry | None:
        """Return the entry that opened a dataset, if there is one."""
        return next(self._entries(ENTRIES.c.dataset == dataset, ENTRIES.c.seq == 0), None)

    def reservation(self, dataset: str, key: str) -> list[Entry]:
        """Return the entries of a reservation, none where there is none, or raise if changed."""
        refused = ENTRIES.c.kind == str(EntryKind.REFUSE)
        found = self._entries(ENTRIES.c.dataset == dataset, ENTRIES.c.key == key, ~refused)
        known = list(found)
        for entry in known:
            entry.check()
        return known

    def _entries(
        self, *conditions: Any, order: Any = ENTRIES.c.seq, most: int | None = None
    ) -> Iterator[Entry]:
        query = sa.select(ENTRIES).where(*conditions).order_by(order).limit(most)
        return map(Entry.of_row, self._connection.execute(query).mappings())

    def counting_contents(self, dataset: str, since: int = 0) -> list[str]:
        """Return the different contents reserved in a dataset from a place on and not released."""
        later, one = ENTRIES.alias().c, ENTRIES.c
        of_key = (later.dataset == dataset, later.key == one.key)
        released = sa.exists().where(*of_key, later.kind == str(EntryKind.RELEASE))
        reserved = (one.dataset == dataset, one.seq >= since, one.kind == str(EntryKind.RESERVE))
        query = sa.select(one.content).where(*reserved, ~released).distinct()
        return list(self._connection.execute(query).scalars())

    def open(self, first: Entry) -> None:
        """Begin the chain of a dataset."""
        entry = first.after(None)
        row = {"name": entry.dataset, "unresolved": 0, **_end_of(entry)}
        self._connection.execute(sa.insert(ENTRIES), [asdict(entry)])
        self._connection.execute(sa.insert(DATASETS).values(**row))

    def continued(self, last: Entry, happens: Sequence[Entry]) -> None:
        """Add priced entries to a chain that is locked and ends with an entry."""
        rows, found = [], DATASETS.c.name == last.dataset
        for one in happens:
            last = one.after(last)
            rows.append(asdict(last))
        opened = DATASETS.c.unresolved + sum(_OPENED.get(one.kind, 0) for one in happens)
        self._connection.execute(sa.insert(ENTRIES), rows)
        end = {**_end_of(last), "unresolved": opened}
        self._connection.execute(sa.update(DATASETS).where(found).values(**end))


def _end_of(entry: Entry) -> dict[str, Any]:
    return {"entries": entry.seq + 1, "head": entry.hash, "spent": entry.spent}


def _version(connection: sa.Connection) -> int:
    """Return the version of a ledger's tables, 0 where there are none of these; or raise."""
    tables = {*sa.inspect(connection).get_table_names()}
    if not tables & {*TABLES.tables}:
        if tables and connection.dialect.name == "sqlite":
            raise LedgerError("the file holds tables of another program, and no ledger")
        return 0
    newest = sa.select(sa.func.max(SCHEMA.c.version))
    version = connection.execute(newest).scalar() if SCHEMA.name in tables else None
    if version is None or version < 1:
        raise LedgerError("the ledger is damaged: it does not say its version")
    return int(version)


def _wait_to_open(connection: sa.Connection) -> None:
    """Let no other transaction make tables or open datasets before this one ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_OPENING)))


def bring_up(connection: sa.Connection) -> None:
    """Make the tables, or bring older ones up to this version; another process may come first."""
    _wait_to_open(connection)
    version = _version(connection)
    if version >= VERSION:
        return
    if version == 0:
        TABLES.create_all(connection)
    for statement in _TO_VERSION_2 if version == 1 else ():
        connection.execute(sa.text(statement))
    row = {"version": VERSION, "since": datetime.now(UTC).isoformat()}
    connection.execute(sa.insert(SCHEMA).values(**row))


_A_URL: Final = "the path of a file, or a URL: sqlite:///FILE or postgresql://USER@HOST/DATABASE"
_SQLITE: Final = ("sqlite", "sqlite+pysqlite")
_POSTGRES: Final = ("postgresql", "postgresql+psycopg", "postgres")
# While a ledger is made, its file has a second name for a moment.
_SECONDS_OF_TWO_NAMES: Final = 0.5
_SAME_KEY: Final = "whoever asks again with the same key, to resume it, is charged once"


@final
class Database:
    """A ledger's database; transactions that write come one after the other.

    A transaction that has ended is on the disk: SQLite writes with a rollback journal and
    ``synchronous = EXTRA``, PostgreSQL with ``synchronous_commit = on``.
    """

    __slots__ = ("__weakref__", "_engine", "_path", "_process", "read_only", "shown", "timeout")

    def __init__(self, url: str | os.PathLike[str], *, read_only: bool, timeout: float) -> None:
        self.read_only: bool = read_only
        self.timeout: float = timeout
        found = _parsed(url)
        is_file = found.drivername in _SQLITE
        self._path = os.path.abspath(found.database or "") if is_file else None
        self.shown: str = self._path or _without_secrets(found)
        if self._path is None:
            self._engine = _postgres(found, read_only, timeout)
        else:
            _files.check_path(self._path, "url")
            self._engine = _sqlite(self._path, read_only, timeout)
        self._process = os.getpid()
        weakref.finalize(self, self._engine.dispose)

    def prepare(self, *, create: bool) -> None:
        """Bring the tables up to this version, or make them where there are none, or raise."""
        makes = create and not self.read_only
        nothing = LedgerError(f"there is no ledger at {self.shown}; a budget begins one")
        if self._path is not None and not os.path.exists(self._path):
            if not makes:
                raise nothing
            self._make_file(self._path)
        self._refuse_other_places()
        with self._begun("BEGIN") as connection:
            self._refuse_cut(connection)
            version = _version(connection)
        if version == VERSION:
            return
        if version == 0 and not makes:
            raise nothing
        if version > VERSION or self.read_only:
            older = f"open it once for writing, which brings them up to {VERSION}"
            what = "a newer hockeystick wrote it" if version > VERSION else older
            raise LedgerError(f"the ledger {self.shown} has tables of version {version}; {what}")
        with self._begun("BEGIN IMMEDIATE") as connection:
            bring_up(connection)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Work in a transaction that no other one that writes the same rows overlaps."""
        if self.read_only:
            raise LedgerError(f"the ledger {self.shown} was opened to be read only")
        with self._begun("BEGIN IMMEDIATE") as connection:
            yield Transaction(connection)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Work in a transaction that sees one state of the ledger."""
        of_server = {} if self._path else {"isolation_level": "REPEATABLE READ"}
        with self._begun("BEGIN", **of_server) as connection:
            yield Transaction(connection)

    def complaints(self) -> list[str]:
        """Return what SQLite finds wrong with its file; nothing for other databases."""
        if self._path is None:
            return []
        with self._begun("BEGIN") as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        return [str(one) for one in found if one != "ok"]

    def close(self) -> None:
        """Close all connections; the next transaction opens one again."""
        self._engine.dispose()

    @contextmanager
    def _begun(self, begin: str, **options: Any) -> Iterator[sa.Connection]:
        if os.getpid() != self._process:
            self._engine.dispose(close=False)
            self._process = os.getpid()
        with self._errors(), self._engine.connect() as connection:
            connection.execution_options(hockeystick_begin=begin, **options)
            with connection.begin():
                yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise LedgerError(f"the ledger {self.shown} {self._said(error)}") from error
        except UnicodeDecodeError as error:
            raise LedgerError(f"the ledger {self.shown} is damaged: {error}") from error

    def _said(self, error: SQLAlchemyError) -> str:
        cause: Any = getattr(error, "orig", None) or error
        code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "55P03")):
            return f"was busy for {self.timeout:g} s: nothing was written; {_SAME_KEY}"
        if code.startswith("SQLITE_READONLY_ROLLBACK"):
            return "was left half written by a crash: open it once for writing, which undoes that"
        if code.startswith(("SQLITE_READONLY", "25006", "42501")):
            return f"cannot be written, only read: {cause}"
        if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "XX001", "XX002")):
            return f"is damaged, or no ledger at all: {cause}"
        return f"cannot be used now ({' '.join(str(cause).split())}); {_SAME_KEY}"

    def _make_file(self, path: str) -> None:
        """Make a file of all tables that only its owner reads; another one may come first.

        It gets its name once it is whole, so that what is there and is not was cut off.
        A file that is there stays closed: closing it would end the locks of all its connections.
        """
        real = os.path.realpath(path)
        try:
            descriptor, made = tempfile.mkstemp(
                ".new", f"{os.path.basename(real)}.", os.path.dirname(real)
            )
            try:
                os.close(descriptor)
                with self._errors(), _sqlite(made, False, self.timeout).begin() as connection:
                    bring_up(connection)
                with suppress(FileExistsError):
                    os.link(made, real)
            finally:
                os.unlink(made)
            _files.force_name(real)
        except OSError as error:
            raise LedgerError(f"no ledger can be made at {path}: {error.strerror}") from error

    def _refuse_other_places(self) -> None:
        """Raise where others may not see the journal that SQLite keeps beside a file."""
        if self._path is None or not os.path.isfile(self._path):
            return
        real, until = os.path.realpath(self._path), time.monotonic() + _SECONDS_OF_TWO_NAMES
        while os.stat(real).st_nlink > 1 and time.monotonic() < until:
            time.sleep(0.01)
        found, beside = os.stat(real), os.stat(os.path.dirname(real))
        if found.st_nlink > 1 or found.st_dev != beside.st_dev:
            names = f"it has {found.st_nlink} names (hard links); leave it one"
            raise LedgerError(
                f"after a crash others could read {self.shown} half written, without the journal "
                f"beside it: {names if found.st_nlink > 1 else 'mount its folder, not it alone'}"
            )

    def _refuse_cut(self, connection: sa.Connection) -> None:
        """Raise where a file has less than its pages, or none; SQLite takes the rest for zeros."""
        if self._path is None:
            return
        asked = (connection.exec_driver_sql(f"PRAGMA page_{one}") for one in ("count", "size"))
        pages, size = (one.scalar_one() for one in asked)
        if not pages or os.path.getsize(self._path) < pages * size:
            raise LedgerError(f"the ledger {self.shown} is damaged: it is cut off, or empty")


def _parsed(url: str | os.PathLike[str]) -> sa.URL:
    text = os.fspath(url) if isinstance(url, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise ParameterError("url", url, _A_URL)
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        found = sa.make_url(text)
    except ArgumentError:
        raise ParameterError("url", "what is no URL", _A_URL) from None
    file = found.database not in (None, "", ":memory:")
    known = (found.drivername in _SQLITE and file) or found.drivername in _POSTGRES
    if not known or "options" in found.query:
        raise ParameterError("url", _without_secrets(found), f"{_A_URL}, without options")
    return found


def _without_secrets(url: sa.URL) -> str:
    """Return a URL as it may be shown: also options may say a password."""
    secret = dict.fromkeys((name for name in url.query if "pass" in name.lower()), "***")
    shown: str = url.update_query_dict(secret).render_as_string(hide_password=True)
    return shown


def _sqlite(path: str, read_only: bool, timeout: float) -> sa.Engine:
    """Return an engine that opens a file anew for each transaction, and never makes one."""
    mode = "ro" if read_only else "rw"
    address = f"file:{quote(path)}?mode={mode}"

    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(
            address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in ("synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF"):
                made.execute(f"PRAGMA {pragma}")
        except BaseException:
            made.close()
            raise
        return made

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: sa.Connection) -> None:
    """Begin as it was asked for, which sqlite3 leaves to its user."""
    begin = connection.get_execution_options().get("hockeystick_begin", "BEGIN")
    connection.exec_driver_sql(begin)


def _postgres(url: sa.URL, read_only: bool, timeout: float) -> sa.Engine:
    """Return an engine whose waiting and idling transactions end, the same for all users."""
    milliseconds = max(1, round(1000 * timeout))
    settings = {
        "lock_timeout": milliseconds,
        "idle_in_transaction_session_timeout": milliseconds,
        "synchronous_commit": "on",
        "client_encoding": "UTF8",
        # By default users with a schema of their name would have ledgers of their own.
        "search_path": "public",
        "default_transaction_read_only": "on" if read_only else "off",
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    seconds = max(2, round(timeout))
    arguments = {
        "options": options,
        "connect_timeout": seconds,
        # A server that is gone from the network is not waited for.
        "keepalives_idle": seconds,
        "keepalives_interval": seconds,
        "keepalives_count": 2,
        "tcp_user_timeout": milliseconds,
    }
    try:
        return sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=arguments,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
        )
    except ImportError as error:
        message = "a ledger on PostgreSQL needs psycopg: install hockeystick[postgres]"
        raise HockeystickError(message) from error
