"""What a caller passes in: scores, a confidence, a delta, a seed."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick._validate import Domain, count, real
from hockeystick.audit._arrays import REAL, as_array
from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Scores: TypeAlias = NDArray[np.float64]

_CONFIDENCE: Final = Domain(
    symbol="1 - a", low=0, high=1, low_open=True, high_open=True, typical=(0.9, 0.99)
)
_SEED: Final = Domain(symbol="s", low=0, high=2**63 - 1, typical=(0, 100), whole=True)
_ALLOWED: Final = "a one-dimensional array of one or more numbers, none of them nan"


def checked_scores(name: str, values: ArrayLike) -> Scores:
    """Return scores as floats, or raise; infinite ones are only compared, as all others."""
    scores = as_array(name, values, _ALLOWED)
    if scores.dtype.kind not in REAL or scores.ndim != 1 or not scores.size:
        raise ParameterError(name, values, _ALLOWED)
    with np.errstate(over="ignore"):
        scores = scores.astype(np.float64)
    if np.isnan(scores).any():
        raise ParameterError(name, values, _ALLOWED)
    return scores


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
