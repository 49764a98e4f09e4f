"""Wrong input is one line that names what is wrong, status 2, and nothing else."""

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.cli import main
from hockeystick.cli.command import refuse
from hockeystick.cli.options import LEDGER
from tests.cli.conftest import Run, Write

TRAINING = "rate=0.01 steps=100 noise_multiplier=1"
AT = f"epsilon {TRAINING} --delta 1e-5"
SOLVE = f"solve {TRAINING} --epsilon 2 --delta 1e-5"
NOISE = "'DPSGD(noise_multiplier=1, rate=.1, steps=3, examples_per_user=2)"
DPSGD = "[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = 1\n"

WRONG = [
    ("epsilon", "Give a plan file, a plan as 'Laplace(2)**3 @ Gaussian(4)', or the numbers"),
    ("epsilon --delta 1e-5 rate=0.1 steps=9", "DPSGD needs noise_multiplier, a number >= 0"),
    (f"epsilon {TRAINING}", "delta must be given, as --delta or in the plan file: a number from 0"),
    (f"{AT} --accountant no", "accountant must be one of 'auto'"),
    (f"{AT} --accountant gdp --at-most 3", "gdp only approximates it"),
    (f"{AT} --at-most x", "at_most must be a number >= 0 or inf; got 'x'"),
    (f"{AT} --short --verify", "--short prints one number"),
    (f"{AT} epochs=2", "give epochs or steps, not both; got epochs = 2"),
    (f"{AT} --epsilon 1", "--epsilon"),
    (f"{AT} one.toml two.toml", "two.toml"),
    (f"{AT} steps=9", "steps is given twice; give it once"),
    (f"{AT} --delta 1e-6", "--delta is given twice"),
    (f"{AT} epoch=3", "unknown key DPSGD.epoch (did you mean 'epochs'?)"),
    ("epsilon ./Laplace(2) --delta 0.1", "the file './Laplace(2)' cannot be read: No such"),
    ("epsilon 'Laplace(2)' --group 0", "group must be an integer from 1 to 10^15; got 0"),
    ("epsilon 'Exponential(1)' --group 2 --delta 0.1", "no mechanism is known"),
    # Records that take turns are not on the same samples.
    (
        "epsilon 'CyclicPoisson(1, coefficients=[1], rounds=4, cycle=2, rate=0.1)' --group 2",
        "no mechanism is known",
    ),
    (f"epsilon {NOISE} @ Gaussian(3)' --group 2", "no mechanism is known"),
    (f"delta {TRAINING}", "epsilon must be given, as --epsilon or in the plan file: a number >= 0"),
    (f"compare {TRAINING} --delta 1e-5 --epsilon 2", "delta and epsilon are both given"),
    (f"epsilon {TRAINING} delta=1e-5", "unknown key DPSGD.delta"),
    (f"solve {TRAINING} --parameter rate", "Give one target"),
    (f"solve {TRAINING} --parameter rate --epsilon 2", "delta must be given, as --delta"),
    (SOLVE, "Say --parameter, the number to solve for, one of noise_multiplier, rate, steps"),
    (f"{SOLVE} --parameter rate --target GDP(1)", "give --target, or"),
    (f"solve {TRAINING} --parameter rate --epsilon 1 --delta 1", "below 1 to be a target"),
    (f"{SOLVE} --parameter rate --accountant gdp", "accountant must be"),
    ("solve 'Laplace() @ Laplace()' --epsilon 2", "The plan leaves out scale and scale; give all"),
    ("solve 'Laplace() ** 9' --parameter count", "The plan leaves out scale, and --parameter is"),
    ("convert 'ZCDP(0.5)' --to ApproxDP", "ApproxDP needs --delta or --epsilon"),
    ("tradeoff plan.toml --fpr 2", "fpr must be a number from 0 to 1; got 2"),
    ("tradeoff plan.toml -o a.txt", "a file name that ends in .svg or .png or .pdf"),
    ("report plan.toml -o page.html --delta 0", "delta must be above 0: at 0, this plan's"),
    ("verify", "Missing argument 'FILE'"),
    ("verify cut.json", "the answer is not JSON: Unterminated string"),
    ("check", "Missing argument 'PLAN...'"),
    ("init a.toml laplace", "laplace needs its numbers: write 'Laplace(scale=...)'"),
    ("explore --port 70000", "port must be an integer from 0 to 65535; got 70000"),
    ("audit scores.npz", "delta must be given where no plan is"),
    ("ledger commit census lost", "key must be that of a reservation"),
    ("ledger verify --head 1:2", "head must be a head that was noted, or a file"),
    ("ledger verify --head nowhere.json", "a file that ledger status --json printed; got 'now"),
    ("ledger status --ledger ''", "Missing --ledger"),
    ("ledger status --ledger nowhere.db", "there is no ledger at"),
    ("ledger status --ledger mysql://u:secret@h/d", "url must be the path of a file"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a plan, scores, a ledger, and a file that holds no answer."""
    made = tmp_path_factory.mktemp("wrong")
    (made / "plan.toml").write_text(f"delta = 1e-5\n{DPSGD}", encoding="utf-8")
    np.savez(made / "scores.npz", scores_in=np.arange(9.0), scores_out=np.arange(9.0))
    plan = hs.Gaussian(1)
    told = json.dumps(hs.answers.document(hs.epsilon(plan, 1e-5), plan, delta=1e-5)).encode()
    (made / "cut.json").write_bytes(told[:-40])
    ledger = ("ledger", "init", "census", "--budget", "ZCDP(0.5)")
    assert main([*ledger, "--ledger", str(made / "ledger.db")]) == 0
    return made


@pytest.mark.parametrize(("command", "said"), WRONG)
def test_wrong_input_is_one_line_and_writes_nothing(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, said: str
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv(LEDGER, "ledger.db")
    before = sorted(folder.iterdir())
    status, out, err = run(*shlex.split(command))
    assert (status, out) == (2, "")
    assert err.startswith("hockeystick: ")
    assert (err.endswith("\n"), len(err.splitlines())) == (True, 1)
    assert said in err
    assert "secret" not in err
    assert sorted(folder.iterdir()) == before


FILES = [
    (DPSGD.replace("0.01", "1e-400"), "from 0 to 1, within the range of a float; got 1E-400"),
    ('{"dpsgd": {"rate": 1, "rate": 2}}', "'rate' is there twice"),
    ('{"type": "Laplac"}', "unknown description.type 'Laplac'"),
    ('{"rows": 3}', "the JSON is no answer and no description of a plan"),
    ('{"description": {}, "plan": {"mechanism": "OfGroup", "size": 2}}', "of, and --group 2"),
    ('{"description": {}, "group": 3}', "of, and --group 3"),
]


@pytest.mark.parametrize(("content", "said"), FILES)
def test_a_wrong_file_is_one_line_that_names_it(
    run: Run, write: Write, content: str | bytes, said: str
) -> None:
    path = write(content)
    status, out, err = run("epsilon", path, "--delta", "1e-5")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"hockeystick: {path}: ")
    assert said in err


def test_a_name_that_would_break_the_line_is_escaped(run: Run) -> None:
    status, _, err = run("epsilon", "no\nsuch\x1b[31m.toml")
    assert (status, len(err.splitlines())) == (2, 1)
    assert "such\\x1b[31m.toml" in err


REFUSED = [
    (f"epsilon {TRAINING} --delta nan", "ParameterError", {"parameter": "delta", "value": "nan"}),
    (f"epsilon {TRAINING} --delta 1e-400", "ParameterError", {"value": "1E-400"}),
    (f"epsilon {TRAINING} --detla 1", "UsageError", {"parameter": "detla"}),
    (f"epsilon {TRAINING} --delta", "UsageError", {}),
    ("nonsense", "UsageError", {}),
    ("epsilon nowhere.toml", "PlanFileError", {}),
    ("epsilon 'Laplace(-2)'", "PlanFileError", {"parameter": "scale", "value": -2}),
    (f"{AT} --accountant basic", "UnsupportedError", {}),
    ("verify nowhere.json", "AnswerError", {}),
    (f"tradeoff {TRAINING} -o nowhere/a.svg", "OSError", {}),
    ("solve 'Laplace() @ PureDP(1)' --epsilon 0.5 --delta 0", "InfeasibleError", {"best": "inf"}),
    ("solve 'Gaussian()' --epsilon 1 --delta 0", "InfeasibleError", {}),
]


@pytest.mark.parametrize(("arguments", "kind", "known"), REFUSED)
def test_a_refusal_is_one_object_for_programs(
    run: Run, arguments: str, kind: str, known: dict[str, object]
) -> None:
    words = shlex.split(arguments)
    status, out, err = run(words[0], "--json", *words[1:])
    error = json.loads(out)["error"]
    expected = 1 if kind == "InfeasibleError" else 2
    assert (status, error["exit_status"], error["type"]) == (expected, expected, kind)
    assert err == f"hockeystick: {error['message']}\n"
    assert error.items() >= known.items()
    assert run(*words) == (expected, "", err)


def test_a_budget_that_does_not_suffice_keeps_its_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    spent = hs.errors.BudgetExhausted(hs.GDP(2), hs.GDP(1), "nothing", "a step")
    assert refuse(spent, as_json=True) == 4
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], error["left"]) == ("BudgetExhausted", "nothing")


@pytest.mark.parametrize(
    ("command", "missing", "said"),
    [
        ("explore", "bokeh", "the page needs Bokeh: pip install 'hockeystick[explore]'"),
        ("report PLAN -o a.html", "jinja2", "reports need Matplotlib and Jinja2: pip install 'ho"),
        ("verify nowhere.json", "flint", "verifying needs python-flint: install hockeystick[ver"),
        (f"{AT} --verify", "flint", "verifying needs python-flint: install hockeystick[verify]"),
    ],
)
def test_a_missing_library_is_named_before_anything_else(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch, command: str, missing: str, said: str
) -> None:
    monkeypatch.delitem(sys.modules, "hockeystick.explore.page", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    words = shlex.split(command.replace("PLAN", write(f"delta = 1e-5\n{DPSGD}")))
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith(f"hockeystick: {said}")
