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
    return _checked([(place, row["score"], row["included"]) for place, row in read])


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
        arrays = dict(zip(_COLUMNS, arrays.T, strict=True))
    names = next((both for both in (_ARRAYS, _COLUMNS) if set(both) <= set(arrays)), None)
    if names is None:
        got = ", ".join(sorted(arrays)) or "none"
        allowed = "arrays 'scores_in' and 'scores_out', or 'score' and 'included'"
        raise HockeystickError(f"{file} must hold {allowed}; got {got}")
    for name in names:
        if arrays[name].ndim != 1:
            shape = f"must have shape (m,); got shape {arrays[name].shape}"
            raise HockeystickError(f"{file}: {name} {shape}")
    scores, included = (arrays[name].tolist() for name in names)
    if names == _ARRAYS:
        scores, included = scores + included, [1] * len(scores) + [0] * len(included)
    if len(scores) != len(included):
        sizes = f"got {len(scores)} and {len(included)}"
        raise HockeystickError(f"{file}: 'score' and 'included' must be of one length; {sizes}")
    rows = enumerate(zip(scores, included, strict=True), 1)
    return _checked([(f"{file}, row {row}", *both) for row, both in rows])


def _checked(rows: list[tuple[str, Any, Any]]) -> Scores:
    """Return the scores and inclusions of rows, each with its place, or name what is none."""
    scores, included = [], []
    for place, score, took_part in rows:
        # NaN and infinity are refused where scores are used.
        try:
            if isinstance(score, bool):
                raise TypeError
            scores.append(float(score))
        except (TypeError, ValueError, OverflowError):
            told = f"score must be a number; got {score!r:.80}"
            raise HockeystickError(f"{place}: {told}") from None
        word = str(took_part).strip().lower()
        if word not in _TRUE | _FALSE:
            told = f"included must be {_A_TRUTH}; got {took_part!r:.80}"
            raise HockeystickError(f"{place}: {told}")
        included.append(word in _TRUE)
    return Scores(np.array(scores, float), np.array(included, bool))
