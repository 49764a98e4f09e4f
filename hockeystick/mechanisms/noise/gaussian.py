"""Gaussian noise: on one query, on several, on a covariance, mixtures of it, and sinh-normal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick._validate import PARAMETERS, Domain, whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.errors import NoGroupFormError, ParameterError
from hockeystick.mechanisms.base import AnyAdjacency, Mechanism, registered, set_fields
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import product_up, quotient_down


@registered
@final
@dataclass(frozen=True, slots=True)
class Gaussian(AnyAdjacency):
    """A query's answer plus Gaussian noise.

    M(D) = query(D) + N(0, (noise_multiplier * sensitivity)^2 I), where the sensitivity is the
    largest L2 distance between the query's answers on two neighbouring data sets.

    Guarantees:
        Exact where two answers reach that distance, in any dimension; an upper bound elsewhere.

    Args:
        noise_multiplier: Standard deviation of the noise over the sensitivity, in [0, inf]: 0
            releases the answer itself, inf nothing.

    References:
        Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, appendix A.

    Example:
        >>> import hockeystick as hs
        >>> hs.Gaussian(noise_multiplier=1.1)
        Gaussian(noise_multiplier=1.1)
    """

    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    noise_multiplier: float

    @property
    def assumptions(self) -> tuple[str, ...]:
        noise = f"{plain(self.noise_multiplier)} times the query's L2 sensitivity"
        return (f"Fresh Gaussian noise is added; its standard deviation is {noise}.",)

    def for_group(self, size: int) -> Gaussian:
        return Gaussian(quotient_down(self.noise_multiplier, size))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "Gaussian", (f"noise multiplier {self.noise_multiplier:g}",)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class JointGaussian(AnyAdjacency):
    """Several queries of the same data at once, each with Gaussian noise of its own.

    Noise multipliers z_i, each in units of its own query's sensitivity, are together one Gaussian
    mechanism with ``z^-2 = sum z_i^-2``. Unlike ``Composed``, it is one run: all the queries may
    be asked of the same Poisson sample, ``PoissonSubsampled(JointGaussian(...), rate)``, as the
    gradients of a batch and what steers their clipping are.

    One record is what the sensitivities are for: an example, or a client with all its data where
    the queries add up updates of clients. Of either, ``PoissonSubsampled`` speaks as an example.

    Guarantees:
        Exact where one record moves every query by its sensitivity; an upper bound elsewhere.

    Args:
        noise_multipliers: Standard deviations of the noise over the queries' sensitivities, one or
            more numbers in [0, inf]: 0 releases an answer itself, inf nothing of it.

    References:
        Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
        Clipping", NeurIPS 2021, theorem 1.

    Example:
        >>> import hockeystick as hs
        >>> step = hs.PoissonSubsampled(hs.mechanisms.JointGaussian((1.01, 7.2)), rate=0.01)
        >>> print(hs.epsilon(step**1000, delta=1e-5))
        epsilon = 1.82745 at delta = 1e-05 (proven in [1.82744..., 1.82744...]; contour, add-remove)
    """

    noise_multipliers: tuple[float, ...] = field(
        metadata={"domain": PARAMETERS["noise_multiplier"]}
    )

    def __init__(self, noise_multipliers: Iterable[float]) -> None:
        set_fields(self, locals())

    @property
    def assumptions(self) -> tuple[str, ...]:
        listed = ", ".join(plain(noise) for noise in self.noise_multipliers)
        return (
            "Fresh Gaussian noise is added to each of the queries, all asked of the same data; "
            f"its standard deviations are {listed} times the queries' own L2 sensitivities to one "
            "record: an example, or a client with all its data where the queries add up what "
            "clients send.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        *first, last = (f"{noise:g}" for noise in self.noise_multipliers)
        if not first:
            return "joint Gaussian", (f"noise multiplier {last}",)
        return "joint Gaussian", (f"noise multipliers {', '.join(first)} and {last}",)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class PrivateCovariance(Mechanism):
    """The second moments ``A = sum x x^T`` of the rows x, each ``||x|| <= R``, with Gaussian noise.

    All else of a private principal component analysis (dividing by a public number, eigenvectors,
    projections of other data) is computed from A. With ``sigma = noise_multiplier * R^2`` the
    privacy is the same for each of these:

    - noise N(0, sigma^2) on each entry on and above the diagonal, mirrored below it;
    - noise N(0, sigma^2) on each of all d^2 entries;
    - noise N(0, sigma^2) on the diagonal and N(0, sigma^2/2) above it, mirrored: the second one's
      symmetric part, which is all of it that tells anything, with half the variance of the first.

    What counts is how far A moves, D, in units of the noise. Under add-remove and zero-out
    ``D = x x^T``; of all entries ``||D||_F^2 = ||x||^4 <= R^4``, and of those on and above the
    diagonal ``(||D||_F^2 + sum D_ii^2) / 2 <= R^4``, since ``sum x_i^4 <= ||x||^4``. Under
    replace-one ``D = x x^T - y y^T``, ``||D||_F^2 = ||x||^4 + ||y||^4 - 2 (x.y)^2 <= 2 R^4``, and
    ``sum (x_i^2 - y_i^2)^2 <= sum x_i^4 + y_i^4 <= 2 R^4``: sqrt(2) R^2, not 2 R^2. All of them are
    attained on the axes, ``x = R e_1`` and ``y = R e_2``; with one column ``|x^2 - y^2| <= R^2``.

    Guarantees:
        Exact.

    Args:
        noise_multiplier: sigma over R^2, in [0, inf]: 0 releases A itself, inf nothing.
        columns: The number d of entries of a row, an integer >= 1.
        adjacency: "add-remove", "zero-out" or "replace-one", of rows.

    References:
        Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: Optimal Bounds for Privacy-Preserving
        Principal Component Analysis", STOC 2014, algorithm 1. Galli, "Sense and Sensitivity: Data
        Utility and User Privacy in Differentially Private Machine Learning" (PhD thesis, Scuola
        Normale Superiore), equation 1.9, has ``||x^T x||_F = ||x||_2`` and so noise in units of R:
        the norm is ``||x||_2^2``, and the noise it adds is R times too small for R > 1.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.epsilon(hs.mechanisms.PrivateCovariance(4.0, columns=30), delta=1e-6))
        epsilon = 1.06071 at delta = 1e-06 (proven in [1.060..., 1.060...]; closed-form, add-remove)
    """

    rises_with: ClassVar[tuple[str, ...]] = ("columns",)
    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    noise_multiplier: float
    columns: int = field(metadata={"domain": whole_numbers("d", 1, (2, 1000))})
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        noise_multiplier: float,
        columns: float,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        set_fields(self, locals())

    @property
    def squared_sensitivity(self) -> int:
        """The square of how far a row moves A, in units of R^2."""
        return 2 if self.adjacency is Adjacency.REPLACE_ONE and self.columns > 1 else 1

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning,
            "Each row is clipped in L2 to a public radius R. Rows are centred by public numbers, "
            "or by means that are released privately and accounted for as well, never by their own "
            "means.",
            "Fresh Gaussian noise is added to the sum of the rows' products, mirrored or not; its "
            f"standard deviation is {plain(self.noise_multiplier)} times R^2, above the diagonal "
            "of a mirrored matrix at least that over sqrt(2).",
            "The sum is divided by a public number.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        noise = f"noise multiplier {self.noise_multiplier:g}"
        return "private covariance", (noise, f"{self.columns} columns", self.adjacency)


_SENSITIVITY: Final = Domain(symbol="c", low=0, high=math.inf, high_open=True, typical=(0.1, 10))
_PROBABILITY: Final = Domain(symbol="w", low=0, high=1, typical=(0.01, 0.99))
_MOST_OFF: Final = Fraction(1, 10**9)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class GaussianMixture(Mechanism):
    """A query's answer plus Gaussian noise, where a record moves the answer by a random amount.

    With the record in the data the output is distributed as ``sum_k w_k N(c_k, s^2)``, and without
    it as ``N(0, s^2)``; s is the noise multiplier, ``c_k >= 0`` the sensitivities and w_k their
    probabilities. ``(0, 1)`` with ``(1 - q, q)`` is Poisson sampling at the rate q.

    Guarantees:
        Under add-remove and zero-out, for a scalar query that the record moves by exactly c_k with
        probability w_k, independently of all else: exact. It is an upper bound where it moves a
        vector by at most c_k in L2 norm.

    Args:
        noise_multiplier: Standard deviation of the noise, in units of the sensitivities, in
            [0, inf].
        sensitivities: The amounts c_k, finite numbers >= 0.
        probabilities: As many numbers w_k from 0 to 1. They are divided by their sum, which must
            be 1 to within 1e-9; each is read as the decimal that it prints as.

    References:
        Choquette-Choo, Ganesh, Steinke and Thakurta, "Privacy Amplification for Matrix
        Mechanisms", ICLR 2024, section 4 (mixture of Gaussians).

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.GaussianMixture(2, (0, 1, 2), probabilities=(0.9, 0.09, 0.01)))
        Gaussian with random sensitivity (noise multiplier 2, 0 at 0.9, 1 at 0.09, 2 at 0.01)
    """

    falls_with: ClassVar[tuple[str, ...]] = ("noise_multiplier",)
    noise_multiplier: float
    sensitivities: tuple[float, ...] = field(metadata={"domain": _SENSITIVITY})
    probabilities: tuple[float, ...] = field(metadata={"domain": _PROBABILITY})
    adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        noise_multiplier: float,
        sensitivities: Sequence[float],
        probabilities: Sequence[float],
    ) -> None:
        set_fields(self, locals())
        if len(self.probabilities) != len(self.sensitivities):
            allowed = f"as many numbers as there are sensitivities, {len(self.sensitivities)}"
            raise ParameterError("probabilities", probabilities, allowed)
        total = sum(map(decimal, self.probabilities), Fraction(0))
        if not 1 - _MOST_OFF <= total <= 1 + _MOST_OFF:
            raise ParameterError("probabilities", probabilities, "numbers that add up to 1")

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            self.adjacency.meaning,
            "Fresh Gaussian noise is added; its standard deviation is "
            f"{plain(self.noise_multiplier)} in units of the sensitivities.",
            "How far a record moves the query's answer is random as stated, independently of the "
            "noise and of all else, and is kept secret.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        pairs = zip(self.sensitivities, self.probabilities, strict=True)
        moves = (f"{move:g} at {chance:g}" for move, chance in pairs)
        noise = f"noise multiplier {self.noise_multiplier:g}"
        return "Gaussian with random sensitivity", (noise, *moves)


_WIDTH: Final = Domain("A", 0, math.inf, (50, 1000), low_open=True, high_open=True)


@registered
@final
@dataclass(frozen=True, slots=True)
class SinhNormal(AnyAdjacency):
    """A query's answer plus sinh-normal noise: Gaussian in the middle, with much lighter tails.

    M(D) = query(D) + A arsinh(N(0, 1/(2 rho)) / A), both in units of the query's sensitivity, with
    ``A = width``. Outputs beyond A are doubly exponentially rare, at about the privacy of Gaussian
    noise of the same variance ``1/(2 rho)``, to which it tends as the width grows.

    Guarantees:
        Exact for a scalar query that reaches its sensitivity, and an upper bound for every other.
        The theorem of the reference, (16 rho, A/8)-tCDP, is grossly loose and not used; its
        condition ``1/sqrt(rho) <= A`` makes the privacy loss strictly increasing in the output, so
        that the whole distribution of the loss is known. Its other condition, ``rho < 1``, is not
        needed. The cost rises with rho and falls with the width.

    Edge cases:
        rho inf releases the answer itself. Renyi divergences are finite for the orders below
        ``1 + 1/(exp(2/A) - 1)`` only.

    Args:
        rho: Half of one over the variance of the Gaussian inside, in (0, inf].
        width: Scale A of the tails, a finite number of at least 1/sqrt(rho).

    References:
        Bun, Dwork, Rothblum and Steinke, "Composable and Versatile Privacy via Truncated CDP",
        STOC 2018, section 4 (the sinh-normal noise).

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.delta(hs.mechanisms.SinhNormal(rho=0.1, width=40), epsilon=1).upper:.12f}")
        0.003370163333
    """

    rises_with: ClassVar[tuple[str, ...]] = ("rho",)
    falls_with: ClassVar[tuple[str, ...]] = ("width",)
    rho: float = field(metadata={"domain": Domain("rho", 0, math.inf, (1e-3, 0.9), low_open=True)})
    width: float = field(metadata={"domain": _WIDTH})

    def __post_init__(self) -> None:
        set_fields(self)
        if self.rho < math.inf and decimal(self.rho) * decimal(self.width) ** 2 < 1:
            allowed = f"at least 1/sqrt(rho), for rho = {self.rho:g}"
            raise ParameterError("width", self.width, allowed)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"Fresh sinh-normal noise (rho {plain(self.rho)}, width {plain(self.width)}) is added, "
            "in units of the scalar query's sensitivity.",
        )

    def for_group(self, size: int) -> SinhNormal:
        rho, width = product_up(size * size, self.rho), quotient_down(self.width, size)
        try:
            return SinhNormal(rho, width)
        except ParameterError:
            # Next to the least width, rounding may lead out of the domain.
            raise NoGroupFormError(
                f"the noise of a {self} is too narrow for groups of {size}: the width over it "
                "must be that of a sinh-normal mechanism"
            ) from None

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "sinh-normal", (f"rho {self.rho:g}", f"width {self.width:g}")
