"""What the tests of exact noise share."""

from typing import Any

import numpy as np
import pytest
from scipy import stats


@pytest.fixture
def chi_square() -> Any:
    """Return the p-value of draws against the probabilities of integers."""

    def p_value(drawn: Any, probability: Any) -> Any:
        low, high = int(drawn.min()), int(drawn.max())
        counts = np.bincount(drawn - low)
        expected = np.array([probability(k) for k in range(low, high + 1)]) * len(drawn)
        often = expected >= 10
        rest = len(drawn) - expected[often].sum()
        seen = np.append(counts[often], len(drawn) - counts[often].sum())
        return stats.chisquare(seen, np.append(expected[often], rest)).pvalue

    return p_value
