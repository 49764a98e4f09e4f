"""Time of trade-off curves: a training plan's, and operations on many points."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs

TUTORIAL = hs.PoissonSubsampled(hs.Gaussian(1.1), 256 / 60_000) ** 14_062
FEW = np.geomspace(1e-6, 1.0, 1000)
MANY = np.linspace(0.0, 1.0, 100_000)
FUNCTIONS = {
    "G_1": hs.tradeoffs.G(1.0),
    "C_p(G_1)": hs.tradeoffs.G(1.0).subsample(0.01),
    "group of 3 of G_1": hs.tradeoffs.G(1.0).group(3),
    "group of 3 of C_p(G_1)": hs.tradeoffs.G(1.0).subsample(0.01).group(3),
}


@pytest.mark.parametrize("fresh", [True, False], ids=["first time", "again"])
def bench_curve_of_a_training_plan(benchmark: Any, fresh: bool) -> None:
    known = hs.tradeoff(TUTORIAL)
    known(FEW)
    found = benchmark(lambda: (hs.tradeoff(TUTORIAL) if fresh else known)(FEW))
    benchmark.extra_info["f(0.01)"] = str(known(0.01))
    assert (np.diff(found) <= 0.0).all()


def bench_both_ends_of_the_curve(benchmark: Any) -> None:
    known = hs.tradeoff(TUTORIAL)
    lower, upper = benchmark(known.bounds, FEW)
    benchmark.extra_info["largest relative width"] = float(
        ((upper - lower)[:-1] / upper[:-1]).max()
    )
    assert (lower <= upper).all()


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def bench_many_points(benchmark: Any, f: Any) -> None:
    found = benchmark(f, MANY)
    assert found.shape == MANY.shape
