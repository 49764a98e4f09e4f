"""The command `verify` of the rows of a sweep, with the grid file that was swept."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hockeystick as hs

Run = Callable[..., tuple[int, str, str]]

LAPLACE = '[[release]]\nmechanism = "Laplace"\nscale = 2\n'
EPSILON = f'{LAPLACE}[grid]\nscale = [2, -1, 4]\naccountant = ["auto", "basic", "gdp"]\n[ask]\n'
EPSILON += 'find = "epsilon"\ndelta = 0.1\n'
SOLVED = f'{LAPLACE}[grid]\nepsilon = [1.0, 2]\n[ask]\nfind = "scale"\ndelta = 0.1\n'


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


def test_an_estimate_outside_the_ends_is_refuted(run: Run, swept: Callable[..., None]) -> None:
    swept(LAPLACE + "[grid]\nscale = [2]\n[ask]\ndelta = 0.1\n")
    heading, first = Path("rows.csv").read_text(encoding="utf-8").splitlines()
    row = dict(zip(heading.split(","), first.split(","), strict=True))
    row["estimate"] = repr(2 * float(row["estimate"]))
    Path("rows.csv").write_text(f"{heading}\n{','.join(row.values())}\n", encoding="utf-8")
    status, out, _ = run("verify", "rows.csv", "grid.toml", "--json")
    assert (status, statuses(out)) == (1, ["refuted"])
    assert json.loads(out)["rows"][0]["reason"] == "estimate is not from lower to upper"


def test_what_is_achieved_above_the_target_is_refuted(run: Run, swept: Callable[..., None]) -> None:
    swept(SOLVED)
    lines = Path("rows.csv").read_text(encoding="utf-8").splitlines()
    epsilon, value, *rest = lines[1].split(",")
    less = float(value) * 0.9
    answer = hs.epsilon(hs.Laplace(less), 0.1)
    lines[1] = ",".join([epsilon, repr(less), repr(answer.lower), repr(answer.upper), *rest[2:]])
    Path("rows.csv").write_text("\n".join(lines), encoding="utf-8")
    status, out, _ = run("verify", "rows.csv", "grid.toml", "--json")
    assert (status, statuses(out)) == (1, ["refuted", "verified"])
    assert json.loads(out)["rows"][0]["reason"] == (
        "achieved_upper is above the target, epsilon = 1.0"
    )


def test_a_row_is_refuted_whose_accountant_cannot_have_proven_it(
    run: Run, swept: Callable[..., None]
) -> None:
    swept(LAPLACE + '[grid]\nscale = [2]\naccountant = ["auto"]\n[ask]\ndelta = 0.1\n')
    whole = Path("rows.csv").read_text(encoding="utf-8")
    grid = Path("grid.toml").read_text(encoding="utf-8")
    (row,) = csv.DictReader(whole.splitlines())
    by = row["answered_by"]
    for given, asked, said in (
        ("rdp", "auto", ""),
        ("wizard", "auto", "answered_by = 'wizard' is no accountant's name"),
        ("gdp", "auto", "answered_by = 'gdp' proves nothing, so no row with ends is its"),
        ("rdp", "prv", "answered_by = 'rdp', but prv was asked"),
    ):
        text = whole.replace(by, given).replace("\n2,auto", f"\n2,{asked}")
        Path("rows.csv").write_text(text, encoding="utf-8")
        Path("grid.toml").write_text(grid.replace("auto", asked), encoding="utf-8")
        status, out, _ = run("verify", "rows.csv", "grid.toml", "--json")
        told = json.loads(out)["rows"][0]
        assert (status, told["reason"] or "") == (1 if said else 0, said)


def test_rows_of_something_else_are_refused_in_one_line(
    run: Run, swept: Callable[..., None]
) -> None:
    swept(LAPLACE + "[grid]\nscale = [2, 4]\n[ask]\ndelta = 0.1\n")
    whole = Path("rows.csv").read_text(encoding="utf-8")
    heading, first, second = whole.splitlines()
    cases = [
        (whole, ("rows.csv",), "give the grid file that was swept too"),
        (whole, ("grid.toml", "grid.toml"), "GRID.toml is for the rows of a sweep"),
        (whole, ("rows.csv", "--delta", "0.1"), "No such option"),
        (f"{heading}\n{first}", (), "must have as many rows as grid.toml has cells, 2; it has 1"),
        (f"{heading}\n{second}\n{first}", (), "row 1 has scale = 4, but grid.toml has 2 there"),
        (whole.replace("scale", "rate"), (), "row 1 has no column scale"),
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
