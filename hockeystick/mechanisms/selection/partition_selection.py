"""The selection of partitions by a noisy threshold: which group-by keys may be shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias, final

from hockeystick._validate import Domain, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism, checked, registered, set_fields
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.noise.integer_noise import DiscreteGaussian, DiscreteLaplace
from hockeystick.mechanisms.noise.laplace import Laplace
from hockeystick.mechanisms.sampling.poisson import unless_usual
from hockeystick.numerics.numerals import plain

CountNoise: TypeAlias = Gaussian | Laplace | DiscreteGaussian | DiscreteLaplace

_THRESHOLD: Final = Domain(symbol="tau", low=0, high=math.inf, high_open=True, typical=(1, 1000))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class PartitionSelection(Mechanism):
    """The partitions whose noisy numbers of users reach a threshold, with these numbers.

    A user contributes once to each of at most ``partitions`` k partitions, such as the keys of a
    group-by, which nobody knows beforehand. With ``n_p >= 1`` users in partition p

        M(D) = {(p, n_p + Z_p) : n_p + Z_p >= threshold},    all noises Z_p fresh.

    Partitions that nobody has are never looked at, and never shown. What else is released of a
    partition that is shown, such as a noisy sum, is another mechanism, composed with this one, for
    k partitions; whoever shows no more than the names pays the same or less.

    Guarantees:
        Let a user be alone in j of k partitions, others being in the rest, and let p be the
        probability ``P[1 + Z >= threshold]``. Then j partitions show the user with probability p
        each, and nothing can explain that; the k - j others are k - j counts with noise. One run
        alone is exact: the worst j is found among all (for large k, among blocks of them that are
        bounded from above). Composed with anything, where j may depend on earlier outcomes, the
        upper end is that of all k partitions alone and all k with others at once, ``p`` and noise
        k times; the lower end is the worse one of j = 0 and j = k in all runs.

    Edge cases:
        A user alone is shown with some probability, which no Renyi or zCDP guarantee covers:
        accountants count it exactly, budgets that count in rho refuse it. Noise 0 shows the counts
        themselves: epsilon is inf. With noise inf a user alone is shown with probability 1/2. A
        threshold of at most 1 protects hardly anybody who is alone.

    Args:
        noise: ``Gaussian``, ``Laplace``, ``DiscreteGaussian`` or ``DiscreteLaplace``, in units of
            one user in one partition; the discrete ones of sensitivity 1. Only these are run on
            data by ``hs.release.partition_selection``.
        threshold: The least noisy number of users that is shown, finite and >= 0.
        partitions: The most partitions that one user contributes to, k >= 1.
        adjacency: "add-remove": a user comes or goes. "zero-out" is the same here. "replace-one":
            a user is in k other partitions, so that 2k counts change.

    References:
        Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing Search Queries and Clicks Privately",
        WWW 2009; Wilson et al., "Differentially Private SQL with Bounded User Contribution", PoPETs
        2020; Wilkins, Kifer, Zhang and Karrer, "Exact Privacy Analysis of the Gaussian Sparse
        Histogram Mechanism", 2024 (arXiv 2202.01100), for one run with Gaussian noise.

    Example:
        >>> import hockeystick as hs
        >>> shown = hs.mechanisms.PartitionSelection(hs.Gaussian(10), threshold=56, partitions=4)
        >>> print(f"{hs.epsilon(shown, delta=1e-6).upper:.3f}")
        0.834
    """

    rises_with: ClassVar[tuple[str, ...]] = ("partitions",)
    falls_with: ClassVar[tuple[str, ...]] = ("threshold",)
    noise: CountNoise
    threshold: float = field(metadata={"domain": _THRESHOLD})
    partitions: int = field(metadata={"domain": whole_numbers("k", 1, (1, 100))})
    adjacency: Adjacency

    def __init__(
        self,
        noise: Mechanism,
        threshold: float,
        partitions: float = 1,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        rest = {"threshold": threshold, "partitions": partitions, "adjacency": adjacency}
        set_fields(self, rest)
        object.__setattr__(self, "noise", _count_noise(checked("noise", noise)))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            _MEANINGS[self.adjacency],
            f"Each user is counted once in each of at most {self.partitions:,} partitions, which "
            "are chosen without regard to other users' data.",
            f"A partition's number of users plus fresh noise, {self.noise}, is compared with "
            f"{plain(self.threshold)}; only where it is at least that, the partition and the noisy "
            "number are released, in an order that does not depend on the data.",
            "A partition that no user has is never released.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        each = "1 partition" if self.partitions == 1 else f"{self.partitions:,} partitions"
        details = (f"threshold {self.threshold:g}", f"{each} for each user", str(self.noise))
        return "partition selection", (*details, *unless_usual(self.adjacency))


_MEANINGS: Final = {
    Adjacency.ADD_REMOVE: "Neighbouring data sets differ by all that one user contributes.",
    Adjacency.REPLACE_ONE: "Neighbouring data sets differ in what one user contributes.",
    Adjacency.ZERO_OUT: "Neighbouring data sets differ by one user who contributes nothing.",
}


def _count_noise(noise: Mechanism) -> CountNoise:
    if isinstance(noise, Gaussian | Laplace):
        return noise
    if isinstance(noise, DiscreteGaussian | DiscreteLaplace) and noise.sensitivity == 1:
        return noise
    allowed = (
        "hs.Gaussian, hs.Laplace, or hs.DiscreteGaussian or hs.DiscreteLaplace of sensitivity 1"
    )
    raise ParameterError("noise", noise, allowed)
