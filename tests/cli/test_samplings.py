"""`hockeystick compare --sampling`: what each way of drawing batches would cost."""

import json
import shlex
from functools import cache

import pytest

import hockeystick as hs
from tests.cli.conftest import Run

# The rows are shown by several tests, which take them from here.
WORKED_OUT = cache(hs.accountants.compare_samplings)
TRAINING = "--examples 400 --batch-size 40 --epochs 1 --noise-multiplier 2 --delta 1e-5"


@pytest.fixture(autouse=True)
def worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hs.accountants, "compare_samplings", WORKED_OUT)


def test_a_named_sampling_is_the_plan_s(run: Run) -> None:
    status, out, _ = run("compare", *shlex.split(f"{TRAINING} --json --sampling fixed-size"))
    assert status == 0
    assert json.loads(out)["plan"]["sampling"] == "fixed-size"


def test_what_is_no_training_has_no_sampling(run: Run, tmp_path_factory: object) -> None:
    status, out, err = run("compare", "examples/banded-square-root.toml", "--sampling")
    assert (status, out) == (2, "")
    assert "a DP-SGD plan" in err


def test_an_unknown_schedule_is_one_line(run: Run, tmp_path: object) -> None:
    file = f"{tmp_path}/plan.toml"
    with open(file, "w", encoding="utf-8") as opened:
        opened.write("[dpsgd]\nrate = 0.1\nsteps = 3\nnoise_multiplier = 2\n")
        opened.write('schedule = { kind = "exponentail", end = 0.5 }\n')
    status, out, err = run("epsilon", file, "--delta", "1e-5")
    assert (status, out) == (2, "")
    assert "did you mean 'exponential'?" in err


def test_whoever_waits_for_all_samplings_is_told_which_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[int, int, str]] = []
    monkeypatch.setattr("hockeystick.accountants.samplings._row", lambda *_: None)
    plan = hs.DPSGD(examples=100, batch_size=10, epochs=1, noise_multiplier=4)
    hs.accountants.compare_samplings(plan, delta=1e-6, progress=lambda *one: told.append(one))
    assert told[:2] == [(0, 15, "poisson, add-remove"), (1, 15, "fixed-size, add-remove")]
    assert [done for done, _, _ in told] == list(range(15))


def test_what_a_rate_alone_cannot_answer_is_said_once(run: Run) -> None:
    status, out, _ = run(
        "compare", *shlex.split("--rate 1 --steps 1 --noise-multiplier 2 --delta 0.1 --sampling")
    )
    assert status == 0
    assert out.count("only Poisson sampling knows a rate without sizes") == 1
    assert out.count("said below") == 12
