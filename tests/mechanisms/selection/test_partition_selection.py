"""The description of a selection of partitions."""

import hockeystick as hs

PartitionSelection = hs.mechanisms.PartitionSelection


def test_the_assumptions_name_the_numbers() -> None:
    said = PartitionSelection(hs.Laplace(2.5), 31.5, 7, "replace-one")
    text = " ".join(said.assumptions)
    assert "at most 7 partitions" in text
    assert "Laplace (scale 2.5), is compared with 31.5" in text
    assert "A partition that no user has is never released." in text
    assert said.adjacency is hs.Adjacency.REPLACE_ONE
    assert str(said).endswith(
        "(threshold 31.5, 7 partitions for each user, Laplace (scale 2.5), replace-one)"
    )
