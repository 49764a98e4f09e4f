"""Which accountant has a leaf for which mechanism: a leaf that disappears fails here.

Every registered mechanism and notion is asked, by its example, at a hundred runs. ``MISSING`` has
the accountants that have nothing to say, beyond those for guarantees or for single runs alone, and
why; what is not in it must be answered.
"""

from functools import cache
from typing import Final

import pytest

import hockeystick as hs
from hockeystick.accountants import ACCOUNTANTS
from tests.examples import EXAMPLES

RUNS: Final = 100
EPSILON: Final = 1.0
# These compose guarantees, or one release of several, or answer for few plans.
NARROW: Final = {"advanced", "basic", "closed-form", "parts", "selection"}
# The transform on a vertical line has no closed form.
NO_LINE: Final = {"contour"}
# Moments are not enclosed of what is between two pairs, each of which has a transform.
NO_MOMENTS: Final = {"berry-esseen"}
# Nor are moments enclosed of what is dominated, mirrored or a mixture of others.
NEITHER: Final = NO_LINE | NO_MOMENTS
# No distribution is known, only bounds of the divergences: nothing to transform or to expand.
NO_DISTRIBUTION: Final = {"berry-esseen", "contour", "edgeworth", "prv"}
MISSING: Final = {
    name: missing
    for names, missing in (
        (
            "AboveThreshold BatchClipped Exponential FederatedClustering GOPA GossipAveraging",
            NO_LINE,
        ),
        ("GaussianMixture MultivariateLaplace NoisyIterations PermuteAndFlip", NO_LINE),
        ("PoissonSubsampledGroup ReportNoisyMax Shuffled ShuffledReports SinhNormal", NO_LINE),
        ("SparseVector TokenWalk", NO_LINE),
        ("FixedSizeSubsampled LocalTraining PriFedSync", NO_MOMENTS),
        ("BallsInBins RandomAllocation RevealedSample TruncatedPoissonSubsampled", NEITHER),
        ("WithReplacementSubsampled", NEITHER),
        ("FedCDP RevealedRound", NEITHER | {"edgeworth"}),
        ("RenyiDP TCDP ZCDP", NO_DISTRIBUTION),
        ("RandomStopping", NO_DISTRIBUTION | {"zcdp"}),
    )
    for name in names.split()
}
# What has a closed form for any number of runs, or is a guarantee.
CLOSED: Final = (
    *("ApproxDP", "Exponential", "GDP", "Gaussian", "JointGaussian", "LastIterate"),
    *("MatrixFactorization", "PartitionSelection", "PrivateCovariance", "PureDP"),
    "TreeAggregation",
)
GUARANTEES: Final = ("ApproxDP", "PureDP")
BY_NAME: Final = {type(example).__name__: example for example in EXAMPLES}

each_name = pytest.mark.parametrize("name", sorted(BY_NAME))


@cache
def refusing(plan: hs.Mechanism) -> set[str]:
    refused = set()
    for name in ACCOUNTANTS:
        try:
            hs.delta(plan, EPSILON, accountant=name)
        except hs.errors.UnsupportedError:
            refused.add(name)
    return refused


def test_what_is_missing_or_closed_is_registered() -> None:
    assert {*MISSING, *CLOSED} <= set(BY_NAME)


@each_name
def test_every_accountant_that_applies_to_a_mechanism_answers(name: str) -> None:
    expected = NARROW | MISSING.get(name, set())
    if name in CLOSED:
        expected -= {"closed-form"}
    if name in GUARANTEES:
        expected -= {"advanced", "basic"}
    assert refusing(BY_NAME[name] ** RUNS) == expected, "CLOSED and MISSING say otherwise"
