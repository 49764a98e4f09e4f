"""What the statistics of a data set share: checked rows, public numbers, and their sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.noise.joint_gaussian import JointGaussian
from hockeystick.release._values import numbers
from hockeystick.release.samplers import Bits
from hockeystick.release.statistics.clipped import check_noise, length_of, noisy_integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIZE: Final = Domain(symbol="n", low=1e-24, high=1e15, typical=(100, 10**6), whole=False)
_MOST_ROWS: Final = 2**26


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a data set less their public center, and how far a record counts.

    Args:
        centred: The rows less the center, one for each record.
        center: The public center, an entry for each column.
        bound: What a centred row's length is clipped to.
    """

    centred: NDArray[np.float64]
    center: NDArray[np.float64]
    bound: float

    @property
    def columns(self) -> int:
        """The number of entries of a row."""
        return int(self.centred.shape[1])


def rows_of(rows: Any, bound: Any, center: Any) -> Rows:
    """Return rows less a public center, or raise; nothing of the rows is shown."""
    known = numbers("rows", rows)
    if known.ndim != 2 or known.shape[1] == 0 or len(known) > _MOST_ROWS:
        allowed = "an array of two axes: a row for each of at most 2^26 records"
        raise ParameterError("rows", f"an array of shape {known.shape}", allowed)
    length = length_of("bound", bound)
    middle = np.zeros(known.shape[1]) if center is None else numbers("center", center)
    if middle.shape not in ((), (known.shape[1],)):
        allowed = f"a number, or one for each of {known.shape[1]} columns"
        raise ParameterError("center", f"an array of shape {middle.shape}", allowed)
    middle = np.broadcast_to(middle, (known.shape[1],))
    with np.errstate(over="ignore"):
        return Rows(known - middle, middle, length)


def public_size(size: Any, rows: Rows, adjacency: Adjacency) -> float:
    """Return what sums are divided by: a public number, or the number of rows where that is."""
    if size is not None:
        return _validate.real("size", size, _SIZE)
    if adjacency is Adjacency.ADD_REMOVE:
        raise IncompatibleError(
            "under add-remove the number of rows is private: give a public size, or a mechanism "
            "of one noise multiplier more, with which it is released; or say adjacency="
            "'replace-one' or 'zero-out', under which it is public"
        )
    if len(rows.centred) == 0:
        raise ParameterError("rows", "none", "at least one row where no size is given")
    return float(len(rows.centred))


def check_count(size: Any, adjacency: Adjacency) -> None:
    """Raise where a count would be released that is public."""
    if size is not None:
        raise IncompatibleError(
            "the mechanism releases the number of rows, and a size is given too: use one of them"
        )
    if adjacency is not Adjacency.ADD_REMOVE:
        raise IncompatibleError(
            f"under {adjacency} the number of rows is public: no noise multiplier is for it"
        )


def noisy_count(rows: Rows, noise_multiplier: float, bits: Bits) -> float:
    """Return the number of rows, which one record moves by 1, with noise; at least 1."""
    total = np.array([len(rows.centred)], dtype=np.int64)
    return float(max(noisy_integers(total, 1, noise_multiplier, bits)[0], 1))


def check_entries(mechanism: JointGaussian, allowed: tuple[int, ...], words: str) -> None:
    """Raise where a mechanism has noise for another number of queries."""
    if len(mechanism.noise_multipliers) not in allowed:
        raise ParameterError("mechanism", mechanism, words)


def check_finite(noise_multipliers: tuple[float, ...], scale: float) -> None:
    """Raise where noise is infinite or too large to be drawn."""
    for noise in noise_multipliers:
        if noise == math.inf:
            raise ParameterError("mechanism", noise, "of finite noise: infinite cannot be drawn")
        check_noise(noise, scale)


# The square root of 2, rounded up.
ROOT_2: Final = Fraction(math.nextafter(math.sqrt(2.0), math.inf))
