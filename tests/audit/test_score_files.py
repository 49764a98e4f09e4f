"""Files of scores: every row counts, or an error names the first that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.audit.scores import load_scores

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
        ("a.npy", np.zeros(3), r"shape \(m, 2\), score and inclusion; got \(3,\)"),
        ("a.npy", np.zeros((2, 3)), r"got \(2, 3\)"),
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


def test_rows_without_scores_are_no_rows_of_another_length(tmp_path: Path) -> None:
    """A row with too many cells is not cut short in silence."""
    file = written(tmp_path, "a.csv", "score,included\n1,1,0\n")
    with pytest.raises(hs.errors.HockeystickError, match="row 1 has more cells than columns"):
        load_scores(file)


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    np.save(file, np.array([[1, {}]], dtype=object), allow_pickle=True)
    with pytest.raises(hs.errors.HockeystickError, match="holds no scores that can be read"):
        load_scores(file)
