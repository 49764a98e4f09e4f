"""What a caller passes in, checked once, by name, and files of scores: CSV, NPY and NPZ."""

from __future__ import annotations

import csv
import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from hockeystick._validate import Domain, count, real
from hockeystick.errors import HockeystickError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Array: TypeAlias = NDArray[np.float64]

# The kinds of numpy that hold real numbers, and those that hold truth values as 0 and 1.
_REAL: Final = "fiu"
_FLAGS: Final = "biuf"
CONFIDENCE: Final = Domain("1 - a", 0, 1, (0.9, 0.99), low_open=True, high_open=True)
SEED: Final = Domain(symbol="s", low=0, high=2**63 - 1, typical=(0, 100), whole=True)
_COLUMNS: Final = ("score", "included")
_ARRAYS: Final = ("scores_in", "scores_out")
_TRUE: Final = frozenset({"1", "1.0", "true", "t", "yes", "y", "in"})
_FALSE: Final = frozenset({"0", "0.0", "false", "f", "no", "n", "out"})
_ALLOWED: Final = "a one-dimensional array of one or more numbers, none of them nan"


def _as_array(name: str, values: Any, allowed: str) -> NDArray[Any]:
    """Return an array, or raise; an array that hides some of its values is refused."""
    if isinstance(values, np.ma.MaskedArray):
        raise ParameterError(name, values, f"{allowed}, without a mask")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ParameterError(name, values, allowed) from None


def numbers(
    name: str,
    values: Any,
    axes: str,
    *,
    fewest: int = 1,
    most: int | None = None,
    last: tuple[int, ...] = (),
) -> Array:
    """Return an array of finite floats, not empty, with so many axes, the last of a shape."""
    most, allowed = fewest if most is None else most, f"finite numbers for {axes}"
    array = _as_array(name, values, allowed)
    real = array.dtype.kind in _REAL
    with np.errstate(over="ignore"):
        found = np.asarray(array, dtype=np.float64) if real else array
    if not real or not fewest <= found.ndim <= most or found.size == 0:
        told = f"an array of {found.dtype} of shape {found.shape}"
        raise ParameterError(name, told, allowed)
    if last and found.shape[-len(last) :] != last:
        told = f"an array of shape {found.shape}"
        raise ParameterError(name, told, f"{allowed}, of shape {last}")
    if infinite := int(np.sum(~np.isfinite(found))):
        raise ParameterError(name, f"{infinite} that are not finite", allowed)
    return found


def flags(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return values as booleans of this shape, or raise; 0 and 1 are booleans too."""
    allowed = f"truth values of shape {shape}"
    array = _as_array(name, values, allowed)
    if array.shape != shape:
        raise ParameterError(name, f"an array of shape {array.shape}", allowed)
    if array.dtype.kind not in _FLAGS or not np.isin(array, (0, 1)).all():
        raise ParameterError(name, f"an array of {array.dtype} with other values", allowed)
    return array.astype(np.bool_)


def checked_scores(name: str, values: ArrayLike) -> Array:
    """Return scores as floats, or raise; infinite ones are only compared, as all others."""
    scores = _as_array(name, values, _ALLOWED)
    usual = scores.dtype.kind in _REAL and scores.ndim == 1 and scores.size > 0
    if not usual or np.isnan(scores).any():
        raise ParameterError(name, values, _ALLOWED)
    with np.errstate(over="ignore"):
        return scores.astype(np.float64)


def error_probability(confidence: object) -> float:
    """Return 1 - confidence, of the decimal that the confidence prints as."""
    given = real("confidence", confidence, CONFIDENCE)
    from hockeystick.numerics import decimal

    return min(float(1 - decimal(given)), 1.0 - given) or math.ulp(0.0)


def mixed_seed(seed: object, *given: NDArray[Any]) -> int:
    """Return a seed that depends on all that was given, too, or raise.

    With a seed alone, ties would fall in the same way in all audits of as many scores.
    """
    digest = hashlib.blake2b(count("seed", seed, SEED).to_bytes(8, "little"), digest_size=16)
    for one in given:
        digest.update(one.size.to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(one).tobytes())
    return int.from_bytes(digest.digest(), "little")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """An attack's scores, each with whether the record took part, in the order of the file.

    Example:
        >>> import numpy as np
        >>> from hockeystick.audit import Scores
        >>> Scores(np.array([0.9, 0.2, 0.7]), np.array([True, False, True])).scores_in
        array([0.9, 0.7])
    """

    scores: Array
    included: NDArray[np.bool_]

    @property
    def scores_in(self) -> Array:
        """The scores where the record took part."""
        return self.scores[self.included]

    @property
    def scores_out(self) -> Array:
        """The scores where it did not."""
        return self.scores[~self.included]


def load_scores(path: str | os.PathLike[str]) -> Scores:
    r"""Return the scores that a file holds: every row counts, or the first wrong one is named.

    A CSV file has columns ``score`` and ``included`` (1 or 0, true or false, yes or no, in or out);
    others are ignored. An NPZ file has either the same two arrays, or ``scores_in`` and
    ``scores_out``. An NPY file is an array of shape (m, 2), score and inclusion. Pickled objects
    are refused. ``HockeystickError`` says what cannot be read.

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
    readers = {".csv": _rows_of_csv, ".npy": _rows_of_arrays, ".npz": _rows_of_arrays}
    allowed = f"a file name that ends in {', '.join(readers)}"
    if not isinstance(path, str | os.PathLike):
        raise ParameterError("path", path, allowed)
    file = Path(path)
    if file.suffix.lower() not in readers or "\0" in str(file):
        raise ParameterError("path", str(path), allowed)
    try:
        rows = readers[file.suffix.lower()](file)
    except OSError as error:
        raise HockeystickError(f"cannot read {file}: {error.strerror or error}") from None
    except Exception as error:
        told = " ".join(str(error).split()) or type(error).__name__
        raise HockeystickError(f"{file} holds no scores that can be read: {told}") from None
    scores, included = [], []
    for row, (score, took_part) in enumerate(rows, 1):
        # NaN and infinity are refused where scores are used.
        try:
            if isinstance(score, bool):
                raise TypeError(score)
            scores.append(float(score))
        except (TypeError, ValueError, OverflowError):
            told = f"score must be a number; got {score!r:.80}"
            raise HockeystickError(f"{file}, row {row}: {told}") from None
        word = str(took_part).strip().lower()
        if word not in _TRUE | _FALSE:
            told = f"1 or 0, true or false, yes or no, in or out; got {took_part!r:.80}"
            raise HockeystickError(f"{file}, row {row}: included must be {told}")
        included.append(word in _TRUE)
    return Scores(np.array(scores, float), np.array(included, bool))


def _rows_of_csv(file: Path) -> list[tuple[Any, Any]]:
    with open(file, encoding="utf-8-sig", newline="") as text:
        rows = csv.DictReader(text, strict=True)
        names = list(rows.fieldnames or ())
        if any(names.count(name) != 1 for name in _COLUMNS):
            got = ", ".join(names[:8]) or "no columns"
            raise ValueError(f"it must have columns 'score' and 'included', once each; got {got}")
        read = list(rows)
    for number, row in enumerate(read, 1):
        if None in row:
            raise ValueError(f"row {number} has more cells than columns")
    return [(row["score"], row["included"]) for row in read]


def _rows_of_arrays(file: Path) -> list[tuple[Any, Any]]:
    with open(file, "rb") as held:
        loaded = np.load(held, allow_pickle=False)
        arrays = {**loaded} if isinstance(loaded, np.lib.npyio.NpzFile) else None
    if arrays is None:
        if loaded.ndim != 2 or loaded.shape[1] != 2:
            raise ValueError(f"it must have shape (m, 2), score and inclusion; got {loaded.shape}")
        return [(score, took_part) for score, took_part in loaded.tolist()]
    both = next((names for names in (_ARRAYS, _COLUMNS) if {*names} <= {*arrays}), None)
    if both is None:
        allowed = "arrays 'scores_in' and 'scores_out', or 'score' and 'included'"
        raise ValueError(f"it must have {allowed}; got {', '.join(sorted(arrays)) or 'none'}")
    first, second = (arrays[name] for name in both)
    if first.ndim != 1 or second.ndim != 1 or (both == _COLUMNS and first.size != second.size):
        shapes = f"{first.shape} and {second.shape}"
        raise ValueError(f"arrays must have shape (m,), of one length; got {shapes}")
    if both == _COLUMNS:
        return list(zip(first.tolist(), second.tolist(), strict=True))
    return [(one, 1) for one in first.tolist()] + [(one, 0) for one in second.tolist()]
