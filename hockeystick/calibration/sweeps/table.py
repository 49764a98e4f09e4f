"""The rows of a sweep in a file, CSV or Parquet, and back. The only file that knows pyarrow."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from hockeystick.calibration.sweeps.cells import CAUTION, ERROR, Columns, Scalar
from hockeystick.errors import AnswerError, HockeystickError, ParameterError

Rows: TypeAlias = Callable[[], Iterator[Columns]]

_ROWS_AT_A_TIME: Final = 8192
_INT64: Final = range(-(2**63), 2**63)


def kind_of(path: Path) -> str:
    """Return what a file name ends in, if a sweep can be written as that, or raise."""
    ending = path.suffix.lower()
    if ending not in WRITERS or "\0" in str(path):
        allowed = f"a file name that ends in {' or '.join(WRITERS)}"
        raise ParameterError("out", str(path), allowed)
    if ending == ".parquet":
        try:
            import_module("pyarrow.parquet")
        except ImportError:
            message = "Parquet files need pyarrow: install hockeystick[parquet], or write .csv"
            raise HockeystickError(message) from None
    return ending


def _write_csv(file: BinaryIO, rows: Rows, names: Sequence[str]) -> None:
    """Write rows as CSV: every float with all its digits, an empty cell where there is nothing."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    table = csv.DictWriter(text, list(_types(rows(), names)), lineterminator="\n")
    table.writeheader()
    table.writerows(rows())
    text.detach()


def _write_parquet(file: BinaryIO, rows: Rows, names: Sequence[str]) -> None:
    """Write rows as Parquet: each column of the one type that holds all of it."""
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    kinds: Mapping[type, Any] = {
        bool: arrow.bool_(),
        int: arrow.int64(),
        float: arrow.float64(),
        str: arrow.string(),
    }
    types = _types(rows(), names)
    schema = arrow.schema([(name, kinds[kind]) for name, kind in types.items()])
    waiting = rows()
    with parquet.ParquetWriter(file, schema) as writer:
        while some := list(islice(waiting, _ROWS_AT_A_TIME)):
            columns = {
                name: [_as(kind, row.get(name)) for row in some] for name, kind in types.items()
            }
            writer.write_table(arrow.table(columns, schema=schema))


WRITERS: Final[Mapping[str, Callable[[BinaryIO, Rows, Sequence[str]], None]]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file that a sweep wrote, each value as a text, "" where there is none.

    Raises:
        AnswerError: If the file cannot be read, or holds no such rows.
        HockeystickError: If it is a Parquet file and pyarrow is missing.
    """
    try:
        rows = (_parquet_rows if kind_of(path) == ".parquet" else _csv_rows)(path)
    except OSError as error:
        raise AnswerError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, csv.Error) as error:
        raise AnswerError(f"cannot read {path}: {' '.join(str(error).split())}") from None
    if not rows or any(ERROR not in row or None in (*row, *row.values()) for row in rows):
        raise AnswerError(f"{path} holds no rows of a sweep, each with as many columns")
    return rows


def _csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def _parquet_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a Parquet file."""
    parquet: Any = import_module("pyarrow.parquet")
    with open(path, "rb") as file:
        rows = parquet.read_table(file).to_pylist()
    return [{name: "" if one is None else str(one) for name, one in row.items()} for row in rows]


def _types(rows: Iterator[Columns], names: Sequence[str]) -> dict[str, type]:
    """Return all columns, cautions and errors last, each with what holds all its values."""
    found: dict[str, type | None] = dict.fromkeys(names)
    for row in rows:
        for name, value in row.items():
            found[name] = _wider(found.get(name), value)
    texts: dict[str, type | None] = {
        name: found.pop(name) or str for name in (CAUTION, ERROR) if name in found
    }
    return {name: kind or float for name, kind in {**found, **texts}.items()}


def _wider(kind: type | None, value: Scalar) -> type | None:
    """Return the type that holds a value beside those before."""
    if value is None:
        return kind
    own = str if isinstance(value, int) and value not in _INT64 else type(value)
    if kind is None or kind is own:
        return own
    return float if {kind, own} == {int, float} else str


def _as(kind: type, value: Scalar) -> Scalar:
    """Return a value in the type of its column."""
    made: Scalar = None if value is None else kind(value)
    return made
