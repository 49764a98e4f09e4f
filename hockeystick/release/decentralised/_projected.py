"""Projected noisy gradient steps in floats, whose rounding the noise covers.

A step takes w to ``Pi(w - eta (g(w) + Z))``. Here the sum before Pi is a multiple of a power of
two, ``x' = round((w - eta g(w)) / h) h + round(N) h`` with ``w = Pi(x)``, all in floats. As ``k +
round(N) = round(k + N)``, the real number ``k + N`` before its rounding is a state of its own: one
step takes it to the next by some map psi, and adds Gaussian noise. Were nothing rounded, psi would
contract. As it is off by at most e, ``|psi(a) - psi(b)| <= |a - b| + 2 e``, and a record moves it
by at most ``c eta L + 2 e``.

In the proof of amplification by iteration (see ``NoisyIterations``), the m steps that cover a
record then cover ``c eta L + 2 m e`` in place of ``c eta L``, in m equal parts as before: the first
distance is at least such a part, and each later one falls by a part less 2 e. So noise that is
``1 + 2 m e / (c eta L)`` times what the mechanism says gives what it guarantees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.decentralised.convex import change
from hockeystick.mechanisms.decentralised.iterated import NoisyIterations
from hockeystick.mechanisms.decentralised.token_walk import TokenWalk
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release.samplers import Bits, rounded_gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Model = NDArray[np.float64]

Gradient = Callable[[Any, int], Any]
# Between these, squares are normal floats.
_LENGTH: Final = Domain(symbol="L", low=1e-100, high=1e100, typical=(0.1, 100))
_MODEL: Final = "a row of one or more finite numbers within the radius"
_GRADIENT: Final = "a row of finite numbers, as long as the model, of norm at most lipschitz"
# Relative to the bound of the gradients: what a gradient in floats is off by, and the grid's step.
_GRADIENT_BITS: Final = 30
_GRID_BITS: Final = 30
_SCALE_BITS: Final = 43
# The most that rounding may add to the noise.
_MOST_WIDER: Final = Fraction(1, 2**10)


@final
@dataclass(frozen=True, slots=True)
class Projected:
    """Steps on a ball, ``eta``, the gradients' bound and the ball's radius given.

    Args:
        step_size: eta.
        lipschitz: The bound L of the gradients' norms.
        radius: That of the ball around 0 onto which Pi projects.
        exponent: The grid's step h is ``2^exponent``.
        scale: The noise's standard deviation in units of h.
    """

    step_size: float
    lipschitz: float
    radius: float
    exponent: int
    scale: float

    def stepped(self, model: Model, gradient: Model, bits: Bits) -> Model:
        """Return the next model."""
        with np.errstate(over="ignore"):
            moved = np.rint(np.ldexp(model - self.step_size * gradient, -self.exponent))
        noise = rounded_gaussian(self.scale, len(model), bits=bits) if self.scale else 0
        return self.projected(np.ldexp(moved + noise, self.exponent))

    def projected(self, point: Model) -> Model:
        """Return the nearest point of the ball."""
        length = _length(point)
        return point if length <= self.radius else point * (self.radius / length)

    def checked(self, gradient: Any, size: int) -> Model:
        """Return a gradient, or raise: one that is too long would cost more than was charged."""
        found = _row(gradient)
        most = self.lipschitz * (1 + 2.0**-_GRADIENT_BITS)
        if found is None or found.shape != (size,) or _length(found) > most:
            raise ParameterError("gradient", _told(gradient), _GRADIENT)
        return found

    def start(self, model: Any) -> Model:
        """Return the model that all begins with, or raise."""
        found = _row(model)
        if found is None or found.size == 0 or _length(found) > self.radius:
            raise ParameterError("start", _told(model), _MODEL)
        return found


def _row(values: Any) -> Model | None:
    """Return a row of finite real numbers as floats; None if it is none."""
    try:
        found = np.asarray(values)
    except ValueError:
        return None
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iuf"):
        return None
    with np.errstate(over="ignore"):
        row = found.astype(np.float64)
    return row if bool(np.isfinite(row).all()) else None


def _length(point: Model) -> float:
    """Return the L2 norm; inf where its square is no float."""
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(point))


def checked_gradient(gradient: Any) -> Gradient:
    """Return what computes gradients, or raise where it cannot be called."""
    if not callable(gradient):
        raise ParameterError("gradient", gradient, "a function of a model and of whose data it is")
    return gradient  # type: ignore[no-any-return]


def model_size(start: Any) -> int:
    """Return how many numbers a model has; 1 where it is none, which is refused later."""
    found = _row(start)
    return 1 if found is None else max(found.size, 1)


def _told(values: Any) -> str:
    """Return what may be said of numbers that are private."""
    return f"a {type(values).__name__} of shape {getattr(values, 'shape', 'unknown')}"


def projected_steps(
    mechanism: NoisyIterations | TokenWalk, size: int, steps: int, lipschitz: float, radius: float
) -> Projected:
    """Return steps whose rounding is covered by the noise, or raise where it would be too much."""
    bound = _validate.real("lipschitz", lipschitz, _LENGTH)
    ball = _validate.real("radius", radius, _LENGTH)
    noise, eta = mechanism.noise_multiplier, mechanism.step_size
    if noise == math.inf:
        raise ParameterError("noise_multiplier", noise, "finite where noise is drawn")
    length = Fraction(eta) * Fraction(bound)
    if not _LENGTH.low <= length <= _LENGTH.high:
        allowed = f"such that times lipschitz it is from {_LENGTH.low:g} to {_LENGTH.high:g}"
        raise ParameterError("step_size", eta, allowed)
    finest = math.frexp(float(length))[1] - _GRID_BITS - size.bit_length() // 2 - 1
    coarse = math.frexp(max(noise, 1.0) * float(length))[1] - _SCALE_BITS
    grid = max(finest, coarse)
    wider = (
        2
        * steps
        * _off(size, length, Fraction(ball), grid)
        / (change(mechanism.adjacency) * length)
    )
    if wider > _MOST_WIDER:
        raise IncompatibleError(
            f"rounding in {steps:,} steps of {size:,} numbers would add {float(wider):.2g} to the "
            "noise, more than a thousandth: take fewer steps, less noise or a smaller radius"
        )
    scale = float_up(largest_reading(noise) * (1 + wider) * length / Fraction(2.0**grid))
    return Projected(eta, bound, ball, grid, scale)


def _off(size: int, length: Fraction, radius: Fraction, exponent: int) -> Fraction:
    """Return how far a step in floats is from that of real numbers, in L2.

    Rounding to the grid before and after the noise, ``sqrt(d) h / 2`` each; the gradient,
    ``2^-30 eta L``; the sum, the projection and its norm, ``(d + 16) 2^-52`` of the sizes.
    """
    root = Fraction(math.isqrt(size - 1) + 1)
    floats = (size + 16) * (radius + length) * Fraction(1, 2**52)
    return root * Fraction(2.0**exponent) + length * Fraction(1, 2**_GRADIENT_BITS) + floats
