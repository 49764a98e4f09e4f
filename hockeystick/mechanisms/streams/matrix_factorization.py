"""Correlated noise: the matrix mechanism for the running sums of a training run (DP-FTRL)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

from hockeystick._validate import whole_numbers
from hockeystick.mechanisms.base import AnyAdjacency, noisy_seen, registered
from hockeystick.mechanisms.streams.encoders import Encoder, rounds_word
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import quotient_down


@registered
@final
@dataclass(frozen=True, slots=True)
class MatrixFactorization(AnyAdjacency):
    """A training run's running sums with correlated noise: A X = B (C X + Z) for A = B C.

    The release is C X + Z, where row i of X is what round i adds up over its participants, each
    clipped in L2 norm, and Z is Gaussian of standard deviation noise_multiplier * clipping norm;
    all else is computed from it. So it is one Gaussian mechanism, of
    ``mu = sensitivity(C) / noise_multiplier``, also where later rounds depend on what the earlier
    ones released.

    Guarantees:
        As exact as the encoder's sensitivity. Where that is only bounded, lower ends rest on a
        concrete participant.

    Args:
        noise_multiplier: Standard deviation of each entry of Z over the clipping norm, in
            [0, inf]; under replace-one, over twice the clipping norm. 0 releases the sums
            themselves; inf, or an encoder of zeros, nothing.
        encoder: What C is, and how often one participant takes part.

    References:
        Li, Miklau, Hay, McGregor and Rastogi, "The Matrix Mechanism", 2015; Denisov, McMahan,
        Rush, Smith and Thakurta, "Improved Differential Privacy for SGD via Optimal Private Linear
        Operators on Adaptive Streams", 2022, theorem 2.1 (adaptivity is free with Gaussian noise).

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.square_root(1000)))
        matrix factorization (noise multiplier 4, square root, 1000 rounds)
    """

    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    noise_multiplier: float
    encoder: Encoder = field(metadata={"allowed": "an Encoder"})

    @property
    def assumptions(self) -> tuple[str, ...]:
        times, apart = self.encoder.participations, self.encoder.separation
        taking_part = f"Each participant takes part in at most {times:,} {rounds_word(times)}"
        if times > 1:
            taking_part += f", any two of them at least {apart:,} {rounds_word(apart)} apart"
        return (
            "Each participant's contribution to a round is clipped in L2, and the encoder is "
            f"applied to the rounds' sums ({self.encoder}).",
            f"{taking_part}, whatever the data are.",
            "Gaussian noise is added to each entry of what the encoder gives; its standard "
            f"deviation is {plain(self.noise_multiplier)} times the most that one participant "
            "moves a round's sum by in L2: the clipping norm, twice that where one is replaced.",
            noisy_seen("the noisy entries of all rounds"),
        )

    def for_group(self, size: int) -> MatrixFactorization:
        return MatrixFactorization(quotient_down(self.noise_multiplier, size), self.encoder)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        noise = f"noise multiplier {self.noise_multiplier:g}"
        return "matrix factorization", (noise, str(self.encoder))


@registered
@final
@dataclass(frozen=True, slots=True)
class TreeAggregation(AnyAdjacency):
    """The nodes of a binary tree over the rounds, each the sum of its leaves plus Gaussian noise.

    Each example is in one leaf, and so in at most ceil(log2(leaves + 1)) nodes whose leaves are
    all there: one Gaussian mechanism of ``mu = sqrt(ceil(log2(leaves + 1))) / noise_multiplier``,
    also where later rounds depend on the earlier nodes, and however estimates are refined.
    What is protected may be a client with all its data, which then is in one round only.

    **Several participations.** A tree that starts afresh with each epoch is
    ``TreeAggregation(...) ** epochs``. Where someone is in several leaves of *one* tree, it is
    ``MatrixFactorization(noise_multiplier, Encoder.tree(leaves, participations=, separation=))``.

    Guarantees:
        Exact: the first example is in that many nodes.

    Args:
        noise_multiplier: Standard deviation of each node's noise over the clipping norm, in
            [0, inf]; under replace-one, over twice the clipping norm. 0 releases the sums
            themselves; inf, or no leaves, nothing.
        leaves: The number of rounds in one tree, an integer from 0 to 10^15.

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

    rises_with: ClassVar[tuple[str, ...]] = ("leaves",)
    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    noise_multiplier: float
    leaves: int = field(metadata={"domain": whole_numbers("T", 0, (100, 10_000))})

    @property
    def height(self) -> int:
        """How many nodes one leaf is in: ``ceil(log2(leaves + 1))``."""
        return self.leaves.bit_length()

    @property
    def assumptions(self) -> tuple[str, ...]:
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
        return TreeAggregation(quotient_down(self.noise_multiplier, size), self.leaves)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        noise = f"noise multiplier {self.noise_multiplier:g}"
        return "tree aggregation", (noise, f"{self.leaves} leaves")
