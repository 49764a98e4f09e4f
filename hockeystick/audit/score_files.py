"""Files of scores: CSV, NPY and NPZ."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.errors import HockeystickError, ParameterError

_ENDINGS: Final = (".csv", ".npy", ".npz")
_COLUMNS: Final = ("score", "included")
_ARRAYS: Final = ("scores_in", "scores_out")
_TRUE: Final = frozenset({"1", "1.0", "true", "t", "yes", "y", "in"})
_FALSE: Final = frozenset({"0", "0.0", "false", "f", "no", "n", "out"})
_A_TRUTH: Final = "1 or 0, true or false, yes or no, in or out"


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
        A CSV file has columns ``score`` and ``included`` (1 or 0, true or false, yes or no, in or
        out); others are ignored. An NPZ file has either the same two arrays, or ``scores_in`` and
        ``scores_out``. An NPY file is an array of shape (m, 2), score and inclusion. Pickled
        objects are refused.

    Args:
        path: A file that ends in .csv, .npy or .npz.

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
    allowed = f"a file name that ends in {', '.join(_ENDINGS)}"
    if not isinstance(path, str | os.PathLike):
        raise ParameterError("path", path, allowed)
    file = Path(path)
    ending = file.suffix.lower()
    if ending not in _ENDINGS or "\0" in str(file):
        raise ParameterError("path", str(path), allowed)
    try:
        return _read_csv(file) if ending == ".csv" else _read_arrays(file)
    except OSError as error:
        raise HockeystickError(f"cannot read {file}: {error.strerror or error}") from None


def _read_csv(file: Path) -> Scores:
    """Read two columns of a CSV file."""
    try:
        with open(file, encoding="utf-8-sig", newline="") as text:
            rows = csv.DictReader(text, strict=True)
            names = list(rows.fieldnames or ())
            if any(names.count(name) != 1 for name in _COLUMNS):
                got = ", ".join(names[:8]) or "no columns"
                columns = "columns 'score' and 'included', once each"
                raise HockeystickError(f"{file} must have {columns}; got {got}")
            read = [(f"{file}, line {rows.line_num}", row) for row in rows]
    except (UnicodeDecodeError, csv.Error) as error:
        raise HockeystickError(f"{file} is no CSV file in UTF-8: {error}") from None
    for place, row in read:
        if None in row:
            raise HockeystickError(f"{place} has more cells than columns")
    scores, included = ([(place, row[name]) for place, row in read] for name in _COLUMNS)
    return _of_values(scores, included)


def _read_arrays(file: Path) -> Scores:
    """Read arrays; objects that only pickle knows are refused."""
    try:
        with open(file, "rb") as held:
            loaded = np.load(held, allow_pickle=False)
            arrays = loaded if isinstance(loaded, np.ndarray) else {**loaded}
    except OSError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise HockeystickError(f"{file} holds no arrays that can be read: {reason}") from None
    if isinstance(arrays, np.ndarray):
        if arrays.ndim != 2 or arrays.shape[1] != 2:
            allowed = f"an array of shape (m, 2), score and inclusion; got shape {arrays.shape}"
            raise HockeystickError(f"{file} must hold {allowed}")
        scores, included = arrays.T
    elif set(_ARRAYS) <= set(arrays):
        inside, outside = (_flat(file, name, arrays[name]) for name in _ARRAYS)
        scores = np.concatenate((inside, outside))
        included = np.arange(scores.size) < inside.size
    elif set(_COLUMNS) <= set(arrays):
        scores, included = (_flat(file, name, arrays[name]) for name in _COLUMNS)
    else:
        got = ", ".join(sorted(arrays)) or "none"
        allowed = "arrays 'scores_in' and 'scores_out', or 'score' and 'included'"
        raise HockeystickError(f"{file} must hold {allowed}; got {got}")
    if scores.size != included.size:
        sizes = f"got {scores.size} and {included.size}"
        raise HockeystickError(f"{file}: 'score' and 'included' must be of one length; {sizes}")
    return _of_values(*(_placed(file, one) for one in (scores, included)))


def _flat(file: Path, name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of one dimension."""
    if array.ndim != 1:
        raise HockeystickError(f"{file}: {name} must have shape (m,); got shape {array.shape}")
    return array


def _placed(file: Path, array: NDArray[Any]) -> list[tuple[str, Any]]:
    """Return the values of an array with their places."""
    return [(f"{file}, row {row}", one) for row, one in enumerate(array.tolist(), 1)]


def _of_values(scores: list[tuple[str, Any]], included: list[tuple[str, Any]]) -> Scores:
    """Return scores and inclusions that a file holds as values, each with its place."""
    numbers = [_number(place, one) for place, one in scores]
    return Scores(np.array(numbers, float), np.array([_truth(*one) for one in included], bool))


def _number(place: str, value: Any) -> float:
    """Return a score; NaN and infinity are refused where scores are used."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise HockeystickError(f"{place}: score must be a number; got {value!r:.80}") from None


def _truth(place: str, value: Any) -> bool:
    """Return whether a record took part."""
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise HockeystickError(f"{place}: included must be {_A_TRUTH}; got {value!r:.80}")
