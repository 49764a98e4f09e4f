"""Local reports, also shuffled."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Final, final

from hockeystick._validate import Domain, WordEnum, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import AnyAdjacency, Mechanism, registered, set_fields
from hockeystick.mechanisms.scope import EVERYBODY_REPORTS, Fact
from hockeystick.numerics.numerals import plain


@registered
@final
@dataclass(frozen=True, slots=True)
class RandomizedResponse(AnyAdjacency):
    """One of K categories, reported truthfully e^epsilon times as often as each other one.

    The true category has the probability ``e^epsilon / (e^epsilon + K - 1)`` and each other one
    ``1 / (e^epsilon + K - 1)``. It is epsilon-DP, for the person who answers.

    Guarantees:
        Exact: any two categories differ by the same loss. With K = 2 it is the worst of all
        epsilon-DP releases, and costs what ``PureDP(epsilon)`` does.

    Args:
        epsilon: Logarithm of the ratio of the probabilities, in [0, inf]: 0 reports nothing, inf
            the category itself.
        categories: How many categories there are, an integer from 2 to 10^15.

    References:
        Warner 1965; Kairouz, Oh and Viswanath, "Extremal Mechanisms for Local Differential
        Privacy", NeurIPS 2014 (K categories).

    Example:
        >>> import hockeystick as hs
        >>> answer = hs.delta(hs.RandomizedResponse(epsilon=1, categories=10), epsilon=0.5)
        >>> round(answer.upper, 12)
        0.091272814003
    """

    rises_with: ClassVar[tuple[str, ...]] = ("epsilon",)
    falls_with: ClassVar[tuple[str, ...]] = ("categories",)
    epsilon: float
    categories: int = field(default=2, metadata={"domain": whole_numbers("K", 2, (2, 1000))})
    scope: ClassVar[tuple[Fact, ...]] = (EVERYBODY_REPORTS,)

    @property
    def assumptions(self) -> tuple[str, ...]:
        truth = 1.0 / (1.0 + (self.categories - 1) * math.exp(-self.epsilon))
        return (
            "Each report is the answer of one person; neighbours are any two answers of theirs.",
            f"Every report of a category is drawn afresh, the true one with probability {truth:g}, "
            f"which is e^{plain(self.epsilon)} times that of each other one.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "randomized response", (f"epsilon {self.epsilon:g}", f"{self.categories} categories")


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

    References:
        Wang, Blocki, Li and Jha, "Locally Differentially Private Protocols for Frequency
        Estimation", USENIX Security 2017, section 4.3.

    Example:
        >>> import hockeystick as hs
        >>> answer = hs.delta(hs.mechanisms.UnaryEncoding(epsilon=1, kind="optimized"), epsilon=0.5)
        >>> round(answer.upper, 12)
        0.143824568322
    """

    rises_with: ClassVar[tuple[str, ...]] = ("epsilon",)
    epsilon: float
    kind: Encoding = Encoding.SYMMETRIC
    scope: ClassVar[tuple[Fact, ...]] = (EVERYBODY_REPORTS,)

    def __init__(self, epsilon: float, kind: Encoding | str = Encoding.SYMMETRIC) -> None:
        set_fields(self, locals())

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
@dataclass(frozen=True, slots=True)
class RAPPOR(AnyAdjacency):
    """A value hashed to k bits of a Bloom filter, each replaced by a fair coin with probability f.

    The permanent randomized response of RAPPOR, reported once: a bit keeps its value with
    probability ``1 - f/2``. It is epsilon-DP with ``epsilon = 2 k ln((1 - f/2) / (f/2))``.

    Guarantees:
        Exact for two values that share no bit, an upper bound for others: at most 2k bits differ,
        and each of these costs what a binary randomized response does.

    Args:
        flip: Probability f that a bit is replaced by a fair coin, in [0, 1]: 1 reports nothing, 0
            the bits themselves.
        hashes: How many bits k of the filter one value sets, an integer from 1 to 10^15.

    References:
        Erlingsson, Pihur and Korolova, "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal
        Response", CCS 2014, theorem 1.

    Example:
        >>> import hockeystick as hs
        >>> answer = hs.delta(hs.mechanisms.RAPPOR(flip=0.5, hashes=2), epsilon=4)
        >>> round(answer.upper, 12)
        0.103132226433
    """

    rises_with: ClassVar[tuple[str, ...]] = ("hashes",)
    falls_with: ClassVar[tuple[str, ...]] = ("flip",)
    flip: float = field(metadata={"domain": Domain(symbol="f", low=0, high=1, typical=(0.1, 0.75))})
    hashes: int = field(metadata={"domain": whole_numbers("k", 1, (1, 8))})
    scope: ClassVar[tuple[Fact, ...]] = (EVERYBODY_REPORTS,)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"A value sets at most {self.hashes:,} bits, and each bit is replaced by a fair coin "
            f"with probability {plain(self.flip)}; all reports of a value repeat the same noise.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "RAPPOR", (f"flip {self.flip:g}", f"{self.hashes} hashes")


_RANDOMIZER: Final = (
    "a mechanism that each person runs, such as RandomizedResponse(epsilon=1) or PureDP(epsilon=1)"
)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class ShuffledReports(Mechanism):
    """The multiset of the reports of n users, each randomized by its user: the shuffle model.

    M(x_1, ..., x_n) = a random permutation of (R(x_1), ..., R(x_n)), where R is ``randomizer``,
    the same for all users, which is epsilon_0-DP for the person who reports. ``** rounds`` has
    fresh noise, and a fresh permutation, in each round.

    That all run the same one matters: among 99 who send a constant of their own, one bit of
    ``RandomizedResponse(1)`` is seen as it is, and delta(0.5) is 0.28765, not 1.7e-6.

    What hides a report is the privacy blanket, the least density w of all data: each of the others
    reports from w with the probability ``|w|``, whatever that user's datum. Of the T reports from w
    and the first user's, let k say the first datum, l the second, of ``RandomizedResponse`` with
    three categories or more and of ``UnaryEncoding``. Then the multiset costs no more than the pair
    whose densities, relative to T reports from w, are

        |w| (1 + (e^epsilon_0 - 1) k/T)    and    |w| (1 + (e^epsilon_0 - 1) l/T).

    For any epsilon_0-DP randomizer it is the stronger clones': with ``tau = tanh(epsilon_0/2)``,
    ``T = 1 + Bin(n - 1, 1 - tau)`` and S the sum of T fair signs, that of (S, T) with the densities
    ``1 + tau S/T`` and ``1 - tau S/T``:

        delta(epsilon) <= (1 + e^epsilon) E[(tau S/T - tanh(epsilon/2))_+].

    That is the pair ``(A + D, C - A + 1 - D)`` and ``(A + 1 - D, C - A + D)``: C others send one of
    the two reports of the one whose datum is replaced, A of them the first one, and D is a
    randomized response. Where two reports are less than tau apart in total variation, fewer others
    do, and some say both. Binary responses are known by their number alone, for any others.

    Guarantees:
        An interval: the upper end is that of the worst others for binary ``RandomizedResponse``,
        and ``DiscreteLaplace`` of sensitivity 1, which tells as much; of the blanket for more
        categories and ``UnaryEncoding``; and of the clones for every other epsilon_0-DP randomizer,
        by its total variation. All hold for all data (``privacy_loss/shuffling.py`` and
        ``local.py`` have the proofs). The lower end is that of concrete data: for
        ``RandomizedResponse``, all others hold one of the two categories, or (of three or more) a
        third; for ``PureDP``, that of one of these with 2 or 3 categories. For any other
        randomizer, let p and q be the chances of a report, given the two data, that its own loss
        exceeds a threshold: the number of these among reports whose others all hold one of the two,
        ``Bin(n - 1, q)`` and one more with p or q (or p for q). It is post-processing of each
        report by itself, and costs no more. For the symmetric ``UnaryEncoding`` it may also be the
        number of some of the bits.

        For ``RandomizedResponse`` both ends meet: of three categories or more ``mu^2`` of the
        Gaussian limit of many users is ``2 (e^epsilon_0 - 1)^2 / (e^epsilon_0 + K - 1) / n``, of
        two ``4 sinh(epsilon_0/2)^2 / n``; at epsilon_0 = 1, delta 1e-6 and 10,000 users less than a
        part in 300 of epsilon is open. For ``UnaryEncoding`` at epsilon_0 = 1, ``n mu^2`` of the
        blanket is .841, of others that all hold a third category .641, the largest of all data in
        the limit, and of the bits counted for the lower end .511. What is between them is not
        settled. Of Laplace noise with epsilon_0 = .1 about 4 % of epsilon is open at 10,000 users,
        of large epsilon_0 more.

    Edge cases:
        One user's report is that of the randomizer itself. No amplification is credited beyond
        epsilon_0 = 20. More users than 10^9 are refused; fewer cost no less.

    Args:
        randomizer: What each user runs: a mechanism for one person's datum, such as
            ``RandomizedResponse``, ``UnaryEncoding`` or ``PureDP(epsilon_0)``.
        users: The number n of users, an integer from 1 to 10^15.

    References:
        Feldman, McMillan and Talwar, "Stronger Privacy Amplification by Shuffling for Renyi and
        Approximate Differential Privacy", SODA 2023 (arXiv 2208.04591), for the pair; the one of
        their "Hiding Among the Clones", FOCS 2021, has ``e^-epsilon_0`` in the place of
        ``1 - tau``. Balle, Bell, Gascon and Nissim, "The Privacy Blanket of the Shuffle Model",
        CRYPTO 2019, for the blanket. Bounds from the parameters of one randomizer alone, in which
        the first user's report may be neither of the two ("variation ratio"), do not hold where
        others share that user's datum, and are not used.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.mechanisms.ShuffledReports(hs.RandomizedResponse(4.0, 3), users=100_000)
        >>> answer = hs.epsilon(plan, delta=1e-6)
        >>> print(f"between {answer.lower:.4f} and {answer.upper:.4f}")
        between 0.1170 and 0.1171
    """

    falls_with: ClassVar[tuple[str, ...]] = ("users",)
    randomizer: Mechanism = field(metadata={"allowed": _RANDOMIZER})
    users: int = field(metadata={"domain": whole_numbers("n", 1, (100, 10**7))})
    adjacency = Adjacency.REPLACE_ONE

    def __init__(self, randomizer: Mechanism, users: float) -> None:
        set_fields(self, locals())
        if randomizer.adjacency is not None:
            raise IncompatibleError(
                f"a shuffler mixes reports that each person randomizes; {randomizer} is for data "
                f"sets under {randomizer.adjacency}; use a release for one person's datum, such as "
                "RandomizedResponse or PureDP"
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning,
            *self.randomizer.assumptions,
            f"All {self.users:,} users run this same randomizer, independently, and send one "
            "report each; none of them works with who sees the shuffled reports.",
            "The shuffler permutes the reports at random and hides whatever else could tell who "
            "sent which.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return f"shuffled reports of [{self.randomizer}]", (f"{self.users} users",)
