"""Sinh-normal noise ``A arsinh(N(0, 1/(2 rho)) / A)`` with the means 0 and 1, to any precision.

At the output ``1/2 + A u`` the loss is ``k sinh(2u) - ln(cosh(u + v) / cosh(u - v))`` with
``v = 1/(2A)`` and ``k = rho A^2 sinh(2v)``; it is odd, and increasing where ``rho A^2 >= 1/2``.
"""

from __future__ import annotations

from fractions import Fraction

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision.profiles import exact, phi, scaled_phi, uncancelled

_STEPS = 10_000


def sinh_normal_delta(epsilon: mpf, rho: Fraction, width: Fraction) -> mpf:
    """Return ``Phi(-a sinh(u - v)) - e^eps Phi(-a sinh(u + v))``, ``a = A sqrt(2 rho)``.

    u is where the loss is epsilon, any real number.
    """

    def difference() -> tuple[mpf, mpf]:
        scale, half = exact(width) * mp.sqrt(2 * exact(rho)), 1 / (2 * exact(width))
        u = threshold(epsilon, rho, width)
        first = phi(-scale * mp.sinh(u - half))
        return first, first - scaled_phi(epsilon, -scale * mp.sinh(u + half))

    return uncancelled(difference)


def threshold(epsilon: mpf, rho: Fraction, width: Fraction) -> mpf:
    """Return the u at which the loss is epsilon: Newton's method from above, where it is convex.

    What is subtracted is at most half of the first term, so that the root is below
    ``arsinh(2 eps / k) / 2``.
    """
    if epsilon < 0:
        return -threshold(-epsilon, rho, width)
    half = 1 / (2 * exact(width))
    sinh, cosh = mp.sinh(2 * half), mp.cosh(2 * half)
    strength = exact(rho) * exact(width) ** 2 * sinh
    u = mp.asinh(2 * epsilon / strength) / 2
    for _ in range(_STEPS):
        subtracted = 2 * mp.atanh(mp.tanh(u) * mp.tanh(half))
        excess = strength * mp.sinh(2 * u) - subtracted - epsilon
        step = excess / (2 * strength * mp.cosh(2 * u) - 2 * sinh / (mp.cosh(2 * u) + cosh))
        u -= step
        if abs(step) <= u * mp.eps * 64:
            break
    return u
