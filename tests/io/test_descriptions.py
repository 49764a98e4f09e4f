"""Descriptions as JSON and back: exact, and nothing unchecked comes in."""

import json
import math
from fractions import Fraction
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.calibration import describe, read_description
from hockeystick.mechanisms import schedules, tuning
from tests.examples import EXAMPLES

RATES: Final = [0.1 * k for k in range(1, 11)]
NESTED: Final[tuple[hs.Mechanism, ...]] = (
    hs.Gaussian(math.inf),
    hs.Gaussian(0.1 + 0.2),
    hs.mechanisms.RevealedSample(hs.Gaussian(2.0), Fraction(1, 3)),
    hs.Composed(
        (
            hs.PoissonSubsampled(hs.Laplace(2.0), 0.5) ** 7,
            hs.GDP(0.5),
            hs.mechanisms.Skellam(9.0, 2),
        )
    ),
    hs.mechanisms.MatrixFactorization(
        8.0, hs.mechanisms.Encoder.of_matrix([[1, 0.3], [0.1, 0.7]], participations=2)
    ),
    hs.mechanisms.MatrixFactorization(
        2.0, hs.mechanisms.Encoder.toeplitz([1, -0.5], rounds=9, participations=3)
    ),
    *(
        hs.mechanisms.MatrixFactorization(2.0, hs.mechanisms.Encoder.of(strategy, 9))
        for strategy in (
            hs.mechanisms.Toeplitz([1, Fraction(1, 3)]),
            hs.mechanisms.SquareRoot(3),
            hs.mechanisms.BandedInverse([1, -0.5]),
            hs.mechanisms.BufferedToeplitz([0.1, 0.3], [0.7, 0.99]),
        )
    ),
    hs.convert(hs.PureDP(0.5), hs.ZCDP),
    hs.mechanisms.RandomStopping(hs.Gaussian(5.0), tuning.Poisson(3.0)),
    hs.RenyiDP({1.5: 0.1, 7: math.inf}),
    hs.mechanisms.GOPA(4.0, 3.0, hs.mechanisms.Graph.complete(300), colluders=(7, 2)),
    hs.mechanisms.GOPA(4.0, 3.0, hs.mechanisms.Graph.random_out(50, 4, seed=1)),
    hs.mechanisms.GOPA(4.0, 3.0, hs.mechanisms.Graph(5)),
    hs.mechanisms.GossipAveraging(4.0, hs.mechanisms.Graph.cycle(9), 2, 2, (0, 5), "max-degree"),
    *(
        hs.DPSGD(noise_multiplier=2.0, rate=0.1, steps=10, schedule=schedule)
        for schedule in (
            schedules.Constant(),
            schedules.Linear(0.5),
            schedules.Exponential(0.4),
            schedules.Staircase(0.5, 3),
            schedules.Cyclic(0.5, 2),
            schedules.Piecewise([(3, 1.0), (7, 0.5)]),
            schedules.Values(RATES),
        )
    ),
    *(
        hs.FDP(f)
        for f in (
            hs.tradeoffs.IDENTITY,
            hs.tradeoffs.ApproxTradeOff(1.0, 1e-5),
            hs.tradeoffs.GaussianTradeOff(0.7),
            hs.tradeoffs.SampledGaussianTradeOff(0.5, 0.1),
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


def through_json(mechanism: hs.Mechanism) -> hs.Mechanism:
    return read_description(json.loads(json.dumps(describe(mechanism), allow_nan=False)))


@pytest.mark.parametrize("mechanism", EXAMPLES + NESTED, ids=str)
def test_every_registered_mechanism_and_notion_comes_back_as_it_was(
    mechanism: hs.Mechanism,
) -> None:
    found = through_json(mechanism)
    assert found == mechanism
    assert type(found) is type(mechanism)
    assert repr(found) == repr(mechanism)
    assert hash(found) == hash(mechanism)
    assert describe(found) == describe(mechanism)


def test_fractions_of_any_length_come_back() -> None:
    rate = Fraction(1, 3) + Fraction(1, 7**6000)
    found = through_json(hs.mechanisms.RevealedSample(hs.Gaussian(2.0), rate))
    assert isinstance(found, hs.mechanisms.RevealedSample)
    assert found.rate == rate


def test_a_text_is_never_taken_for_a_class_outside_the_registries() -> None:
    names: tuple[Any, ...] = ("os.system", "Mechanism", "Notion", "builtins.eval", "", None, 3, [])
    for name in names:
        with pytest.raises(hs.errors.ParameterError, match="unknown type"):
            read_description({"type": name, "noise_multiplier": 1.0})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "Gaussian"}, "Gaussian needs noise_multiplier"),
        ({"type": "Gaussian", "noise_multiplier": 1.0, "rate": 1}, "unknown key Gaussian.rate"),
        ({"type": "Gaussian", "noise_multiplier": -1.0}, "noise_multiplier must be"),
        ({"type": "Gaussian", "noise_multiplier": "1"}, "noise_multiplier must be"),
        ({"type": "Gaussian", "noise_multiplier": True}, "noise_multiplier must be"),
        ({"type": "Gaussian", "noise_multiplier": {"float": "nan"}}, "is no number"),
        ({"type": "Gaussian", "noise_multiplier": math.nan}, "noise_multiplier must be"),
        ({"type": "Skellam", "variance": 9.0}, "sensitivity"),
        ({"type": "Composed", "parts": []}, "parts must be"),
        ({"type": "Composed", "parts": 3}, "parts must be"),
        ({"type": "Composed", "parts": [3]}, r"parts\[0\] must be a mechanism"),
        ({"type": "schedules.Linear", "end": 0.5}, "description must be a mechanism"),
        ([], "description must be a mechanism"),
        (None, "description must be a mechanism"),
        ("Gaussian", "description must be a mechanism"),
        ({"fraction": "1/0"}, "is no number"),
        ({"fraction": 3}, "is no number"),
        ({"fraction": "1"}, "is no number"),
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
    "encoder": hs.mechanisms.MatrixFactorization(
        2.0, hs.mechanisms.Encoder.toeplitz([1, -0.5], rounds=9)
    ),
    "tradeoff": hs.FDP(hs.tradeoffs.discrete_tradeoff([0.1, 0.9], [0.5, 0.5])),
    "graph": hs.mechanisms.GOPA(4.0, 3.0, hs.mechanisms.Graph.cycle(5)),
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
        ("encoder", {"strategy": {"type": "Gaussian", "noise_multiplier": 1.0}}),
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
    plan = hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.square_root(1000))
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
    found = read_description(document)
    assert isinstance(found, hs.mechanisms.MatrixFactorization)
    toeplitz = hs.mechanisms.Encoder.toeplitz([1, -0.5], rounds=9)
    assert found.encoder.strategy is None
    assert (found.encoder.least_square, found.encoder.square) == (
        toeplitz.least_square,
        toeplitz.square,
    )


def test_what_only_a_program_knows_is_refused_when_it_is_written() -> None:
    own = hs.tradeoffs.tradeoff_of_deltas([(0.5, 0.1), (1.0, 0.01)])
    with pytest.raises(hs.errors.ParameterError, match="trade-off function must be a mechanism"):
        describe(hs.FDP(own))


def test_a_text_nested_without_end_is_refused() -> None:
    document: Any = {"type": "Gaussian", "noise_multiplier": 1.0}
    for _ in range(100_000):
        document = {"type": "PoissonSubsampled", "inner": document, "rate": 0.5}
        document["adjacency"] = "add-remove"
    with pytest.raises(hs.errors.ParameterError, match="nested too deeply"):
        read_description(document)
