"""The files that commands read and write: plan files begun and checked, and nothing replaced."""

import json
import shlex
from pathlib import Path

import pytest

from hockeystick.answers import suggested_delta, units_of
from hockeystick.io import load_plan, parse_plan
from tests.cli.conftest import Run, Write


def test_a_file_says_what_it_means_or_what_is_wrong(run: Run, write: Write) -> None:
    path = write("delta = 1e-5\n[dpsgd\n")
    told = run("check", path, "Laplace(2)", "Laplace()", "nowhere.toml", "--json")
    broken, fine, open_, missing = json.loads(told.out)["files"]
    assert (told.status, told.err) == (1, "")
    assert [one["well_formed"] for one in (broken, fine, open_, missing)] == [0, 1, 1, 0]
    assert (broken["lines"], fine["lines"]) == ([2], [])
    assert open_["meaning"] == ["scale is left out: hockeystick solve finds it"]
    assert missing["problems"] == [
        "the file 'nowhere.toml' cannot be read: No such file or directory"
    ]
    assert f"{path}: wrong\n  a plan file must be valid TOML" in run("check", path).out


def test_a_template_is_a_plan_of_which_every_key_has_a_comment(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert run("init", str(path)).status == 0
    plan = load_plan(path).plan
    assert (plan.noise_multiplier, plan.epochs) == (1.1, 60)  # type: ignore[attr-defined]
    table = path.read_text(encoding="utf-8").partition("[dpsgd]\n")[2].partition("\n\n")[0]
    assert all("  # " in line for line in table.splitlines())


PLANS = (
    "Laplace(2)**5",
    "DPSGD(examples=250000, batch_size=1000, epochs=20, noise_multiplier=0.9) @ Gaussian(4)**2",
    "PoissonSubsampled(Gaussian(3), 0.01)**5 @ MatrixFactorization(4, Encoder.tree(9))",
    "FedSDP(total_clients=10000, clients_per_round=100, rounds=9, noise_multiplier=1, "
    "sampling='poisson')",
)


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_that_is_written_out_becomes_a_file_with_a_delta(
    run: Run, tmp_path: Path, plan: str
) -> None:
    path = tmp_path / "a.toml"
    assert run("init", str(path), plan).status == 0
    file = load_plan(str(path))
    assert file.plan == parse_plan(plan)
    units = units_of(file.plan)
    assert file.delta == (1e-6 if units is None else suggested_delta(units))


PLAN = "rate=1 steps=4 noise_multiplier=5"
WRITERS = {
    "curves.svg": f"tradeoff {PLAN} -o OUT",
    "page.html": f"report {PLAN} --delta 1e-5 -o OUT",
    "solved.toml": "solve 'Laplace()' --epsilon 1 --delta 0 -o OUT",
    "rows.csv": "sweep GRID -o OUT",
    "begun.toml": "init OUT",
}
EXTRAS = {"curves.svg": "matplotlib", "page.html": "matplotlib"}
GRID = "[dpsgd]\nrate = 1\nsteps = 4\n[grid]\nnoise_multiplier = [1, 2]\n[ask]\ndelta = 1e-5\n"


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_there_goes_with_force_alone(
    run: Run, write: Write, tmp_path: Path, name: str
) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    out, grid = tmp_path / name, write(GRID)
    given = [{"OUT": str(out), "GRID": grid}.get(word, word) for word in shlex.split(WRITERS[name])]
    out.write_text("mine")
    status, shown, err = run(*given)
    assert (status, shown, out.read_text()) == (2, "", "mine")
    assert f"{out} is there already; give --force to replace it" in err
    assert run(*given, "--force").status == 0
    assert out.read_text() != "mine"
    assert {path.name for path in tmp_path.iterdir()} == {name, "plan.toml"}
    nowhere = [str(tmp_path / "no" / name) if word == str(out) else word for word in given]
    assert (
        run(*nowhere).err == f"hockeystick: cannot write {nowhere[-1]}: No such file or directory\n"
    )
