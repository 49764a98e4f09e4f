"""Reports that people randomize themselves, of which a shuffler hides who sent which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.registry import registered

_USERS: Final = whole_numbers("n", 1, (100, 10**7))

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

    That all run the same one matters: the others hide a report only as far as they may send it
    themselves. Among 99 who send a constant of their own, one bit of ``RandomizedResponse(1)`` is
    seen as it is, and delta(0.5) is 0.28765, not 1.7e-6.

    What hides a report is the privacy blanket, the least density w of all data: each of the others
    reports from w with the probability ``|w|``, whatever that user's datum. Of the T reports from w
    and the first user's, let k say the first datum, l the second, of ``RandomizedResponse`` with
    three categories or more and of ``UnaryEncoding``. Then the multiset costs no more than the pair
    whose densities, relative to T reports from w, are

        |w| (1 + (e^epsilon_0 - 1) k/T)    and    |w| (1 + (e^epsilon_0 - 1) l/T).

    For binary response, and for any epsilon_0-DP randomizer, it is the stronger clones' pair: with
    ``tau = tanh(epsilon_0/2)``, ``T = 1 + Bin(n - 1, 1 - tau)`` and S the sum of T fair signs, that
    of (S, T) with the densities ``1 + tau S/T`` and ``1 - tau S/T``:

        delta(epsilon) <= (1 + e^epsilon) E[(tau S/T - tanh(epsilon/2))_+].

    That is the pair ``(A + D, C - A + 1 - D)`` and ``(A + 1 - D, C - A + D)``: C others send one of
    the two reports of the one whose datum is replaced, A of them the first one, and D is a
    randomized response.

    Guarantees:
        An interval: the upper end is that of the blanket for ``RandomizedResponse`` and
        ``UnaryEncoding``, with any number of categories, and that of the stronger clones for every
        other epsilon_0-DP randomizer that all users run; both hold for all data
        (``privacy_loss/local/privacy_blanket.py`` and ``shuffled_reports.py`` have the proofs). The
        lower end is that of concrete data: for ``RandomizedResponse``, where all others hold the
        first user's category, another one of the two, or (with three categories or more) a third
        one; for ``PureDP``, that of one of these with 2 or 3 categories; for ``UnaryEncoding``, the
        number of some of the bits where all others hold one of the two (or, for the optimized kind,
        a third); none (0) for other randomizers. Which one is chosen by a moment.

        For ``RandomizedResponse`` with three categories or more, ``mu^2`` of the Gaussian limit of
        many users, ``2 (e^epsilon_0 - 1)^2 / (e^epsilon_0 + K - 1) / n``, is the same at both ends:
        at epsilon_0 = 1, delta 1e-6 and 10,000 users less than a part in 2,000 of epsilon is open.
        Of two categories the clones' mu^2 is above that of any data, though next to epsilon =
        epsilon_0, where only the event counts that all reports agree, their pair is attained. For
        ``UnaryEncoding`` the ends differ: at epsilon_0 = 1, ``n mu^2`` of the blanket is .841, of
        others that all hold a third category .641, the largest of all data in the limit, and of the
        bits counted for the lower end .511. What is between them is not settled, as
        ``hockeystick.conversions.published.shuffled_reports.clones_epsilon`` shows of the clones.

    Edge cases:
        One user's report is that of the randomizer itself. A randomizer that reveals everything is
        not helped by a shuffler. No amplification is credited beyond epsilon_0 = 20. More users
        than 10^9 are refused; fewer cost no less.

    Args:
        randomizer: What each user runs: a mechanism for one person's datum, such as
            ``RandomizedResponse``, ``UnaryEncoding`` or ``PureDP(epsilon_0)``.
        users: The number n of users, an integer from 1 to 10^15.

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: If the randomizer is not for one person's datum but for data sets.

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
        >>> plan = hs.mechanisms.ShuffledReports(
        ...     hs.RandomizedResponse(4.0, categories=3), users=100_000
        ... )
        >>> answer = hs.epsilon(plan, delta=1e-6)
        >>> print(f"between {answer.lower:.4f} and {answer.upper:.4f}")
        between 0.1170 and 0.1171
    """

    falls_with = ("users",)

    randomizer: Mechanism
    users: int

    def __init__(self, randomizer: Mechanism, users: float) -> None:
        given = checked("randomizer", randomizer, allowed=_RANDOMIZER)
        object.__setattr__(self, "randomizer", _local(given))
        object.__setattr__(self, "users", _validate.count("users", users, _USERS))

    @property
    def adjacency(self) -> Adjacency:
        """Replace-one: neighbours differ in the datum of one user."""
        return Adjacency.REPLACE_ONE

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


def _local(randomizer: Mechanism) -> Mechanism:
    """Return the randomizer if it is for one person's datum, or raise."""
    if randomizer.adjacency is not None:
        raise IncompatibleError(
            f"a shuffler mixes reports that each person randomizes; {randomizer} is for data sets "
            f"under {randomizer.adjacency}; use a release for one person's datum, such as "
            "RandomizedResponse or PureDP"
        )
    return randomizer
