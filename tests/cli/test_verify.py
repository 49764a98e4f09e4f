"""The command `verify`, and `--verify` of the others: tables, JSON and exit statuses."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import hockeystick as hs
from hockeystick import verifier
from tests.cli.conftest import Run

FLAGS = ("rate=0.01", "steps=1000", "noise_multiplier=1")
ASKED = ("epsilon", *FLAGS, "--delta", "1e-5")
SOLVED = ("solve", *FLAGS, "--parameter", "steps", "--epsilon", "2", "--delta", "1e-5")
UPPER = verifier.Check(claim="delta(1.5) <= 1e-05, remove", ball="[9e-6 +/- 2e-20]", holds=True)
LOWER = verifier.Check(claim="delta(1.4) >= 1e-05, remove", ball="[8e-6 +/- 2e-20]", holds=False)
VERIFIED = verifier.Verdict(status="verified", reason="", checks=(UPPER,))


@pytest.fixture
def answer(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "answer.json"
    path.write_text(run(*ASKED, "--json")[1], encoding="utf-8")
    return path


def in_words(out: str) -> str:
    return " ".join(out.split())


@pytest.mark.parametrize(
    ("judged", "exit_status"),
    [
        (VERIFIED, 0),
        (verifier.Verdict(status="refuted", reason="too large", checks=(UPPER, LOWER)), 1),
        (verifier.Verdict(status="not covered", reason="Skellam", checks=()), 3),
    ],
)
def test_each_verdict_has_its_exit_status_and_its_words(
    run: Run,
    answer: Path,
    monkeypatch: pytest.MonkeyPatch,
    judged: verifier.Verdict,
    exit_status: int,
) -> None:
    monkeypatch.setattr(verifier, "verify", lambda text: judged)
    assert run(*ASKED, "--verify")[0] == exit_status
    status, out, err = run("verify", str(answer), "-v")
    words = in_words(out)
    assert (status, err) == (exit_status, "")
    assert f"verdict {judged.status}: " in words
    assert judged.reason in words
    for check in judged.checks:
        said = "holds" if check.holds else "is false"
        assert f"{check.claim}: {said}, {check.ball}" in words


def test_what_is_verified_is_what_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []

    def verify(text: str) -> verifier.Verdict:
        seen.append(json.loads(text))
        return VERIFIED

    monkeypatch.setattr(verifier, "verify", verify)
    for asked in (ASKED, ("delta", *FLAGS, "--epsilon", "1"), SOLVED):
        printed = json.loads(run(*asked, "--verify", "--json")[1])
        handed = seen.pop()
        assert handed == {name: printed[name] for name in handed}
        assert {"schema", "description", "adjacency"} <= handed.keys()


def test_standard_input_and_a_report_hold_answers_too(
    run: Run, answer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = answer.read_bytes()
    monkeypatch.setattr(verifier, "verify", lambda text: VERIFIED)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    piped = run("verify", "-")
    page = tmp_path / "page.HTML"
    script = b'<script type="application/json" id="hockeystick-answer">'
    page.write_bytes(b"<!DOCTYPE html>" + script + text + b"</script>")
    shown = run("verify", str(page))
    direct = run("verify", str(answer))
    assert (piped[0], shown[0], direct[0]) == (0, 0, 0)
    for _, out, _ in (piped, shown, direct):
        assert "answer inside epsilon at most " in in_words(out)
    assert "its visible text is not looked at" in in_words(shown[1])


LAPLACE = '[[release]]\nmechanism = "Laplace"\nscale = 2\n'
EPSILON = f'{LAPLACE}[grid]\nscale = [2, -1, 4]\naccountant = ["auto", "basic", "gdp"]\n[ask]\n'
EPSILON += 'find = "epsilon"\ndelta = 0.1\n'


@pytest.fixture
def swept(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sweep a grid file in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def sweep(text: str, out: str = "rows.csv") -> None:
        Path("grid.toml").write_text(text, encoding="utf-8")
        assert run("sweep", "grid.toml", "-o", out)[0] == 0

    return sweep


def alter(old: str, new: str) -> None:
    text = Path("rows.csv").read_text(encoding="utf-8")
    assert old in text
    Path("rows.csv").write_text(text.replace(old, new), encoding="utf-8")


def statuses(out: str) -> list[str]:
    return [one["status"] for one in json.loads(out)["rows"]]


def test_each_row_is_verified_as_the_answer_of_its_cell(
    run: Run, swept: Callable[..., None]
) -> None:
    swept(EPSILON)
    status, out, err = run("verify", "rows.csv", "grid.toml", "--json")
    cells = ["verified", "no answer", "not covered"]
    assert (status, err) == (3, "")
    assert statuses(out) == [*cells, *["no answer"] * 3, *cells]
    upper = hs.epsilon(hs.Laplace(2), 0.1).upper
    alter(f",{upper!r},", f",{upper * 0.999!r},")
    alter(f"2,auto,{hs.epsilon(hs.Laplace(2), 0.1).lower!r},", "2,auto,0.1,")
    status, out, err = run("verify", "rows.csv", "grid.toml")
    assert (status, err) == (1, "")
    assert "row 1 (scale = 2, accountant = auto): upper end: delta(" in " ".join(
        out.replace("│", " ").split()
    )


@pytest.mark.parametrize(
    ("grid", "change", "said"),
    [
        ("accountant = ['auto']", {"answered_by": "rdp"}, None),
        ("accountant = ['auto']", {"answered_by": "wizard"}, "is no accountant's name"),
        ("accountant = ['auto']", {"answered_by": "gdp"}, "proves nothing, so no row with ends"),
        ("accountant = ['prv']", {"answered_by": "rdp"}, "'rdp', but prv was asked"),
        ("scale = [2]", {"estimate": "0.9"}, "estimate is not from lower to upper"),
        ("epsilon = [1]", {"achieved_upper": "1.1"}, "achieved_upper is above the target"),
    ],
)
def test_what_a_row_says_that_cannot_be_is_refuted(
    run: Run, swept: Callable[..., None], grid: str, change: dict[str, str], said: str | None
) -> None:
    find = "scale" if "epsilon" in grid else "epsilon"
    swept(f"{LAPLACE}[grid]\n{grid}\n[ask]\nfind = '{find}'\ndelta = 0.1\n")
    (row,) = csv.DictReader(Path("rows.csv").read_text(encoding="utf-8").splitlines())
    assert change.keys() <= row.keys()
    lines = [",".join(row), ",".join((row | change).values())]
    Path("rows.csv").write_text("\n".join(lines), encoding="utf-8")
    status, out, _ = run("verify", "rows.csv", "grid.toml", "--json")
    reason = json.loads(out)["rows"][0]["reason"]
    assert (status, reason is None) == ((0, True) if said is None else (1, False))
    assert said is None or said in reason


def test_rows_of_something_else_are_refused_in_one_line(
    run: Run, swept: Callable[..., None]
) -> None:
    swept(LAPLACE + "[grid]\nscale = [2, 4]\n[ask]\ndelta = 0.1\n")
    whole = Path("rows.csv").read_text(encoding="utf-8")
    heading, first, second = whole.splitlines()
    cases = [
        (whole, ("rows.csv",), "give the grid file that was swept too"),
        (f"{heading}\n{first}", (), "must have as many rows as grid.toml has cells, 2; it has 1"),
        (f"{heading}\n{second}\n{first}", (), "row 1: scale is 4, but grid.toml has 2 there"),
        (whole.replace("scale", "rate"), (), "row 1: there is no column scale"),
        (whole.replace("error", "fault"), (), "holds no rows of a sweep"),
        (f"{heading}\n{first}\n4,0.1", (), "holds no rows of a sweep"),
        (f"{heading}\n{first},1\n{second}", (), "holds no rows of a sweep"),
        (whole.replace("\n2,", "\n2,x"), (), "row 1: lower must be a number; it is 'x"),
        (whole.replace("\n2,", "\n2,9"), (), "row 1: lower must be at most upper; they are 90"),
        ('"', (), "cannot read rows.csv"),
        ("", (), "holds no rows of a sweep"),
    ]
    for content, arguments, said in cases:
        Path("rows.csv").write_text(content, encoding="utf-8")
        given = arguments or ("rows.csv", "grid.toml")
        status, out, err = run("verify", *given)
        assert (status, out, err.count("\n")) == (2, "", 1), said
        assert said in err
    Path("rows.csv").unlink()
    status, _, err = run("verify", "rows.csv", "grid.toml")
    assert (status, err) == (2, "hockeystick: cannot read rows.csv: No such file or directory\n")
