"""Balls-in-bins sampling for correlated noise: one random bin for a whole training."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms._divisor import divided_words
from hockeystick.mechanisms._trusted import noisy_seen
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain

_COEFFICIENT: Final = Domain(symbol="c", low=0, high=math.inf, high_open=True, typical=(0.0, 1.0))
_ROUNDS: Final = Domain(symbol="n", low=1, high=10**6, typical=(100, 10_000), whole=True)
_BINS: Final = Domain(symbol="b", low=1, high=10**4, typical=(2, 1000), whole=True)


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
        noise_multiplier: Standard deviation of each entry of Z over the clipping norm, in
            [0, inf].
        coefficients: The diagonals of C from the main one down, finite numbers >= 0, taken exactly.
        rounds: The number n of rounds, an integer from 1 to 10^6.
        bins: The number b of bins, an integer from 1 to 10^4.
        adjacency: "add-remove" or "zero-out".

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: Under replace-one.

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

    rises_with = ("rounds",)
    falls_with = ("noise_multiplier",)
    unordered = ("coefficients", "bins")

    noise_multiplier: float
    coefficients: tuple[float, ...]
    rounds: int
    bins: int
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        noise_multiplier: float,
        coefficients: Iterable[float],
        rounds: float,
        bins: float,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        number = _validate.real("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", number)
        given = _validate.reals("coefficients", coefficients, _COEFFICIENT)
        object.__setattr__(self, "coefficients", given)
        object.__setattr__(self, "rounds", _validate.count("rounds", rounds, _ROUNDS))
        object.__setattr__(self, "bins", _validate.count("bins", bins, _BINS))
        neighbours = _validate.choice("adjacency", adjacency, Adjacency)
        object.__setattr__(self, "adjacency", neighbours)
        if neighbours is Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                "no dominating pair is known for balls in bins under replace-one; use add-remove "
                "or zero-out"
            )

    @property
    def bands(self) -> int:
        """The number of diagonals up to the last that is not zero, at least 1."""
        inside = self.coefficients[: self.rounds]
        return max((place + 1 for place, value in enumerate(inside) if value), default=1)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the release to be as described."""
        return (
            self.adjacency.meaning,
            f"Each example is in one of {self.bins:,} bins, uniformly at random, independently of "
            "the other examples, and in the same one to the end; the bins are kept secret.",
            f"Round i, numbered from 0, adds up over bin i mod {self.bins:,}.",
            "Each example's contribution to a round is clipped in L2, and the lower triangular "
            f"Toeplitz matrix of {self.bands:,} diagonals is applied to the rounds' sums.",
            "Gaussian noise is added to each entry of what the matrix gives; its standard "
            f"deviation is {plain(self.noise_multiplier)} times the clipping norm.",
            divided_words(self.adjacency, "the size of the bin", "examples"),
            f"There are at most {self.rounds:,} rounds.",
            noisy_seen("the noisy entries of all rounds", alone="contributions and batches"),
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        default = self.adjacency is Adjacency.ADD_REMOVE
        return "balls in bins", (
            f"noise multiplier {self.noise_multiplier:g}",
            f"diagonals: {self.bands}",
            f"rounds: {self.rounds}",
            f"bins: {self.bins}",
            *(() if default else (str(self.adjacency),)),
        )
