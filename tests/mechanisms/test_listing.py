"""The list of mechanisms to read."""

from collections import Counter

import hockeystick as hs
from hockeystick.mechanisms import MECHANISMS


def test_every_mechanism_is_listed_once_in_its_family() -> None:
    lines = hs.mechanisms.index().splitlines()
    named = Counter(line.strip().partition(":")[0] for line in lines if line.startswith("  "))
    assert named == Counter(list(MECHANISMS))
    assert lines.index("Training") < lines.index("Federated training")
    training = lines[lines.index("Training") :]
    assert any(line.startswith("  DPSGD: ") for line in training[: training.index("")])
