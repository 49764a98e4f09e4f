"""Samples of a fixed size, drawn without replacement."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.noise.gaussian import Gaussian
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling._fixed_sizes import REPLACED, OnFixedSizeSample

_CLIPPED: Final = (
    "Each example contributes a vector whose L2 norm is at most half of what replacing one may "
    "move the sum; one that is zeroed contributes nothing."
)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class FixedSizeSubsampled(OnFixedSizeSample):
    """A mechanism run on a random sample of a fixed size, drawn without replacement.

    M(D) = inner(S), where S is one of the sets of ``batch_size`` examples of D, all equally likely,
    and is kept secret. In a sample of a fixed size another example takes the place of a missing
    one: ``inner`` is described for samples in which one example is replaced, also under add-remove.

    Guarantees:
        Under add-remove exact: ``(1-q) inner(S') + q inner(S)`` against ``inner(S')`` and its
        reverse, q = batch_size / examples, dominate and are attained. Under replace-one a single
        run is exact; of several the upper end composes ``C_q(f)``, the worst of both directions in
        each run, and the lower end the direction that costs most throughout.

        Under zero-out an interval. Let P_1 be the release from a sample with the example, Q_1 that
        with the example zeroed, and P_0 that without it, the same for both data sets. With
        ``b = e^(eps'-eps)``, ``e^eps' = 1 + q (e^eps - 1)``, advanced joint convexity says

            delta(eps') = q H_eps(P_1, (1-b) P_0 + b Q_1)
                       <= q ((1-b) H_eps(P_1, P_0) + b H_eps(P_1, Q_1)),

        and both divergences are at most that of a replacement: P_0 is P_1 with another example in
        the place of the one that is zeroed, on average over which. The same holds with P_1 and Q_1
        exchanged, so that the upper end is that of replace-one. The lower end is known for Gaussian
        noise on sums: where all other examples contribute nothing, zeroing moves a sum by half as
        much as a replacement may, C of 2C, and the release is a sampled Gaussian.

        Where contributions are ``clipped`` to norm C and the noise is Gaussian, a single run is
        exact under zero-out: for ``eps >= 0`` an example costs most where all others contribute the
        opposite, ``(1-q) N(-C) + q N(C)`` against ``(1-q) N(-C) + q N(0)``, and in the other order
        where they contribute the same, ``(1-q) N(C) + q N(0)`` against ``N(C)``. Of several runs
        the upper end composes the worst of both in each run, and the lower end the first in one
        order and the second in the other. Contributions in [0, 2C], which a replacement moves as
        far, cost more: ``(1-q) N(0) + q N(2C)`` against ``N(0)``.

    Edge cases:
        Under replace-one a sample of all examples is the inner mechanism itself. Under add-remove
        its neighbour has no example to take the place of the one that is missing: known is only an
        interval, for a Gaussian on sums of contributions of norm at most C, 2C apart where one is
        replaced. One that is missing moves such a sum by C, the lower end; the upper end is that of
        a replacement, which holds for contributions in [0, 2C] as well. Where they are ``clipped``
        to norm C, both ends are those of moving by C. So are those of one that is zeroed.

    Args:
        inner: The mechanism that is run on the sample, the same in both directions of a
            replacement, as noise is; a Gaussian's noise multiplier is the standard deviation over
            the most that replacing one example moves the result.
        batch_size: Size of a sample, an integer from 1 to examples.
        examples: Size of the data set, under add-remove exactly that of the larger one, an integer
            >= 1.
        adjacency: "replace-one", "add-remove" or "zero-out".
        clipped: Whether the inner mechanism is Gaussian noise on a sum of vectors, one of each
            example, whose L2 norm is at most half of what replacing one moves the sum, 0 for one
            that is zeroed; as where each is clipped to the norm C, for replacements that move the
            sum by up to 2C. Not so for a count, whose 0 or 1 a replacement moves by 1.

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: If the inner mechanism is described under another adjacency than
            replace-one, or is clipped and no Gaussian.

    References:
        Balle, Barthe and Gaboardi, "Privacy amplification by subsampling", NeurIPS 2018, theorem 2;
        Dong, Roth and Su, JRSS B 2022, theorem 4.2; Zhu, Dong and Wang, AISTATS 2022, theorem 11;
        Lebeda, Regehr, Kamath and Steinke, "Avoiding pitfalls for privacy accounting of subsampled
        mechanisms under composition", SaTML 2025, for why directions are composed separately;
        Kahane, "Sur le chaos multiplicatif", Ann. Sci. Math. Quebec 1985, for which vectors of a
        ball cost most.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.FixedSizeSubsampled(hs.Gaussian(1.1), batch_size=256, examples=60_000))
        fixed-size-subsampled Gaussian (noise multiplier 1.1, 256 of 60000, replace-one)
    """

    _drawn = "fixed-size-subsampled"

    clipped: bool = False

    def __init__(
        self,
        inner: Mechanism,
        batch_size: float,
        examples: float,
        adjacency: Adjacency | str = Adjacency.REPLACE_ONE,
        clipped: bool = False,
    ) -> None:
        OnFixedSizeSample.__init__(self, inner, batch_size, examples, adjacency)
        if not isinstance(clipped, bool):
            raise ParameterError("clipped", clipped, "True or False")
        if clipped and not isinstance(inner, Gaussian):
            raise IncompatibleError(
                f"clipped contributions are analysed for the Gaussian mechanism, not for {inner}; "
                "leave clipped out"
            )
        object.__setattr__(self, "clipped", clipped)

    def _check(self) -> None:
        if self.batch_size > self.examples:
            allowed = f"at most the number of examples, {self.examples}"
            raise ParameterError("batch_size", self.batch_size, allowed)

    @property
    def rate(self) -> Fraction:
        """The chance of an example to be in the sample."""
        return Fraction(self.batch_size, self.examples)

    def _sampling(self) -> str:
        """Return the descriptions of the sampling and of the data set of the stated size."""
        every = (
            f"Each sample is one of all sets of {self.batch_size:,} of {self.examples:,} examples, "
            "equally likely, and kept secret."
        )
        larger = f" The larger of two neighbouring data sets has exactly {self.examples:,}."
        return every + larger if self.adjacency is Adjacency.ADD_REMOVE else every

    @property
    def assumptions(self) -> tuple[str, ...]:
        clipped = (_CLIPPED,) if self.clipped else ()
        inner = self.inner.assumptions
        return (self.adjacency.meaning, self._sampling(), *clipped, *inner, REPLACED)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the inner mechanism's words with the sampling added."""
        name, details = OnFixedSizeSample._words(self)
        return name, (*details[:-1], "clipped", details[-1]) if self.clipped else details
