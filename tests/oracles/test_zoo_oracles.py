"""The zoo's oracles against published check values, and one route against another."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from mpmath import mp

from tests.oracles import zoo_outputs as outputs
from tests.oracles.zoo import BANDS, FILE, row_of
from tests.oracles.zoo_gaussian import Gaussian, Mixture, encoder_mu, square_root, tree_mu
from tests.oracles.zoo_laplace import FewSampled, Laplace
from tests.oracles.zoo_line import Inverted, MomentBound
from tests.oracles.zoo_outputs import Listed, Real, multisets


@contextmanager
def digits(count: int) -> Iterator[None]:
    with mp.workdps(count):
        yield


def same(found: Real, known: Any, figures: float = 20) -> bool:
    known = mp.mpf(known)
    return bool(abs(found - known) <= abs(known) * mp.mpf(10) ** -figures)


@digits(45)
def test_single_runs_have_their_check_values() -> None:
    response = Listed.of(outputs.randomized_response(mp.mpf(1), 10))
    assert same(response.delta(mp.mpf("0.5")), "0.0912728140025937886263491456854", 29)
    wide = Listed.of(outputs.discrete_gaussian(mp.mpf(2)))
    assert same(wide.delta(mp.mpf(1)), "0.00724877684595258", 14)
    narrow = Listed.of(outputs.discrete_gaussian(mp.sqrt(mp.mpf("0.5"))))
    assert same(narrow.delta(mp.mpf(1)), "0.189658529428397076689")
    assert same(Laplace(mp.mpf(1), 1).delta(mp.mpf("0.5")), "0.2211992169285951317548297", 24)
    few = FewSampled(mp.mpf(1), mp.mpf("0.1"), 1, adding=False)
    assert same(few.delta(mp.mpf("0.05")), "0.025401389825142776002300918845", 28)
    assert same(Gaussian(mp.mpf(1)).delta(mp.mpf(1)), "0.126936737506643945800829624758", 29)


@digits(45)
def test_responses_compose_as_kairouz_oh_and_viswanath_say() -> None:
    curve = Listed.of(multisets(outputs.randomized_response(mp.mpf("0.1"), 2), 30))
    assert same(curve.delta(mp.mpf("1.2")), "4.09526930399204130841537876526e-3", 29)
    assert same(curve.epsilon(mp.mpf("1e-6")), "2.34588769300803662271", 20)


@digits(45)
def test_one_sampled_gaussian_has_its_check_values() -> None:
    c, w = (mp.mpf(0), mp.mpf(1)), (mp.mpf("0.9"), mp.mpf("0.1"))
    removing, adding = (Mixture(mp.mpf(2), c, w, way) for way in (False, True))
    assert same(removing.delta(mp.mpf("0.2")), "2.88571111801261534128e-4")
    assert same(adding.delta(mp.mpf("0.05")), "1.54598599391907605115e-3")


@digits(45)
def test_trees_and_square_roots_have_their_check_values() -> None:
    assert same(tree_mu(mp.mpf(1), 1000), mp.sqrt(10), 40)
    assert same(encoder_mu(mp.mpf(1), square_root(1000), 1, 1), "1.8069319524189147", 16)
    assert same(encoder_mu(mp.mpf(1), BANDS, 1, 1), mp.sqrt(mp.mpf("1.25")), 40)
    assert same(encoder_mu(mp.mpf(1), BANDS, 2, 3), mp.sqrt(mp.mpf("2.5")), 40)


@digits(30)
def test_moments_bound_what_is_listed() -> None:
    pair = outputs.randomized_response(mp.mpf(1), 3)
    curve, bound = Listed.of(multisets(pair, 20)), MomentBound(pair, 20)
    for epsilon in (mp.mpf(4), mp.mpf(10)):
        assert curve.delta(epsilon) < bound.delta(epsilon) < 30 * curve.delta(epsilon)
    assert curve.epsilon(mp.mpf("1e-6")) < bound.epsilon(mp.mpf("1e-6"))


@digits(30)
def test_two_lines_that_disagree_are_no_answer() -> None:
    pair = outputs.randomized_response(mp.mpf(1), 2)
    found = Inverted.of(pair, 3, theta=mp.mpf(1), top=50.0)
    with pytest.raises(ArithmeticError, match="two lines disagree"):
        found.delta(mp.mpf(1))


@pytest.mark.parametrize(
    "name",
    [
        "discrete Laplace 2",
        "discrete Gaussian 2",
        "randomized response 1 of 10",
        "above threshold 2, 4, one query",
        "composed discrete Laplace 2 and response 1",
        "Laplace 2",
        "sampled response 1 of 3 at 0.2",
    ],
)
def test_the_file_holds_what_the_oracle_says(name: str) -> None:
    assert json.loads(FILE.read_text(encoding="utf-8"))[name] == row_of(name)
