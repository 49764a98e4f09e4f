"""Proven ends that are far apart are told as such, with the reason where it is known."""

import pytest

import hockeystick as hs
from hockeystick.answers.widths import far_apart
from hockeystick.mechanisms import Exponential, PermuteAndFlip, ReportNoisyMax

START = "the truth lies between; nothing narrower is proven here"
END = ": quote the upper end"
SELECTIONS = (
    ", as of selections that may depend on what came before, the worst is known by a bound only"
)


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (
            hs.PureDP(0.5) @ hs.ZCDP(0.1),
            ", as of the ZCDP release nothing but that guarantee is known",
        ),
        (
            hs.RenyiDP({2: 1, 3: 2}) ** 2,
            ", as of the RenyiDP release nothing but that guarantee is known",
        ),
        (Exponential(0.5) ** 3, SELECTIONS),
        (Exponential(0.5) @ hs.Gaussian(2), SELECTIONS),
        (ReportNoisyMax(0.5) ** 2, SELECTIONS),
        (
            hs.mechanisms.ShuffledReports(hs.RandomizedResponse(1, categories=2), users=20_000),
            ", as of shuffled reports, the data that cost the most are known by a bound only",
        ),
        # One of them is known exactly.
        (Exponential(0.5), ""),
        (Exponential(0.5) @ hs.ZCDP(0.1) ** 0, ""),
        (ReportNoisyMax(0.5, "laplace") ** 2, ""),
        (PermuteAndFlip(0.5) ** 2, ""),
        (hs.Gaussian(2) ** 3, ""),
    ],
)
def test_ends_far_apart_come_with_the_reason_where_it_is_known(
    plan: hs.Mechanism, why: str
) -> None:
    assert far_apart(plan) == START + why + END
