"""The tables of a ledger, their version, and how older ones are brought up to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)

from hockeystick.errors import LedgerError

VERSION: Final = 2
# Any number will do that no other program on the same server locks.
_OPENING: Final = 0x686F636B6579

TABLES: Final = MetaData()
SCHEMA: Final = Table(
    "hockeystick_schema",
    TABLES,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("since", Text, nullable=False),
)
# One row for each dataset, which is locked while entries are added: where its chain ends.
DATASETS: Final = Table(
    "hockeystick_datasets",
    TABLES,
    Column("name", Text, primary_key=True),
    Column("entries", Integer, nullable=False),
    Column("head", Text, nullable=False),
    Column("spent", Text, nullable=False),
    Column("unresolved", Integer, nullable=False),
)
# Rows are added and never changed. Each has the hash of the one before.
ENTRIES: Final = Table(
    "hockeystick_entries",
    TABLES,
    Column("dataset", Text, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("price", Text, nullable=False),
    Column("spent", Text, nullable=False),
    Column("together", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # With seq, so that no planner goes through all of a dataset to have it in order.
    Index("hockeystick_entries_by_key", "dataset", "key", "seq", unique=True),
)


def schema_version(engine: Engine) -> int | None:
    """Return the version of a database's tables, None where it has none of these.

    Raises:
        LedgerError: If it has some, and no version.
    """
    with engine.connect() as connection:
        found = {*inspect(connection).get_table_names()} & {*TABLES.tables}
        if not found:
            return None
        if SCHEMA.name not in found:
            raise LedgerError("the ledger is damaged: it has lost the table of its version")
        version: int | None = connection.execute(select(func.max(SCHEMA.c.version))).scalar()
    if version is None or version < 1:
        raise LedgerError("the ledger is damaged: it does not say its version")
    return version


def has_other_tables(engine: Engine) -> bool:
    """Return whether a database holds tables, none of which are a ledger's."""
    with engine.connect() as connection:
        return bool({*inspect(connection).get_table_names()} - {*TABLES.tables})


def wait_to_open(connection: Connection) -> None:
    """Let no other transaction make tables or open datasets before this one ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_OPENING)))


def bring_up(connection: Connection) -> None:
    """Make the tables in a database that has none, or bring older ones up to this version.

    Another process may come first: whoever is second finds nothing left to do.
    """
    wait_to_open(connection)
    if SCHEMA.name not in inspect(connection).get_table_names():
        TABLES.create_all(connection)
        _note_version(connection, VERSION)
    version = connection.execute(select(func.max(SCHEMA.c.version))).scalar_one()
    for older in range(version, VERSION):
        _MIGRATIONS[older](connection)
        _note_version(connection, older + 1)


def _note_version(connection: Connection, version: int) -> None:
    """Record since when the tables have a version."""
    since = datetime.now(UTC).isoformat()
    connection.execute(insert(SCHEMA).values(version=version, since=since))


def _count_unresolved(connection: Connection) -> None:
    """Make version 2 of version 1, which did not count what is reserved and not resolved."""
    column = "ALTER TABLE hockeystick_datasets ADD COLUMN unresolved INTEGER NOT NULL DEFAULT 0"
    connection.execute(text(column))
    signs = {"reserve": 1, "commit": -1, "release": -1}
    rows = connection.execute(select(ENTRIES.c.dataset, ENTRIES.c.kind))
    counts: dict[str, int] = {}
    for dataset, kind in rows:
        counts[dataset] = counts.get(dataset, 0) + signs.get(kind, 0)
    for dataset, count in counts.items():
        found = DATASETS.c.name == dataset
        connection.execute(update(DATASETS).where(found).values(unresolved=count))


_MIGRATIONS: Final[Mapping[int, Callable[[Connection], None]]] = MappingProxyType(
    {1: _count_unresolved}
)
