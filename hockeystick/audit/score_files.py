"""Files of scores: CSV, Parquet, NPY and NPZ."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.errors import HockeystickError, ParameterError

SCORE: Final = "score"
INCLUDED: Final = "included"
_ARRAYS: Final = ("scores_in", "scores_out")
_TRUE: Final = frozenset({"1", "1.0", "true", "t", "yes", "y", "in"})
_FALSE: Final = frozenset({"0", "0.0", "false", "f", "no", "n", "out"})
_A_TRUTH: Final = "1 or 0, true or false, yes or no, in or out"
_COLUMNS: Final = f"columns {SCORE!r} and {INCLUDED!r}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """An attack's scores, each with whether the record took part, in the order of the file.

    Args:
        scores: The scores, float64 of shape (m,); the larger, the surer that the record took part.
        included: Whether it did, bool of shape (m,).
    """

    scores: NDArray[np.float64]
    included: NDArray[np.bool_]

    @property
    def scores_in(self) -> NDArray[np.float64]:
        """The scores where the record took part."""
        return self.scores[self.included]

    @property
    def scores_out(self) -> NDArray[np.float64]:
        """The scores where it did not."""
        return self.scores[~self.included]


def load_scores(path: str | os.PathLike[str]) -> Scores:
    r"""Return the scores that a file holds.

    Guarantees:
        Every row counts, in the order of the file, or an error names the first that cannot be
        read: no row is skipped.

    Edge cases:
        CSV and Parquet files have columns ``score`` and ``included`` (1 or 0, true or false, yes or
        no, in or out); others are ignored. An NPZ file has either the same two arrays, or
        ``scores_in`` and ``scores_out``. An NPY file is an array of shape (m, 2), score and
        inclusion. Parquet needs the extra ``parquet``. Pickled objects are refused.

    Args:
        path: A file that ends in .csv, .parquet, .npy or .npz.

    Returns:
        The scores.

    Raises:
        ParameterError: If the name ends otherwise.
        HockeystickError: If the file cannot be read, or a score or an inclusion is not what it
            must be.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import hockeystick as hs
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder) / "scores.csv"
        ...     _ = file.write_text("score,included\n2.5,1\n0.5,0\n1.5,1\n")
        ...     hs.audit.load_scores(file).scores_in.tolist()
        [2.5, 1.5]
    """
    allowed = f"a file name that ends in {', '.join(_READERS)}"
    if not isinstance(path, str | os.PathLike):
        raise ParameterError("path", path, allowed)
    file = Path(path)
    ending = file.suffix.lower()
    if ending not in _READERS or "\0" in str(file):
        raise ParameterError("path", str(path), allowed)
    try:
        return _READERS[ending](file)
    except OSError as error:
        raise HockeystickError(f"cannot read {file}: {error.strerror or error}") from None


def _read_csv(file: Path) -> Scores:
    """Read two columns of a CSV file."""
    try:
        with open(file, encoding="utf-8-sig", newline="") as text:
            rows = csv.DictReader(text, strict=True)
            _require_columns(file, rows.fieldnames or ())
            read = [_csv_row(file, rows.line_num, row) for row in rows]
    except (UnicodeDecodeError, csv.Error) as error:
        raise HockeystickError(f"{file} is no CSV file in UTF-8: {error}") from None
    scores = [_number(f"{file}, line {line}", score) for line, score, _ in read]
    truths = [_truth(f"{file}, line {line}", truth) for line, _, truth in read]
    return Scores(np.array(scores, float), np.array(truths, bool))


def _csv_row(file: Path, line: int, row: Mapping[Any, Any]) -> tuple[int, Any, Any]:
    """Return a row's line, score and inclusion, or raise where it has more than it should."""
    if None in row:
        raise HockeystickError(f"{file}, line {line} has more cells than columns")
    return line, row[SCORE], row[INCLUDED]


def _read_parquet(file: Path) -> Scores:
    """Read two columns of a Parquet file."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
        arrow: Any = import_module("pyarrow")
    except ImportError:
        message = "Parquet files need pyarrow: install hockeystick[parquet], or give .csv"
        raise HockeystickError(message) from None
    try:
        with open(file, "rb") as held:
            table = parquet.ParquetFile(held)
            _require_columns(file, table.schema_arrow.names)
            columns = table.read(columns=[SCORE, INCLUDED]).to_pydict()
    except arrow.ArrowException as error:
        raise HockeystickError(
            f"{file} is no Parquet file: {' '.join(str(error).split())}"
        ) from None
    return _of_values(file, columns[SCORE], columns[INCLUDED])


def _read_npy(file: Path) -> Scores:
    """Read an array of score and inclusion."""
    array = _loaded(file)
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.shape[1] != 2:
        shape = getattr(array, "shape", None)
        raise HockeystickError(
            f"{file} must hold an array of shape (m, 2), score and inclusion; got shape {shape}"
        )
    return _of_values(file, array[:, 0].tolist(), array[:, 1].tolist())


def _read_npz(file: Path) -> Scores:
    """Read the arrays of the scores in and out, or of score and inclusion."""
    arrays: Mapping[str, Any] = _loaded(file)
    if not isinstance(arrays, Mapping):
        raise HockeystickError(f"{file} is no NPZ file: it holds a single array")
    names = set(arrays)
    if set(_ARRAYS) <= names:
        inside, outside = (_flat(file, name, arrays[name]) for name in _ARRAYS)
        truths = [True] * len(inside) + [False] * len(outside)
        return _of_values(file, inside + outside, truths)
    if {SCORE, INCLUDED} <= names:
        return _of_values(file, *(_flat(file, one, arrays[one]) for one in (SCORE, INCLUDED)))
    raise HockeystickError(
        f"{file} must hold arrays {' and '.join(map(repr, _ARRAYS))}, or {SCORE!r} and "
        f"{INCLUDED!r}; got {', '.join(sorted(names)) or 'none'}"
    )


def _loaded(file: Path) -> Any:
    """Return what an NPY or NPZ file holds; objects that only pickle knows are refused."""
    try:
        with open(file, "rb") as held:
            loaded = np.load(held, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            return {name: loaded[name] for name in loaded.files}
    except OSError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise HockeystickError(f"{file} holds no arrays that can be read: {reason}") from None


def _flat(file: Path, name: str, array: NDArray[Any]) -> list[Any]:
    """Return an array of one dimension as a list."""
    if array.ndim != 1:
        raise HockeystickError(f"{file}: {name} must have shape (m,); got shape {array.shape}")
    values: list[Any] = array.tolist()
    return values


def _require_columns(file: Path, names: Iterable[str]) -> None:
    """Raise where a column is missing, or is there twice."""
    listed = list(names)
    if any(listed.count(name) != 1 for name in (SCORE, INCLUDED)):
        got = ", ".join(map(str, listed[:8])) or "no columns"
        raise HockeystickError(f"{file} must have {_COLUMNS}, once each; got {got}")


def _of_values(file: Path, scores: Sequence[Any], truths: Sequence[Any]) -> Scores:
    """Return scores and inclusions that a file holds as values."""
    if len(scores) != len(truths):
        raise HockeystickError(
            f"{file}: {SCORE!r} and {INCLUDED!r} must be of one length; "
            f"got {len(scores)} and {len(truths)}"
        )
    numbers = [_number(f"{file}, row {row}", one) for row, one in enumerate(scores, 1)]
    inclusions = [_truth(f"{file}, row {row}", one) for row, one in enumerate(truths, 1)]
    return Scores(np.array(numbers, float), np.array(inclusions, bool))


def _number(place: str, value: Any) -> float:
    """Return a score; NaN and infinity are refused where scores are used."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise HockeystickError(f"{place}: {SCORE} must be a number; got {value!r:.80}") from None


def _truth(place: str, value: Any) -> bool:
    """Return whether a record took part."""
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise HockeystickError(f"{place}: {INCLUDED} must be {_A_TRUTH}; got {value!r:.80}")


_READERS: Final[Mapping[str, Callable[[Path], Scores]]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".npy": _read_npy,
    ".npz": _read_npz,
}
