"""Several deltas or epsilons at once: what each says alone, in any order, and refused alike."""

import math
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import ACCOUNTANTS
from hockeystick.accountants.composition import composition_of
from hockeystick.errors import ParameterError
from hockeystick.kernels import contour_sums

PLANS = [
    hs.DPSGD(noise_multiplier=1.1, examples=60_000, batch_size=256, epochs=10),
    hs.PoissonSubsampled(hs.Gaussian(0.8), 1e-4) ** 300,
    hs.PoissonSubsampled(hs.Gaussian(2.0), 0.3) ** 40 @ hs.PoissonSubsampled(hs.Gaussian(1), 0.01),
    hs.Gaussian(2.0) ** 3,
    hs.Laplace(1.5) ** 20,
    hs.PoissonSubsampled(hs.Gaussian(1.0), 0.01, adjacency="replace-one") ** 100,
]
DELTAS = [1e-5, 0.3, 1e-250, 1e-8, 1e-5, 1e-3, 0.0, 1.0, 1e-12, 5e-324]
EPSILONS = [1.0, 0.0, 0.25, 3.0, 1.0, math.inf, 8.0, 1e-3]


@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
@pytest.mark.parametrize("quantity", ["epsilon", "delta"])
def test_several_answers_agree_with_those_asked_alone(plan: hs.Mechanism, quantity: str) -> None:
    ask, values = (hs.epsilon, DELTAS) if quantity == "epsilon" else (hs.delta, EPSILONS)
    together = ask(plan, values)
    assert len(together) == len(values)
    for value, one in zip(values, together, strict=True):
        alone = ask(plan, value)
        assert max(one.lower, alone.lower) <= min(one.upper, alone.upper)
        assert one.relative_width <= max(2e-9, alone.relative_width)
        assert (one.accountant, one.assumptions) == (alone.accountant, alone.assumptions)


def test_the_answers_to_many_hold_those_in_arbitrary_precision() -> None:
    deltas = np.logspace(-14, -2, 50)
    answers = hs.epsilon(PLANS[0], deltas)
    for delta, answer in list(zip(deltas.tolist(), answers, strict=True))[::17]:
        exact = hs.epsilon(PLANS[0], delta, digits=20)
        assert answer.lower <= exact.upper
        assert exact.lower <= answer.upper
    assert all(a.lower > b.upper for a, b in pairwise(answers))


def test_a_thousand_deltas_take_four_sums_with_errors_each(monkeypatch: pytest.MonkeyPatch) -> None:
    summed = {"deltas": 0, "estimates": 0}

    def counted(name: str) -> None:
        kernel = getattr(contour_sums, name)

        def call(*args: Any) -> Any:
            summed[name] += args[-1].size
            return kernel(*args)

        monkeypatch.setattr(contour_sums, name, call)

    counted("deltas")
    counted("estimates")
    hs.epsilon(PLANS[0], np.geomspace(1e-10, 1e-2, 1000))
    assert 3000 < summed["deltas"] < 4500
    assert 1000 < summed["estimates"] < 2500


@pytest.mark.parametrize("count", [2, 3, 17, 18, 200])
def test_deltas_at_any_distances_are_found_by_few_integrals(count: int) -> None:
    composition = composition_of(PLANS[0], "auto").branches[0]
    rng = np.random.default_rng(count)
    some = 10.0 ** rng.uniform(-9.0, -1.5, count)
    deltas = [*some, math.nextafter(some[0], 1.0), *(some[1] * np.array([1.0 + 1e-9, 1.0 + 1e-4]))]
    assert set(ACCOUNTANTS["contour"].many(composition, "epsilon", deltas)) == set(deltas)


@pytest.mark.parametrize("deltas", [[], [1e-5, 2.0], ["a"], np.ones((2, 2)), "1e-5", [math.nan]])
def test_what_is_no_delta_is_refused(deltas: object) -> None:
    with pytest.raises(ParameterError, match="delta"):
        hs.epsilon(PLANS[0], deltas)  # type: ignore[call-overload]


def test_an_epsilon_by_place_that_looks_like_a_delta_warns() -> None:
    plan = hs.Gaussian(1)
    with pytest.warns(
        UserWarning, match=r"write hockeystick\.epsilon\(plan, delta=1e-05\)"
    ) as seen:
        found = hs.delta(plan, 1e-5)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hs.delta(plan, epsilon=1e-5) == found
        assert hs.delta(plan, 0.0) != hs.delta(plan, 1e-3)
