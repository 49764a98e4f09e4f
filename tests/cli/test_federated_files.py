"""Plan files of federated training."""

from fractions import Fraction
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.errors import PlanFileError
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


@pytest.mark.parametrize("clients", ["3", "[]", "{mechanism = 'Gaussian', noise_multiplier = 1}"])
def test_what_is_no_client_is_refused_in_the_words_of_a_file(tmp_path: Path, clients: str) -> None:
    with pytest.raises(PlanFileError, match="clients must be a table whose mechanism is Local"):
        _load(tmp_path, clients)


def test_parts_of_the_data_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        "[[release]]\nmechanism = 'Parallel'\nsplit = 'site'\nparts = ["
        "{mechanism = 'Gaussian', noise_multiplier = 2}, {mechanism = 'Laplace', scale = 1}]\n"
    )
    assert load_plan(path).plan == hs.Parallel((hs.Gaussian(2), hs.Laplace(1)), "site")


def test_the_first_example_is_the_first_row_of_the_papers_first_table() -> None:
    plan = load_plan(EXAMPLES / "prifedsync-mnist.toml").plan
    assert isinstance(plan, hs.federated.PriFedSync)
    (local,) = plan.settings
    assert (local.rate, local.noise_multiplier, local.local_steps * plan.rounds) == (
        Fraction(16, 600),
        2.0,
        3534,
    )
