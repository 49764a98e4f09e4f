"""The accountant for Flower: what its strategies do, in Flower's own code, and what that costs."""

import json
import math
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError

pytest.importorskip("flwr")
pytest.importorskip("dp_accounting")

from flwr.serverapp import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyAccountant,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)
from flwr.serverapp.exception import PrivacyBudgetExhausted
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

from hockeystick.adapters.flower import HockeystickAccountant
from tests.adapters.flower.clients import Clients, first_moved, zeros

DELTA = 1e-5
CONFIG = PrivacyConfig(
    DELTA, 10, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION
)
POISSON = PrivacyConfig(DELTA, 10, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.POISSON)
REPLACED = PrivacyConfig(
    DELTA, 10, NeighboringRelation.REPLACE_ONE, SamplingMethod.WITHOUT_REPLACEMENT
)
ROUND = GaussianPrivacyEvent(4.0, 9, 10)
CLIPPING_NORM = 0.5


def _theirs(accountant: Any = None, noise: float = 4.0) -> Any:
    """Return Flower's strategy that clips at the server, with 9 of 10 clients a round."""
    averaging = FedAvg(
        fraction_train=0.9, fraction_evaluate=0.0, min_train_nodes=9, min_available_nodes=10
    )
    return DifferentialPrivacyServerSideFixedClipping(
        averaging, noise, CLIPPING_NORM, 9, accountant=accountant
    )


def _composed(config: Any = CONFIG, count: int = 20, **options: Any) -> HockeystickAccountant:
    accountant = HockeystickAccountant(config, **options)
    accountant.compose(ROUND, count)
    return accountant


def test_twenty_rounds_of_nine_clients_in_ten_cost_what_a_displaced_client_costs() -> None:
    theirs = RdpAccountant(CONFIG)
    theirs.compose(ROUND, 20)
    plain = hs.epsilon(hs.Gaussian(4) ** 20, DELTA)
    assert 4.98 < plain.lower <= plain.upper < 4.99
    assert 5.37 < theirs.get_epsilon(DELTA) < 5.38
    assert 10.32 < _composed().get_epsilon(DELTA) < 10.33
    assert 11.48 < _composed(cohorts="seen").get_epsilon(DELTA) < 11.481
    assert 10.34 < _composed(REPLACED).get_epsilon(DELTA) < 10.35
    assert 4.46 < _composed(POISSON).get_epsilon(DELTA) < 4.462


def test_in_flower_a_client_that_joins_displaces_another_one_and_moves_the_sum_by_two_norms() -> (
    None
):
    def summed(cohort: slice) -> float:
        """Return the clipped sum of a cohort without noise; client 9 is of the other sign."""
        answer = first_moved(lambda place: 1e3 if place == 9 else -1e3)
        silent = patch("numpy.random.normal", side_effect=lambda *given: np.zeros(given[2]))
        with silent, patch("random.sample", side_effect=lambda nodes, size: nodes[cohort]):
            found = _theirs().start(Clients(10, answer), zeros(), 1)
        return float(found.arrays["w"].numpy()[0]) * 9

    without, with_it = summed(slice(0, 9)), summed(slice(1, 10))
    assert with_it - without == pytest.approx(2 * CLIPPING_NORM, rel=1e-12)


def test_a_strategy_of_flowers_takes_it_in_place_of_its_own_and_stops_at_its_limit() -> None:
    limited = PrivacyConfig(
        DELTA, 10, CONFIG.neighboring_relation, CONFIG.sampling_method, max_epsilon=5.0
    )
    accountant = HockeystickAccountant(limited)
    strategy = _theirs(accountant)
    with pytest.raises(PrivacyBudgetExhausted):
        strategy.start(Clients(10, first_moved(lambda node: 1.0)), zeros(), 20)
    assert strategy.privacy_spent() == accountant.get_privacy_spent()
    asked = {name for name in vars(PrivacyAccountant) if not name.startswith("_")}
    assert asked <= set(dir(accountant))
    ran = accountant.num_releases
    assert accountant.get_epsilon(DELTA) <= 5.0 < _composed(count=ran + 1).get_epsilon(DELTA)
    assert 0 < ran < 20


def test_would_exceed_asks_of_what_would_be_composed_and_changes_nothing() -> None:
    accountant = _composed(count=19)
    epsilon = _composed().get_epsilon(DELTA)
    assert not accountant.would_exceed(ROUND, epsilon)
    assert accountant.would_exceed(ROUND, math.nextafter(epsilon, 0))
    assert accountant.would_exceed(ROUND, epsilon, count=2)
    assert accountant.num_releases == 19


def test_a_state_is_read_back_and_forgets_nothing_that_was_released_here() -> None:
    accountant = _composed(count=3)
    early = json.loads(json.dumps(accountant.state_dict()))
    accountant.compose(GaussianPrivacyEvent(0.5, 9, 10))
    spent = accountant.account.plan
    accountant.load_state_dict(early)
    assert accountant.account.plan == spent
    branch = HockeystickAccountant(CONFIG)
    branch.load_state_dict(early)
    assert branch.num_releases == 3
    for noise in (50.0, 0.5):
        branch.compose(GaussianPrivacyEvent(noise, 9, 10), 2)
        with pytest.raises(IncompatibleError, match="would forget"):
            accountant.load_state_dict(branch.state_dict())
    with pytest.raises(IncompatibleError, match="would forget"):
        _composed(count=1).load_state_dict(early)
    assert accountant.account.plan == spent
    theirs = RdpAccountant(CONFIG)
    theirs.compose(ROUND, 3)
    branch = HockeystickAccountant(CONFIG)
    branch.load_state_dict(theirs.state_dict())
    assert branch.account.plan == _composed(count=3).account.plan


def _broken() -> Iterator[tuple[str, dict[str, object]]]:
    entry = {"event": {"noise_multiplier": 4.0, "sample_size": 9, "population_size": 10}}
    yield "state", {"schema_version": 2}
    yield "backend", {"backend": "prv"}
    yield "config", {"config": {}}
    yield "compositions", {"compositions": 3}
    yield "compositions", {"compositions": [3]}
    yield "compositions", {"compositions": [entry]}
    yield "count", {"compositions": [entry | {"count": 0}]}
    yield "compositions", {"compositions": [{"event": {"noise_multiplier": -1}, "count": 1}]}


@pytest.mark.parametrize(("name", "change"), list(_broken()))
def test_a_state_that_is_none_is_refused_by_name(name: str, change: dict[str, object]) -> None:
    state = _composed(count=3).state_dict() | change
    accountant = HockeystickAccountant(CONFIG)
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        accountant.load_state_dict(state)
    assert accountant.num_releases == 0


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("config", lambda one: HockeystickAccountant({})),
        ("cohorts", lambda one: HockeystickAccountant(CONFIG, cohorts="hidden")),
        ("tolerance", lambda one: HockeystickAccountant(CONFIG, tolerance=1)),
        ("event", lambda one: one.compose(4.0)),
        ("population_size", lambda one: one.compose(GaussianPrivacyEvent(4.0, 9, 11))),
        ("count", lambda one: one.compose(ROUND, 0)),
        ("count", lambda one: one.compose(ROUND, 1.5)),
        ("delta", lambda one: one.get_epsilon(math.nan)),
        ("delta", lambda one: one.get_privacy_spent([1e-5, 1e-6])),
        ("epsilon", lambda one: one.get_delta(None)),
        ("max_epsilon", lambda one: one.would_exceed(ROUND, 0)),
        ("max_epsilon", lambda one: one.would_exceed(ROUND)),
    ],
)
def test_bad_input_is_refused_by_name(name: str, call: Any) -> None:
    accountant = HockeystickAccountant(CONFIG)
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        call(accountant)
    assert accountant.num_releases == 0
