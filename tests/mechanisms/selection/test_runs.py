"""Sparse vectors and random numbers of runs: their descriptions."""

from typing import Any

import pytest

import hockeystick as hs
from hockeystick import mechanisms as m

GAUSSIAN: dict[str, Any] = {"threshold_noise": "gaussian", "query_noise": "gaussian"}


def test_a_sparse_vector_is_one_run_for_each_positive() -> None:
    plan = m.SparseVector(1.0, 2.0, positives=5, monotone=True, queries=10, **GAUSSIAN)
    once = m.AboveThreshold(1.0, 2.0, monotone=True, queries=10, **GAUSSIAN)
    assert plan.mechanism == hs.Repeated(once, 5)
    assert plan == m.SparseVector(1, 2, positives=5.0, monotone=True, queries=10, **GAUSSIAN)
    assert plan != m.SparseVector(1.0, 2.0, positives=5, monotone=True, queries=11, **GAUSSIAN)
    assert plan.adjacency is None


@pytest.mark.parametrize("eta", [-0.9, 0.0, 1e-9, 0.5, 2.5])
@pytest.mark.parametrize("mean", [1.001, 3.0, 10.0, 1e6])
def test_a_distribution_of_a_mean_has_it(eta: float, mean: float) -> None:
    found = m.tuning.TruncatedNegativeBinomial.of_mean(mean, eta)
    assert found.eta == eta
    assert found.expected == pytest.approx(mean, rel=1e-9)
