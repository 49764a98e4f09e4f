"""Random allocation: each record takes part in some steps of an epoch, chosen at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.registry import registered

_STEPS: Final = whole_numbers("t", 1, (2, 10_000))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class RandomAllocation(Mechanism):
    """An epoch of steps with Gaussian noise; each record is in some of them, chosen at random.

    Each step releases the sum of what its records contribute, plus fresh noise; each record is in
    exactly ``participations`` k of the ``steps`` t, which k being equally likely, independently of
    all other records, and secret ("balls-and-bins" for k = 1). With the record, moving each step
    that it is in by one unit, and without it the outputs are

        P = mean over the k-subsets I of N(sum of e_i over I, s^2 I),    Q = N(0, s^2 I).

    ``** epochs`` is as many epochs, each allocated afresh. A shuffled data set that is cut into
    batches of one size is not this: there the records' steps depend on each other.

    Guarantees:
        k = 1: exact, as an interval between two discretisations, for contributions that are
        orthogonal in different steps; an upper bound elsewhere. k > 1: the upper end is that of k
        allocations of 1 step of a block, of ``floor(t/k)`` steps or one more so that they add up to
        t (the blocks of a random partition told); the lower end that of a sum of scores of all
        steps, and of the sum of all outputs, ``mu = k/(s sqrt(t))``. Noise multipliers outside
        [0.1, 1e4], 10^8 steps and more, or k for which losses exceed 650, have the bounds of a
        record whose steps are known, ``mu = sqrt(k)/s``, and of the sum.

    Edge cases:
        One step of one, and k = t, are the inner mechanism, k times. k = 0 releases nothing of the
        record; so does noise inf. Noise 0 reveals that the record is there.

    Args:
        inner: One step's ``Gaussian``; its noise is in units of one record's largest contribution.
        steps: Number of steps of an epoch, t >= 1.
        participations: In how many of these a record is, k from 0 to t.
        adjacency: "add-remove" or "zero-out".

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: If the inner mechanism is not Gaussian, or under replace-one.

    References:
        Chua, Ghazi, Harrison, Leeman, Kamath, Kumar, Manurangsi, Sinha and Zhang, "Balls-and-bins
        sampling for DP-SGD", 2024 (arXiv 2412.16802); Feldman and Shenfeld, "Privacy amplification
        by random allocation", 2025 (arXiv 2502.08202).

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.RandomAllocation(hs.Gaussian(1), steps=1000))
        Gaussian in 1 of 1000 random steps (noise multiplier 1)
    """

    rises_with = ("participations",)
    falls_with = ("steps",)

    inner: Gaussian
    steps: int
    participations: int
    adjacency: Adjacency

    def __init__(
        self,
        inner: Mechanism,
        steps: int,
        participations: int = 1,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        object.__setattr__(self, "inner", _gaussian(checked("inner", inner)))
        object.__setattr__(self, "steps", _validate.count("steps", steps, _STEPS))
        times = Domain(symbol="k", low=0, high=self.steps, typical=(0, self.steps), whole=True)
        number = _validate.count("participations", participations, times)
        object.__setattr__(self, "participations", number)
        neighbours = _validate.choice("adjacency", adjacency, Adjacency)
        object.__setattr__(self, "adjacency", neighbours)
        if neighbours is Adjacency.REPLACE_ONE:
            raise IncompatibleError(
                "no dominating pair is known for random allocation under replace-one; "
                "use add-remove or zero-out"
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        allocation = (
            f"Each example is in exactly {self.participations} of an epoch's {self.steps:,} steps, "
            "all choices being equally likely, independently of the other examples and of other "
            "epochs; the choice is kept secret."
        )
        return (self.adjacency.meaning, allocation, *self.inner.assumptions)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the inner mechanism's words with the allocation added."""
        name, details = self.inner._words()
        default = self.adjacency is Adjacency.ADD_REMOVE
        own = () if default else (str(self.adjacency),)
        return f"{name} in {self.participations} of {self.steps} random steps", (*details, *own)


def _gaussian(inner: Mechanism) -> Gaussian:
    """Return the inner mechanism if it is a Gaussian, or raise."""
    if isinstance(inner, Gaussian):
        return inner
    raise IncompatibleError(
        f"random allocation is analysed for Gaussian noise only, not for {inner}; "
        "compose its steps without amplification, or sample them with PoissonSubsampled"
    )
