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
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import NOTIONS
from tests.examples import EXAMPLES

RUNS: Final = 100
EPSILON: Final = 1.0
# These compose guarantees, or one release of several, or answer for few plans.
NARROW: Final = {"advanced", "basic", "closed-form", "parts", "selection"}
# No distribution is known, only bounds of the divergences: nothing to transform or to expand.
NO_DISTRIBUTION: Final = {"berry-esseen", "contour", "edgeworth", "prv"}
# The transform on a vertical line has no closed form.
NO_LINE: Final = {"contour"}
# Moments are not enclosed of what is between two pairs, each of which has a transform.
NO_MOMENTS: Final = {"berry-esseen"}
# Nor are moments enclosed of what is dominated, mirrored or a mixture of others.
NO_LINE_NO_MOMENTS: Final = {"berry-esseen", "contour"}
MISSING: Final = {
    "AboveThreshold": NO_LINE,
    "BallsInBins": NO_LINE_NO_MOMENTS,
    "BatchClipped": NO_LINE,
    "Exponential": NO_LINE,
    "FedCDP": NO_DISTRIBUTION,
    "GOPA": NO_LINE,
    "GossipAveraging": NO_LINE,
    "GaussianMixture": NO_LINE,
    "FixedSizeSubsampled": NO_MOMENTS,
    "LocalTraining": NO_MOMENTS,
    "NoisyIterations": NO_LINE,
    "PermuteAndFlip": NO_LINE,
    "PoissonSubsampledGroup": NO_LINE,
    "PriFedSync": NO_MOMENTS,
    "RandomAllocation": NO_LINE_NO_MOMENTS,
    "RandomStopping": NO_DISTRIBUTION | {"zcdp"},
    "RenyiDP": NO_DISTRIBUTION,
    "ReportNoisyMax": NO_LINE,
    "FederatedClustering": NO_LINE,
    "MultivariateLaplace": NO_LINE,
    "SinhNormal": NO_LINE,
    "RevealedRound": NO_DISTRIBUTION,
    "RevealedSample": NO_LINE_NO_MOMENTS,
    "Shuffled": NO_LINE,
    "ShuffledReports": NO_LINE,
    "SparseVector": NO_LINE,
    "TCDP": NO_DISTRIBUTION,
    "TokenWalk": NO_LINE,
    "TruncatedPoissonSubsampled": NO_LINE_NO_MOMENTS,
    "WithReplacementSubsampled": NO_LINE_NO_MOMENTS,
    "ZCDP": NO_DISTRIBUTION,
}
# What has a closed form for any number of runs, or is a guarantee.
ANSWERED: Final = {
    "ApproxDP": {"advanced", "basic", "closed-form"},
    "GDP": {"closed-form"},
    "Gaussian": {"closed-form"},
    "JointGaussian": {"closed-form"},
    "LastIterate": {"closed-form"},
    "MatrixFactorization": {"closed-form"},
    "PartitionSelection": {"closed-form"},
    "PrivateCovariance": {"closed-form"},
    "PureDP": {"advanced", "basic", "closed-form"},
    "TreeAggregation": {"closed-form"},
}
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


def test_every_registered_mechanism_and_notion_is_asked() -> None:
    assert set(BY_NAME) == set(MECHANISMS) | set(NOTIONS)
    assert set(MISSING) | set(ANSWERED) <= set(BY_NAME)


@each_name
def test_every_accountant_that_applies_to_a_mechanism_answers(name: str) -> None:
    narrow = NARROW - ANSWERED.get(name, set())
    expected = narrow | MISSING.get(name, set())
    assert refusing(BY_NAME[name] ** RUNS) == expected, "ANSWERED and MISSING say otherwise"
