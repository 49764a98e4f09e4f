"""A saved plan is read as what it was; what no file can hold is refused by name."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick import schedules
from hockeystick.io import PlanFile
from tests.examples import EXAMPLES

TRAINING = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
MATRIX = hs.mechanisms.MatrixFactorization(2.0, hs.mechanisms.Encoder.of_matrix([[1, 0.5]]))
Encoder = hs.mechanisms.Encoder
# What has no form in a file.
IN_PYTHON_ONLY = (hs.FDP,)
PLANS = (
    *EXAMPLES,
    TRAINING,
    TRAINING @ hs.Gaussian(5.0) @ hs.Laplace(3.0) ** 4,
    hs.Gaussian(5.0) @ TRAINING,
    hs.Gaussian(5.0) ** 0,
    hs.PoissonSubsampled(hs.Gaussian(5.0) @ hs.Laplace(1.0), rate=0.25, adjacency="zero-out") ** 3,
    *(
        hs.DPSGD(rate=0.01, steps=100, noise_multiplier=2.0, schedule=schedule)
        for schedule in (
            schedules.Linear(0.5),
            schedules.Piecewise([(40, 1.0), (60, 1.5)]),
            schedules.Values([1.0 + k / 100 for k in range(100)]),
        )
    ),
    hs.mechanisms.GOPA(2.0, 10.0, hs.mechanisms.Graph.cycle(9)),
    hs.mechanisms.GossipAveraging(2.0, hs.mechanisms.Graph.cycle(9), 2, 2, (0, 5), "max-degree"),
    *(
        hs.mechanisms.MatrixFactorization(2.0, encoder)
        for encoder in (
            Encoder.square_root(20),
            Encoder.square_root(20, bands=3, participations=2, separation=5),
            Encoder.toeplitz([1, 0.1 + 0.2], 20, participations=2),
            Encoder.banded_inverse([1, -0.5, 1e-300], 20, separation=5),
            Encoder.buffered_toeplitz([0.1, 0.3], [0.7, 0.99], 20, participations=3),
            Encoder.tree(20, participations=3, separation=6),
        )
    ),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plan.toml"


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_saved_plan_is_read_as_what_it_was(plan: hs.Mechanism, path: Path) -> None:
    if any(isinstance(one, IN_PYTHON_ONLY) for one in (plan, getattr(plan, "inner", None))):
        with pytest.raises(hs.errors.PlanFileError, match="no file can hold"):
            hs.save_plan(plan, path)
        return
    hs.save_plan(plan, path)
    assert hs.load_plan(path).plan == plan


def test_a_file_keeps_what_is_said_about_its_plan(path: Path) -> None:
    file = PlanFile(plan=TRAINING, title="A run", notes="Mind the gap", delta=1e-5)
    hs.save_plan(file, path)
    assert hs.load_plan(path) == file


def test_a_fraction_that_is_no_float_is_refused(path: Path) -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(1.0), Fraction(1, 3))
    with pytest.raises(hs.errors.PlanFileError, match="rate: no file can hold the fraction 1/3"):
        hs.save_plan(plan, path)
    assert not path.exists()


def test_an_encoder_of_a_matrix_is_refused(path: Path) -> None:
    for plan in (MATRIX, hs.PoissonSubsampled(MATRIX, 0.5)):
        with pytest.raises(hs.errors.PlanFileError, match="encoder: no file can hold one made fr"):
            hs.save_plan(plan, path)
    third = Encoder.toeplitz([1, Fraction(1, 3)], 9)
    with pytest.raises(hs.errors.PlanFileError, match="coefficients: no file can hold the fracti"):
        hs.save_plan(hs.mechanisms.MatrixFactorization(2.0, third), path)
    assert not path.exists()


def test_what_is_no_plan_is_refused(path: Path) -> None:
    with pytest.raises(hs.errors.ParameterError, match="plan"):
        hs.save_plan("plan", path)  # type: ignore[arg-type]


def test_a_folder_that_is_missing_is_named(path: Path) -> None:
    with pytest.raises(hs.errors.PlanFileError, match="cannot be written"):
        hs.save_plan(TRAINING, path / "nowhere")
