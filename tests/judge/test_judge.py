"""Random answers of the library are judged by oracles that know nothing of it."""

import ast
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import hockeystick as hs
from tests.judge.judging import ask, asked
from tests.judge.questions import Question, ask_convert, ask_filter, ask_odometer
from tests.judge.truths import Spec, truth
from tests.judge.verdicts import Verdict, delta, epsilon, tests

SEED = 2
ORACLES = ("profiles", "outcomes", "noises", "cases", "truths", "guarantees", "samplings")
GAUSSIAN = Spec("Gaussian", (1.0,))


def _faults(found: list[Verdict]) -> str:
    return "\n".join(f"{one.line}  # {one.faults[0]}" for one in found if one.faults)


@pytest.mark.parametrize("index", range(90))
def test_no_end_of_a_random_answer_is_on_the_wrong_side(index: int) -> None:
    assert not _faults([asked(SEED, index, seconds=0.5)])


@pytest.mark.parametrize("way", [ask_convert, ask_filter, ask_odometer])
@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
@pytest.mark.parametrize("rate", [0.0625, 0.5, 0.9, 1.0])
def test_no_attack_exceeds_a_guarantee(
    rate: float, adjacency: str, way: Callable[[random.Random, Spec], Question]
) -> None:
    draw = random.Random(f"{rate}/{adjacency}")
    assert not _faults([ask(way(draw, _sampled(rate, 2.0, adjacency)), 1.0) for _ in range(4)])


def test_the_worked_examples_of_opposite_records() -> None:
    """At rate 0.9 and noise 1, an opposite record has delta(2) = 0.21274 and D_2 above 1.366 2."""
    step, sure = (
        hs.PoissonSubsampled(hs.Gaussian(1.0), rate, "replace-one") for rate in (0.9, 1.0)
    )
    assert hs.delta(hs.convert(step, hs.GDP), 2.0).upper >= 0.21274
    assert hs.convert(step, hs.ZCDP).rho >= 1.366
    assert not hs.calibration.Filter(hs.RenyiDP({2.0: 1.0})).fits(sure)
    assert dict(hs.convert(sure, hs.RenyiDP, orders=2.0).divergences)[2.0] == pytest.approx(4.0)
    # Eleven steps at noise 4 have delta(4) above 0.0094.
    spending = hs.calibration.Filter(hs.ApproxDP(4.0, 1e-5))
    with pytest.raises(hs.errors.BudgetExhausted):
        spending.step(hs.PoissonSubsampled(hs.Gaussian(4.0), 0.9, "replace-one"), count=11)
    with pytest.raises(hs.errors.IncompatibleError):
        hs.convert(step, hs.PureDP)


@pytest.mark.parametrize("name", ORACLES)
def test_oracles_import_nothing_of_the_library(name: str) -> None:
    tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8"))
    imported = [
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    assert imported
    assert not [one for one in imported if one.startswith("hockeystick")]


def _sampled(rate: float, noise: float, adjacency: str) -> Spec:
    return Spec("PoissonSubsampled", (rate,), (Spec("Gaussian", (noise,)),), adjacency)


@pytest.mark.parametrize(
    ("spec", "at", "value"),
    [
        (GAUSSIAN, 1.0, 0.126936737506643945800829624758),
        (Spec("Laplace", (1.0,)), 0.5, 0.2211992169285951317548297),
        (Spec("RandomizedResponse", (1.0, 10)), 0.5, 0.0912728140025937886263491456854),
        (Spec("DiscreteGaussian", (2.0, 1)), 1.0, 0.00724877684595),
        (Spec("ApproxDP", (1.0, 0.25)), 1.0, 0.25),
        (_sampled(0.1, 2.0, "add-remove"), 0.2, 2.88571111801261534128e-4),
        (Spec("Repeated", (50,), (_sampled(0.1, 2.0, "add-remove"),)), 1.0, 0.00135525177912980502),
        (_sampled(0.9, 1.0, "replace-one"), 2.0, 0.21274),
        (Spec("Repeated", (30,), (Spec("PureDP", (0.1,)),)), 2.4, 2.97340390503302e-7),
    ],
    ids=lambda value: value.kind if isinstance(value, Spec) else None,
)
def test_oracles_contain_known_values(spec: Spec, at: float, value: float) -> None:
    found = truth(spec)
    assert found.lower(at) <= value * (1 + 1e-10)
    assert found.upper(at) >= value * (1 - 1e-10)


def test_an_end_on_the_wrong_side_is_a_fault() -> None:
    what = truth(GAUSSIAN)
    wrong: list[Callable[[Verdict], None]] = [
        lambda verdict: delta(verdict, what, 1.0, (0.0, 0.1269)),
        lambda verdict: delta(verdict, what, 1.0, (0.127, 1.0)),
        lambda verdict: delta(verdict, what, 1.0, (0.1269, float("nan"))),
        lambda verdict: epsilon(verdict, what, 1e-5, (0.0, 4.37)),
        lambda verdict: epsilon(verdict, what, 1e-5, (4.38, 5.0)),
        lambda verdict: epsilon(verdict, what, 1e-5, (5.0, 4.0)),
        lambda verdict: tests(verdict, what, 0.25, (0.5, 0.75), "f"),
        lambda verdict: tests(verdict, what, 0.25, (0.0, 0.25), "f"),
    ]
    for one in wrong:
        verdict = Verdict()
        one(verdict)
        assert verdict.faults
    verdict = Verdict()
    delta(verdict, what, 1.0, (0.12693, 0.12694))
    epsilon(verdict, what, 1e-5, (4.377178, 4.377179))
    tests(verdict, what, 0.25, (0.3, 0.4), "f")
    assert not verdict.faults
    assert verdict.upper
    assert verdict.lower


def test_what_is_no_error_of_the_library_is_a_fault() -> None:
    for line, refused, faulty in (
        ("answer = hs.Gaussian(-1)", True, False),
        ("answer = 1 / 0", False, True),
        ("answer = hs.Certified(2.0, 1.0, 3.0, quantity='delta', accountant='x')", True, True),
        ("answer = 1", False, False),
    ):
        found = ask(Question(line, lambda *_: None), 10.0)
        assert (found.refused, bool(found.faults)) == (refused, faulty)
