"""Tests of Flower are the server of a run."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _run() -> Iterator[None]:
    from tests.adapters.flower.clients import server

    with server():
        yield
