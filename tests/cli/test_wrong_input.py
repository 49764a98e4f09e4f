import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Write = Callable[[str | bytes], str]

TRAINING = "rate=0.01 steps=100 noise_multiplier=1"
DPSGD = "[dpsgd]\nrate = 0.01\nsteps = 100\nnoise_multiplier = 1\n"

FLAGS = [
    ("epsilon", "Give a plan file, a plan as 'Laplace(2)**3 @ Gaussian(4)', or the numbers"),
    ("epsilon --delta 1e-5 rate=0.1 steps=9", "Missing noise_multiplier=Z"),
    (f"epsilon {TRAINING}", "delta must be given, as --delta or in the plan file: a number from 0"),
    (f"epsilon {TRAINING} --delta 1e-400", "within the range of a float; got 1E-400"),
    (f"epsilon {TRAINING} --delta", "'--delta' requires an argument"),
    (f"epsilon {TRAINING} --delta 1e-5 --digits 0", "digits must be an integer from 1 to 1000"),
    (f"epsilon {TRAINING} --delta 1e-5 --accountant no", "accountant must be one of 'auto'"),
    (f"epsilon {TRAINING} --delta 1e-5 --accountant gdp --digits 9", "accountant 'gdp' cannot"),
    (f"epsilon {TRAINING} --delta 1e-5 sampling=fixed", "sampling must be one of 'poisson'"),
    (f"epsilon {TRAINING} --delta 1e-5 adjacency=x", "adjacency must be one of 'add-remove'"),
    (f"epsilon {TRAINING} --delta 1e-5 clipping=microbatch", "twice the clipping norm"),
    (f"epsilon {TRAINING} --delta 1e-5 epochs=2", "give epochs or steps, not both; got epochs = 2"),
    (
        f"epsilon {TRAINING} --delta 1e-5 batch_size=2 examples=9",
        "give batch_size or rate, not both",
    ),
    (f"epsilon {TRAINING} --delta 1e-5 examples=0", "examples must be an integer from 1"),
    (f"epsilon {TRAINING} --delta 1e-5 --epsilon 1", "--epsilon"),
    (
        "epsilon examples=99 batch_size=9 epochs=1 noise_multiplier=2 --delta 1e-5 "
        "sampling=fixed-size adjacency=replace-one --group 2",
        "no mechanism is known",
    ),
    (
        "solve DiscreteGaussian(sensitivity=1.4142) --target ZCDP(0.1)",
        "changed by 1: DiscreteGaussian(sigma)",
    ),
    (
        "solve DiscreteGaussian(sensitivity=2.5) --target ZCDP(0.1)",
        "sensitivity must be an integer",
    ),
    (f"epsilon {TRAINING} --detla 1e-5", "--detla"),
    (f"epsilon {TRAINING} --delta 1e-5 one.toml two.toml", "two.toml"),
    ("epsilon --delta 1e-5 rate=1.1 steps=9 noise_multiplier=1", "rate must be a number fr"),
    ("epsilon --delta 1e-5 rate=0.1 steps=0.5 noise_multiplier=1", "steps must be an integ"),
    ("epsilon --delta 1e-5 rate=0.1 epochs=inf noise_multiplier=1", "epochs must be a fini"),
    ("epsilon --delta 1e-5 rate=0.1 steps=9 noise_multiplier=-1", "noise_multiplier must b"),
    ("epsilon --delta 1e-5 rate=0.1 steps=9 noise_multiplier=1e400", "got 1E+400"),
    ("epsilon --delta 1e-5 rate=1e-400 steps=9 noise_multiplier=1", "got 1E-400"),
    ("epsilon --delta 1e-5 batch_size=9 steps=9 noise_multiplier=1", "examples must be"),
    (f"delta {TRAINING}", "epsilon must be given, as --epsilon or in the plan file: a number >= 0"),
    (f"compare {TRAINING} --delta 1e-5 --epsilon 2", "delta and epsilon are both given"),
    (
        f"epsilon {TRAINING} --delta 1e-5 --accountant basic",
        "(PureDP, ApproxDP), or use accountant='auto'",
    ),
    (f"epsilon {TRAINING} --delta 1e-5 --accountant basic --digits 9", "use accountant='auto'"),
    (f"delta {TRAINING} --epsilon 1,x,3", "epsilon must be a number"),
    (f"epsilon {TRAINING} --delta 1e-5 steps=9", "steps is given twice; give it once"),
    (f"delta {TRAINING} --epsilon 1 --epsilon 1", "--epsilon is given twice"),
    ("explore --port 70000", "port must be an integer from 0 to 65535; got 70000"),
    (f"tradeoff {TRAINING} --fpr 2", "fpr must be a number from 0 to 1; got 2"),
    ("epsilon rate=0.1 steps=9 noise_multiplier= --delta 1e-5", "noise_multiplier must be"),
    (f"epsilon {TRAINING} --delta 1e-5 epoch=3", "DP-SGD has no epoch (did you mean 'epochs'?)"),
    (
        "solve 'DPSGD(examples=9, batch_size=1, epochs=1, noise_multiplier=1)' --parameter steps",
        "The plan gives epochs, not steps: --parameter epochs",
    ),
    ("solve 'Gaussian(1)' --epsilon 2", "Missing --parameter: the plan gives all its numbers"),
    ("accountant", "accountant"),
    ("--no-such-flag", "--no-such-flag"),
]

FILES = [
    ("title = ", "valid TOML: Invalid value (at end of document)"),
    (b"title = '\xff'", "must be UTF-8 text; line 1 is not"),
    (f"zebra = 1e-5\n{DPSGD}", "unknown key zebra; allowed are title, source"),
    (DPSGD.replace("0.01", "1e-400"), "from 0 to 1, within the range of a float; got 1E-400"),
]


def assert_refused(ran: tuple[int, str, str], *told: str, as_json: bool = False) -> None:
    status, out, err = ran
    assert status == 2
    if as_json:
        error = json.loads(out)["error"]
        assert (f"hockeystick: {error['message']}\n", error["exit_status"]) == (err, 2)
    else:
        assert out == ""
    assert err.startswith("hockeystick: ")
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1
    for text in told:
        assert text in err


@pytest.mark.parametrize(("arguments", "told"), FLAGS)
def test_a_wrong_flag_is_one_line_and_status_2(run: Run, arguments: str, told: str) -> None:
    assert_refused(run(*shlex.split(arguments)), told)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("content", "told"), FILES)
def test_a_wrong_file_is_one_line_and_status_2(
    run: Run, write: Write, content: str | bytes, told: str, as_json: bool
) -> None:
    path = write(content)
    ran = run("epsilon", path, "--delta", "1e-5", *["--json"] * as_json)
    assert_refused(ran, path, told, as_json=as_json)


def test_help_is_given_whatever_is_given_twice(run: Run) -> None:
    assert run("epsilon", "rate=1", "rate=2", "--help").status == 0


def test_a_path_that_is_no_file_is_named(run: Run, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.toml")
    assert_refused(run("epsilon", missing), missing, "no such file")
    assert_refused(run("epsilon", str(tmp_path)), str(tmp_path), "this is a directory")
    assert_refused(run("epsilon", missing + "/" + "x" * 5000), "cannot be read")


def test_a_name_that_would_break_the_line_is_escaped(run: Run) -> None:
    status, _, err = run("epsilon", "no\nsuch\x1b[31m.toml")
    assert status == 2
    assert len(err.splitlines()) == 1
    assert "\x1b" not in err
    assert "such\\x1b[31m.toml" in err


def test_infinite_epsilon_without_noise_is_an_answer_not_an_error(run: Run) -> None:
    arguments = shlex.split("rate=0.5 steps=9 noise_multiplier=0 --delta 1e-5")
    status, out, err = run("epsilon", *arguments)
    assert (status, err) == (0, "")
    assert "exactly inf" in out


def test_delta_0_is_fine_where_nothing_is_released(run: Run) -> None:
    arguments = shlex.split("rate=0.5 steps=0 noise_multiplier=1 --delta 0")
    status, out, err = run("epsilon", *arguments)
    assert (status, err) == (0, "")
    assert "exactly 0" in out
