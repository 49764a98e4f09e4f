"""Reports in the shuffle model: errors are the formula's, costs the stronger clones'."""

import numpy as np
import pytest

from tests.release.bits import seeded
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


@pytest.mark.parametrize("local", [0.5, 2.0])
def test_a_report_is_true_as_often_as_the_mechanism_says(local: float) -> None:
    """Each category e^epsilon times as likely from its own holder as from any other."""
    system = program("shuffled")
    shares = []
    for category in (3, 4):
        held = np.full(200_000, category)
        shown = system.reported(system.planned(local, len(held)), held, seeded(category))
        shares.append((shown == 3).mean())
    assert shares[0] / shares[1] == pytest.approx(np.exp(local), rel=0.05)
