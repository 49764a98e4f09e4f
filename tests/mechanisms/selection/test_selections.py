"""The descriptions of private selections."""

from typing import Any

import pytest

import hockeystick as hs

KINDS = [hs.Exponential, hs.mechanisms.PermuteAndFlip, hs.mechanisms.ReportNoisyMax]
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_selections_are_values_for_every_adjacency(kind: Any) -> None:
    assert kind(1) == kind(1.0)
    assert hash(kind(1)) == hash(kind(1.0))
    assert kind(1).adjacency is None
    assert any("2 * sensitivity" in text for text in kind(0.25).assumptions)
