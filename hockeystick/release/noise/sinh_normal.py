"""Sinh-normal noise on numbers, and on vectors with a proven account of it, exact in floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.noise.gaussian import SinhNormal
from hockeystick.notions import RenyiDP
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.numerics.rounding import as_mpf, evaluated_up
from hockeystick.numerics.working_precision import interval_bits, working_digits
from hockeystick.release._values import Grid, grid_of, numbers, of_kind, released, root_up
from hockeystick.release.charging import Charged
from hockeystick.release.noise.arrays import ENTRIES
from hockeystick.release.samplers import Bits, NoisyNumber, RealNoise, secret_bits
from hockeystick.release.samplers.bits import Floats, Integers, checked_words

if TYPE_CHECKING:
    from mpmath import mpf
_GUARD: Final = 128
_WIDTHS: Final = (0.5, 1e12)
_RHOS: Final = (1e-24, 1e6)
# Orders are multiples of 2^-10, which are the decimals that they print as.
_ORDERS, _PARTS, _LEAST, _LARGEST = 64, 1024.0, 2.0**-6, 2.0**14
_DIGITS: Final = 80


def sinh_normal(
    mechanism: SinhNormal,
    value: Any,
    sensitivity: float,
    *,
    entries: int = 1,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return numbers plus sinh-normal noise, independently in each.

    With S how far a number moves between neighbouring data sets, a finite number > 0 in its own
    unit, and g a power of two of at most ``2^-20 S``, each number is

        g (round(value / g) + round(c arsinh(Z / a))),
        Z ~ N(0, 1),  a = A sqrt(2 rho),  c = A (S / g + 1).

    Values are as for ``gaussian``, rho at least ``2^-87`` or so; inf returns the numbers. A draw
    takes some milliseconds (Bun, Dwork, Rothblum and Steinke, "Composable and Versatile Privacy via
    Truncated CDP", STOC 2018, section 4).

    Guarantees:
        That of the mechanism, where neighbouring data sets differ in one of the numbers; that of
        ``mechanism ** k`` with ``entries=k``. The grid is that of ``gaussian``; ``round(X)`` is a
        function of Z's bits, of which so many are drawn that interval arithmetic leaves one
        integer.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.SinhNormal(rho=0.1, width=40)
        >>> hs.release.sinh_normal(noise, [3.5, 4.5], sensitivity=1).shape
        (2,)
    """
    own, answer = of_kind(mechanism, SinhNormal), numbers("value", value)
    changed = _validate.count("entries", entries, ENTRIES)
    grid = _grid(own, sensitivity, 1)
    cost = own if changed == 1 else own**changed
    draw = _noise(own, grid) if own.rho < math.inf else None
    return released(grid, answer, cost, charge, draw, bits)


def sinh_normal_vector(
    mechanism: SinhNormal,
    value: Any,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Floats:
    """Return a vector plus sinh-normal noise in each entry, independently.

    With S the largest L2 distance of answers and d entries it is as ``sinh_normal`` says, with ``c
    = A (S / g + ceil(sqrt(d)))`` (van Dijk and Nguyen, "Considerations on the Theory of Training
    Models with Differential Privacy", 2023, who propose it for the sums of DP-SGD (``a arsinh(N /
    a)`` there)).

    Guarantees:
        That of ``sinh_normal_divergences(mechanism)``, which is charged and has the domain of the
        mechanism; not that of the mechanism, which is for one number.
    """
    cost, answer = sinh_normal_divergences(mechanism), numbers("value", value)
    grid = _grid(mechanism, sensitivity, root_up(answer.size))
    return released(grid, answer, cost, charge, _noise(mechanism, grid), bits)


def _grid(mechanism: SinhNormal, sensitivity: object, moved: int) -> Grid:
    return grid_of(mechanism, math.sqrt(0.5) / math.sqrt(mechanism.rho), sensitivity, moved)


def _noise(mechanism: SinhNormal, grid: Grid) -> Callable[..., Integers]:
    """Return what draws ``round(c arsinh(Z / a))`` for so many Gaussians Z."""
    width = largest_reading(mechanism.width)
    square, exact = 2 * least_reading(mechanism.rho) * width**2, width * grid.sensitivity

    def draw(_: float, size: int, *, bits: Bits) -> Integers:
        return np.array([_rounded_arsinh(exact, square, bits) for _ in range(size)], dtype=np.int64)

    return draw


def _rounded_arsinh(scale: Fraction, square: Fraction, bits: Bits) -> int:
    """Return ``round(scale arsinh(Z / sqrt(square)))`` for one Gaussian Z."""
    word = int(checked_words(bits, 1)[0])
    number = NoisyNumber(Fraction(0), RealNoise.GAUSSIAN, Fraction(1), word, bits)
    while True:
        ends = [_around(end, scale, square) for end in number.bounds()]
        if ends[0][0] == ends[1][1]:
            return ends[0][0]
        number.refine()


def _around(z: Fraction, scale: Fraction, square: Fraction) -> tuple[int, int]:
    """Return integers around ``round(scale ln(y + sqrt(y^2 + 1)))``, ``y^2 = z^2 / square``."""
    from mpmath import libmp

    from hockeystick.numerics.multiprecision import iv

    ratio = z * z / square
    with interval_bits(scale.numerator.bit_length() + ratio.denominator.bit_length() + _GUARD):
        y = iv.mpf(ratio.numerator) / ratio.denominator
        size = iv.log(iv.sqrt(y) + iv.sqrt(y + 1)) * scale.numerator / scale.denominator
        low, high = ((size if z > 0 else -size) + iv.mpf(0.5))._mpi_
    return libmp.to_int(low, "f"), libmp.to_int(high, "f")


def sinh_normal_divergences(mechanism: SinhNormal) -> RenyiDP:
    """Return what sinh-normal noise in each entry of a vector costs, of L2 sensitivity 1.

    For ``alpha > 1`` with ``4 alpha (alpha - 1) sinh(1/A)^2 < 1``, in any dimension,

        D_alpha <= (rho A^2 (1 - R) / 2 - ln(R) / 2 + k^2 / 2) / (alpha - 1),
        R = sqrt(1 - 4 alpha (alpha - 1) sinh(1/A)^2),
        k = ln((1 + alpha (e^(2/A) - 1)) / (1 - alpha (1 - e^(-2/A)))) / 4 - alpha / A.

    Proof. The noise has the density ``f(z) ~ cosh(z/A) exp(-rho A^2 sinh(z/A)^2)``. For a shift v
    of one entry, ``f(z - v)^alpha f(z)^(1 - alpha)`` has the exponent
    ``-(rho A^2/2) (R cosh(2 (z - tau)/A) - 1)``, with R and ``tau/A = k + alpha v/A`` at v/A for
    1/A (hyperbolic cosine rule). ``ln cosh`` is convex, so that what is before it is at most
    ``cosh((z - alpha v)/A)``, whose part even about tau is ``cosh(k) cosh((z - tau)/A)``; with
    ``n = A sinh((z - tau)/A)`` the integral is Gaussian: at most
    ``exp(rho A^2 (1 - R)/2) R^(-1/2) cosh(k)``, and ``cosh(k) <= exp(k^2/2)``. As functions of
    ``s = v^2``, ``sinh(v/A)^2`` and k^2 have power series of no negative coefficient (the
    derivative of ``2 tau/A`` by ``t = 2 v/A`` is ``(1 + sinh(t_0)/(cosh(t_0) - cosh(t)))/2``), and
    ``1 - sqrt(1 - x)`` and ``-ln(1 - x)`` are convex and rising: the logarithm of the bound is
    convex in s and 0 at 0. Entries are independent, so that a vector v costs the sum, at most
    ``sum v_i^2 = |v|^2 <= 1`` times the bound at 1.

    The width is from 1/2 to 1e12 and rho from 1e-24 to 1e6. Upper bounds, rounded up, at up to 64
    orders: 0.3 to 15 % above one entry's own divergence where that was computed, and tending to the
    Gaussian's ``rho alpha`` as A grows.

    **The account of one number is no bound for vectors.** A shift of ``1/sqrt(n)`` in each of n
    entries is exactly ``SinhNormal(rho/n, A sqrt(n)) ** n``, whose delta at small epsilons is
    larger than that of ``SinhNormal(rho, A)``; see the example. By Cramer and Rao no noise of its
    variance has less Fisher information than the Gaussian: at the same variance, vectors gain
    nothing.

    References:
        Bun, Dwork, Rothblum and Steinke 2018, section 4, has (16 rho, A/8)-tCDP for one number. The
        bound is this library's.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.SinhNormal(rho=0.1, width=10)
        >>> found = hs.release.sinh_normal_divergences(noise)
        >>> print(f"{hs.epsilon(found, delta=1e-5).upper:.3f}")
        3.039
        >>> spread = hs.mechanisms.SinhNormal(rho=0.1 / 16, width=40) ** 16
        >>> hs.delta(spread, epsilon=0).lower > hs.delta(noise, epsilon=0).upper
        True
    """
    known = of_kind(mechanism, SinhNormal)
    if not (_WIDTHS[0] <= known.width <= _WIDTHS[1] and _RHOS[0] <= known.rho <= _RHOS[1]):
        allowed = (
            f"of a width from {_WIDTHS[0]:g} to {_WIDTHS[1]:g} and a rho from {_RHOS[0]:g} to "
            f"{_RHOS[1]:g}"
        )
        raise ParameterError("mechanism", known, allowed)
    return RenyiDP(_divergences(known.rho, known.width))


@lru_cache(maxsize=64)
def _divergences(rho: float, width: float) -> tuple[tuple[float, float], ...]:
    """Return bounds of the divergences at orders for which they are finite.

    A bound rises with rho and falls with the width, so that both readings of each are covered.
    """
    largest = min(0.5 + 0.5 / math.tanh(1.0 / width) - 1.0, _LARGEST)
    steps = np.geomspace(_LEAST, max(largest, _LEAST), _ORDERS)
    orders = sorted({1.0 + math.floor(float(one) * _PARTS) / _PARTS for one in steps})
    with working_digits(_DIGITS):
        readings = as_mpf(largest_reading(rho)), as_mpf(least_reading(width))
        found = [(order, _bound(*readings, order)) for order in orders]
    return tuple((order, evaluated_up(value)) for order, value in found if value is not None)


def _bound(rho: mpf, width: mpf, order: float) -> mpf | None:
    """Return the bound of the divergence at an order, or None where it is infinite."""
    from hockeystick.numerics.multiprecision import mp

    alpha = mp.mpf(order)
    lost = 4 * alpha * (alpha - 1) * mp.sinh(1 / width) ** 2
    if lost >= 1:
        return None
    root = mp.sqrt(1 - lost)
    above, below = (1 + alpha * mp.expm1(t) for t in (2 / width, -2 / width))
    k = mp.log(above / below) / 4 - alpha / width
    # 1 - R without cancellation
    main = rho * width**2 / 2 * lost / (1 + root)
    return (main - mp.log1p(-lost) / 4 + k**2 / 2) / (alpha - 1)
