"""Check values of the local and the shuffle model, from the papers and by another route."""

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.conversions.published import shuffled_reports as shuffled
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.shuffled_reports import clones_delta
from hockeystick.release import response_error, unary_error


def by_tails(local: Any, users: int, epsilon: Any) -> Any:
    """Return ``(1 + e^epsilon) E[(tau S/T - tanh(epsilon/2))_+]`` by tails of fair coins."""
    tau = mp.tanh(local / 2)
    kappa, total = mp.tanh(epsilon / 2) / tau, mp.zero
    for t in range(1, users + 1):
        chance = math.comb(users - 1, t - 1) * (1 - tau) ** (t - 1) * tau ** (users - t)
        first = int(mp.floor(t * (1 + kappa) / 2)) + 1
        tail = sum(math.comb(t, x) for x in range(first, t + 1))
        total += chance * (math.comb(t - 1, first - 1) - kappa * tail) / mp.mpf(2) ** t
    return (1 + mp.exp(epsilon)) * tau * total


def test_the_clones_of_2023_and_of_2021_with_two_hundred_users() -> None:
    with mp.workdps(32):
        stronger = clones_delta(mp.one, 200, mp.mpf("0.4"))
        first = clones_delta(mp.one, 200, mp.mpf("0.4"), overlap=mp.exp(-1))
        assert mp.almosteq(stronger, mp.mpf("9.72428105413689305213606973396e-8"), 1e-27)
        assert mp.almosteq(first, mp.mpf("3.98190628536955425148057208619e-6"), 1e-27)
        assert mp.almosteq(stronger, by_tails(mp.one, 200, mp.mpf("0.4")), 1e-27)
    found = shuffled.clones_delta(1.0, 200, epsilon=0.4)
    assert found.lower <= stronger <= found.upper
    assert found.relative_width < 1e-3


def test_the_closed_form_of_2021() -> None:
    for local, users, delta, epsilon in (
        (4.0, 10**5, 1e-6, 0.534633991651707646),
        (1.0, 10**6, 1e-8, 0.026775163467591223),
    ):
        closed = shuffled.hiding_among_clones(local, users, delta)
        assert closed.epsilon == pytest.approx(epsilon, rel=1e-13)
        # The numerical answer is several times less.
        assert shuffled.clones_epsilon(local, users, delta).upper < 0.5 * epsilon


def test_the_prefactor_of_the_authors_code_is_larger_than_the_theorems() -> None:
    # (1 - e^-e0)/(1 + e^-(e0 + e1)), e1 the epsilon itself, where the theorem has tanh(e0/2).
    local, epsilon = 4.0, 0.53780
    theirs = -math.expm1(-local) / (1 + math.exp(-local - epsilon))
    assert theirs > math.tanh(0.5 * local)
    ratio = theirs / math.tanh(0.5 * local)
    assert math.log1p(ratio * math.expm1(0.534633991651707646)) == pytest.approx(epsilon, rel=1e-4)


def test_randomized_response_with_ten_categories() -> None:
    mechanism = hs.RandomizedResponse(1.0, 10)
    found = hs.delta(mechanism, 0.5)
    assert float(found) == pytest.approx(0.0912728140025937886, rel=1e-14)
    # What is often printed as the error is that of a category that nobody holds.
    assert response_error(mechanism, 1000, 0.0) == pytest.approx(3.63024869291551948e-3, rel=1e-14)
    assert response_error(mechanism, 1000, 0.3) == pytest.approx(5.02699278940190290e-3, rel=1e-14)


def test_unary_encodings_with_a_thousand_users() -> None:
    optimized, symmetric = (
        hs.mechanisms.UnaryEncoding(1.0, "optimized"),
        hs.mechanisms.UnaryEncoding(1.0),
    )
    assert unary_error(optimized, 1000, 0.0) == pytest.approx(3.68269437683116928e-3, rel=1e-14)
    assert unary_error(symmetric, 1000, 0.3) == pytest.approx(3.91769808903276376e-3, rel=1e-14)
