"""Samples of a fixed size whose contributions are clipped."""

from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.io import load_plan

CLIPPED = hs.FixedSizeSubsampled(hs.Gaussian(0.5), 3, 30, "zero-out", clipped=True)


def test_a_sample_says_that_its_contributions_are_clipped() -> None:
    plain = hs.FixedSizeSubsampled(hs.Gaussian(0.5), 3, 30, "zero-out")
    assert str(CLIPPED) == (
        "fixed-size-subsampled Gaussian (noise multiplier 0.5, 3 of 30, clipped, zero-out)"
    )
    assert "clipped" not in str(plain)
    assert len(CLIPPED.assumptions) == len(plain.assumptions) + 1
    assert any("L2 norm is at most half" in text for text in CLIPPED.assumptions)
    assert CLIPPED != plain
    with pytest.raises(hs.errors.NoGroupFormError, match=r"tradeoff\(plan\)\.group\(2\)"):
        CLIPPED.for_group(2)


def test_a_file_keeps_that_contributions_are_clipped(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    hs.save_plan(CLIPPED**5, path)
    assert "clipped = true" in path.read_text()
    assert load_plan(path).plan == CLIPPED**5
    hs.save_plan(hs.FixedSizeSubsampled(hs.Gaussian(0.5), 3, 30, "zero-out"), path)
    assert "clipped" not in path.read_text()


def test_clipping_is_true_or_false_and_for_gaussian_noise() -> None:
    with pytest.raises(ParameterError, match="clipped"):
        hs.FixedSizeSubsampled(hs.Gaussian(0.5), 3, 30, "zero-out", clipped="yes")  # type: ignore[arg-type]
    with pytest.raises(IncompatibleError, match="leave clipped out"):
        hs.FixedSizeSubsampled(hs.Laplace(0.5), 3, 30, "zero-out", clipped=True)


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_federated_plans_say_that_their_sums_are_clipped_where_it_matters(adjacency: str) -> None:
    clients = hs.federated.FedSDP(
        noise_multiplier=2.0,
        total_clients=100,
        clients_per_round=10,
        rounds=3,
        sampling="fixed-size",
        adjacency=adjacency,
    )
    zeroed = adjacency == "zero-out"
    sizes = 10, 100, adjacency
    assert clients.mechanism == hs.FixedSizeSubsampled(hs.Gaussian(1.0), *sizes, zeroed) ** 3
    records = hs.federated.FedCDP(
        noise_multiplier=2.0,
        total_clients=5,
        clients_per_round=5,
        examples_per_client=100,
        batch_size=10,
        local_steps=2,
        rounds=3,
        sampling="two-stage",
        adjacency=adjacency,
    )
    assert records.mechanism == hs.FixedSizeSubsampled(hs.Gaussian(1.0), *sizes, zeroed) ** 6
