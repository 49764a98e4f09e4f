"""Plans come back from files, JSON and text as they were, and nothing unchecked comes in."""

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.calibration import describe, read_description
from hockeystick.mechanisms import Encoder, Graph, schedules, tuning
from tests.examples import EXAMPLES

Matrix = hs.mechanisms.MatrixFactorization
TRAINING: Final = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
OF_MATRIX: Final = Matrix(8.0, Encoder.of_matrix([[1, 0.3], [0.1, 0.7]], participations=2))
ODD_NUMBERS: Final = (0.1 + 0.2, 5e-324, 1e-310, math.inf, Fraction(1, 3), Fraction(0.1))
ODD_NAMES: Final = ("1/2", "2**0.5", "log(2)", "inf", "", " a'b\"\\\n\t", "Größe")
MADE_OF_FIELDS: Any = (hs.Mechanism, schedules.Schedule, tuning.RunCount)
# What no text says: a set of parties, what an encoder was made by, and trade-off functions.
NO_TEXT: Final = ("GOPA", "GossipAveraging", "MatrixFactorization", "FDP")
PLANS: Final = (
    *EXAMPLES,
    TRAINING,
    TRAINING @ hs.Gaussian(5.0) @ hs.Laplace(3.0) ** 4,
    hs.Gaussian(5.0) @ TRAINING,
    hs.Gaussian(5.0) ** 0,
    hs.PoissonSubsampled(hs.Gaussian(5.0) @ hs.Laplace(1.0), rate=0.25, adjacency="zero-out") ** 3,
    hs.RenyiDP({1.5: 0.1, 7: math.inf}),
    *(
        hs.DPSGD(noise_multiplier=2.0, rate=0.1, steps=10, schedule=schedule)
        for schedule in (
            schedules.Constant(),
            schedules.Linear(0.5),
            schedules.Exponential(0.4),
            schedules.Cyclic(0.5, 2),
            schedules.Piecewise([(3, 1.0), (7, 0.5)]),
            schedules.Values([0.1 * k for k in range(1, 11)]),
        )
    ),
    hs.mechanisms.GOPA(4.0, 3.0, Graph.complete(300), colluders=(7, 2)),
    hs.mechanisms.GOPA(4.0, 3.0, Graph.random_out(50, 4, seed=1)),
    hs.mechanisms.GOPA(4.0, 3.0, Graph(5)),
    hs.mechanisms.GossipAveraging(2.0, Graph.cycle(9), 2, 2, (0, 5), "max-degree"),
    *(
        Matrix(2.0, encoder)
        for encoder in (
            Encoder.square_root(20, bands=3, participations=2, separation=5),
            Encoder.toeplitz([1, 0.1 + 0.2], 20, participations=2),
            Encoder.toeplitz([1, Fraction(1, 3)], 9),
            Encoder.banded_inverse([1, -0.5, 1e-300], 20, separation=5),
            Encoder.buffered_toeplitz([0.1, 0.3], [0.7, 0.99], 20, participations=3),
            Encoder.tree(20, participations=3, separation=6),
        )
    ),
)
# What no file can hold.
IN_JSON_ONLY: Final = (
    OF_MATRIX,
    hs.convert(hs.PureDP(0.5), hs.ZCDP),
    hs.mechanisms.RevealedSample(hs.Gaussian(2.0), Fraction(1, 3) + Fraction(1, 7**6000)),
    *(
        hs.FDP(f)
        for f in (
            hs.tradeoffs.IDENTITY,
            hs.tradeoffs.ApproxTradeOff(1.0, 1e-5),
            hs.tradeoffs.GaussianTradeOff(0.7),
            hs.tradeoffs.SampledGaussianTradeOff(0.5, 0.1).group(3),
            hs.tradeoffs.PiecewiseLinearTradeOff([0.1, 0.3], [0.6, 0.2]),
            hs.tradeoffs.discrete_tradeoff([0.1, 0.9], [0.5, 0.5]),
            hs.convert(hs.ZCDP(0.5), hs.FDP).tradeoff,
            hs.convert(hs.TCDP(0.5, 9.0), hs.FDP).tradeoff,
            hs.convert(hs.RenyiDP({2: 0.5, 3: 1}), hs.FDP).tradeoff,
            hs.tradeoff(hs.mechanisms.Skellam(9.0)),
        )
    ),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plan.toml"


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


def through_json(plan: hs.Mechanism) -> hs.Mechanism:
    return read_description(json.loads(json.dumps(describe(plan), allow_nan=False)))


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_plan_comes_back_from_files_json_and_text(plan: hs.Mechanism, path: Path) -> None:
    odd = with_others(plan) if plan in EXAMPLES and not isinstance(plan, hs.FDP) else ()
    for one in (plan, *odd):
        found = [through_json(one)]
        assert (describe(found[0]), hash(found[0])) == (describe(one), hash(one))
        assert repr(found[0]) == repr(one)
        if not isinstance(plan, hs.FDP):
            hs.save_plan(one, path)
            found.append(hs.load_plan(path).plan)
        if not any(name in repr(one) for name in NO_TEXT):
            found.append(hs.io.parse_plan(repr(one)))
        assert found == [one] * len(found)
        if "Graph" not in repr(one):  # whose words are said by JSON alone
            assert {repr(each) for each in found} == {repr(one)}


@pytest.mark.parametrize("plan", IN_JSON_ONLY, ids=lambda plan: str(plan)[:60])
def test_what_no_file_can_hold_comes_back_from_json(plan: hs.Mechanism, path: Path) -> None:
    found = through_json(plan)
    assert found == plan
    for part in (type, hash, str, describe):
        assert part(found) == part(plan)
    if not isinstance(plan, hs.ZCDP):
        with pytest.raises(hs.errors.PlanFileError, match="no file can hold"):
            hs.save_plan(plan, path)
        assert not path.exists()


def test_a_text_that_no_file_can_hold_leaves_the_file_as_it_was(path: Path) -> None:
    hs.save_plan(TRAINING, path)
    with pytest.raises(hs.errors.PlanFileError, match="no file can hold this plan"):
        hs.save_plan(hs.Parallel((hs.Gaussian(2), hs.Laplace(3)), split="\ud800"), path)
    assert hs.load_plan(path).plan == TRAINING


def test_a_text_is_never_taken_for_a_class_outside_the_registries() -> None:
    names: tuple[Any, ...] = ("os.system", "Mechanism", "Notion", "builtins.eval", "", None, 3, [])
    for name in names:
        with pytest.raises(hs.errors.ParameterError, match="unknown type"):
            read_description({"type": name, "noise_multiplier": 1.0})


GAUSSIAN: Final = {"type": "Gaussian", "noise_multiplier": 1.0}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "Gaussian"}, "Gaussian needs noise_multiplier"),
        ({**GAUSSIAN, "rate": 1}, "unknown key Gaussian.rate"),
        *(
            ({**GAUSSIAN, "noise_multiplier": wrong}, "noise_multiplier must be")
            for wrong in (-1.0, "1", True, math.nan)
        ),
        *(
            ({**GAUSSIAN, "noise_multiplier": wrong}, "is no number")
            for wrong in ({"float": "nan"}, {"fraction": "1/0"}, {"fraction": 3}, {"fraction": "1"})
        ),
        ({"type": "Skellam", "variance": 9.0}, "sensitivity"),
        ({"type": "Composed", "parts": []}, "parts must be"),
        ({"type": "Composed", "parts": 3}, "parts must be"),
        ({"type": "Composed", "parts": [3]}, r"parts\[0\] must be a mechanism"),
        ({"type": "schedules.Linear", "end": 0.5}, "description must be a mechanism"),
        ([], "description must be a mechanism"),
        (None, "description must be a mechanism"),
        ("Gaussian", "description must be a mechanism"),
        ({"type": "Origin", "kind": "sure", "theorem": ""}, "kind must be"),
        ({"type": "Origin", "kind": "exact", "theorem": 3}, "theorem must be a text"),
        ({"type": "tradeoffs.GroupTradeOff", "inner": 3, "size": 2}, "inner must be"),
        ({"type": "tradeoffs.RenyiTradeOff", "curve": 3}, "curve must be"),
        ({"type": "tradeoffs.of_plan", "plan": 3}, "must be a mechanism"),
    ],
)
def test_what_is_no_description_is_refused_by_name(document: Any, message: str) -> None:
    with pytest.raises(hs.errors.ParameterError, match=message):
        read_description(document)


PARTS: Final[dict[str, hs.Mechanism]] = {
    "encoder": Matrix(2.0, Encoder.toeplitz([1, -0.5], rounds=9)),
    "tradeoff": hs.FDP(hs.tradeoffs.discrete_tradeoff([0.1, 0.9], [0.5, 0.5])),
    "graph": hs.mechanisms.GOPA(4.0, 3.0, Graph.cycle(5)),
}


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("encoder", {"rounds": 0}),
        ("encoder", {"words": 3}),
        ("encoder", {"participations": -1}),
        ("encoder", {"separation": 0.5}),
        ("encoder", {"square": 1.0}),
        ("encoder", {"square": {"fraction": "0x0/0x1"}}),
        ("encoder", {"least_square": {"fraction": "-0x1/0x1"}}),
        ("encoder", {"strategy": {"type": "Toeplitz", "coefficients": [1.0, -0.25]}}),
        ("encoder", {"strategy": GAUSSIAN}),
        ("encoder", {"strategy": None, "rounds": -1}),
        ("tradeoff", {"alphas": [0.0, 2.0, 1.0]}),
        ("tradeoff", {"alphas": [0.5, 0.1, 1.0]}),
        ("tradeoff", {"betas": [0.0, 0.1, 1.0]}),
        ("tradeoff", {"powers": [0.0, 1.0]}),
        ("tradeoff", {"slack": -1.0}),
        ("tradeoff", {"ratios": 3}),
        ("graph", {"edges": "!!!"}),
        ("graph", {"edges": "AAAA"}),
        ("graph", {"edges": 5}),
        ("graph", {"parties": 0}),
        ("graph", {"parties": 2}),
        ("graph", {"words": 3}),
    ],
    ids=str,
)
def test_what_is_made_of_other_numbers_is_checked(part: str, wrong: dict[str, Any]) -> None:
    document = describe(PARTS[part])
    assert read_description(document) == PARTS[part]
    with pytest.raises(hs.errors.ParameterError):
        read_description({**document, part: {**document[part], **wrong}})


def test_an_encoder_whose_square_was_rounded_otherwise_is_read() -> None:
    """As it was written where both ends were the square of diagonals in fixed point."""
    plan = Matrix(4.0, Encoder.square_root(1000))
    found = describe(plan)
    unit = "0x4" + 63 * "0"
    whole = "0xd0f5cf7b34f3287a05b2178ff24bf23b568cc4eae18e2dc1eb5214e7403e7c97"
    found["encoder"].update(
        {name: {"fraction": f"{whole}/{unit}"} for name in ("least_square", "square")}
    )
    assert read_description(found) == plan


def test_an_encoder_that_was_written_without_its_strategy_is_read() -> None:
    document = describe(PARTS["encoder"])
    del document["encoder"]["strategy"]
    plans: tuple[Any, ...] = read_description(document), PARTS["encoder"]
    found, known = (plan.encoder for plan in plans)
    assert found.strategy is None
    assert (found.square, found.least_square) == (known.square, known.least_square)


def test_what_only_a_program_knows_is_refused_when_it_is_written() -> None:
    own = hs.tradeoffs.tradeoff_of_deltas([(0.5, 0.1), (1.0, 0.01)])
    with pytest.raises(hs.errors.ParameterError, match="trade-off function must be a mechanism"):
        describe(hs.FDP(own))


def test_a_text_nested_without_end_is_refused() -> None:
    document: Any = GAUSSIAN
    for _ in range(100_000):
        document = {"type": "PoissonSubsampled", "inner": document, "rate": 0.5}
        document["adjacency"] = "add-remove"
    with pytest.raises(hs.errors.ParameterError, match="nested too deeply"):
        read_description(document)
