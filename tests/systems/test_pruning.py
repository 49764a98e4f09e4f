"""Pruned gradients and decaying noise: each step's noise, what is sent, what selection shows."""

from typing import Any

import pytest

from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def example() -> Any:
    return program("pruning")


def test_more_coordinates_than_are_to_be_sent_are_seen(
    example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = example.METHODS["a tenth, at random"]
    everything = (example.METHODS["all coordinates"][0], own[1], None)

    def all_of_them(mechanism: Any, rows: Any, **given: Any) -> Any:
        return everything[0](mechanism, rows, **(given | {"keep": 1.0}))

    monkeypatch.setitem(example.METHODS, "a tenth, at random", (all_of_them, *own[1:]))
    found = example.run(1, method="a tenth, at random", steps=2)
    assert not found.checks["coordinates"]
