"""Audits against mpmath and against check values that were published or derived elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mpmath import mp
from scipy.optimize import brentq

from hockeystick.audit._region import (
    at_threshold,
    best_of,
    epsilons,
    lower_rate,
    mus,
    rectangle,
    upper_rate,
)
from hockeystick.audit.one_run import (
    Guesses,
    epsilon_by_binomial,
    largest_rejected,
    of_gaussians,
    of_lines,
    rejected,
)
from tests.oracles import audits

GUESSES = Guesses(1000, 100, 95)


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mp.workdps(26):
        yield


def scores(false_negatives: int, false_positives: int, trials: int) -> tuple[Any, Any]:
    """Scores that a threshold of 0.5 errs on so often."""
    numbers = np.arange(trials)
    return (numbers >= false_negatives).astype(float), (numbers < false_positives).astype(float)


def below(found: float, known: Any, relative: float = 1e-7) -> bool:
    """Whether a bound is at most a number, and hardly less."""
    return bool(known * (1 - mp.mpf(relative)) <= found <= known)


def test_the_oracle_has_the_check_values() -> None:
    fnr, fpr = audits.upper_rate(700, 1000, "0.025"), audits.upper_rate(5, 1000, "0.025")
    assert mp.almosteq(fnr, mp.mpf("0.7282788878708555447911769"), 1e-21)
    assert mp.almosteq(fpr, mp.mpf("0.01162947055981214912164882"), 1e-21)
    epsilon = audits.epsilon_of(fnr, fpr, "1e-5")
    assert mp.almosteq(epsilon, mp.mpf("3.151196972288175665870741"), 1e-20)
    mu = -audits.normal_quantile(fpr) - audits.normal_quantile(fnr)
    assert mp.almosteq(mu, mp.mpf("1.661538408473707943"), 1e-18)
    assert mp.almosteq(audits.gaussian_epsilon(mu, "1e-5"), mp.mpf("7.973944530928489950"), 1e-18)


def test_clopper_and_pearson_at_a_threshold_have_the_check_values() -> None:
    rule = at_threshold(*scores(700, 5, 1000), 0.5, rectangle(0.05))
    assert below(best_of([rule], epsilons(1e-5))[0], mp.mpf("3.151196972288175665870741"))
    assert below(best_of([rule], mus)[0], mp.mpf("1.661538408473707943"))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_one_run_has_the_check_values(delta: float) -> None:
    published = {0.0: "2.1724340431928996", 1e-5: "2.1651757997140519769"}[delta]
    found = epsilon_by_binomial(GUESSES, delta, 0.05)
    known = audits.one_run_epsilon(1000, 100, 95, mp.mpf(delta), "0.05")
    assert below(found, known + mp.mpf("1e-9"))
    if delta == 0.0:
        assert below(found, mp.mpf(published) + mp.mpf("1e-16"))
    else:
        assert found > mp.mpf(published) + mp.mpf("0.006")


def test_the_recursion_has_the_check_value() -> None:
    found = largest_rejected(GUESSES, 0.05, of_gaussians)
    assert below(found, mp.mpf("0.786811814682") + mp.mpf("5e-13"))
    known = audits.gaussian_epsilon(mp.mpf(found), "1e-5")
    assert abs(known - mp.mpf("3.3233")) < 1e-4


def test_the_recursion_for_approximate_privacy_is_what_its_formula_says() -> None:
    def is_rejected(epsilon: float) -> bool:
        lines = of_lines(np.array([epsilon]), np.array([1e-5]))
        return bool(rejected(GUESSES, 0.05, lines, np.zeros(1))[0])

    def excess(epsilon: float) -> Any:
        e, d = mp.exp(mp.mpf(epsilon)), mp.mpf("1e-5")
        return audits.one_run_excess(
            1000, 100, 95, "0.05", lambda r: max((r - d) / e, 1 - d - e * (1 - r), mp.mpf(0))
        )

    found = brentq(lambda epsilon: float(excess(epsilon)), 1.0, 4.0, xtol=1e-9)
    assert is_rejected(found - 1e-6)
    assert not is_rejected(found + 1e-6)


CASES = [(k, n) for n in (3, 100, 10_000, 1_000_000) for k in (0, 1, 2, n // 10, n // 2, n - 1, n)]


@pytest.mark.parametrize("level", [0.45, 0.025, 1e-9])
@pytest.mark.parametrize(("count", "trials"), [*dict.fromkeys(CASES)])
def test_bounds_on_a_rate_are_on_the_safe_side_and_close(
    count: int, trials: int, level: float
) -> None:
    upper = float(upper_rate(count, trials, np.array(level)))
    lower = float(lower_rate(count, trials, np.array(level)))
    near = mp.mpf("1e-8")
    with mp.workdps(40):
        if count < trials:
            others = trials - count
            assert audits.beta_tail(others, trials, 1 - mp.mpf(upper)) <= level
            assert audits.beta_tail(others, trials, 1 - upper * (1 - near)) > level
        else:
            assert upper == 1.0
        if count > 0:
            assert audits.beta_tail(count, trials, mp.mpf(lower)) <= level
            assert audits.beta_tail(count, trials, lower * (1 + near)) > level
        else:
            assert lower == 0.0


def test_both_routes_to_a_binomial_tail_agree() -> None:
    for count, trials, rate in ((1, 3, "0.2"), (30, 100, "0.2"), (90, 100, "0.97")):
        known = audits.binomial_tail(count, trials, mp.mpf(rate))
        assert mp.almosteq(audits.beta_tail(count, trials, mp.mpf(rate)), known, 1e-20)
