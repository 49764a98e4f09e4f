"""The files that commands read and write: plan files begun and checked, and nothing replaced."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hockeystick.answers import suggested_delta, units_of
from hockeystick.io import load_plan, parse_plan
from hockeystick.io.codec import RELEASES
from hockeystick.io.plan_file import plan_in, plan_schema, template_of
from tests.cli.conftest import Run, Write

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
BROKEN = """dleta = 1e-5
epsilon = -2
zebra = 1
[dpsgd]
rate = 2
steps = 1
noise_multiplier = 1
[[release]]
mechanism = "Gauss"
[[release]]
mechanism = "Laplace"
scale = -1
"""


def fits(text: str) -> bool:
    """Judge by the schema."""
    reason = "schemas are judged by jsonschema, which nbformat needs"
    judge: Any = pytest.importorskip("jsonschema", reason=reason)
    return bool(judge.Draft7Validator(plan_schema()).is_valid(tomllib.loads(text)))


@pytest.mark.extras
def test_the_schema_is_printed_and_knows_every_plan_and_no_misspelt_key(run: Run) -> None:
    assert json.loads(run("check", "--schema").out) == plan_schema()
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES]
    texts += [template_of(name) for name in RELEASES]
    for text in texts:
        assert fits(text), text
    for right, wrong in (
        ("noise_multiplier = 1.1 ", "noise_multiplyer = 1.1 "),
        ("delta =", "dleta ="),
        ('"poisson"', '"poison"'),
        ("epochs = 60", "epochs = 60\nsteps = 9"),
        ("batch_size = 256", "batch_size = 256\nrate = 0.1"),
        ("noise_multiplier = 1.1 ", "noise_multiplier = -1.1 "),
        ("delta = 1e-6 ", "delta = 1.5 "),
    ):
        text = template_of("DPSGD")
        assert right in text
        assert not fits(text.replace(right, wrong)), wrong
    nested = "[[release]]\nmechanism='PoissonSubsampled'\nrate=1\ninner={mechanism='Gaussian',s=1}"
    assert not fits(nested)


@pytest.mark.extras
def test_the_schema_allows_computed_numbers_and_no_release(run: Run, write: Write) -> None:
    for text in (
        "[dpsgd]\nrate = '1/98'\nsteps = 9\nnoise_multiplier = '2*sqrt(3)'\n",
        "release = []\n[dpsgd]\nrate = 0.1\nsteps = 9\nnoise_multiplier = 1\n",
    ):
        assert fits(text)
        assert run("check", write(text)).status == 0


def test_all_tables_of_a_broken_file_say_what_is_wrong(run: Run, write: Write) -> None:
    path = write(BROKEN)
    told = run("check", path, "Laplace(2)", "nowhere.toml", "--json")
    broken, fine, missing = json.loads(told.out)["files"]
    assert (told.status, told.err) == (1, "")
    assert (broken["well_formed"], fine["well_formed"]) == (False, True)
    beginnings = [text[:34] for text in broken["problems"]]
    assert beginnings == [
        "unknown key dleta (did you mean 'd",
        "dpsgd.rate must be a number from 0",
        "unknown release[0].mechanism 'Gaus",
        "release[1].scale must be a number ",
    ]
    assert missing["problems"] == ["the file cannot be read: No such file or directory"]
    assert f"{path}: 4 problems\n" in run("check", path).out


def test_a_template_is_a_plan_of_which_every_key_has_a_comment(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert run("init", str(path)).status == 0
    plan = load_plan(path).plan
    assert (plan.noise_multiplier, plan.epochs) == (1.1, 60)  # type: ignore[attr-defined]
    table = path.read_text(encoding="utf-8").partition("[dpsgd]\n")[2].partition("\n\n")[0]
    assert all("  # " in line for line in table.splitlines())


@pytest.mark.parametrize("name", RELEASES)
def test_every_mechanism_and_notion_has_a_template(name: str) -> None:
    text = template_of(name)
    assert plan_in(text.encode(), name).delta == 1e-6


PLANS = (
    "Laplace(2)**5",
    "DPSGD(examples=250000, batch_size=1000, epochs=20, noise_multiplier=0.9) @ Gaussian(4)**2",
    "PoissonSubsampled(Gaussian(3), 0.01)**5 @ MatrixFactorization(4, Encoder.tree(9))",
    "FedSDP(total_clients=10000, clients_per_round=100, rounds=9, noise_multiplier=1, "
    "sampling='poisson')",
)


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_that_is_written_out_becomes_a_file_with_title_delta_and_comments(
    run: Run, tmp_path: Path, plan: str
) -> None:
    path = tmp_path / "a.toml"
    assert run("init", str(path), plan).status == 0
    file = load_plan(str(path))
    assert file.plan == parse_plan(plan)
    assert file.title in ("My Laplace", "My plan", "My FedSDP")
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
