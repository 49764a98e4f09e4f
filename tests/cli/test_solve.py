import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.calibration.solve.targets import Target
from hockeystick.io import load_plan

Run = Callable[..., tuple[int, str, str]]
Write = Callable[[str | bytes], str]

PLAN = ("rate=0.01", "steps=1000", "noise_multiplier=1")
TARGET = ("--epsilon", "2", "--delta", "1e-5")


def test_json_has_every_number_of_the_answer(run: Run) -> None:
    status, out, err = run("solve", *PLAN, "--parameter", "steps", *TARGET, "--json")
    told = json.loads(out)
    plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1)
    found = hs.calibrate(plan, "steps", hs.ApproxDP(2, 1e-5))
    assert (status, err) == (0, "")
    assert (told["value"], told["status"]) == (found.value, "tight")
    assert told["bracket"] == list(found.bracket)
    assert told["achieved"]["upper"] == found.achieved.upper <= 2
    assert told["description"]["steps"] == found.value


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("GDP(0.5)", hs.GDP(0.5)),
        ("ZCDP(rho=0.1)", hs.ZCDP(0.1)),
        ("RenyiDP({8: 1})", hs.RenyiDP({8: 1})),
        ("Advantage(0.2)", hs.calibration.Advantage(0.2)),
        ("TruePositiveRate(0.2, fpr=0.01)", hs.calibration.TruePositiveRate(0.2, 0.01)),
        ("BayesError(0.08, 0.1)", hs.calibration.BayesError(0.08, 0.1)),
        ("Reconstruction(0.3, 0.1)", hs.calibration.Reconstruction(0.3, 0.1)),
    ],
)
def test_each_target_is_written_as_in_python(
    run: Run, write: Write, written: str, target: Target
) -> None:
    plan = write('[[release]]\nmechanism = "Gaussian"\nnoise_multiplier = 2\n')
    asked = ("solve", plan, "--parameter", "noise_multiplier", "--target", written, "--json")
    told = json.loads(run(*asked)[1])
    found = hs.calibrate(hs.Gaussian(2), "noise_multiplier", target)
    assert (told["value"], told["target"]) == (found.value, str(target))


def solved(run: Run, *arguments: str) -> tuple[str, str, float]:
    status, out, err = run("solve", *arguments, "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    return told["parameter"], told["extreme"], told["value"]


SIZES = ("examples=60000", "batch_size=256")
LEFT_OUT = [
    ((*SIZES, "epochs=6"), ("noise_multiplier", "least")),
    ((*SIZES, "noise_multiplier=1"), ("epochs", "most")),
    (("rate=0.01", "noise_multiplier=1"), ("steps", "most")),
    (("steps=1000", "noise_multiplier=1"), ("rate", "most")),
    (("batch_size=256", "steps=1000", "noise_multiplier=1"), ("examples", "least")),
    (("Laplace() ** 10 @ Gaussian(4)",), ("scale", "least")),
    (("Laplace() @ Laplace(3)",), ("parts[0].scale", "least")),
    (("PoissonSubsampled(Gaussian(), rate=0.01) ** 99",), ("noise_multiplier", "least")),
    (("ZCDP()",), ("rho", "most")),
]


@pytest.mark.parametrize(("plan", "left_out"), LEFT_OUT, ids=[one[1][0] for one in LEFT_OUT])
def test_what_the_plan_leaves_out_is_solved_for(
    run: Run, plan: tuple[str, ...], left_out: tuple[str, str]
) -> None:
    name, extreme, _ = solved(run, *plan, "--epsilon", "3", "--delta", "1e-5")
    assert (name, extreme) == left_out


def test_the_solved_plan_is_written_as_a_plan_file(run: Run, write: Write, tmp_path: Path) -> None:
    plan = write("title = 'Held'\ndelta = 1e-3\n[dpsgd]\nrate = 0.01\nsteps = 100\n")
    out = tmp_path / "solved.toml"
    asked = ("solve", plan, "--epsilon", "2", "--delta", "1e-5", "-o", str(out))
    told = json.loads(run(*asked, "--json")[1])
    file = load_plan(out)
    assert (file.title, file.delta, told["out"]) == ("Held", 1e-5, str(out))
    assert file.plan == hs.DPSGD(rate=0.01, steps=100, noise_multiplier=told["value"])
    assert hs.epsilon(file.plan, 1e-5).upper <= 2
    before = out.read_bytes()
    status, printed, err = run(*asked)
    assert (status, printed, out.read_bytes()) == (2, "", before)
    assert "give --force to replace it" in err
    shown = run(*asked, "--force")
    assert shown[0] == 0
    assert "written to" in shown[1]
    for name, reason in (
        ("solved.txt", "must be a file name that ends in .toml"),
        ("no/a.toml", "No"),
    ):
        assert reason in run(*asked[:-1], str(tmp_path / name))[2]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["plan.toml", "solved.toml"]


def test_short_is_the_value_that_is_proven_to_meet_the_target(run: Run) -> None:
    asked = "solve", "Laplace()**10 @ Gaussian(4)", "--epsilon", "2", "--delta", "1e-6"
    status, out, err = run(*asked, "--short")
    found = json.loads(run(*asked, "--json")[1])
    assert (status, out, err) == (0, f"{found['value']!r}\n", "")
    plan = hs.Laplace(float(out)) ** 10 @ hs.Gaussian(4)
    assert hs.epsilon(plan, 1e-6).upper <= 2
    for flag in ("--json", "--verify"):
        assert "--short prints one number" in run(*asked, "--short", flag)[2]
