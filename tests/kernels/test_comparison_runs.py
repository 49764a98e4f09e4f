"""The recursion of comparisons: above its mpmath twin, and hardly so."""

import numpy as np
import pytest

from hockeystick.kernels import comparison_runs as kernel
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import comparison_runs as twin


@pytest.mark.parametrize("comparisons", [1, 40])
def test_floats_are_above_the_twin_by_no_more_than_is_said(comparisons: int) -> None:
    rng = np.random.default_rng(comparisons)
    places, count = 30, 12
    gain = rng.uniform(0.0, 1e-3, (count, places)) * (rng.random((count, places)) < 0.4)
    starts, offsets = rng.integers(0, 20, count), rng.integers(-40, 41, count)
    spans = np.stack([np.arange(count), starts, starts + rng.integers(0, 11, count), offsets], 1)
    low = rng.uniform(0.0, 1.0, count) * rng.choice([1.0, 1e-30, 0.0], count)
    high = (1.0 - low) * rng.uniform(0.0, 1.0, count)
    found = kernel.run_excess(gain, spans, low, high, 42, comparisons)
    with mp.workdps(40):
        exact = twin.run_excess(
            [list(map(mp.mpf, row)) for row in gain.tolist()],
            [tuple(row) for row in spans.tolist()],
            [(mp.mpf(one), mp.mpf(other)) for one, other in zip(low, high, strict=True)],
            comparisons,
        )
        for one, truth in zip(found.tolist(), exact, strict=True):
            most = truth * (1 + comparisons * mp.mpf(2) ** -49) + 2 * comparisons * kernel.LEAST
            assert truth <= one <= most
    assert len(set(found.tolist())) > 5
