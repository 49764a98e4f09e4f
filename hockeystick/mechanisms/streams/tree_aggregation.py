"""Tree aggregation, as in DP-FTRL: running sums from the noisy nodes of a binary tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.mechanisms._trusted import noisy_seen
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import quotient_down

_LEAVES: Final = whole_numbers("T", 0, (100, 10_000))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class TreeAggregation(AnyAdjacency):
    """The nodes of a binary tree over the rounds, each the sum of its leaves plus Gaussian noise.

    Each example is in one leaf, and so in at most ceil(log2(leaves + 1)) nodes whose leaves are
    all there: one Gaussian mechanism of ``mu = sqrt(ceil(log2(leaves + 1))) / noise_multiplier``,
    also where later rounds depend on the earlier nodes, and however estimates are refined.
    What is protected, here called an example, may be a client with all its data: user-level
    privacy, as in federated DP-FTRL. It then is in one round only.

    **Several participations.** A tree that starts afresh with each epoch is
    ``TreeAggregation(...) ** epochs``. Where someone is in several leaves of *one* tree, it is
    ``MatrixFactorization(noise_multiplier, Encoder.tree(leaves, participations=, separation=))``.

    Guarantees:
        Exact: the first example is in that many nodes.

    Edge cases:
        Noise multiplier 0 releases the sums themselves; inf, or no leaves, releases nothing.

    Args:
        noise_multiplier: Standard deviation of each node's noise over the clipping norm, in
            [0, inf]; under replace-one, over twice the clipping norm.
        leaves: The number of rounds in one tree, an integer from 0 to 10^15.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Dwork, Naor, Pitassi and Rothblum, "Differential Privacy under Continual Observation",
        2010; Honaker, "Efficient Use of Differentially Private Binary Trees", 2015; Kairouz,
        McMahan, Song, Thakkar, Thakurta and Xu, "Practical and Private (Deep) Learning without
        Sampling or Shuffling", 2021, theorem 4.1.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.TreeAggregation(10.0, leaves=1000) ** 3)
        tree aggregation (noise multiplier 10, 1000 leaves) x 3
    """

    rises_with = ("leaves",)
    falls_with = ("noise_multiplier",)

    noise_multiplier: float
    leaves: int

    def __init__(self, noise_multiplier: float, leaves: float) -> None:
        number = _validate.real("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", number)
        object.__setattr__(self, "leaves", _validate.count("leaves", leaves, _LEAVES))

    @property
    def height(self) -> int:
        """How many nodes one leaf is in: ``ceil(log2(leaves + 1))``."""
        return self.leaves.bit_length()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the release to be as described."""
        return (
            "Each example (or client, where clients are protected) contributes to one leaf of each "
            "tree, clipped in L2 to the clipping norm.",
            "Fresh Gaussian noise is added to each node whose leaves are all there; its standard "
            f"deviation is {plain(self.noise_multiplier)} times the most that one example moves a "
            "leaf by in L2: the clipping norm, twice that where an example is replaced.",
            f"A tree has at most {self.leaves:,} leaves.",
            noisy_seen("the noisy nodes of all trees"),
        )

    def for_group(self, size: int) -> TreeAggregation:
        """Return the mechanism whose noise is ``size`` times smaller."""
        return TreeAggregation(quotient_down(self.noise_multiplier, size), self.leaves)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        noise = f"noise multiplier {self.noise_multiplier:g}"
        return "tree aggregation", (noise, f"{self.leaves} leaves")
