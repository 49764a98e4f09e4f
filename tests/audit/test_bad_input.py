"""What is no audit, or no file of scores: one clear error, or the bound that says nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import audit
from hockeystick.audit.scores import load_scores
from hockeystick.errors import ParameterError

GOOD = [0.0, 1.0, 2.0]
Audit = Callable[[Any, Any], Any]
AUDITS: dict[str, Audit] = {
    "lower_epsilon": lambda a, b: audit.lower_epsilon(a, b, delta=1e-5),
    "lower_mu": audit.lower_mu,
    "lower_curve": audit.lower_curve,
    "falsify": lambda a, b: audit.falsify(hs.GDP(1.0), a, b),
}
BAD = {
    "nothing": [],
    "nan": [0.0, math.nan],
    "a number": 1.0,
    "two dimensions": [[0.0, 1.0]],
    "texts": ["1", "2"],
    "truth values": [True, False],
    "complex numbers": [1j, 2.0],
    "none": None,
    "ragged": [[0.0], [1.0, 2.0]],
    "objects": [object(), object()],
    "masked": np.ma.masked_array([1.0, 2.0], mask=[True, False]),
}


@pytest.mark.parametrize("values", BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", AUDITS)
def test_scores_that_are_no_numbers_are_named(name: str, values: Any) -> None:
    with pytest.raises(ParameterError, match=r"^scores_in must be a one-dimensional array"):
        AUDITS[name](values, GOOD)
    with pytest.raises(ParameterError, match=r"^scores_out must be a one-dimensional array"):
        AUDITS[name](GOOD, values)


OUTSIDE: dict[str, list[Any]] = {
    "confidence": [0.0, 1.0, math.nan, "0.95", True],
    "delta": [-0.1, 1.1, None],
    "threshold": [math.nan],
    "share": [1.0],
    "seed": [-1, 0.5],
}


@pytest.mark.parametrize(("name", "value"), [(k, one) for k, bad in OUTSIDE.items() for one in bad])
def test_a_parameter_outside_its_domain_is_named(name: str, value: Any) -> None:
    asked: dict[str, Any] = {"delta": 1e-5, name: value}
    with pytest.raises(ParameterError, match=rf"^{name} must be "):
        audit.lower_epsilon(GOOD, GOOD, **asked)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ([1.0] * 100, [1.0] * 100),
        ([0.0] * 100, [1.0] * 100),
        ([3.0, 2.0, 1.0], [0.0]),
        ([5], [1]),
        ([-math.inf] * 50, [math.inf] * 50),
    ],
    ids=["constant", "swapped", "few", "one of each", "infinite and swapped"],
)
def test_what_shows_nothing_gives_the_bound_that_says_nothing(inside: Any, outside: Any) -> None:
    assert audit.lower_epsilon(inside, outside, delta=1e-5).value == 0.0
    assert audit.lower_mu(inside, outside).value == 0.0
    assert isinstance(audit.falsify(hs.GDP(1.0), inside, outside), audit.Consistent)


def test_one_run_that_shows_nothing_gives_the_bound_that_says_nothing() -> None:
    included = np.arange(100) % 2 == 0
    for scores in (np.zeros(100), -included.astype(float), np.arange(100.0)):
        assert audit.one_run(scores, included, delta=1e-5).value == 0.0
        assert audit.one_run_mu(scores, included).value == 0.0
    assert audit.one_run([1.0], [True], delta=0.0).value == 0.0


def test_a_delta_too_small_to_divide_is_no_way_round_the_bound() -> None:
    scores = np.arange(1000.0)
    tiny = audit.one_run(scores, scores % 2 == 0, delta=5e-324, guesses=1000)
    assert (
        tiny.value == audit.one_run(scores, scores % 2 == 0, delta=0.0, guesses=1000).value == 0.0
    )


SCORED = ([0.0, 1.0, 2.0], [1, 0, 1])
NO_PLANS: list[Any] = [None, hs.GDP, "plan.toml"]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        *((partial(audit.falsify, plan, GOOD, GOOD), "plan") for plan in NO_PLANS),
        (partial(audit.falsify_one_run, NO_PLANS[2], *SCORED), "plan"),
        (lambda: audit.one_run(GOOD, [True], delta=1e-5), "included"),
        (lambda: audit.one_run(GOOD, [True, False, 2], delta=1e-5), "included"),
        (lambda: audit.one_run(*SCORED, delta=1e-5, guesses=0), "guesses"),
        (lambda: audit.one_run(*SCORED, delta=1e-5, guesses=4), "guesses"),
        (lambda: audit.trials_needed(hs.GDP(1.0), hs.GDP(2.0), power=1.0), "power"),
        (lambda: audit.trials_needed(hs.GDP(1.0), hs.GDP(1.0)), "actual"),
        (lambda: audit.detection(hs.GDP(1.0), hs.GDP(2.0), 0), "trials"),
        (lambda: audit.load_scores("scores.txt"), "path"),
        (lambda: audit.load_scores(b"scores.csv"), "path"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_such_argument_is_named(asked: Callable[[], object], name: str) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} must be"):
        asked()


# Files of scores: every row counts, or an error names the first that cannot be read.

SCORES = [2.5, 0.5, 1.5]
INCLUDED = [True, False, True]


def written(folder: Path, name: str, content: Any) -> Path:
    file = folder / name
    if name.endswith(".csv"):
        file.write_text(content, encoding="utf-8")
    elif name.endswith(".npy"):
        np.save(file, content)
    else:
        np.savez(file, **content)
    return file


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "score,included\n2.5,1\n0.5,0\n1.5,1\n"),
        ("b.csv", "\ufeffincluded,id,score\nin,7,2.5\r\nout,8,0.5\nTRUE,9,1.5\n"),
        ("a.CSV.csv", '"score","included"\n"2.5","yes"\n0.5,no\n15e-1,t'),
        ("a.npy", np.array([[2.5, 1], [0.5, 0], [1.5, 1]])),
        ("a.npz", {"score": SCORES, "included": INCLUDED}),
        ("b.npz", {"score": SCORES, "included": [1, 0, 1]}),
    ],
)
def test_every_format_gives_the_same_scores(tmp_path: Path, name: str, content: Any) -> None:
    found = load_scores(written(tmp_path, name, content))
    assert found.scores.tolist() == SCORES
    assert found.included.tolist() == INCLUDED
    assert found.scores_in.tolist() == [2.5, 1.5]
    assert found.scores_out.tolist() == [0.5]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "must have columns 'score' and 'included', once each; got no columns"),
        ("a.csv", "score,label\n1,1\n", "got score, label"),
        ("a.csv", "score,score,included\n1,2,1\n", "once each; got score, score, included"),
        ("a.csv", "score,included\n1,1\nx,0\n", "row 2: score must be a number; got 'x'"),
        ("a.csv", "score,included\n1,1\n2\n", "row 2: included must be 1 or 0.*; got None"),
        ("a.csv", "score,included\n1,2\n", "row 1: included must be 1 or 0.*; got '2'"),
        ("a.csv", "score,included\n1,1,0\n", "row 1 has more cells than columns"),
        ("a.npy", np.zeros(3), r"shape \(m, 2\), score and inclusion; got \(3,\)"),
        ("a.npy", np.zeros((2, 3)), r"got \(2, 3\)"),
        # Objects are not unpickled.
        ("a.npy", np.array([[1, {}]], dtype=object), "holds no scores that can be read"),
        ("a.npz", {"scores": [1.0]}, "'scores_in' and 'scores_out', or 'score' and 'included'"),
        ("a.npz", {"score": [1.0], "included": [1, 0]}, "of one length"),
        ("a.npz", {"score": [[1.0]], "included": [1]}, r"must have shape \(m,\)"),
        ("a.npz", {"score": [True], "included": [1]}, "row 1: score must be a number; got True"),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: Any, message: str
) -> None:
    with pytest.raises(hs.errors.HockeystickError, match=message):
        load_scores(written(tmp_path, name, content))
