"""Gauss's rule for a sum over points: with a node for each point it is the sum itself."""

import numpy as np
import pytest

from hockeystick.kernels import noise_levels


def test_as_many_nodes_as_points_are_the_points_with_equal_weights() -> None:
    points = np.array([-0.3, -0.1, 0.0, 0.2, 0.7, 0.9])
    diagonal, beside, used = noise_levels.recurrence(points, 0.3, 0.6, points.size)
    assert used == points.size
    off = np.sqrt(beside[1:])
    places, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    assert 0.3 + 0.6 * places == pytest.approx(points, abs=1e-12)
    assert vectors[0] ** 2 == pytest.approx(np.full(points.size, 1 / points.size), rel=1e-10)
