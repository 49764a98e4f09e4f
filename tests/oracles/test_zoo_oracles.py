"""The zoo's oracles against published check values, and against what is stored."""

import json
from typing import Any

import pytest
from mpmath import mp

from tests.oracles import zoo_outputs as outputs
from tests.oracles.zoo import FILE, row_of
from tests.oracles.zoo_outputs import Listed, Real, multisets


def same(found: Real, known: Any, figures: float = 20) -> bool:
    known = mp.mpf(known)
    return bool(abs(found - known) <= abs(known) * mp.mpf(10) ** -figures)


def test_single_runs_have_their_check_values() -> None:
    with mp.workdps(45):
        response = Listed.of(outputs.randomized_response(mp.mpf(1), 10))
        assert same(response.delta(mp.mpf("0.5")), "0.0912728140025937886263491456854", 29)
        wide = Listed.of(outputs.discrete_gaussian(mp.mpf(2)))
        assert same(wide.delta(mp.mpf(1)), "0.00724877684595258", 14)
        narrow = Listed.of(outputs.discrete_gaussian(mp.sqrt(mp.mpf("0.5"))))
        assert same(narrow.delta(mp.mpf(1)), "0.189658529428397076689")


def test_responses_compose_as_kairouz_oh_and_viswanath_say() -> None:
    with mp.workdps(45):
        curve = Listed.of(multisets(outputs.randomized_response(mp.mpf("0.1"), 2), 30))
        assert same(curve.delta(mp.mpf("1.2")), "4.09526930399204130841537876526e-3", 29)
        assert same(curve.epsilon(mp.mpf("1e-6")), "2.34588769300803662271", 20)


@pytest.mark.parametrize(
    "name",
    [
        "discrete Laplace 2",
        "randomized response 1 of 10",
        "above threshold 2, 4, one query",
        "composed discrete Laplace 2 and response 1",
        "sampled response 1 of 3 at 0.2",
    ],
)
def test_the_file_holds_what_the_oracle_says(name: str) -> None:
    assert json.loads(FILE.read_text(encoding="utf-8"))[name] == row_of(name)
