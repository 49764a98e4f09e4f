"""A category as bits, each randomized on its own: unary encoding and RAPPOR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain, WordEnum, whole_numbers
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.scope import EVERYBODY_REPORTS, Fact
from hockeystick.numerics.numerals import plain

_FLIP: Final = Domain(symbol="f", low=0, high=1, typical=(0.1, 0.75))
_HASHES: Final = whole_numbers("k", 1, (1, 8))


@registered
class Encoding(WordEnum):
    """How the bits of a unary encoding are randomized."""

    SYMMETRIC = "symmetric"
    OPTIMIZED = "optimized"


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class UnaryEncoding(AnyAdjacency):
    """One category as a row of bits with a single 1, each bit randomized on its own.

    A bit is reported as 1 with probability p if it is 1, and q if it is 0:

        symmetric (SUE):  p = e^(epsilon/2) / (1 + e^(epsilon/2)),  q = 1 - p
        optimized (OUE):  p = 1/2,                                  q = 1 / (1 + e^epsilon)

    Either is epsilon-DP, ``epsilon = ln(p (1-q) / ((1-p) q))``, for the person who answers.

    Guarantees:
        Exact: two categories differ in two bits, whatever their number. With probability
        ``1 / (2 cosh(epsilon/4)^2)`` (SUE) or 1/2 (OUE) the loss is 0.

    Edge cases:
        Epsilon 0 reports nothing. With epsilon inf the symmetric encoding reports the category
        itself, the optimized one half of the time, and nothing otherwise.

    Args:
        epsilon: Logarithm of the largest ratio of two probabilities, in [0, inf].
        kind: "symmetric" or "optimized".

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Wang, Blocki, Li and Jha, "Locally Differentially Private Protocols for Frequency
        Estimation", USENIX Security 2017, section 4.3.

    Example:
        >>> import hockeystick as hs
        >>> answer = hs.delta(hs.mechanisms.UnaryEncoding(epsilon=1, kind="optimized"), epsilon=0.5)
        >>> round(answer.upper, 12)
        0.143824568322
    """

    rises_with = ("epsilon",)

    epsilon: float
    kind: Encoding = Encoding.SYMMETRIC

    def __init__(self, epsilon: float, kind: Encoding | str = Encoding.SYMMETRIC) -> None:
        object.__setattr__(self, "epsilon", _validate.real("epsilon", epsilon))
        object.__setattr__(self, "kind", _validate.choice("kind", kind, Encoding))

    @property
    def scope(self) -> tuple[Fact, ...]:
        """That everybody reports: neighbours are two answers of one person."""
        return (EVERYBODY_REPORTS,)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"Every report of a category is drawn afresh, bit by bit, by {self.kind} unary "
            f"encoding with epsilon {plain(self.epsilon)}.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return f"{self.kind} unary encoding", (f"epsilon {self.epsilon:g}",)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class RAPPOR(AnyAdjacency):
    """A value hashed to k bits of a Bloom filter, each replaced by a fair coin with probability f.

    The permanent randomized response of RAPPOR, reported once: a bit keeps its value with
    probability ``1 - f/2``. It is epsilon-DP with ``epsilon = 2 k ln((1 - f/2) / (f/2))``.

    Guarantees:
        Exact for two values that share no bit, an upper bound for others: at most 2k bits differ,
        and each of these costs what a binary randomized response does.

    Edge cases:
        Flip 1 reports nothing; 0 reports the bits themselves.

    Args:
        flip: Probability f that a bit is replaced by a fair coin, in [0, 1].
        hashes: How many bits k of the filter one value sets, an integer from 1 to 10^15.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Erlingsson, Pihur and Korolova, "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal
        Response", CCS 2014, theorem 1.

    Example:
        >>> import hockeystick as hs
        >>> answer = hs.delta(hs.mechanisms.RAPPOR(flip=0.5, hashes=2), epsilon=4)
        >>> round(answer.upper, 12)
        0.103132226433
    """

    rises_with = ("hashes",)
    falls_with = ("flip",)

    flip: float
    hashes: int

    def __init__(self, flip: float, hashes: int) -> None:
        object.__setattr__(self, "flip", _validate.real("flip", flip, _FLIP))
        object.__setattr__(self, "hashes", _validate.count("hashes", hashes, _HASHES))

    @property
    def scope(self) -> tuple[Fact, ...]:
        """That everybody reports: neighbours are two answers of one person."""
        return (EVERYBODY_REPORTS,)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"A value sets at most {self.hashes:,} bits, and each bit is replaced by a fair coin "
            f"with probability {plain(self.flip)}; all reports of a value repeat the same noise.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "RAPPOR", (f"flip {self.flip:g}", f"{self.hashes} hashes")
