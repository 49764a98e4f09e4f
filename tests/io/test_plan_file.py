"""Plan files: what they say is read and saved as it was; what is wrong is said by a key's path."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
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
from hockeystick.io import PlanFile, load_plan
from hockeystick.mechanisms.selection.tuning import RunCount
from hockeystick.mechanisms.training.schedules import Schedule
from tests.examples import EXAMPLES

Write = Callable[[str | bytes], str]

DPSGD = "[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = 1\n"
TRAINING = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
MATRIX = hs.mechanisms.MatrixFactorization(2.0, hs.mechanisms.Encoder.of_matrix([[1, 0.5]]))
Encoder = hs.mechanisms.Encoder
ODD_NUMBERS = (0.1 + 0.2, 5e-324, 1e-310, math.inf, Fraction(1, 3), Fraction(0.1))
ODD_NAMES = ("1/2", "2**0.5", "log(2)", "inf", "", " a'b\"\\\n\t", "Größe")
MADE_OF_FIELDS: Any = (hs.Mechanism, Schedule, RunCount)
# What no text says: a set of parties, and what an encoder was made by.
NO_TEXT = (hs.mechanisms.GOPA, hs.mechanisms.GossipAveraging, hs.mechanisms.MatrixFactorization)
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


def test_a_file_can_say_everything(write: Write) -> None:
    path = write("""
        title = "A run"
        source = "Somewhere"
        notes = "Mind the gap"
        delta = 1e-5
        epsilon = 2
        [dpsgd]
        examples = 1_000
        batch_size = 10
        epochs = 2.5
        noise_multiplier = 1.5
        adjacency = "zero-out"
        [[release]]
        mechanism = "PoissonSubsampled"
        rate = 0.25
        adjacency = "zero-out"
        inner = {mechanism = "Gaussian", noise_multiplier = 3}
        repeat = 4
        [[release]]
        mechanism = "Composed"
        parts = [
            {mechanism = "Gaussian", noise_multiplier = 5},
            {mechanism = "Repeated", count = 2, inner = {mechanism = "Composed", parts = [
                {mechanism = "Gaussian", noise_multiplier = 6},
            ]}},
        ]
    """)
    training = hs.DPSGD(
        examples=1000, batch_size=10, epochs=2.5, noise_multiplier=1.5, adjacency="zero-out"
    )
    sampled = hs.PoissonSubsampled(hs.Gaussian(3), 0.25, "zero-out") ** 4
    plan = training @ sampled @ (hs.Gaussian(5) @ hs.Composed((hs.Gaussian(6),)) ** 2)
    assert load_plan(path) == PlanFile(
        plan=plan, title="A run", source="Somewhere", notes="Mind the gap", delta=1e-5, epsilon=2
    )


def test_repeat_0_releases_nothing(write: Write) -> None:
    text = "[[release]]\nmechanism = 'Gaussian'\nnoise_multiplier = 2\nrepeat = 0"
    assert load_plan(write(text)).plan == hs.Gaussian(2) ** 0


FACTORIZATION = "[[release]]\nmechanism = 'MatrixFactorization'\nnoise_multiplier = 1\n"
ENCODER = FACTORIZATION + "[release.encoder]\n"

FILES = [
    (b" ", "needs a table [dpsgd], or [[release]]"),
    (
        "# first\ndelta = 0.001%",
        "valid TOML or JSON: Expected newline or end of document after a statement (at line 2",
    ),
    ("title = ", "valid TOML or JSON: Invalid value (at end of document)"),
    ("delta = 1e-5\n[dpsgd\nrate = 1", "(at line 2, column 7)"),
    (b"title = '\xff'", "codec can't decode byte"),
    (DPSGD.encode("utf-16"), "codec can't decode byte"),
    (b"\0" * 100, "valid TOML"),
    (b"#" * 2_000_000, "at most 1 MB long"),
    ("x = " + "[" * 50_000, "nested too deeply"),
    ("delta = " + "9" * 10_000, "has 10000 digits"),
    (
        f"zebra = 1e-5\n{DPSGD}",
        "unknown key zebra; allowed are title, source, notes, delta, epsilon, dpsgd, release",
    ),
    (DPSGD + "delta = 1e-5", "unknown key dpsgd.delta; allowed are noise_multiplier, examples"),
    (DPSGD + "sigma = 1", "unknown key dpsgd.sigma; allowed are"),
    (DPSGD.replace("steps = 100\n", ""), ": dpsgd: epochs or steps must be given"),
    (f"{DPSGD}[privacy]\nepsilon = 3", ": unknown key privacy; allowed are title"),
    (f"{DPSGD}[[release]]\nscale = 1", ": unknown release[0].mechanism None; hockeystick init"),
    (
        DPSGD.replace("100", "[1.5, true]"),
        "dpsgd.steps must be an integer from 0 to 10^15; got (1.5, True)",
    ),
    (f"title = 3\n{DPSGD}", "title must be a text in quotes; got 3"),
    (f"delta = 'x'\n{DPSGD}", "delta must be a number from 0 to 1; got 'x'"),
    ("dpsgd = 3", "dpsgd must be a table"),
    ("[dpsgd]\nrate = 0.1\nsteps = 9", "dpsgd needs noise_multiplier, a number >= 0 or inf"),
    (DPSGD + "batch_size = 3", "dpsgd: give batch_size or rate, not both; got batch"),
    (DPSGD.replace("0.01", "1e-400"), "from 0 to 1, within the range of a float; got 1E-400"),
    (
        "[[release]]\nmechanism = ['Gaussian']",
        "unknown release[0].mechanism ['Gaussian']; hockeystick init --list has all",
    ),
    (
        "[[release]]\nmechanism = 'Gaussian'\nnoise_multiplier = 1\nrepeat = 0.5",
        "release[0].repeat must be an integer from 0 to 10^15; got 0.5",
    ),
    (
        "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 0.1\ninner = 'Gaussian'",
        "release[0].inner must be a mechanism; got 'Gaussian'",
    ),
    (
        DPSGD + "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 0.1\n"
        "adjacency = 'zero-out'\ninner = {mechanism = 'Gaussian', noise_multiplier = 1}",
        "must be described under one adjacency",
    ),
    (
        "[[release]]\n"
        + "mechanism = 'Repeated'\ncount = 1\ninner = {" * 1
        + "mechanism = 'Repeated', count = 1, inner = {" * 20
        + "mechanism = 'Gaussian', noise_multiplier = 1"
        + "}" * 21,
        "nested at most 16 deep",
    ),
    (
        "[[release]]\nmechanism = 'Gauss'",
        "unknown release[0].mechanism 'Gauss' (did you mean 'Gaus",
    ),
    ("[[release]]\nmechanism = 'FDP'", "unknown release[0].mechanism 'FDP'; hockeystick init"),
    ("[[release]]\nmechanism = 'Skellam'", "release[0] needs variance"),
    (FACTORIZATION + "encoder = 'x'", "release[0].encoder must be an Encoder"),
    (ENCODER, "unknown release[0].encoder.kind None; must be one of tree, "),
    (ENCODER + "kind = 'square_root'", "release[0].encoder needs rounds"),
    (
        ENCODER + "kind = 'square_root'\nrounds = -1",
        "release[0].encoder.rounds must be an integer from 1 to 1000000; got -1",
    ),
]


@pytest.mark.parametrize(("content", "told"), FILES, ids=[told for _, told in FILES])
def test_what_is_wrong_is_said_by_the_path_of_a_key(
    write: Write, content: str | bytes, told: str
) -> None:
    path = write(content)
    with pytest.raises(hs.errors.PlanFileError) as refusal:
        load_plan(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert told in str(refusal.value)


def test_an_override_takes_the_place_of_a_value_of_the_file(write: Write) -> None:
    plan = load_plan(write(DPSGD), {"rate": 0.02}).plan
    assert plan == hs.DPSGD(rate=0.02, steps=100, noise_multiplier=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plan.toml"


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_saved_plan_is_read_as_what_it_was(plan: hs.Mechanism, path: Path) -> None:
    if any(isinstance(one, hs.FDP) for one in (plan, getattr(plan, "inner", None))):
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


def test_a_text_that_no_file_can_hold_leaves_the_file_as_it_was(path: Path) -> None:
    hs.save_plan(TRAINING, path)
    with pytest.raises(hs.errors.PlanFileError, match="no file can hold this plan"):
        hs.save_plan(hs.Parallel((hs.Gaussian(2), hs.Laplace(3)), split="\ud800"), path)
    assert hs.load_plan(path).plan == TRAINING


def test_an_encoder_of_a_matrix_is_refused(path: Path) -> None:
    for plan in (MATRIX, hs.PoissonSubsampled(MATRIX, 0.5)):
        with pytest.raises(hs.errors.PlanFileError, match="encoder: no file can hold one made fr"):
            hs.save_plan(plan, path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"at": [1, 2]}, "at and budget must be objects"),
        ({"budget": 3}, "at and budget must be objects"),
        ({"at": {"delta": "x"}}, "delta must be a number from 0 to 1; got 'x'"),
        ({"at": {"delta": [1]}}, "delta must be a number from 0 to 1"),
        ({"at": {"delta": 10**400}}, "delta must be a number from 0 to 1"),
    ],
)
def test_what_an_answer_asked_at_is_refused_in_one_line(
    write: Write, part: dict[str, Any], said: str
) -> None:
    whole = {"description": {"type": "Gaussian", "noise_multiplier": 1}, **part}
    with pytest.raises(hs.errors.PlanFileError, match=said):
        load_plan(write(json.dumps(whole)))
