"""The error of running sums with correlated noise, of a strategy as it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import auto
from fractions import Fraction
from itertools import accumulate
from typing import final

from hockeystick import _validate
from hockeystick._validate import WordEnum
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Encoder
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics.rounding import float_up


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

    Returns:
        The error, and the loss, by which strategies of any scale are compared.

    Raises:
        ParameterError: If the encoder was made from a matrix or has no inverse, or there is no such
            error.

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
