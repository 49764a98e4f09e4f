"""The error of running sums with correlated noise, and the strategies that make it small.

The *loss*, error times sensitivity, does not change with the scale of C. For a Toeplitz matrix
with falling diagonals c it is a smooth function of them:

    sensitivity^2 = sum_t h_t^2,      h_t = sum over i < k of c_(t - i s),
    error^2       = sum_t v_t b_t^2,  b(x) = 1 / ((1 - x) c(x))  as power series,

for k participations that are s rounds apart, with ``v_t = 1`` for the last sum, ``(n - t) / n`` for
the mean. Their gradients are ``2 sum_i h_(j + i s)`` and ``-sum_t a_t b_(t-j)`` with
``a = C^-T (2 v b)``; power series are inverted and multiplied by Fourier transforms, in
``O(n log n)``. L-BFGS minimises the logarithm of the loss over parameters that keep the diagonals
falling: ``c_j = c_(j-1) sigmoid(u_j)`` for bands; for buffers scales that sum to less than 1, and
``theta_j = sigmoid(v_j)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import auto
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, WordEnum
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import BufferedToeplitz, Encoder, SquareRoot, Toeplitz
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics.rounding import float_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]

_ROUNDS: Final = Domain(symbol="n", low=1, high=10**6, typical=(100, 10_000), whole=True)
_BANDS: Final = Domain(symbol="b", low=1, high=10**6, typical=(4, 1000), whole=True)
_STEPS: Final = 2000
# Beyond this a sigmoid is 0 or 1 in floats.
_FAR: Final = 30.0


class ErrorKind(WordEnum):
    """Of which running sums: the worst, or the root of their mean square error."""

    MAX = auto()
    MEAN = auto()


@final
@dataclass(frozen=True, slots=True)
class SumsError:
    """How much noise running sums have.

    Args:
        error: Standard deviation of an entry of a running sum over that of the noise Z: times
            ``noise_multiplier * clipping norm`` it is the sum's. Rounded up.
        loss: The error times the encoder's sensitivity: the sum's standard deviation over the
            clipping norm where the release is 1-GDP, ``noise_multiplier = sensitivity``. Strategies
            are compared by it. Rounded up.
    """

    error: float
    loss: float


def sums_error(encoder: Encoder, error: ErrorKind | str = ErrorKind.MAX) -> SumsError:
    """Return the error of running sums under ``MatrixFactorization(z, encoder)``.

    The sums are ``A X = B (C X + Z)`` with the matrix A of ones on and below the diagonal and
    ``B = A C^-1``, Toeplitz with the diagonals ``b_k = sum over i <= k of (C^-1)_i``. The sum after
    t rows has ``sum over k < t of b_k^2`` times the variance of Z: most after the last of n rows,
    ``sum b_k^2``; on average ``sum b_k^2 (n - k) / n``.

    Guarantees:
        Computed in fixed point to 200 binary digits and rounded up: the exact error of the strategy
        as it is.

    Args:
        encoder: An encoder made from a strategy whose main diagonal is not 0.
        error: "max" for the worst of the sums, "mean" for the root of the mean square error.

    References:
        Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and Near-Optimal Noise
        Generation for Streaming Differential Privacy", 2024, section 2.

    Example:
        >>> import hockeystick as hs
        >>> once = hs.mechanisms.Encoder.square_root(1000)
        >>> f"{hs.calibration.sums_error(once).loss:.6f}"
        '3.265003'
    """
    kind = _validate.choice("error", error, ErrorKind)
    strategy = encoder.strategy if isinstance(encoder, Encoder) else None
    if strategy is None:
        raise ParameterError("encoder", encoder, "an Encoder of a strategy, none of a matrix")
    try:
        sums = accumulate(strategy.inverse(encoder.rounds))
    except ZeroDivisionError:
        allowed = "an Encoder of a strategy whose main diagonal is not 0"
        raise ParameterError("encoder", encoder, allowed) from None
    rounds = encoder.rounds
    left = [rounds if kind is ErrorKind.MAX else rounds - k for k in range(rounds)]
    square = sum((b * b * n for b, n in zip(sums, left, strict=True)), Fraction(0)) / rounds
    return SumsError(
        error=float_up(square_root(square)), loss=float_up(square_root(square * encoder.square))
    )


def optimise_banded(
    rounds: float,
    bands: float,
    *,
    participations: float = 1,
    separation: float = 1,
    error: ErrorKind | str = ErrorKind.MAX,
) -> Encoder:
    """Return a banded Toeplitz encoder of small loss: error of running sums times sensitivity.

    Guarantees:
        The encoder's sensitivity is exact, as that of any with falling diagonals; ``sums_error``
        says its error. That no banded encoder has a smaller loss is not proven: it is where L-BFGS
        came to, from the square root's bands, and never worse than these.

    Args:
        rounds: The number of rounds, an integer from 1 to 10^6.
        bands: How many diagonals it has, an integer from 1 to 10^6.
        participations: The most rounds that one participant takes part in, an integer >= 1.
        separation: The least distance of two of them in rounds, an integer >= 1.
        error: "max" for the worst of the sums, "mean" for the root of the mean square error.

    References:
        Choquette-Choo et al., "(Amplified) Banded Matrix Factorization: A Unified Approach to
        Private Training", 2023; Dvijotham et al. 2024 (the square root).

    Example:
        >>> import hockeystick as hs
        >>> best = hs.calibration.optimise_banded(200, 20, participations=10, separation=20)
        >>> root = hs.mechanisms.Encoder.square_root(
        ...     200, bands=20, participations=10, separation=20
        ... )
        >>> [f"{hs.calibration.sums_error(one).loss:.2f}" for one in (best, root)]
        ['12.70', '13.68']
    """
    loss = _loss(rounds, participations, separation, error)
    kept = min(_validate.count("bands", bands, _BANDS), loss.rounds)
    start = np.array([float(one) for one in SquareRoot(kept).diagonals(loss.rounds)])

    def evaluated(u: Array) -> tuple[float, Array]:
        ratios = _sigmoid(u)
        c = np.concatenate(([1.0], np.cumprod(ratios)))
        value, slope = loss.at(c)
        along = np.cumsum((c * slope)[::-1])[::-1][1:]
        return value, along * (1.0 - ratios)

    u = _logit(start[1:] / start[:-1])
    best = u if kept == 1 else _minimised(evaluated, [u])
    found = np.concatenate(([1.0], np.cumprod(_sigmoid(best))))
    return loss.encoder(Toeplitz(found.tolist()))


def optimise_buffered(
    rounds: float,
    buffers: float,
    *,
    participations: float = 1,
    separation: float = 1,
    error: ErrorKind | str = ErrorKind.MAX,
) -> Encoder:
    """Return a buffered Toeplitz encoder (BLT) of small loss: error times sensitivity.

    Guarantees:
        The encoder's sensitivity is exact, as its scales sum to less than 1; ``sums_error`` says
        its error. That no other has a smaller loss is not proven: it is where L-BFGS came to, the
        best of some starts, of which one goes on from fewer buffers.

    Args:
        rounds: The number of rounds, an integer from 1 to 10^6.
        buffers: The number of buffers, an integer from 1 to 20; up to 5 are usual.
        participations: As for ``optimise_banded``, as are ``separation`` and ``error``.
        separation: See there.
        error: See there.

    References:
        Dvijotham et al. 2024; McMahan, Xu and Zhang, "A Hassle-free Algorithm for Strong
        Differential Privacy in Federated Learning Systems", 2024.

    Example:
        >>> import hockeystick as hs
        >>> best = hs.calibration.optimise_buffered(1000, 3)
        >>> f"{hs.calibration.sums_error(best).loss:.3f}"
        '3.270'
    """
    loss = _loss(rounds, participations, separation, error)
    most = _validate.count("buffers", buffers, Domain("m", 1, 20, (1, 5), whole=True))

    def evaluated(parameters: Array) -> tuple[float, Array]:
        scales, decays = _buffered(parameters)
        powers = _powers(decays, loss.rounds)
        value, slope = loss.at(np.concatenate(([1.0], scales @ powers))[: loss.rounds])
        rest = slope[1:]
        by_scale = powers[:, : len(rest)] @ rest
        places = np.arange(len(rest))
        by_decay = scales * (powers[:, : len(rest)] @ (rest * places)) / decays
        by_u = scales * (by_scale - scales @ by_scale)
        return value, np.concatenate((by_u, by_decay * decays * (1.0 - decays)))

    best: Array | None = None
    for count in range(1, most + 1):
        best = _minimised(evaluated, list(_starts(count, loss.rounds, best)))
    assert best is not None
    scales, decays = _buffered(best)
    order = np.argsort(decays)
    return loss.encoder(BufferedToeplitz(scales[order].tolist(), decays[order].tolist()))


@dataclass(frozen=True, slots=True)
class _Loss:
    """The logarithm of the loss of falling diagonals, with its gradient."""

    rounds: int
    participations: int
    separation: int
    weights: Array

    def at(self, c: Array) -> tuple[float, Array]:
        """Return the logarithm of error times sensitivity, and its slope by each diagonal."""
        n = self.rounds
        whole = np.concatenate((c, np.zeros(n - len(c))))
        together = self._together(whole)
        square = float(together @ together)
        by_sensitivity = self._together(together[::-1])[::-1] / square
        inverse = _inverse(whole)
        sums = np.cumsum(inverse)
        weighted = self.weights * sums
        variance = float(weighted @ sums)
        back = _product(inverse, weighted[::-1], n)[::-1] / variance
        by_error = -_product(back[::-1], sums, n)[::-1]
        value = 0.5 * (np.log(square) + np.log(variance))
        return float(value), (by_sensitivity + by_error)[: len(c)]

    def _together(self, values: Array) -> Array:
        """Return for each t the sum of the values at ``t - i s`` for i below k."""
        s, n = self.separation, len(values)
        rows = -(-n // s)
        table = np.zeros(rows * s)
        table[:n] = values
        sums = np.cumsum(table.reshape(rows, s), axis=0)
        k = self.participations
        if k < rows:
            sums[k:] -= sums[:-k].copy()
        return np.asarray(sums.reshape(-1)[:n])

    def encoder(self, strategy: Toeplitz | BufferedToeplitz) -> Encoder:
        return Encoder.of(
            strategy, self.rounds, participations=self.participations, separation=self.separation
        )


def _loss(rounds: float, participations: float, separation: float, error: ErrorKind | str) -> _Loss:
    # An encoder checks the pattern.
    pattern = Encoder.toeplitz([1], 1, participations=participations, separation=separation)
    n = _validate.count("rounds", rounds, _ROUNDS)
    kind = _validate.choice("error", error, ErrorKind)
    weights = np.ones(n) if kind is ErrorKind.MAX else 1.0 - np.arange(n) / n
    fits = -(-n // min(pattern.separation, n))
    return _Loss(n, min(pattern.participations, fits), min(pattern.separation, n), weights)


def _starts(count: int, rounds: int, fewer: Array | None) -> Iterator[Array]:
    """Yield parameters to start from: decays spread evenly in logarithms, fitted scales."""
    from scipy.optimize import nnls

    target = np.array([float(one) for one in SquareRoot().diagonals(max(rounds, 3))])[1:]
    for reach in (1.0, 0.7, 1.3):
        exponents = reach * (2.0 * np.arange(count) + 1.0) / (2.0 * count)
        decays = 1.0 - np.minimum(float(max(rounds, 3)) ** -exponents, 0.9)
        scales = nnls(_powers(decays, len(target) + 1).T, target)[0]
        scales = np.maximum(scales, 1e-6)
        yield _parameters(scales / max(1.0, scales.sum() / 0.9), decays)
    if fewer is not None:
        scales, decays = _buffered(fewer)
        for more in (0.1, 1.0 - 0.3 / rounds):
            yield _parameters(np.append(0.97 * scales, 1e-4), np.append(decays, more))


def _minimised(evaluated: Callable[[Array], tuple[float, Array]], starts: list[Array]) -> Array:
    from scipy.optimize import minimize

    found: list[Any] = []
    for start in starts:
        bounds = [(-_FAR, _FAR)] * len(start)
        options: Any = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": 1e-12, "gtol": 1e-8}
        result = minimize(
            evaluated, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        found += [(evaluated(start)[0], start), (float(result.fun), result.x)]
    best: Array = min(found, key=lambda one: one[0])[1]
    return best


def _parameters(scales: Array, decays: Array) -> Array:
    return np.concatenate((np.log(scales / (1.0 - scales.sum())), _logit(decays)))


def _buffered(parameters: Array) -> tuple[Array, Array]:
    u, v = np.split(parameters, 2)
    weights = np.exp(u)
    return weights / (1.0 + weights.sum()), _sigmoid(v)


def _powers(decays: Array, rounds: int) -> Array:
    """Return the powers of decays from 0 on, a row for each, for all rounds but the first."""
    return np.asarray(np.exp(np.outer(np.log(decays), np.arange(max(rounds - 1, 0)))))


def _inverse(c: Array) -> Array:
    """Return the power series of 1 over that of c, by Newton's rule."""
    found = np.array([1.0 / c[0]])
    while len(found) < len(c):
        size = min(2 * len(found), len(c))
        rest = -_product(c[:size], found, size)
        rest[0] += 2.0
        found = _product(found, rest, size)
    return found


def _product(one: Array, other: Array, size: int) -> Array:
    length = 1 << (len(one) + len(other) - 1).bit_length()
    terms = np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)
    return np.asarray(terms[:size])


def _sigmoid(values: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-values)))


def _logit(values: Array) -> Array:
    return np.asarray(np.clip(np.log(values) - np.log1p(-values), -_FAR, _FAR))
