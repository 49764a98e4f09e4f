"""Second moments with Gaussian noise: what private principal component analysis starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain

_COLUMNS: Final = whole_numbers("d", 1, (2, 1000))


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

    Edge cases:
        Noise multiplier 0 releases A itself; inf releases nothing.

    Args:
        noise_multiplier: sigma over R^2, in [0, inf].
        columns: The number d of entries of a row, an integer >= 1.
        adjacency: "add-remove", "zero-out" or "replace-one", of rows.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss: Optimal Bounds for Privacy-Preserving
        Principal Component Analysis", STOC 2014, algorithm 1. Galli, "Sense and Sensitivity:
        Data Utility and User Privacy in Differentially Private Machine Learning" (PhD thesis,
        Scuola Normale Superiore), equation 1.9, has
        ``||x^T x||_F = ||x||_2`` and so noise in units of R: the norm is ``||x||_2^2``, and the
        noise it adds is R times too small for R > 1.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.epsilon(hs.mechanisms.PrivateCovariance(4.0, columns=30), delta=1e-6))
        epsilon = 1.06071 at delta = 1e-06 (proven in [1.060..., 1.060...]; closed-form, add-remove)
    """

    rises_with = ("columns",)
    falls_with = ("noise_multiplier",)

    noise_multiplier: float
    columns: int
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __init__(
        self,
        noise_multiplier: float,
        columns: float,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        noise = _validate.real("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", noise)
        object.__setattr__(self, "columns", _validate.count("columns", columns, _COLUMNS))
        neighbours = _validate.choice("adjacency", adjacency, Adjacency)
        object.__setattr__(self, "adjacency", neighbours)

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
