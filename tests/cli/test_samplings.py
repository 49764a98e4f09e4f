"""`hockeystick compare --samplings`: what each way of drawing batches would cost."""

import json
import shlex
from functools import cache

import pytest

import hockeystick as hs
from tests.cli.conftest import Run

# The rows are shown by several tests, which take them from here.
WORKED_OUT = cache(hs.accountants.compare_samplings)
TRAINING = "examples=400 batch_size=40 epochs=1 noise_multiplier=2 --delta 1e-5"


@pytest.fixture(autouse=True)
def worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hs.accountants, "compare_samplings", WORKED_OUT)


def test_a_named_sampling_is_the_plan_s(run: Run) -> None:
    status, out, _ = run("compare", *shlex.split(f"{TRAINING} --json sampling=fixed-size"))
    assert status == 0
    assert json.loads(out)["plan"]["sampling"] == "fixed-size"


def test_what_is_no_training_has_no_sampling(run: Run, tmp_path_factory: object) -> None:
    status, out, err = run("compare", "examples/banded-square-root.toml", "--samplings")
    assert (status, out) == (2, "")
    assert "a DP-SGD plan" in err
