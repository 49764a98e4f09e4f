"""Privacy profiles in closed form, and mechanisms with few outputs, to any precision."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from hockeystick.numerics import decimal
from hockeystick.numerics.multiprecision import mp, mpf

# Pairs (loss, probability under P), ascending in the loss.
AtomList = list[tuple[mpf, mpf]]
# The number of standard deviations beyond which the tail is below 10^-(10^11), and taken as 0.
_MOST_DEVIATIONS = 1_000_000
_NEWTON_STEPS = 10_000


def exact(value: float | Fraction) -> mpf:
    """Return a number read as the decimal that it prints as; a fraction as itself."""
    fraction = value if isinstance(value, Fraction) else decimal(float(value))
    return mp.mpf(fraction.numerator) / fraction.denominator


def reciprocal(value: float | Fraction) -> mpf:
    """Return one over a number read as the decimal that it prints as."""
    return 1 / exact(value)


def gaussian_delta(epsilon: mpf, mu: mpf) -> mpf:
    """Return ``Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)`` for any real epsilon.

    References:
        Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, corollary 2.13.
    """
    if epsilon == mp.inf:
        return mp.zero

    def difference() -> tuple[mpf, mpf]:
        near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        first = phi(near)
        return first, first - scaled_phi(epsilon, far)

    with mp.extraprec(_lost(epsilon, mu)):
        return uncancelled(difference)


def sampled_gaussian_delta(epsilon: mpf, rate: mpf, mu: mpf, removing: bool) -> mpf:
    """Return the profile of one Poisson-subsampled Gaussian for epsilon >= 0.

    Removing, ``p delta_G(ln(1 + (e^eps - 1)/p))``. Adding, with ``l = -eps``, the losses reach
    -ln(1-p) only: ``(1 - e^eps (1-p)) Phi(x) - e^eps p Phi(x - mu)`` at the output x whose
    likelihood ratio is ``e^-eps``, and 0 beyond.

    References:
        Zhu, Dong and Wang 2022, theorem 11; Balle, Barthe and Gaboardi 2018, theorem 8.
    """
    if removing:
        with mp.extraprec(64):
            inner = mp.log1p(mp.expm1(epsilon) / rate)
        return rate * gaussian_delta(inner, mu)
    with mp.extraprec(64):
        if epsilon >= -mp.log1p(-rate):
            return mp.zero

    def difference() -> tuple[mpf, mpf]:
        x = mu / 2 + mp.log1p(mp.expm1(-epsilon) / rate) / mu
        first = -mp.expm1(epsilon + mp.log1p(-rate)) * phi(x)
        return first, first - rate * scaled_phi(epsilon, x - mu)

    return uncancelled(difference)


def replaced_gaussian_delta(epsilon: mpf, rate: mpf, mu: mpf) -> mpf:
    """Return the profile of ``(1-p) N(0) + p N(mu)`` against ``(1-p) N(0) + p N(-mu)``.

    The loss is ``eps`` at ``mu x = eps/2 + asinh((1-p)/p e^(mu^2/2) sinh(eps/2))`` and rises with
    x.
    """
    if epsilon == mp.inf:
        return mp.zero

    def difference() -> tuple[mpf, mpf]:
        factor = (1 - rate) / rate * mp.exp(mu * mu / 2)
        x = (epsilon / 2 + mp.asinh(factor * mp.sinh(epsilon / 2))) / mu
        first = (1 - rate) * phi(-x) + rate * phi(mu - x)
        second = (1 - rate) * scaled_phi(epsilon, -x) + rate * scaled_phi(epsilon, -mu - x)
        return first, first - second

    with mp.extraprec(64 + _lost(epsilon, mu)):
        return uncancelled(difference)


def displaced_gaussian_delta(epsilon: mpf, rate: mpf, mu: mpf) -> mpf:
    """Return the profile of ``(1-q) N(-mu) + q N(mu)`` against ``(1-q) N(-mu) + q N(0)``.

    For ``eps >= 0`` the loss is above eps where ``w = e^(mu x)`` is above the larger root of
    ``w^2 - e^(eps + mu^2/2) w = (1-q)/q (e^eps - 1)``.
    """
    if epsilon == mp.inf:
        return mp.zero

    def difference() -> tuple[mpf, mpf]:
        half = mu * mu / 2
        bend = 4 * (1 - rate) / rate * mp.exp(-2 * half - epsilon) * -mp.expm1(-epsilon)
        x = (half + epsilon + mp.log((1 + mp.sqrt(1 + bend)) / 2)) / mu
        first = (1 - rate) * phi(-x - mu) + rate * phi(mu - x)
        second = (1 - rate) * scaled_phi(epsilon, -x - mu) + rate * scaled_phi(epsilon, -x)
        return first, first - second

    with mp.extraprec(64 + _lost(epsilon, mu)):
        return uncancelled(difference)


def sinh_normal_delta(epsilon: mpf, rho: Fraction, width: Fraction) -> mpf:
    """Return the profile of ``A arsinh(N(0, 1/(2 rho)) / A)`` with the means 0 and 1.

    It is ``Phi(-a sinh(u - v)) - e^eps Phi(-a sinh(u + v))``, ``a = A sqrt(2 rho)``. At the output
    ``1/2 + A u`` the loss is ``k sinh(2u) - ln(cosh(u + v) / cosh(u - v))`` with ``v = 1/(2A)`` and
    ``k = rho A^2 sinh(2v)``; it is odd, and increasing where ``rho A^2 >= 1/2``.
    """

    def difference() -> tuple[mpf, mpf]:
        scale, half = exact(width) * mp.sqrt(2 * exact(rho)), 1 / (2 * exact(width))
        u = _sinh_normal_threshold(epsilon, rho, width)
        first = phi(-scale * mp.sinh(u - half))
        return first, first - scaled_phi(epsilon, -scale * mp.sinh(u + half))

    return uncancelled(difference)


def _sinh_normal_threshold(epsilon: mpf, rho: Fraction, width: Fraction) -> mpf:
    """Return the u at which the loss is epsilon, by Newton's method, as it is convex from above.

    The root is below ``arsinh(2 eps / k) / 2``: at most half of the first term is subtracted.
    """
    if epsilon < 0:
        return -_sinh_normal_threshold(-epsilon, rho, width)
    half = 1 / (2 * exact(width))
    sinh, cosh = mp.sinh(2 * half), mp.cosh(2 * half)
    strength = exact(rho) * exact(width) ** 2 * sinh
    u = mp.asinh(2 * epsilon / strength) / 2
    for _ in range(_NEWTON_STEPS):
        subtracted = 2 * mp.atanh(mp.tanh(u) * mp.tanh(half))
        excess = strength * mp.sinh(2 * u) - subtracted - epsilon
        step = excess / (2 * strength * mp.cosh(2 * u) - 2 * sinh / (mp.cosh(2 * u) + cosh))
        u -= step
        if abs(step) <= u * mp.eps * 64:
            break
    return u


def phi(x: mpf) -> mpf:
    """Return the standard normal distribution function, precise in the lower tail.

    Beyond a million deviations it is 0 or 1: what an exponential makes up for takes ``scaled_phi``.
    """
    if abs(x) > _MOST_DEVIATIONS:
        return mp.zero if x < 0 else mp.one
    return mp.erfc(-x / mp.sqrt(2)) / 2


def scaled_phi(epsilon: mpf, x: mpf) -> mpf:
    """Return ``e^epsilon Phi(x)``, which may be moderate where neither factor is."""
    if x >= -_MOST_DEVIATIONS:
        return mp.exp(epsilon) * phi(x)
    if x == -mp.inf:
        return mp.zero
    square = x * x
    exponent = epsilon - square / 2
    if exponent < -(_MOST_DEVIATIONS**2):
        return mp.zero
    # Mills' ratio, by its asymptotic series, whose error is below the first term left out.
    term, ratio, k = mp.one, mp.zero, 1
    while abs(term) > mp.eps:
        ratio += term
        term *= -k / square
        k += 2
    return mp.exp(exponent) * ratio / (-x * mp.sqrt(2 * mp.pi))


def _lost(epsilon: mpf, mu: mpf) -> int:
    """Return the number of bits that ``(mu/2 - eps/mu)^2`` loses where its terms are large."""
    return int(2 * max(0, mp.mag(mu), mp.mag(epsilon / mu)))


def uncancelled(difference: Callable[[], tuple[mpf, mpf]], extra: int = 160) -> mpf:
    """Evaluate a difference with as much extra precision as it cancels, from some bits on.

    ``difference`` returns the first term and the difference, which must not be negative.
    """
    while True:
        with mp.extraprec(extra):
            first, value = difference()
            enough = value > 0 and mp.mag(first) - mp.mag(value) + 20 < extra
        if enough or first == 0 or extra > 20_000:
            return +max(value, mp.zero)
        extra *= 2


def three_points(epsilon: mpf, nothing: mpf) -> AtomList:
    """Return ``+-epsilon`` as e^epsilon to 1, and 0 with the probability ``nothing``."""
    rest = (1 - nothing) / (1 + mp.exp(-epsilon))
    lost = (-epsilon, rest * mp.exp(-epsilon))
    won = (epsilon, rest)
    return [lost, (mp.zero, nothing), won] if nothing else [lost, won]


def randomized_response(epsilon: mpf, categories: int) -> AtomList:
    """Return the atoms of K-ary randomized response: K - 2 of the outputs have loss 0."""
    small = mp.exp(-epsilon)
    return three_points(epsilon, (categories - 2) * small / (1 + (categories - 1) * small))


def binary_runs(epsilon: mpf, runs: int) -> AtomList:
    """Return the atoms of the composition of several binary randomized responses of epsilon.

    ``k`` of them are true with binomial probability; the loss is then ``(2k - runs) epsilon``.
    """
    odds = mp.exp(epsilon)
    probability = mp.exp(-runs * mp.log1p(odds))
    found = []
    for k in range(runs + 1):
        found.append(((2 * k - runs) * epsilon, probability))
        probability = probability * odds * (runs - k) / (k + 1)
    return found


def atomic_delta(atoms: AtomList, epsilon: mpf) -> mpf:
    """Return ``sum p (1 - e^(epsilon - loss))`` over the losses above epsilon: no cancellation."""
    above = [(loss, p) for loss, p in atoms if loss > epsilon]
    return mp.fsum(-p * mp.expm1(epsilon - loss) for loss, p in above)
