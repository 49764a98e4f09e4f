"""A delta means its float and the decimal that it prints as: every answer holds for both.

Next to 1, where ``1 - delta`` counts, and below the normal numbers their first digits differ.
"""

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp, mpf

DELTAS = [0.9988647317924046, 0.9999999999999994, 5e-324]
PLANS = [
    hs.Gaussian(0.061),
    hs.PureDP(38.0),
    hs.PureDP(31.5) @ hs.PureDP(0.5) @ hs.PureDP(11.8),
    hs.Laplace(0.0265),
]
NAMES = ["closed-form", "contour", "prv", "rdp", "zcdp", "moments", "advanced"]


def truths(plan: hs.Mechanism, delta: float) -> tuple[mpf, mpf]:
    """Return epsilon at the decimal, and at the float's own value by bisection at the decimals."""
    decimal = hs.epsilon(plan, delta, digits=30).estimate
    with mp.workdps(40):
        own, low, high = mp.mpf(delta), mp.mpf(0), mp.mpf(2000)
        if profile(plan, low) <= own:
            return decimal, low
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if profile(plan, middle) > own else (low, middle)
    return decimal, high


def profile(plan: hs.Mechanism, epsilon: mpf) -> mpf:
    """Return delta by definition, to mpmath's precision."""
    if isinstance(plan, hs.Gaussian):
        mu = 1 / mp.mpf(repr(plan.noise_multiplier))
        first, second = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return mp.ncdf(first) - mp.exp(epsilon) * mp.ncdf(second)
    if isinstance(plan, hs.Laplace):
        return max(-mp.expm1((epsilon - 1 / mp.mpf(repr(plan.scale))) / 2), mp.zero)
    parts = plan.parts if isinstance(plan, hs.Composed) else (plan,)
    sums = [(mp.zero, mp.one)]
    for part in parts:
        assert isinstance(part, hs.PureDP)
        size = mp.mpf(repr(part.epsilon))
        ends = [(size, 1 / (1 + mp.exp(-size))), (-size, 1 / (1 + mp.exp(size)))]
        sums = [(loss + x, p * q) for loss, p in sums for x, q in ends]
    return mp.fsum(-p * mp.expm1(epsilon - loss) for loss, p in sums if loss > epsilon)


@pytest.mark.parametrize("epsilon", [2.125000000000001, 4.125000000000002, 6.125000000000002])
def test_delta_of_floats_holds_what_digits_say_next_to_an_atom(epsilon: float) -> None:
    plan = hs.DiscreteGaussian(2.0)
    floats, known = hs.delta(plan, epsilon), hs.delta(plan, epsilon, digits=25)
    assert floats.lower <= known.lower <= known.upper <= floats.upper


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_epsilon_holds_for_both_readings_of_delta(plan: hs.Mechanism, delta: float) -> None:
    known = truths(plan, delta)
    for name in NAMES:
        try:
            found = hs.epsilon(plan, delta, accountant=name)
        except hs.errors.UnsupportedError:
            continue
        assert isinstance(found, hs.Certified)
        assert found.lower <= min(known) * (1 + mp.mpf(10) ** -25), name
        assert max(known) * (1 - mp.mpf(10) ** -25) <= found.upper, name
