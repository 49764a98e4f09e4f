"""`hockeystick compare --sampling`: what each way of drawing batches would cost."""

import json
import shlex
from functools import cache

import pytest

import hockeystick as hs
from hockeystick.mechanisms import Sampling
from tests.cli.conftest import Run

# The rows are shown by several tests, which take them from here.
WORKED_OUT = cache(hs.accountants.compare_samplings)
TRAINING = "--examples 400 --batch-size 40 --epochs 1 --noise-multiplier 2 --delta 1e-5"


@pytest.fixture(autouse=True)
def worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hs.accountants, "compare_samplings", WORKED_OUT)


@pytest.mark.parametrize("flag", ["--sampling", "--sampling all"])
def test_every_sampling_has_a_row_under_every_adjacency(run: Run, flag: str) -> None:
    status, out, err = run("compare", *shlex.split(f"{TRAINING} --json {flag}"))
    assert (status, err) == (0, "")
    told = json.loads(out)
    plan = hs.DPSGD(examples=400, batch_size=40, epochs=1, noise_multiplier=2)
    rows = hs.accountants.compare_samplings(plan, delta=1e-5)
    assert [(row["adjacency"], row["sampling"]) for row in told["samplings"]] == [
        (row.adjacency, row.sampling) for row in rows
    ]
    for shown, row in zip(told["samplings"], rows, strict=True):
        assert (shown["answer"] is None) == bool(shown["reason"])
        if row.answer is not None:
            assert shown["answer"]["upper"] == row.answer.upper


@pytest.mark.parametrize("columns", ["60", "100"])
def test_people_get_a_table_with_a_reason_where_there_is_no_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    status, out, err = run("compare", *shlex.split(f"{TRAINING} --sampling"))
    assert (status, err) == (0, "")
    words = " ".join(out.split())
    assert "drawn as its row says" in words
    assert (
        "has another one in its place, so that the sum moves by up to twice the clipping" in words
    )
    for sampling in Sampling:
        assert (sampling in out) == (sampling is not Sampling.FULL_BATCH) or int(columns) < 80


def test_a_named_sampling_is_the_plan_s(run: Run) -> None:
    status, out, _ = run("compare", *shlex.split(f"{TRAINING} --json --sampling fixed-size"))
    assert status == 0
    assert json.loads(out)["plan"]["sampling"] == "fixed-size"


def test_what_is_no_training_has_no_sampling(run: Run, tmp_path_factory: object) -> None:
    status, out, err = run("compare", "examples/banded-square-root.toml", "--sampling")
    assert (status, out) == (2, "")
    assert "a DP-SGD plan" in err


def test_a_schedule_and_a_sampling_in_a_plan_file(run: Run, tmp_path: object) -> None:
    file = f"{tmp_path}/plan.toml"
    with open(file, "w", encoding="utf-8") as opened:
        opened.write(
            "delta = 1e-5\n[dpsgd]\nexamples = 400\nbatch_size = 40\nepochs = 2\n"
            'noise_multiplier = 2\nsampling = "random-allocation"\n'
            'schedule = { kind = "piecewise", segments = [[10, 1.0], [10, 0.5]] }\n'
        )
    status, out, err = run("epsilon", file, "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    composed = hs.mechanisms.RandomAllocation(
        hs.Gaussian(2.0), 10
    ) @ hs.mechanisms.RandomAllocation(hs.Gaussian(1.0), 10)
    assert told["upper"] == pytest.approx(hs.epsilon(composed, 1e-5).upper, rel=1e-9)
    assert told["plan"]["schedule"]["kind"] == "piecewise"


def test_an_unknown_schedule_is_one_line(run: Run, tmp_path: object) -> None:
    file = f"{tmp_path}/plan.toml"
    with open(file, "w", encoding="utf-8") as opened:
        opened.write("[dpsgd]\nrate = 0.1\nsteps = 3\nnoise_multiplier = 2\n")
        opened.write('schedule = { kind = "exponentail", end = 0.5 }\n')
    status, out, err = run("epsilon", file, "--delta", "1e-5")
    assert (status, out) == (2, "")
    assert "did you mean 'exponential'?" in err


def test_a_shuffled_run_without_an_adjacency_is_refused_with_the_command_that_works(
    run: Run,
) -> None:
    asked = shlex.split(
        "--examples 1010 --batch-size 100 --epochs 2 --noise-multiplier 2 --delta 1e-5 "
        "--sampling shuffle"
    )
    status, out, err = run("epsilon", *asked)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "nearest to the add-remove of Poisson batches; replace-one: it is exchanged for" in err
    working = err.partition("or replace-one, as hockeystick ")[2].partition(" (and --drop-last")[0]
    command, *words = shlex.split(working)
    assert (command, words) == ("epsilon", [*asked, "--adjacency", "zero-out"])
    told = [json.loads(run(command, *words, *more, "--json")[1]) for more in ((), ("--drop-last",))]
    plan = hs.DPSGD(
        examples=1010,
        batch_size=100,
        epochs=2,
        noise_multiplier=2,
        sampling="shuffle",
        adjacency="zero-out",
    )
    assert [one["plan"]["drop_last"] for one in told] == [False, True]
    assert [one["upper"] for one in told] == [hs.epsilon(plan, 1e-5).upper] * 2


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
