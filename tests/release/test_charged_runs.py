"""A run that is charged once is one run: no copy and no fork of it answers as well."""

import copy
import os
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import (
    AboveThreshold,
    Encoder,
    MatrixFactorization,
    SparseVector,
    TreeAggregation,
)
from hockeystick.release import (
    above_threshold,
    matrix_factorization,
    sparse_vector,
    tree_aggregation,
)
from hockeystick.release.federated import ClientRounds

ROUND = hs.federated.FedSDP(
    noise_multiplier=2, total_clients=3, clients_per_round=3, rounds=1, sampling="poisson"
)
RUNS: list[Callable[[], Any]] = [
    lambda: above_threshold(AboveThreshold(2.0, 4.0), 100.0, 1.0),
    lambda: sparse_vector(SparseVector(20.0, 40.0, positives=2), 100.0, 1.0),
    lambda: tree_aggregation(TreeAggregation(5.0, leaves=10), 1, 1.0),
    lambda: matrix_factorization(MatrixFactorization(5.0, Encoder.square_root(9)), 1, 1.0),
    lambda: ClientRounds(ROUND, size=1, norm=1.0).draw(),
]


def _asked(run: Any) -> None:
    """Ask once."""
    if hasattr(run, "above"):
        run.above(0.0)
    elif hasattr(run, "release"):
        run.release()
    else:
        run.add([1.0])


@pytest.mark.parametrize("begun", RUNS)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_run_is_not_copied(begun: Any, copied: Callable[[Any], Any]) -> None:
    with pytest.raises(IncompatibleError, match="not copied or pickled"):
        copied(begun())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("begun", RUNS)
def test_a_fork_is_told_nothing(begun: Any) -> None:
    run = begun()
    if not hasattr(run, "release"):
        _asked(run)
    child = os.fork()
    if child == 0:
        try:
            _asked(run)
        except IncompatibleError as error:
            os._exit(7 if "was forked from" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    _asked(run)


@pytest.mark.parametrize(("name", "value"), [("counted", 0), ("limit", 2), ("closed", False)])
def test_what_is_counted_is_not_set_from_outside(name: str, value: int) -> None:
    rounds = ClientRounds(ROUND, size=1, norm=1.0)
    rounds.draw().release()
    with pytest.raises(AttributeError):
        setattr(rounds, name, value)
