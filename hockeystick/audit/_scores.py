"""What a caller passes in: scores, a confidence, a delta, a seed."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick._validate import Domain, count, real
from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Scores: TypeAlias = NDArray[np.float64]

_CONFIDENCE: Final = Domain(
    symbol="1 - a", low=0, high=1, low_open=True, high_open=True, typical=(0.9, 0.99)
)
_SEED: Final = Domain(symbol="s", low=0, high=2**63 - 1, typical=(0, 100), whole=True)
_ALLOWED: Final = "a one-dimensional array of one or more numbers, none of them nan"
_NUMBERS: Final = "iuf"
_FLAGS: Final = "one truth value for each score, of both kinds"


def checked_scores(name: str, values: ArrayLike) -> Scores:
    """Return scores as floats, or raise; infinite ones are only compared, as all others."""
    scores = _as_array(name, values, _ALLOWED)
    if scores.dtype.kind not in _NUMBERS or scores.ndim != 1 or not scores.size:
        raise ParameterError(name, values, _ALLOWED)
    with np.errstate(over="ignore"):
        scores = scores.astype(np.float64)
    if np.isnan(scores).any():
        raise ParameterError(name, values, _ALLOWED)
    return scores


def checked_flags(name: str, values: ArrayLike, length: int) -> NDArray[np.bool_]:
    """Return who was included as truth values, or raise; 0 and 1 are truth values too."""
    flags = _as_array(name, values, _FLAGS)
    known = flags.dtype.kind in "biu" and bool(np.isin(flags, (0, 1)).all())
    if flags.shape != (length,) or not known:
        raise ParameterError(name, values, _FLAGS)
    return flags.astype(bool)


def _as_array(name: str, values: Any, allowed: str) -> NDArray[Any]:
    """Return an array, or raise; an array that hides some of its values is refused."""
    if isinstance(values, np.ma.MaskedArray):
        raise ParameterError(name, values, f"{allowed}, without a mask")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ParameterError(name, values, allowed) from None


def error_probability(confidence: object) -> float:
    """Return 1 - confidence, of the decimal that the confidence prints as."""
    given = real("confidence", confidence, _CONFIDENCE)
    from hockeystick.numerics import decimal

    return min(float(1 - decimal(given)), 1.0 - given) or math.ulp(0.0)


def mixed_seed(seed: object, *given: NDArray[Any]) -> int:
    """Return a seed that depends on all that was given, too, or raise.

    With a seed alone, ties would fall in the same way in all audits of as many scores, and the
    error probability of those could be anything: it would be right over seeds only.
    """
    digest = hashlib.blake2b(count("seed", seed, _SEED).to_bytes(8, "little"), digest_size=16)
    for one in given:
        digest.update(one.size.to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(one).tobytes())
    return int.from_bytes(digest.digest(), "little")


def halves(scores: Scores, share: float, seed: int, kind: int) -> tuple[Scores, Scores]:
    """Return a random part of the scores that holds a share of them, and the rest, both sorted.

    Ranks in a random part are those of independent scores, whatever order they came in.
    """
    generator = np.random.default_rng([seed, kind])
    mixed = generator.permutation(scores)
    held = round(share * scores.size)
    return np.sort(mixed[:held]), np.sort(mixed[held:])
