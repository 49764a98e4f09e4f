"""Correlated noise: the matrix mechanism for the running sums of a training run (DP-FTRL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.mechanisms._trusted import noisy_seen
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.streams.encoders import Encoder, rounds_word
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import quotient_down


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
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

    Edge cases:
        Noise multiplier 0 releases the sums themselves; inf releases nothing. An encoder of zeros
        releases nothing either.

    Args:
        noise_multiplier: Standard deviation of each entry of Z over the clipping norm, in
            [0, inf]; under replace-one, over twice the clipping norm.
        encoder: What C is, and how often one participant takes part.

    Raises:
        ParameterError: If the noise multiplier is no such number, or the encoder none.

    References:
        Li, Miklau, Hay, McGregor and Rastogi, "The Matrix Mechanism", 2015; Denisov, McMahan,
        Rush, Smith and Thakurta, "Improved Differential Privacy for SGD via Optimal Private Linear
        Operators on Adaptive Streams", 2022, theorem 2.1 (adaptivity is free with Gaussian noise).

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.square_root(1000)))
        matrix factorization (noise multiplier 4, square root, 1000 rounds)
    """

    falls_with = ("noise_multiplier",)

    noise_multiplier: float
    encoder: Encoder

    def __init__(self, noise_multiplier: float, encoder: Encoder) -> None:
        if not isinstance(encoder, Encoder):
            raise ParameterError("encoder", encoder, "an Encoder")
        number = _validate.real("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", number)
        object.__setattr__(self, "encoder", encoder)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the release to be as described."""
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
        """Return the mechanism whose noise is ``size`` times smaller."""
        return MatrixFactorization(quotient_down(self.noise_multiplier, size), self.encoder)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        noise = f"noise multiplier {self.noise_multiplier:g}"
        return "matrix factorization", (noise, str(self.encoder))
