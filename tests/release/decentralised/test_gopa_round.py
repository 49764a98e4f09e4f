"""A round of GOPA: what ran is what was accounted, and what drops out, cancels or is refused."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import GOPA, Graph
from hockeystick.release import gopa_round
from tests.release.bits import none_left, seeded

PATH = Graph.path(4)


def test_one_party_moves_what_it_publishes_by_the_whole_width_and_nothing_else() -> None:
    plan = GOPA(0.5, 4.0, Graph.cycle(7), colluders=[2])
    low, high = (
        gopa_round(plan, [0.3] * 4 + [value] + [0.6] * 2, bits=seeded(5)) for value in (-9.0, 1.0)
    )
    moved = np.subtract(high.published, low.published)
    assert moved.tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert high.mean - low.mean == pytest.approx(1 / 7, rel=1e-9)


def test_the_noise_has_the_covariance_that_is_accounted() -> None:
    plan = GOPA(0.5, 2.0, PATH)
    bits = seeded(11)
    drawn = np.array([gopa_round(plan, [0.5] * 4, bits=bits).published for _ in range(4000)])
    laplacian = np.array([[1, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1]])
    expected = 0.25 * np.eye(4) + 4.0 * laplacian
    spread = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / 4000)
    assert (np.abs(np.cov(drawn.T) - expected) < 5 * spread).all()
    assert (np.abs(drawn.mean(axis=0) - 0.5) < 5 * np.sqrt(np.diag(expected) / 4000)).all()


def test_pairwise_noise_cancels_to_the_last_step() -> None:
    values = [0.125, 0.5, 0.75, 1.0]
    found = gopa_round(GOPA(0.0, 50.0, PATH), values)
    assert found.mean == np.mean(values)
    assert np.ptp(found.published) > 1.0


def test_who_drops_out_is_left_out_where_neighbours_roll_back() -> None:
    plan = GOPA(0.0, 50.0, Graph.complete(5), colluders=[4])
    values = [0.125, 0.5, 0.75, 1.0, 0.0]
    account = hs.Accountant()
    found = gopa_round(plan, values, dropouts=[1, 3], charge=account)
    assert found.mean == np.mean([0.125, 0.75, 0.0])
    assert found.parties == (0, 2, 4)
    assert found.mechanism == GOPA(0.0, 50.0, Graph.complete(5), colluders=[1, 3, 4])
    assert account.plan == found.mechanism
    kept = gopa_round(plan, values, dropouts=[1, 3], rollback=False)
    assert kept.mechanism == plan
    assert kept.mean != found.mean


def test_dropping_out_costs_those_who_stay() -> None:
    plan = GOPA(0.5, 5.0, Graph.random_out(30, 3, seed=2))
    found = gopa_round(plan, [0.5] * 30, dropouts=range(10))
    before, after = (hs.epsilon(one, delta=1e-6) for one in (plan, found.mechanism))
    assert before.upper < after.lower


def test_a_better_mean_than_by_local_noise() -> None:
    values = np.linspace(0, 1, 200)
    plan = GOPA(0.5, 5.0, Graph.random_out(200, 10, seed=4))
    errors = [gopa_round(plan, values, bits=seeded(k)).mean - values.mean() for k in range(60)]
    assert np.std(errors) == pytest.approx(0.5 / math.sqrt(200), rel=0.3)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"values": [0.5] * 3}, "values"),
        ({"values": [0.5, 0.5, math.nan, 0.5]}, "values"),
        ({"values": [[0.5] * 4]}, "values"),
        ({"dropouts": [4]}, "dropouts"),
        ({"dropouts": range(4)}, "dropouts"),
        ({"rollback": 1}, "rollback"),
        ({"interval": (1.0, 0.0)}, "interval"),
        ({"interval": (0.0, math.inf)}, "interval"),
        ({"interval": 3}, "interval"),
        ({"mechanism": hs.Gaussian(1.0)}, "mechanism"),
        ({"mechanism": GOPA(1.0, math.inf, PATH)}, "pairwise_multiplier"),
        ({"mechanism": GOPA(math.inf, 1.0, PATH)}, "noise_multiplier"),
        ({"mechanism": GOPA(1e15, 1.0, PATH)}, "mechanism"),
    ],
)
def test_bad_input_is_named_and_not_charged(settings: dict[str, Any], name: str) -> None:
    account = hs.Accountant()
    given = {"mechanism": GOPA(1.0, 1.0, PATH), "values": [0.5] * 4, **settings}
    mechanism, values = given.pop("mechanism"), given.pop("values")
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        gopa_round(mechanism, values, charge=account, bits=none_left, **given)
    assert hs.epsilon(account.plan, 1e-5).upper == 0.0


def test_a_round_without_anyone_honest_is_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="nobody who is honest is left"):
        gopa_round(GOPA(1.0, 1.0, PATH, [0]), [0.5] * 4, dropouts=[1, 2, 3], bits=none_left)


def test_pairwise_noise_of_less_than_a_step_is_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="tells more of these 4 parties"):
        gopa_round(GOPA(1e5, 1e-9, PATH), [0.5] * 4, bits=none_left)


def test_steps_add_at_most_what_the_noise_exceeds() -> None:
    # The best integer flow on a path of two, by hand: k of 2^b steps leave a = (2^b - f, f).
    steps, own, pairwise = 2**12, 0.5, 2.0
    best = min((((steps - f) ** 2 + f**2) / own**2 + f**2 / pairwise**2) for f in range(steps))
    least = steps**2 * (1 / (2 * own**2) + 0.5 / (own**2 + 2 * pairwise**2))
    added = ((1 + 1) / own**2 + 1 / pairwise**2) / 4
    assert least <= best <= least + added
