"""Reports in the shuffle model: errors are the formula's, costs the stronger clones'."""

import numpy as np
import pytest

import hockeystick as hs
from tests.release.bits import seeded
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


def test_the_shuffler_lowers_the_cost_and_nothing_else() -> None:
    system = program("shuffled")
    mixed, plain = (system.run(1, local=2.0, view=view) for view in ("shuffled", "not shuffled"))
    assert mixed.result == plain.result
    assert mixed.checks == plain.checks == {"reports": True, "error": True}
    assert mixed.epsilon < 0.33 < 1.99 < plain.epsilon <= 2.0
    assert mixed.epsilon == hs.epsilon(system.planned(2.0, 1438), 1e-6).upper


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
