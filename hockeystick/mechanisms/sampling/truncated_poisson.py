"""Poisson samples cut to a largest size."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.sampling.poisson import on_contributions, refuse_other_adjacency

_CAP: Final = whole_numbers("B", 1, (16, 65_536))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class TruncatedPoissonSubsampled(Mechanism):
    """The Gaussian mechanism on a Poisson sample of which at most ``cap`` examples are kept.

    Each example is drawn independently with probability ``rate``; where more than ``cap`` are
    drawn, a random set of ``cap`` of them is kept. What is drawn and kept is secret.

    Guarantees:
        An upper end: with n examples in the larger data set, let ``J ~ Bin(n - 1, rate)`` of the
        others be drawn. Where J is below the cap B, nothing is cut and the run is one on a Poisson
        sample. Otherwise the sample without the example is a random set of B others, and the
        example, if drawn and kept, takes the place of one of them, which moves the result twice as
        far; that happens with probability ``r = B P[Bin(n, rate) > B] / (n P[J >= B])``. Which case
        it is is taken as known. A lower end by data sets whose other examples add nothing.

        Under zero-out and replace-one, for contributions that are vectors of a ball, the same: a
        full sample is one of a fixed size, which the example is in with the chance r, among others
        that are opposite or alike; below the cap it is the Poisson sample of that adjacency.

        This is for data sets of exactly n examples, under add-remove the larger one: of fewer,
        fewer batches are cut, but those that are keep more of what is drawn, which may cost more.
        For the same reason the cost may rise or fall with the cap and with the examples.

    Edge cases:
        A cap that is hardly ever reached costs what Poisson sampling does; one of n is never
        reached. A cap far below ``n rate`` costs what samples of that fixed size do.

    Args:
        inner: A ``Gaussian``; its noise multiplier is the standard deviation over the largest
            L2 norm of the vector that one example contributes.
        rate: Probability of each example to be drawn, in [0, 1].
        cap: Largest size of a sample, an integer >= 1.
        examples: Size n of the data set, under add-remove of the larger one, an integer >= 1.
        adjacency: "add-remove", "zero-out" or "replace-one".

    Raises:
        ParameterError: If a parameter is outside its domain.
        IncompatibleError: If the inner mechanism is described under another adjacency.

    References:
        Chua et al., "Scalable DP-SGD: shuffling vs. Poisson subsampling", NeurIPS 2024, for
        truncated batches; Ganesh, McKenna, McMahan, Smith and Wu, arXiv 2508.15089, for the bound
        by conditioning, with a looser pair for full samples.

    Example:
        >>> import hockeystick as hs
        >>> print(
        ...     hs.mechanisms.TruncatedPoissonSubsampled(
        ...         hs.Gaussian(1.1), 0.01, cap=70, examples=6_000
        ...     )
        ... )
        truncated-Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.01, at most 70 of 6000)
    """

    rises_with = ("rate",)
    unordered = ("cap", "examples")

    _of_stated_size: ClassVar[bool] = True

    inner: Mechanism
    rate: float | Fraction
    cap: int
    examples: int
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        inner: Mechanism,
        rate: float | Fraction,
        cap: float,
        examples: float,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        object.__setattr__(self, "inner", checked("inner", inner))
        object.__setattr__(self, "rate", _validate.probability("rate", rate))
        object.__setattr__(self, "cap", _validate.count("cap", cap, _CAP))
        object.__setattr__(self, "examples", _validate.count("examples", examples))
        neighbours = _validate.choice("adjacency", adjacency, Adjacency)
        object.__setattr__(self, "adjacency", neighbours)
        refuse_other_adjacency(inner, neighbours)

    @property
    def assumptions(self) -> tuple[str, ...]:
        sampling = (
            f"Each of {self.examples:,} examples is drawn independently with probability "
            f"{float(self.rate):g}; of more than {self.cap:,} a random set of {self.cap:,} is "
            "kept; the sample is secret."
        )
        if self.adjacency is Adjacency.ADD_REMOVE:
            larger = "The larger of two neighbouring data sets has exactly"
            sampling = f"{sampling} {larger} {self.examples:,}."
        replaced = self.adjacency is Adjacency.REPLACE_ONE
        noise = on_contributions(self.inner) if replaced else self.inner.assumptions
        return (self.adjacency.meaning, sampling, *noise)

    def for_group(self, size: int) -> Mechanism:
        """Refuse groups that come or go where the cap may be reached; else none is known.

        The second of two records that go leaves a data set of another size than the stated one,
        from which a cap keeps each record more often: one record's curve does not say what it
        costs.

        Raises:
            IncompatibleError: If fewer examples are kept than there are.
        """
        private = self.adjacency is Adjacency.ADD_REMOVE
        if size > 1 and self.cap < self.examples and private:
            raise IncompatibleError(
                f"a {self} has no analysis for groups: its guarantee is for data sets of exactly "
                f"{self.examples:,} examples and one less; leave the cap out"
            )
        return Mechanism.for_group(self, size)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the inner mechanism's words with the sampling added."""
        name, details = self.inner._words()
        inside = name if details else f"[{name}]"
        own = (f"rate {float(self.rate):g}", f"at most {self.cap} of {self.examples}")
        known = () if self.adjacency is Adjacency.ADD_REMOVE else (self.adjacency,)
        return f"truncated-Poisson-subsampled {inside}", (*details, *own, *known)
