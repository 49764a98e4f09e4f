"""The command `audit`: tables, JSON, exit statuses and wrong input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.reports.audit import Audit, audited

Run = Callable[..., tuple[int, str, str]]
Write = Callable[[str | bytes], str]

PLAN = 'title = "One query"\n[[release]]\nmechanism = "Gaussian"\nnoise_multiplier = 1.0\n'
WITH_DELTA = "delta = 1e-5\n" + PLAN
TRIALS = 600
# What really ran, in deviations of the noise: as the plan says, and with half the noise.
AS_PLANNED, HALF_THE_NOISE = 1.0, 0.5


def scores(deviation: float, shift: float = 1.0) -> dict[str, Any]:
    """Return the best attack's scores on a Gaussian mechanism with sensitivity 1."""
    random = np.random.default_rng(2)
    noise = random.normal(0.0, deviation, (2, TRIALS))
    return {"scores_in": noise[0] + shift, "scores_out": noise[1]}


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    def written(deviation: float, shift: float = 1.0) -> str:
        path = tmp_path / "scores.npz"
        np.savez(path, **scores(deviation, shift))
        return str(path)

    return written


def test_one_run_is_audited_as_one(run: Run, write: Write, file: Callable[..., str]) -> None:
    given = file(HALF_THE_NOISE)
    status, out, _ = run("audit", given, write(WITH_DELTA), "--one-run", "--json")
    told = json.loads(out)
    held = hs.audit.load_scores(given)
    both = held.scores, held.included
    assert told["in_one_run"] is True
    assert told["epsilon"]["value"] == hs.audit.one_run(*both, delta=1e-5).value
    verdict = hs.audit.falsify_one_run(hs.Gaussian(1.0), *both)
    assert told["verdict"] == verdict.as_dict()
    assert status == int(isinstance(verdict, hs.audit.Refuted))


def test_json_has_all_that_was_found(run: Run, write: Write, file: Callable[..., str]) -> None:
    given = file(HALF_THE_NOISE)
    status, out, err = run("audit", given, write(WITH_DELTA), "--json")
    audit = Audit(name=given, scores=hs.audit.load_scores(given))
    found = audited(audit, plan=hs.Gaussian(1.0), delta=1e-5)
    told = json.loads(out)
    assert (status, err) == (1, "")
    assert told.pop("version") == hs.__version__
    assert told.pop("title") == "One query"
    assert told.pop("description") == hs.calibration.describe(hs.Gaussian(1.0))
    assert told == json.loads(json.dumps(found.as_dict()))
    assert told["verdict"]["kind"] == "refuted"
    assert len(told["curve"]) > 3
