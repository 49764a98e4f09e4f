"""Private statistics before a training: what they are charged, and that the budget covers both."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def example() -> Any:
    return program("preprocessing")


def test_statistics_that_the_plan_does_not_count_are_seen(example: Any) -> None:
    plan = example.planned("normalised", 1438, steps=3)
    assert not example.run(1, method="normalised", plan=replace(plan, extra=None)).checks[
        "statistics"
    ]


@pytest.mark.parametrize("method", ["normalised", "principal components"])
def test_one_image_moves_the_statistics_within_their_noise(
    example: Any, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same without noise, with and without the first image."""
    data, columns = example.digits(), example.PIXELS
    monkeypatch.setattr(example, "STATISTICS", hs.mechanisms.JointGaussian((0, 0)))
    monkeypatch.setattr(example, "MOMENTS", hs.mechanisms.PrivateCovariance(0, columns=columns))
    given: Any = {"bound": example.LENGTH, "size": 1, "center": example.CENTER}
    pixels = data.rows[:20, :columns]
    assert np.linalg.norm(pixels - example.CENTER, axis=1).max() <= example.LENGTH
    if method == "normalised":
        pair = [
            hs.release.normalisation(example.STATISTICS, x, **given) for x in (pixels, pixels[1:])
        ]
        moved = float(np.linalg.norm(pair[0].mean - pair[1].mean))
        most = example.LENGTH
    else:
        both = [hs.release.covariance(example.MOMENTS, x, **given) for x in (pixels, pixels[1:])]
        moved = float(np.linalg.norm(both[0] - both[1]))
        most = example.LENGTH**2
    assert 0.3 * most < moved <= most
