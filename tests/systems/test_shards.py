"""The digits are split as is said, and each client's records are its own."""

import numpy as np
import pytest

from hockeystick.release.samplers import secret_bits
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


@pytest.mark.parametrize("split", ["writer", "label", "even"])
def test_each_record_is_at_one_client_and_no_test_record_is(split: str) -> None:
    data = program("shards").digits(24, split, seed=3)
    rows = np.vstack([rows for rows, _ in data.clients] + [data.features])
    assert len({row.tobytes() for row in rows}) == len(rows)
    assert {len(labels) for _, labels in data.clients} == {59 - (split == "label")}
    assert data.records == len(rows) - 359
    kinds = np.mean([len(set(labels)) for _, labels in data.clients])
    assert (kinds < 4) == (split == "label")


def test_without_a_seed_noise_is_the_operating_systems_and_with_one_it_is_repeated() -> None:
    source = program("shards").source
    assert source(None) is secret_bits
    assert source(5)(4).tolist() == source(5)(4).tolist() != source(6)(4).tolist()
