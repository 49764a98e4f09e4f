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


def test_a_curator_of_the_same_cost_errs_less() -> None:
    system = program("shuffled")
    errors = {
        view: np.mean(
            [system.run(seed, local=1.0, view=view).result["largest error"] for seed in range(4)]
        )
        for view in ("shuffled", "central")
    }
    assert errors["central"] < errors["shuffled"]


def test_without_noise_the_histogram_is_exact_and_the_order_is_not_told() -> None:
    system = program("shuffled")
    outcome = system.run(1, local=float("inf"))
    assert outcome.result["largest error"] < 1e-12
    assert outcome.epsilon == float("inf")
    values = np.arange(1000) % 10
    shown = system.reported(system.planned(float("inf"), 1000), values, seeded(1))
    assert np.bincount(shown).tolist() == [100] * 10
    assert (shown == values).mean() < 0.2


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
