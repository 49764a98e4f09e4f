"""What one client of a federation does in one round: private training on its own data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism, Plan
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling.fixed_size import FixedSizeSubsampled
from hockeystick.mechanisms.scope import ONE_RECORD, Fact
from hockeystick.numerics.numerals import plain

_STEPS: Final = whole_numbers("K", 0, (1, 1000))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class LocalTraining(Plan):
    """One round of noisy gradient descent on one client's own examples.

    Each of ``local_steps`` steps draws one of the sets of ``batch_size`` of the client's examples,
    clips each gradient to C, and releases their sum + N(0, (noise_multiplier * C)^2 I). Under
    replace-one the sum moves by up to 2C, so that a step is

        FixedSizeSubsampled(Gaussian(noise_multiplier / 2), batch_size, examples).

    Guarantees:
        Those of ``FixedSizeSubsampled`` under replace-one: the upper end of many steps composes
        ``C_q(G_(2/noise_multiplier))``, q = batch_size / examples; the lower end is what data
        reach whose other gradients are all alike. Momentum, Adam and any other use of the noisy
        sums is post-processing.

    Edge cases:
        No steps release nothing. A batch of all examples is the Gaussian mechanism in each step.
        Without noise there is no analysis, unless a batch has all examples.

    Args:
        examples: How many examples the client has, an integer >= 1.
        batch_size: Size of each batch, an integer from 1 to examples.
        noise_multiplier: Standard deviation of the noise over the clipping norm, in [0, inf].
            Papers that add N(0, 4 C^2 sigma^2) have sigma = noise_multiplier / 2.
        local_steps: Steps of a round, an integer >= 0.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Zheng, Chen, Long and Su, "Federated f-Differential Privacy", AISTATS 2021, algorithm 2.

    Example:
        >>> import hockeystick as hs
        >>> local = hs.federated.LocalTraining(
        ...     examples=600, batch_size=16, noise_multiplier=2.0, local_steps=38
        ... )
        >>> print(local.mechanism)
        fixed-size-subsampled Gaussian (noise multiplier 1, 16 of 600, replace-one) x 38
    """

    rises_with = ("batch_size", "local_steps")
    falls_with = ("examples", "noise_multiplier")

    examples: int
    batch_size: int
    noise_multiplier: float
    local_steps: int

    def __init__(
        self, *, examples: float, batch_size: float, noise_multiplier: float, local_steps: float
    ) -> None:
        fields = {
            "examples": _validate.count("examples", examples),
            "batch_size": _validate.count("batch_size", batch_size),
            "noise_multiplier": _validate.real("noise_multiplier", noise_multiplier),
            "local_steps": _validate.count("local_steps", local_steps, _STEPS),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if self.batch_size > self.examples:
            allowed = f"at most the number of examples, {self.examples}"
            raise ParameterError("batch_size", batch_size, allowed)

    @property
    def adjacency(self) -> Adjacency:
        """Replace-one: another example takes the place of one of the client's."""
        return Adjacency.REPLACE_ONE

    @property
    def rate(self) -> Fraction:
        """The chance of an example to be in a batch."""
        return Fraction(self.batch_size, self.examples)

    @property
    def mechanism(self) -> Mechanism:
        noise = Gaussian(self.noise_multiplier / 2.0)
        return FixedSizeSubsampled(noise, self.batch_size, self.examples) ** self.local_steps

    @property
    def scope(self) -> tuple[Fact, ...]:
        return (Fact("unit", ONE_RECORD),)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the client's training code, as sentences."""
        return (
            self.adjacency.meaning,
            f"Each of {self.local_steps:,} steps of a round draws one of all sets of "
            f"{self.batch_size:,} of the client's {self.examples:,} examples, equally likely, "
            "afresh in each step, and kept secret.",
            "Each example's gradient is clipped, and fresh Gaussian noise is added to their sum in "
            f"each step; its standard deviation is {plain(self.noise_multiplier)} times the "
            "clipping norm.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "local training", (
            f"{self.batch_size} of {self.examples} examples",
            f"noise multiplier {self.noise_multiplier:g}",
            f"{self.local_steps} steps a round",
            self.adjacency,
        )
