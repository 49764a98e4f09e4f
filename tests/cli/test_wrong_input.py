import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.io import load_plan

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
        "; of training with Poisson batches (sampling=poisson), --group answers",
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
        "(PureDP, ApproxDP), or use --accountant auto",
    ),
    (f"epsilon {TRAINING} --delta 1e-5 --accountant basic --digits 9", "use --accountant auto"),
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
    ("solve 'Gaussian(1)' --epsilon 2", "say which may change, such as --parameter noise_multipl"),
    ("accountant", "accountant"),
    ("--no-such-flag", "--no-such-flag"),
]

FACTORIZATION = "[[release]]\nmechanism = 'MatrixFactorization'\nnoise_multiplier = 1\n"
ENCODER = FACTORIZATION + "[release.encoder]\n"

FILES = [
    ("title = 'empty'", "needs a table [dpsgd], or [[release]]"),
    ("title = ", "valid TOML: Invalid value (at end of document)"),
    ("delta = 1e-5\n[dpsgd\nrate = 1", "(at line 2, column 7)"),
    (b"title = '\xff'", "must be UTF-8 text; line 1 is not"),
    (DPSGD.encode("utf-16"), "must be UTF-8 text; line 1 is not"),
    (b"\0" * 100, "valid TOML"),
    (b"#" * 2_000_000, "at most 1 MB long"),
    ("x = " + "[" * 50_000, "nested too deeply"),
    ("delta = " + "9" * 10_000, "too many digits"),
    (f"zebra = 1e-5\n{DPSGD}", "allowed are title, source, notes, delta, epsilon, dpsgd, release"),
    (DPSGD + "delta = 1e-5", "'delta' (it belongs at the top of the file, above all"),
    (DPSGD + "Delta = 1e-5", "'Delta' (it belongs at the top of the file"),
    (DPSGD.replace("steps = 100\n", ""), ": [dpsgd]: epochs or steps must be given"),
    (f"{DPSGD}[privacy]\nepsilon = 3", ": unknown table [privacy]; allowed are [dpsgd] and [["),
    (f"{DPSGD}[[release]]\nscale = 1", ": [[release]] number 1 needs mechanism, one of "),
    (DPSGD.replace("100", "[1.5, true]"), "got [1.5, true]"),
    ("[dpsgd]\nsteps = 1\nbatch_size = 2\nnoise_multiplier = 1", "given where batch_size is"),
    (DPSGD + "sampling = 'uniform'", "[dpsgd]: sampling must be one of 'poisson'"),
    (f"title = 3\n{DPSGD}", "title must be a text in quotes; got 3"),
    (f"delta = 'x'\n{DPSGD}", "delta must be a number from 0 to 1; got 'x'"),
    (f"epsilon = -1\n{DPSGD}", "epsilon must be a number >= 0 or inf; got -1"),
    ("dpsgd = 3", "dpsgd must be a table"),
    ("[dpsgd]\nrate = 0.1\nsteps = 9", "[dpsgd] needs noise_multiplier, a number >= 0 or inf"),
    (DPSGD + "sampling = 'shufle'", "[dpsgd]: sampling must be one of"),
    (DPSGD + "batch_size = 3", "[dpsgd]: give batch_size or rate, not both; got batch"),
    (DPSGD.replace("0.01", "nan"), "[dpsgd]: rate must be a number from 0 to 1; got nan"),
    (DPSGD.replace("0.01", "1e-400"), "from 0 to 1, within the range of a float; got 1E-400"),
    ("[[release]]\nmechanism = ['Gaussian']", "mechanism must be one of AboveThreshold"),
    (
        "[[release]]\nmechanism = 'Gaussian'\nnoise_multiplier = 1\nrepeat = 0.5",
        "[[release]] number 1: repeat must be an integer from 0 to 10^15; got 0.5",
    ),
    (
        "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 0.1\ninner = 'Gaussian'",
        "(PoissonSubsampled): inner must be a table that names its mechanism, such as "
        "{mechanism = \"Gaussian\", noise_multiplier = 2}; got 'Gaussian'",
    ),
    (
        DPSGD + "[[release]]\nmechanism = 'PoissonSubsampled'\nrate = 0.1\n"
        "adjacency = 'zero-out'\ninner = {mechanism = 'Gaussian', noise_multiplier = 1}",
        "must be described under one adjacency",
    ),
    (
        "[[release]]\n"
        + "mechanism = 'Repeated'\ncount = 1\ninner = {" * 1
        + "mechanism = 'Repeated', count = 1, inner = {" * 20
        + "mechanism = 'Gaussian', noise_multiplier = 1"
        + "}" * 21,
        "nested at most 16 deep",
    ),
    (
        "[[release]]\nmechanism = 'SparseVector'\nthreshold_scale = 1\nquery_scale = 1\n"
        "monotone = 'yes'",
        "monotone must be true or false; got 'yes'",
    ),
    ("[[release]]\nmechanism = 'FDP'", "no file can hold a trade-off function; use Python for FDP"),
    ("[[release]]\nmechanism = 'Skellam'", "(Skellam) needs variance, a number >= 0 or inf"),
    ("[[release]]\nmechanism = 'SinhNormal'\nrho = 0.5", "(SinhNormal) needs width, "),
    ("[[release]]\nmechanism = 'SinhNormal'\nrho = -0.5", "(SinhNormal): rho must be a number > 0"),
    (
        "[[release]]\nmechanism = 'Composed'",
        "(Composed) needs parts, an array of tables that name their mechanisms",
    ),
    (FACTORIZATION, "needs encoder, a table that names its kind, one of banded_inverse,"),
    (FACTORIZATION + "encoder = 'x'", "encoder must be a table that names its kind, one of band"),
    (ENCODER, "number 1, encoder needs kind, one of banded_inverse, buffered_toeplitz, "),
    (
        ENCODER + "kind = 3",
        "encoder: kind must be one of banded_inverse, buffered_toeplitz, matrix, ",
    ),
    (
        ENCODER + "kind = 'square_root'",
        "encoder (square_root) needs rounds, an integer from 1 to 1000000",
    ),
    (
        ENCODER + "kind = 'square_root'\nrounds = -1",
        "encoder (square_root): rounds must be an integer from 1 to 1000000; got -1",
    ),
    (
        ENCODER + "kind = 'toeplitz'\nrounds = 9\ncoefficients = [1, 1e-400]",
        "coefficients must be a sequence of finite numbers, at least one; got 1E-400",
    ),
    (ENCODER + "kind = 'matrix'\nmatrix = [[1, 0], [1]]", "rows of one length, at least one; got"),
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


@pytest.mark.parametrize(("content", "told"), FILES)
def test_the_library_says_the_same_of_a_wrong_file(
    write: Write, content: str | bytes, told: str
) -> None:
    with pytest.raises(hs.errors.PlanFileError) as refusal:
        load_plan(write(content))
    assert told in str(refusal.value)


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
