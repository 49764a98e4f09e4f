"""What is exact, wide and refused: epsilon of each mechanism alone, repeated, sampled, shuffled.

Prints a page, `MATRIX.md`: how wide proven intervals are, and in what processor time they came.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import hockeystick as hs
from benchmarks.pages import duration, table, write
from hockeystick import mechanisms as ms
from hockeystick.kernels.compiled import load

DELTA: Final = 1e-6
WAYS: Final[dict[str, Callable[[Any], Any]]] = {
    "once": lambda one: one,
    "100 times": lambda one: one**100,
    "100 Poisson samples, rate .01": lambda one: hs.PoissonSubsampled(one, 0.01) ** 100,
    "100 samples, 10 of 1,000": lambda one: hs.FixedSizeSubsampled(one, 10, 1000) ** 100,
    "shuffled, 10,000 users": lambda one: ms.ShuffledReports(one, 10_000),
}
MECHANISMS: Final = (
    *(hs.Gaussian(5), hs.Laplace(10), hs.DiscreteGaussian(5), hs.DiscreteLaplace(10)),
    *(ms.Skellam(25), ms.Staircase(0.1), ms.SinhNormal(0.5, 10), ms.MultivariateLaplace(10, 3)),
    *(hs.RandomizedResponse(1), hs.RandomizedResponse(1, categories=10), ms.UnaryEncoding(1)),
    *(ms.RAPPOR(0.5, 2), hs.Exponential(0.1), ms.PermuteAndFlip(0.1), ms.ReportNoisyMax(0.1)),
    *(ms.AboveThreshold(20, 40), ms.SparseVector(20, 40, positives=10)),
    *(hs.PureDP(0.1), hs.ApproxDP(0.1, 1e-9), hs.GDP(0.2), hs.ZCDP(0.02), hs.RenyiDP({8: 0.1})),
)


def trained(sampling: str, adjacency: hs.Adjacency) -> hs.DPSGD:
    """Return training of ten epochs."""
    size = None if sampling == "full-batch" else 100
    how: Any = {"sampling": sampling, "adjacency": adjacency, "batch_size": size}
    return hs.DPSGD(examples=10_000, epochs=10, noise_multiplier=1, **how)


def cell(make: Callable[[], Any], reasons: list[str]) -> str:
    """Return how wide an answer is, and its time; or which of the reasons there is none for."""
    start = time.process_time()
    try:
        found = hs.epsilon(make(), DELTA)
    except hs.HockeystickError as error:
        reason = str(error).rpartition("): ")[2]
        reasons += [reason] * (reason not in reasons)
        return f"refused ({reasons.index(reason) + 1})"
    spent, width = duration(time.process_time() - start), 1 - found.lower / found.upper
    return f"{'exact' if width <= 1e-9 else f'{100 * width:.3g} %'}, {spent}"


def page() -> str:
    """Return the tables."""
    load()
    reasons: list[str] = []
    single = [
        (f"`{one}`", *(cell(lambda way=way, one=one: way(one), reasons) for way in WAYS.values()))  # type: ignore[misc]
        for one in MECHANISMS
    ]
    training = [
        (one, *(cell(lambda one=one, to=to: trained(one, to), reasons) for to in hs.Adjacency))  # type: ignore[misc]
        for one in ms.Sampling
    ]
    listed = "\n".join(f"{place}. {reason}" for place, reason in enumerate(reasons, 1))
    return f"""# What is exact, wide and refused

How wide the proven epsilon is at delta {DELTA:g}, over its upper end (100 %: the lower end is 0;
exact: at most 1e-9), and the processor time of a first call.

{table(("mechanism", *WAYS), single)}

Training of ten epochs by batches of 100 of 10,000 examples, noise multiplier 1:

{table(("sampling", *hs.Adjacency), training)}

Why rows are wider than 1 %:

- samples of a fixed size: which three outputs cost most where earlier outcomes choose them is not
  known of noise but the normal and some on integers, of selections and mu-GDP
- with replacement: the upper end tells how often an example is in a batch that it is in
- above threshold, sparse vector: the upper end gives the threshold's noise away at each query
- zCDP and RDP releases: what many of them, each within its divergences, attain is not known
- shuffled reports: all that the upper end knows is epsilon and the total variation of a report
- shuffled batches: that they cost less than noise alone is not proven where outcomes choose them

Slower than a second are the first cell, which loads libraries; what earlier outcomes choose, by a
recursion over runs; samples with replacement, with a Gaussian for each number of draws of an
example, on eight lattices; and random allocation, whose loss has to be put on a lattice first.

Why answers are refused:

{listed}
"""


if __name__ == "__main__":
    write(page(), None)
