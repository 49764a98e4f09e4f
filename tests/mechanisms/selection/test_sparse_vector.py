"""The descriptions of sparse vectors."""

from typing import Any

import hockeystick as hs

GAUSSIAN: dict[str, Any] = {"threshold_noise": "gaussian", "query_noise": "gaussian"}


def test_a_sparse_vector_is_one_run_for_each_positive() -> None:
    plan = hs.mechanisms.SparseVector(1.0, 2.0, positives=5, monotone=True, queries=10, **GAUSSIAN)
    once = hs.mechanisms.AboveThreshold(1.0, 2.0, monotone=True, queries=10, **GAUSSIAN)
    assert plan.mechanism == hs.Repeated(once, 5)
    assert plan == hs.mechanisms.SparseVector(
        1, 2, positives=5.0, monotone=True, queries=10, **GAUSSIAN
    )
    assert plan != hs.mechanisms.SparseVector(
        1.0, 2.0, positives=5, monotone=True, queries=11, **GAUSSIAN
    )
    assert plan.adjacency is None
