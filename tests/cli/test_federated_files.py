"""Plan files of federated training."""

from pathlib import Path

import hockeystick as hs
from hockeystick.io import load_plan

EXAMPLES = Path(__file__).parents[2] / "examples"
LOCAL = (
    "{mechanism = 'LocalTraining', examples = 60, batch_size = 6, noise_multiplier = 2, "
    "local_steps = 3}"
)


def _load(folder: Path, clients: str) -> hs.Mechanism:
    """Load a file with these clients."""
    path = folder / "plan.toml"
    path.write_text(f"[[release]]\nmechanism = 'PriFedSync'\nrounds = 5\nclients = {clients}\n")
    return load_plan(path).plan


def test_one_client_for_all_and_several_are_read(tmp_path: Path) -> None:
    local = hs.federated.LocalTraining(examples=60, batch_size=6, noise_multiplier=2, local_steps=3)
    assert _load(tmp_path, LOCAL) == hs.federated.PriFedSync(clients=local, rounds=5)
    several = _load(tmp_path, f"[{LOCAL}, {LOCAL}]")
    assert several == hs.federated.PriFedSync(clients=(local, local), rounds=5)


def test_parts_of_the_data_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        "[[release]]\nmechanism = 'Parallel'\nsplit = 'site'\nparts = ["
        "{mechanism = 'Gaussian', noise_multiplier = 2}, {mechanism = 'Laplace', scale = 1}]\n"
    )
    assert load_plan(path).plan == hs.Parallel((hs.Gaussian(2), hs.Laplace(1)), "site")
