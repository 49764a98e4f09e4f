"""A saved plan is read as what it was; what no file can hold is refused by name."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick import schedules
from hockeystick.calibration import describe, read_description
from hockeystick.io import PlanFile
from hockeystick.mechanisms.selection.tuning import RunCount
from hockeystick.mechanisms.training.schedules import Schedule
from tests.examples import EXAMPLES

TRAINING = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
MATRIX = hs.mechanisms.MatrixFactorization(2.0, hs.mechanisms.Encoder.of_matrix([[1, 0.5]]))
Encoder = hs.mechanisms.Encoder
ODD_NUMBERS = (0.1 + 0.2, 5e-324, 1e-310, math.inf, Fraction(1, 3), Fraction(0.1))
ODD_NAMES = ("1/2", "2**0.5", "log(2)", "inf", "", " a'b\"\\\n\t", "Größe")
MADE_OF_FIELDS: Any = (hs.Mechanism, Schedule, RunCount)
# What no text says: a set of parties, and what an encoder was made by.
NO_TEXT = (hs.mechanisms.GOPA, hs.mechanisms.GossipAveraging, hs.mechanisms.MatrixFactorization)
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
            Encoder.toeplitz([1, Fraction(1, 3)], 9),
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


def with_others(part: Any) -> Iterator[Any]:
    """Yield a plan, or a part of it, with one of its numbers or names replaced by an odd one."""
    if isinstance(part, tuple):
        for i, one in enumerate(part):
            yield from ((*part[:i], other, *part[i + 1 :]) for other in with_others(one))
    elif isinstance(part, float):
        yield from ODD_NUMBERS
    elif type(part) is str:
        yield from ODD_NAMES
    elif isinstance(part, MADE_OF_FIELDS):
        known = {one.name for one in fields(part)} - {"origin"}
        for name in (one for one in signature(type(part)).parameters if one in known):
            for other in with_others(getattr(part, name)):
                with suppress(hs.errors.HockeystickError, TypeError, OverflowError):
                    yield replace(part, **{name: other})


@pytest.mark.parametrize("plan", [one for one in EXAMPLES if not isinstance(one, hs.FDP)], ids=str)
def test_odd_numbers_and_names_come_back_from_files_json_and_text(
    plan: hs.Mechanism, path: Path
) -> None:
    for one in (plan, *with_others(plan)):
        hs.save_plan(one, path)
        found = [hs.load_plan(path).plan, read_description(json.loads(json.dumps(describe(one))))]
        found += [] if isinstance(plan, NO_TEXT) else [hs.io.parse_plan(repr(one))]
        assert found == [one] * len(found)
        assert {repr(each) for each in found} == {repr(one)}


def test_a_saved_fraction_costs_the_same_to_40_digits(path: Path) -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(1.1), Fraction(0.1))
    hs.save_plan(plan, path)
    cost = hs.delta(plan, 1.0, digits=40).upper
    assert hs.delta(hs.load_plan(path).plan, 1.0, digits=40).upper == cost
    assert hs.delta(hs.PoissonSubsampled(hs.Gaussian(1.1), 0.1), 1.0, digits=40).upper != cost


def test_a_file_keeps_what_is_said_about_its_plan(path: Path) -> None:
    file = PlanFile(plan=TRAINING, title="A run", notes="Mind the gap", delta=1e-5)
    hs.save_plan(file, path)
    assert hs.load_plan(path) == file


def test_a_fraction_of_many_digits_is_read_as_it_was(path: Path) -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(1.0), Fraction(1, 2) + Fraction(1, 3**10_000))
    hs.save_plan(plan, path)
    assert hs.load_plan(path).plan == plan


def test_a_text_that_no_file_can_hold_leaves_the_file_as_it_was(path: Path) -> None:
    hs.save_plan(TRAINING, path)
    with pytest.raises(hs.errors.PlanFileError, match="no file can hold the text"):
        hs.save_plan(hs.Parallel((hs.Gaussian(2), hs.Laplace(3)), split="\ud800"), path)
    assert hs.load_plan(path).plan == TRAINING


def test_an_encoder_of_a_matrix_is_refused(path: Path) -> None:
    for plan in (MATRIX, hs.PoissonSubsampled(MATRIX, 0.5)):
        with pytest.raises(hs.errors.PlanFileError, match="encoder: no file can hold one made fr"):
            hs.save_plan(plan, path)
    assert not path.exists()
