import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.calibration.solve.constraints import Target

Run = Callable[..., tuple[int, str, str]]
Write = Callable[[str | bytes], str]

TUTORIAL = str(Path(__file__).parents[3] / "examples" / "mnist-tutorial.toml")
PLAN = ("--rate", "0.01", "--steps", "1000", "--noise-multiplier", "1")
TARGET = ("--epsilon", "2", "--delta", "1e-5")


def test_the_panel_has_the_value_with_all_its_digits_and_the_proof(run: Run) -> None:
    status, out, err = run("solve", *PLAN, "--parameter", "noise_multiplier", *TARGET)
    plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1)
    found = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(2, 1e-5))
    assert (status, err) == (0, "")
    assert f"noise_multiplier = {found.value!r}" in out
    assert "tight: the next value" in out
    assert "This holds if" in out


def test_json_has_every_number_of_the_answer(run: Run) -> None:
    status, out, err = run("solve", *PLAN, "--parameter", "steps", *TARGET, "--json")
    told = json.loads(out)
    plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1)
    found = hs.calibrate(plan, "steps", hs.ApproxDP(2, 1e-5))
    assert (status, err) == (0, "")
    assert (told["value"], told["status"]) == (found.value, "tight")
    assert told["bracket"] == list(found.bracket)
    assert told["achieved"]["upper"] == found.achieved.upper <= 2
    assert told["plan"]["steps"] == found.value
    assert told["spent"] is None


@pytest.mark.parametrize(
    ("flags", "target"),
    [
        (("--mu", "0.5"), hs.GDP(0.5)),
        (("--rho", "0.1"), hs.ZCDP(0.1)),
        (("--divergence", "1", "--order", "8"), hs.RenyiDP({8: 1})),
        (("--advantage", "0.2"), hs.calibration.Advantage(0.2)),
        (("--tpr", "0.2", "--fpr", "0.01"), hs.calibration.TruePositiveRate(0.2, 0.01)),
        (("--bayes-error", "0.08", "--prior", "0.1"), hs.calibration.BayesError(0.08, 0.1)),
        (("--reconstruction", "0.3", "--baseline", "0.1"), hs.calibration.Reconstruction(0.3, 0.1)),
    ],
)
def test_each_target_has_its_flags(
    run: Run, write: Write, flags: tuple[str, ...], target: Target
) -> None:
    plan = write('[[release]]\nmechanism = "Gaussian"\nnoise_multiplier = 2\n')
    asked = ("solve", plan, "--parameter", "noise_multiplier", *flags, "--json")
    told = json.loads(run(*asked)[1])
    found = hs.calibrate(hs.Gaussian(2), "noise_multiplier", target)
    assert (told["value"], told["target"]) == (found.value, str(target))


def test_the_plan_file_says_where_to_ask_and_flags_may_leave_out_what_is_solved(run: Run) -> None:
    of_file = run("solve", TUTORIAL, "--parameter", "epochs", "--epsilon", "2", "--json")
    assert json.loads(of_file[1])["achieved"]["upper"] <= 2
    flags = ("--rate", "0.01", "--steps", "1000")
    bare = run("solve", *flags, "--parameter", "noise_multiplier", *TARGET, "--json")
    full = run("solve", *PLAN, "--parameter", "noise_multiplier", *TARGET, "--json")
    assert json.loads(bare[1])["value"] == pytest.approx(json.loads(full[1])["value"], rel=2e-9)


def test_what_was_spent_is_read_from_a_file(run: Run, write: Write) -> None:
    spent = write('[[release]]\nmechanism = "Gaussian"\nnoise_multiplier = 4\n')
    asked = ("solve", *PLAN, "--parameter", "noise_multiplier", *TARGET)
    told = json.loads(run(*asked, "--spent", spent, "--json")[1])
    assert told["spent"]["mechanism"] == "Gaussian"
    assert told["value"] > json.loads(run(*asked, "--json")[1])["value"]
    assert "spent" in run(*asked, "--spent", spent)[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (TARGET, "--parameter"),
        (("--parameter", "rate"), "Give one target"),
        (("--parameter", "rate", "--epsilon", "2"), "--epsilon and --delta"),
        (("--parameter", "rate", "--mu", "1", "--rho", "1"), "Give one target"),
        (("--parameter", "rate", "--mu", "1", "--fpr", "0.1"), "--mu"),
        (("--parameter", "nothing", *TARGET), "parameter must be"),
        (("--parameter", "rate", "--epsilon", "-1", "--delta", "1e-5"), "epsilon must be"),
        (("--parameter", "rate", *TARGET, "--tolerance", "0"), "tolerance must be"),
        (("--parameter", "rate", *TARGET, "--accountant", "gdp"), "accountant must be"),
        (("--parameter", "rate", *TARGET, "--spent", "nowhere.toml"), "nowhere.toml"),
    ],
)
def test_wrong_input_is_one_line_and_no_answer(
    run: Run, arguments: tuple[str, ...], said: str
) -> None:
    status, out, err = run("solve", *PLAN, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("--advantage 1.5", "advantage must be a number from 0 to 1; got 1.5"),
        ("--bayes-error 2 --prior 0.1", "bayes_error must be a number from 0 to 1; got 2"),
        ("--bayes-error 0.1 --prior 0", "prior must be a number > 0 and < 1; got 0"),
        ("--tpr 2 --fpr 0.1", "tpr must be a number from 0 to 1; got 2"),
        ("--tpr 0.5 --fpr 0.7", "tpr must be at least fpr, which is 0.7: a blind guess reaches"),
        ("--reconstruction 2 --baseline 0", "reconstruction must be a number from 0 to 1; got 2"),
        ("--reconstruction 0.1 --baseline 0.2", "reconstruction must be at least baseline, which"),
        ("--divergence -1 --order 2", "divergence must be a number >= 0 or inf; got -1"),
    ],
)
def test_a_wrong_target_is_named_as_its_flag_is(run: Run, target: str, said: str) -> None:
    status, out, err = run("solve", *PLAN, "--parameter", "noise_multiplier", *target.split())
    assert (status, out) == (2, "")
    assert err.startswith(f"hockeystick: {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("parameter", "hint"),
    [
        ("noise", " (did you mean 'noise_multiplier'?)"),
        ("Noise-Multiplier", " (did you mean 'noise_multiplier'?)"),
        ("step", " (did you mean 'steps'?)"),
        ("zebra", ""),
    ],
)
def test_a_parameter_that_is_nearly_one_of_the_plan_is_guessed(
    run: Run, parameter: str, hint: str
) -> None:
    status, out, err = run("solve", *PLAN, "--parameter", parameter, *TARGET)
    listed = "parameter must be a number that the plan gives: noise_multiplier, rate, steps, \
examples_per_user"
    assert (status, out) == (2, "")
    assert err == f"hockeystick: {listed}; got {parameter!r}{hint}\n"


def test_an_accountant_that_proves_nothing_is_not_taken_for_a_misspelt_one(run: Run) -> None:
    asked = ("solve", *PLAN, "--parameter", "rate", *TARGET, "--accountant")
    assert "did you mean" not in run(*asked, "gdp")[2]
    assert run(*asked, "PRV")[2].endswith("got 'PRV' (did you mean 'prv'?)\n")


def test_no_epochs_are_no_answer(run: Run) -> None:
    asked = ("solve", TUTORIAL, "--parameter", "epochs", "--epsilon", "1e-9", "--json")
    status, out, err = run(*asked)
    assert (status, out) == (2, "")
    assert err.startswith("hockeystick: no epochs above 0 reaches epsilon 1e-09 at delta 1e-05:")
    assert "already at epochs = 0.00426667, one step, the plan has epsilon between" in err
    assert err.count("\n") == 1


def test_epochs_are_told_with_the_steps_that_they_make(run: Run) -> None:
    asked = ("solve", TUTORIAL, "--parameter", "epochs", "--epsilon", "2")
    steps = json.loads(run(*asked, "--json")[1])["plan"]["total_steps"]
    panel = " ".join(run(*asked)[1].replace("│", " ").split())
    assert "steps ceil(epochs * examples / batch_size) = ceil(" in panel
    assert f"= {steps}: a partial last step" in panel


def test_epochs_cannot_be_solved_for_where_steps_are_given(run: Run) -> None:
    status, out, err = run("solve", *PLAN, "--parameter", "epochs", *TARGET)
    assert (status, out) == (2, "")
    known = "noise_multiplier, rate, steps, examples_per_user"
    assert f"a number that the plan gives: {known}; got 'epochs'" in err


def test_what_cannot_be_reached_is_one_line_with_the_best(run: Run, write: Write) -> None:
    spent = write('[[release]]\nmechanism = "Gaussian"\nnoise_multiplier = 1\n')
    asked = ("solve", *PLAN, "--parameter", "noise_multiplier", *TARGET, "--spent", spent)
    status, out, err = run(*asked)
    best = float(hs.epsilon(hs.Gaussian(1), 1e-5))
    assert (status, out) == (2, "")
    assert "no noise_multiplier reaches epsilon 2 at delta 1e-05: at noise_multiplier = inf" in err
    assert f"{best:.6g}" in err
