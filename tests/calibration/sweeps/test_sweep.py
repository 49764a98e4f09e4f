import itertools
import math
import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.calibration import AskDelta, AskEpsilon
from hockeystick.calibration.sweeps.questions import with_fields

PLAN = hs.DPSGD(noise_multiplier=1, examples=60_000, batch_size=256, epochs=1)
GRID = {"epochs": [1, 2.5], "noise_multiplier": [0.8, 1.0, 2.0], "delta": [1e-5, 1e-9]}


def seconds_first(k: int, slow: float) -> int:
    """Take long for the first cell only."""
    if k == 0:
        time.sleep(slow)
    return k


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def test_the_last_parameter_changes_fastest() -> None:
    rows = list(hs.sweep({"a": [1, 2], "b": ["x", "z"], "c": (True, None)}, lambda **_: 0.0))
    found = [(row["a"], row["b"], row["c"]) for row in rows]
    assert found == list(itertools.product([1, 2], ["x", "z"], [True, None]))


def test_a_row_has_the_answer_of_its_plan_to_the_last_bit() -> None:
    rows = list(hs.sweep(GRID, AskEpsilon(PLAN)))
    cells = list(itertools.product(*GRID.values()))
    assert len(rows) == len(cells) == 12
    for row, (epochs, noise, delta) in zip(rows, cells, strict=True):
        plan = hs.DPSGD(noise_multiplier=noise, examples=60_000, batch_size=256, epochs=epochs)
        answer = hs.epsilon(plan, delta)
        assert row == {
            "epochs": epochs,
            "noise_multiplier": noise,
            "delta": delta,
            "lower": answer.lower,
            "estimate": answer.estimate,
            "upper": answer.upper,
            "accountant": "contour",
            "error": None,
        }


def test_a_refused_cell_is_a_row_and_the_others_are_answered() -> None:
    ask = AskEpsilon(PLAN, 1e-5)
    first, second = hs.sweep({"noise_multiplier": [-1, 1.0]}, ask)
    allowed = "noise_multiplier must be a number >= 0 or inf; got"
    assert first == {"noise_multiplier": -1, "error": f"{allowed} -1"}
    assert second["error"] is None
    third, fourth = hs.sweep({"x": [0, 4]}, lambda x: 1 / x)
    assert third == {"x": 0, "error": "ZeroDivisionError: division by zero"}
    assert fourth == {"x": 4, "value": 0.25, "error": None}


@pytest.mark.parametrize("on", [None, "threads"])
def test_a_fault_of_the_question_ends_the_sweep(on: str | None, threads: Executor) -> None:
    def ask(x: int) -> float:
        if x == 2:
            raise KeyError("no such thing")
        return x

    rows = hs.sweep({"x": [0, 1, 2, 3]}, ask, threads if on else None)
    assert [next(rows)["value"] for _ in range(2)] == [0, 1]
    with pytest.raises(KeyError, match="no such thing"):
        next(rows)


@pytest.mark.parametrize(
    ("found", "columns"),
    [
        (2, {"value": 2}),
        (np.float64(2.5), {"value": 2.5}),
        (math.inf, {"value": math.inf}),
        ({"a": 1, "b": None, "c": Decimal("1.5")}, {"a": 1, "b": None, "c": "Decimal('1.5')"}),
        (
            hs.Certified(1, 2, 3, quantity="epsilon", accountant="rdp"),
            {"lower": 1, "estimate": 2, "upper": 3, "accountant": "rdp"},
        ),
        (
            hs.Approximate(2, quantity="epsilon", accountant="gdp"),
            {"lower": None, "estimate": 2, "upper": None, "approximation": 2, "accountant": "gdp"},
        ),
    ],
)
def test_an_answer_is_spread_into_columns(found: object, columns: dict[str, object]) -> None:
    (row,) = hs.sweep({"x": [0]}, lambda x: found)
    assert row == {"x": 0, **columns, "error": None}


def test_an_executor_gives_the_order_of_the_grid_whatever_is_done_first(threads: Executor) -> None:
    rows = list(hs.sweep({"slow": [0.2], "k": range(500)}, seconds_first, threads))
    assert [row["k"] for row in rows] == [row["value"] for row in rows] == list(range(500))


def test_a_sweep_that_is_left_leaves_nothing_waiting_in_the_executor() -> None:
    asked = []

    def ask(x: int) -> int:
        asked.append(x)
        time.sleep(0.05)
        return x

    with ThreadPoolExecutor(1) as executor:
        rows = hs.sweep({"x": range(100)}, ask, executor, in_flight=50)
        assert isinstance(rows, Iterator)
        next(rows)
        getattr(rows, "close")()  # noqa: B009  # Iterator has no close
    assert len(asked) < 10


def test_progress_counts_what_is_answered() -> None:
    told: list[tuple[int, int]] = []
    for _ in hs.sweep({"x": range(3)}, lambda x: x, progress=lambda *one: told.append(one)):
        pass
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_nothing_is_asked_before_it_is_wanted() -> None:
    asked: list[int] = []

    def ask(x: int) -> None:
        asked.append(x)

    rows = hs.sweep({"x": range(3)}, ask)
    assert not asked
    with pytest.raises(TypeError, match="a function that returns a number"):
        next(rows)
    assert asked == [0]
    for column in ("x", "error"):
        with pytest.raises(TypeError, match=f"no column named {column!r}"):
            list(hs.sweep({"x": [1]}, lambda x, column=column: {column: 0.0}))


SOLVE = hs.calibration.Solve(hs.Gaussian(1), "noise_multiplier", hs.ApproxDP(1, 1e-5))
OTHER: Any = {"noise_multiplier": [1], "sigma": [1, 2]}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"grid": []}, "grid must be a mapping"),
        ({"grid": {"x": 3}}, "x must be a sequence of at least one value; got 3"),
        ({"grid": {"x": "abc"}}, "x must be a sequence of at least one value; got 'abc'"),
        ({"grid": {"error": [1]}}, "grid must be without 'error'"),
        ({"grid": {"x": range(10**5), "y": range(10**4)}}, r"10\^7 cells; these are 1,000,000,000"),
        ({"ask": 3}, "ask must be"),
        ({"executor": "threads"}, "executor must be"),
        ({"in_flight": 0}, "in_flight must be"),
        ({"in_flight": 1.5}, "in_flight must be"),
        ({"out": 3}, "out must be"),
        # What the plan does not have, and what question and grid both give.
        ({"grid": OTHER, "ask": AskEpsilon(hs.Gaussian(1), 1e-5)}, "got 'sigma'"),
        ({"grid": OTHER, "ask": SOLVE}, "got 'sigma'"),
        ({"grid": {"delta": [0.5]}, "ask": AskEpsilon(PLAN, 1e-5)}, "delta must be given once"),
        ({"grid": {"epsilon": [0.5]}, "ask": AskDelta(PLAN, 1.0)}, "epsilon must be given once"),
        (
            {"grid": {"accountant": [0.5]}, "ask": AskEpsilon(PLAN, accountant="rdp")},
            "accountant must be given once",
        ),
    ],
)
def test_what_is_no_sweep_is_refused_before_anything_is_asked(changed: Any, told: str) -> None:
    with pytest.raises(hs.errors.ParameterError, match=told):
        hs.sweep(**{"grid": {"k": [1]}, "ask": seconds_first} | changed)


def test_fields_take_the_place_of_their_alternatives_and_paths_lead_inside() -> None:
    plan: Any = with_fields(PLAN, {"steps": 20, "rate": 0.1})
    assert (plan.epochs, plan.steps, plan.batch_size, plan.rate) == (None, 20, None, 0.1)
    composed = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 100 @ hs.Laplace(scale=20)
    changed = with_fields(composed, {"rate": 0.02, "parts[1].scale": 3})
    assert changed == hs.PoissonSubsampled(hs.Gaussian(1.1), 0.02) ** 100 @ hs.Laplace(3)


@pytest.mark.parametrize("ask", [AskEpsilon(PLAN), AskDelta(PLAN)])
def test_a_number_beside_a_mechanism_is_refused_in_the_row(ask: Callable[..., object]) -> None:
    grid: dict[str, list[Any]] = {"nose": [1], "delta": [0.1], "epsilon": [1]}
    grid["extra"] = [hs.Laplace(9)]
    (row,) = hs.sweep(grid, ask)
    assert "number that the plan gives" in str(row["error"])


@pytest.mark.parametrize("make", [AskEpsilon, AskDelta])
def test_a_question_checks_what_it_is_made_of_and_travels(make: Any) -> None:
    solve = hs.calibration.Solve(PLAN, "epochs", hs.ApproxDP(2, 1e-5), spent=hs.Gaussian(10))
    for ask in (make(PLAN, 0.5), solve):
        assert pickle.loads(pickle.dumps(ask)) == ask
    with pytest.raises(hs.errors.ParameterError, match="plan must be a mechanism"):
        make("plan")
    with pytest.raises(hs.errors.ParameterError, match="must be a number"):
        make(PLAN, -1)
    with pytest.raises(hs.errors.ParameterError, match="given, by the question or by the grid"):
        make(PLAN)()


def test_a_part_that_is_replaced_has_the_fields_of_the_new_one() -> None:
    inside = AskEpsilon(hs.Gaussian(1) ** 2, delta=1e-5)
    (row,) = hs.sweep({"inner": [hs.Laplace(9)], "inner.scale": [99.0]}, inside)
    assert row["error"] is None


BASE = hs.DPSGD(noise_multiplier=1, examples=6000, batch_size=60, epochs=1)
TARGET = hs.ApproxDP(epsilon=3, delta=1e-5)


def test_each_plan_of_a_frontier_meets_the_budget_and_hardly_less_noise_does() -> None:
    points = hs.calibration.frontier(BASE, TARGET, epochs=[5, 20], batch_sizes=[120, 600])
    places = [(one.batch_size, one.epochs) for one in points]
    assert places == [(120, 5), (120, 20), (600, 5), (600, 20)]
    for one in points:
        assert one.plan is not None
        assert one.noise_multiplier is not None
        expected = hs.DPSGD(
            noise_multiplier=one.noise_multiplier,
            examples=6000,
            batch_size=one.batch_size,
            epochs=one.epochs,
        )
        assert one.plan == expected
        assert one.achieved == hs.epsilon(expected, 1e-5).upper <= 3
        less: Any = {"noise_multiplier": one.noise_multiplier * (1 - 1e-6)}
        worse = hs.DPSGD(**less, examples=6000, batch_size=one.batch_size, epochs=one.epochs)
        assert hs.epsilon(worse, 1e-5).lower > 3
        assert one.noise_on_mean == one.noise_multiplier / one.batch_size
        assert one.steps == math.ceil(one.epochs * 6000 / one.batch_size)
        assert one.reason == ""


def test_what_is_no_plan_has_its_reason() -> None:
    first, second = hs.calibration.frontier(BASE, TARGET, epochs=[5], batch_sizes=[7000, 60])
    assert (first.plan, first.noise_multiplier, first.noise_on_mean) == (None, None, None)
    assert (first.achieved, first.steps) == (None, None)
    assert "batch_size" in first.reason
    assert second.plan is not None


def test_a_frontier_without_plan_or_length_is_refused_by_name() -> None:
    with pytest.raises(hs.errors.ParameterError, match="plan must be a DPSGD"):
        hs.calibration.frontier(hs.Gaussian(1), TARGET, epochs=[1], batch_sizes=[1])  # type: ignore[arg-type]  # what is refused
    with pytest.raises(
        hs.errors.ParameterError, match="epochs must be a sequence of at least one value"
    ):
        hs.calibration.frontier(BASE, TARGET, epochs=[], batch_sizes=[1])
