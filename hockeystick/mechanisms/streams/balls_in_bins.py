"""Correlated noise with random batches: balls in bins, and cyclic Poisson sampling.

Cyclic Poisson sampling for banded encoders: correlated noise, amplified by sampling.

Rounds are numbered from 0, and round i adds up over a Poisson sample of group ``i mod b`` alone;
the release is ``C X + Z``, C a lower triangular matrix with at most b diagonals. Let an example be
in group g, with contributions ``u_j``, ``|u_j| <= 1``, in the rounds ``j = g, g + b, ...`` in whose
samples it is (independent coins ``B_j`` of bias q).

Column j of C is zero but for the rows ``j, ..., j + b - 1``, its block, which no other of these
rounds touches: blocks follow one another, and rows between them do not depend on the example. Fix
what was drawn of the other examples. What these add to a row is the same function of the rows
before it whether or not the example is there, since later contributions depend on the data through
what was released; to subtract it is one to one. ``u_j`` is chosen by the rows before the block. So
given all rows before it the block is, up to a bijection,

    (1-q) N(0, z^2 I) + q N(C_j (x) u_j, z^2 I)    against    N(0, z^2 I),

the Poisson-subsampled Gaussian moved by ``|C_j| |u_j| <= |C_j|``, and the coin of a block is
independent of what was released before. Adaptive composition (Zhu, Dong and Wang, 2022, theorem 10)
gives the product over the blocks, in either order of the pair. It is attained: others contribute
nothing, and the example one constant unit vector. Under replace-one, both examples being in the
same group, the same holds for the pair with ``u_j`` and ``v_j`` and one coin for both.

A column of a Toeplitz matrix is a part of the first one, the shorter the later it is: the rounds of
group 0 are the most, and come first. So its product, ``ceil(n/b)`` blocks of which all but perhaps
the last are whole, dominates that of every other group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import (
    Composed,
    Mechanism,
    Plan,
    divided_words,
    noisy_seen,
    registered,
    set_fields,
)
from hockeystick.mechanisms.sampling.poisson import PoissonSubsampled, unless_usual
from hockeystick.mechanisms.streams.encoders import Encoder
from hockeystick.mechanisms.streams.matrix_factorization import MatrixFactorization
from hockeystick.numerics.numerals import plain

_COEFFICIENTS: Final = {
    "domain": Domain(symbol="c", low=0, high=math.inf, high_open=True, typical=(0.0, 1.0))
}
_ROUNDS: Final = {"domain": Domain(symbol="n", low=1, high=10**6, typical=(100, 10**4), whole=True)}
_BINS: Final = {"domain": Domain(symbol="b", low=1, high=10**4, typical=(2, 1000), whole=True)}
_CYCLE: Final = {"domain": Domain(symbol="b", low=1, high=10**6, typical=(1, 1000), whole=True)}


def _noisy_sums(plan: BallsInBins | CyclicPoisson, drawn: str) -> tuple[str, ...]:
    return (
        "Each example's contribution to a round is clipped in L2, and the lower triangular "
        f"Toeplitz matrix of {plan.bands:,} diagonals is applied to the rounds' sums.",
        "Gaussian noise is added to each entry of what the matrix gives; its standard "
        f"deviation is {plain(plan.noise_multiplier)} times the clipping norm.",
        divided_words(plan.adjacency, drawn, "examples"),
        f"There are at most {plan.rounds:,} rounds.",
        noisy_seen("the noisy entries of all rounds", alone="contributions and batches"),
    )


def _bands(plan: BallsInBins | CyclicPoisson) -> int:
    inside = plan.coefficients[: plan.rounds]
    return max((place + 1 for place, value in enumerate(inside) if value), default=1)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class BallsInBins(Mechanism):
    """Correlated noise with balls-in-bins samples: DP-FTRL where each example has a random bin.

    The release is ``C X + Z``: C is the lower triangular Toeplitz matrix with the diagonals
    ``coefficients``, none of them negative, row i of X is what round i adds up, and Z is Gaussian
    of standard deviation noise_multiplier z * clipping norm. Each example is in one of ``bins`` b
    bins, uniformly at random and for the whole training; round i, from 0 on, adds up over bin
    ``i mod b``. With the example, contributing as much as it may, and without it the outputs are

        P = mean over r of N(m_r, z^2 I),    Q = N(0, z^2 I),    m_r = sum_k C[:, r + k b],

    and no contributions cost more, also where later rounds depend on what the earlier ones
    released. ``** runs`` are as many trainings, each with bins of its own.

    Guarantees:
        Exact where the m_r are orthogonal and of one length (one diagonal, in whole epochs): random
        allocation of 1 of b. Otherwise the upper end is that of an adversary who is told in which
        class of bins that do not interfere an example is: allocation of 1 of at most b over the
        number p of diagonals, at the length of m_0. Where no two bins are free of interference, as
        for a matrix that is not banded, it is that of bins which are known, with no amplification.
        The lower end is that of an allocation, or of a Gaussian, whose means have inner products
        that are no larger.

    Edge cases:
        One bin is ``MatrixFactorization`` with a participation in each round. Noise multiplier inf
        and coefficients of 0 release nothing; noise multiplier 0 reveals that the example is there.

    Args:
        noise_multiplier: Standard deviation of each entry of Z over the clipping norm, in [0, inf].
        coefficients: The diagonals of C from the main one down, finite numbers >= 0, taken exactly.
        rounds: The number n of rounds, an integer from 1 to 10^6.
        bins: The number b of bins, an integer from 1 to 10^4.
        adjacency: "add-remove" or "zero-out".

    References:
        Chua, Ghazi, Harrison, Leeman, Kamath, Kumar, Manurangsi, Sinha and Zhang, "Balls-and-bins
        sampling for DP-SGD", 2024 (arXiv 2412.16802); Choquette-Choo, Ganesh, Haque, Steinke and
        Thakurta, "Near exact privacy amplification for matrix mechanisms", 2024 (arXiv
        2410.06266); Schuchardt and Kalinin, 2026 (arXiv 2601.21636).

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.mechanisms.BallsInBins(4.0, (1.0, 0.5, 0.375, 0.3125), rounds=100, bins=20)
        >>> print(plan)
        balls in bins (noise multiplier 4, diagonals: 4, rounds: 100, bins: 20)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rounds",)
    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    unordered: ClassVar[tuple[str, ...]] = ("coefficients", "bins")
    noise_multiplier: float
    coefficients: tuple[float, ...] = field(metadata=_COEFFICIENTS)
    rounds: int = field(metadata=_ROUNDS)
    bins: int = field(metadata=_BINS)
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        noise_multiplier: float,
        coefficients: Iterable[float],
        rounds: float,
        bins: float,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals())
        if self.adjacency is Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                "no dominating pair is known for balls in bins under replace-one; use add-remove "
                "or zero-out"
            )

    @property
    def bands(self) -> int:
        """The number of diagonals up to the last that is not zero, at least 1."""
        return _bands(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning,
            f"Each example is in one of {self.bins:,} bins, uniformly at random, independently of "
            "the other examples, and in the same one to the end; the bins are kept secret.",
            f"Round i, numbered from 0, adds up over bin i mod {self.bins:,}.",
            *_noisy_sums(self, "the size of the bin"),
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "balls in bins", (
            f"noise multiplier {self.noise_multiplier:g}",
            f"diagonals: {self.bands}",
            f"rounds: {self.rounds}",
            f"bins: {self.bins}",
            *unless_usual(self.adjacency),
        )


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class CyclicPoisson(Plan):
    """Banded correlated noise with cyclic Poisson samples: banded DP-FTRL with amplification.

    The release is ``C X + Z``: C is the lower triangular Toeplitz matrix with the diagonals
    ``coefficients``, row i of X is what round i adds up, and Z is Gaussian of standard deviation
    noise_multiplier * clipping norm. The examples are in ``cycle`` b groups, fixed in advance;
    round i, from 0 on, uses group ``i mod b`` alone, of which each example is in the batch with
    probability ``rate``. With at most b diagonals it is

        PoissonSubsampled(Gaussian(z / |c|), rate) ** ceil(n / b),

    the last run with what of its column is inside the matrix. Training that adds rows of
    ``C^-1 Z`` to the rounds' sums releases the same.

    Guarantees:
        Those of ``PoissonSubsampled`` under add-remove and zero-out: exact, for an example of the
        first group; also where later rounds depend on what the earlier ones released. An upper
        bound for the other groups.

    Edge cases:
        One diagonal of 1 is DP-SGD with Poisson samples of each group in turn. At rate 1 it is
        ``MatrixFactorization`` with rounds that are b apart. Rate 0, noise multiplier inf and
        coefficients of 0 release nothing. Zeros after the last coefficient that is none are no
        diagonals, nor are those beyond the number of rounds.

    Args:
        noise_multiplier: Standard deviation of each entry of Z over the clipping norm, in [0, inf].
        coefficients: The diagonals of C from the main one down, finite numbers >= 0, taken exactly.
        rounds: The number n of rounds, an integer from 1 to 10^6.
        cycle: The number b of groups, an integer from 1 to 10^6, no less than there are diagonals.
        rate: Probability of an example of a round's group to be in its batch, in [0, 1]: the
            expected batch times b over the number of examples; a ``Fraction`` is kept exact.
        adjacency: "add-remove" or "zero-out".

    References:
        Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu, "(Amplified) Banded Matrix
        Factorization: A unified approach to private training", NeurIPS 2023 (arXiv 2306.08153),
        theorem 4, which counts the last block as a whole one.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.mechanisms.CyclicPoisson(
        ...     2.0, (1.0, 0.5, 0.375, 0.3125), rounds=2000, cycle=4, rate=0.02
        ... )
        >>> print(plan.mechanism)
        Poisson-subsampled matrix factorization (noise multiplier 2, Toeplitz matrix, 4 rounds, \
rate 0.02) x 500
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rate", "rounds")
    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier", "cycle")
    unordered: ClassVar[tuple[str, ...]] = ("coefficients",)
    noise_multiplier: float
    coefficients: tuple[float, ...] = field(metadata=_COEFFICIENTS)
    rounds: int = field(metadata=_ROUNDS)
    cycle: int = field(metadata=_CYCLE)
    rate: float | Fraction
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        noise_multiplier: float,
        coefficients: Iterable[float],
        rounds: float,
        cycle: float,
        rate: float | Fraction,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals())
        if self.adjacency is Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                "cyclic Poisson sampling is analysed under add-remove and zero-out; under "
                "replace-one use one of these twice, or full batches: MatrixFactorization"
            )
        if self.bands > self.cycle:
            raise IncompatibleError(
                f"with {self.bands} diagonals an example's noise is still there when its group is "
                f"next: the cycle must be at least {self.bands}, got {self.cycle}; without "
                "amplification use MatrixFactorization"
            )

    @property
    def bands(self) -> int:
        """The number of diagonals up to the last that is not zero, at least 1."""
        return _bands(self)

    @property
    def mechanism(self) -> Mechanism:
        blocks = -(-self.rounds // self.cycle)
        left = min(self.rounds - (blocks - 1) * self.cycle, self.bands)
        if left == self.bands:
            return self._block(left) ** blocks
        last = self._block(left)
        return last if blocks == 1 else Composed((self._block(self.bands) ** (blocks - 1), last))

    def _block(self, rows: int) -> Mechanism:
        encoder = Encoder.toeplitz(self.coefficients[:rows], rows)
        inner = MatrixFactorization(self.noise_multiplier, encoder)
        return PoissonSubsampled(inner, self.rate, self.adjacency)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning,
            f"The examples are in {self.cycle:,} groups; which one an example is in does not "
            "depend on the other examples, and never changes.",
            f"Round i, numbered from 0, uses examples of group i mod {self.cycle:,} alone, each "
            f"independently with probability {float(self.rate):g}, afresh in each round; the "
            "batches are kept secret.",
            *_noisy_sums(self, "the size of the drawn batch"),
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "cyclic Poisson samples", (
            f"noise multiplier {self.noise_multiplier:g}",
            f"diagonals: {self.bands}",
            f"rounds: {self.rounds}",
            f"groups: {self.cycle}",
            f"rate {float(self.rate):g}",
            *unless_usual(self.adjacency),
        )
