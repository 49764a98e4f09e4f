"""The systems without a server: what they return, and that their checks can fail."""

from typing import Any

import pytest

import hockeystick as hs
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")
pytest.importorskip("networkx")

NAMES = ("gopa", "gossip", "noisy_iterations", "token_walk")


@pytest.fixture(scope="module")
def programs() -> Any:
    """Return the programs as modules, without running them."""
    return {name: program(name) for name in NAMES}


def test_the_paper_is_too_small_where_distance_is_large(programs: Any) -> None:
    gossip = programs["gossip"]
    path = hs.mechanisms.Graph.path(8)
    assert gossip.exact_square(path, 7, 0, 7) == 1.0
    assert gossip.papers_squares(path, 7, 0)[7] < 1e-5
    cube = gossip.hypercube(6)
    assert gossip.exact_square(cube, 6, 0, 63) == 1.0
    assert gossip.exact_square(cube, 6, 0, 7) == pytest.approx(0.3, rel=1e-12)
    assert gossip.papers_squares(cube, 6, 0)[63] < 0.02


def test_a_wrong_covariance_is_noticed(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gopa = programs["gopa"]
    assert gopa.covariance_agrees(0)
    real = hs.release.gopa_round

    def weaker(plan: Any, *rest: Any, **settings: Any) -> Any:
        less = hs.mechanisms.GOPA(0.5, 1.7, plan.graph)
        return real(less, *rest, **settings)

    monkeypatch.setattr(hs.release, "gopa_round", weaker)
    assert not gopa.covariance_agrees(0)


def test_less_noise_in_steps_is_noticed(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    iterations = programs["noisy_iterations"]
    assert iterations.noise_agrees(0)
    real = iterations.planned
    monkeypatch.setattr(iterations, "planned", lambda noise, *rest: real(0.8 * noise, *rest))
    assert not iterations.noise_agrees(0)


def test_another_message_is_noticed(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gossip = programs["gossip"]
    assert gossip.solves_the_path(0)
    real = gossip.gossip_matrix
    monkeypatch.setattr(gossip, "gossip_matrix", lambda graph: (real(graph) > 0) / 2)
    assert not gossip.solves_the_path(0)
