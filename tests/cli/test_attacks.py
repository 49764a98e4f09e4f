"""The commands `tradeoff` and `audit`: tables, JSON, exit statuses."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.reports.audit import Audit, audited
from hockeystick.tradeoffs.attack_words import attack_in_words
from tests.cli.conftest import Run, Write, told

FULL = ("rate=1", "steps=9", "noise_multiplier=4")
DEFAULT_RATES = [0.1, 0.05, 0.01, 0.001, 0.0001, 0.00001]


def rows(out: str) -> list[list[str]]:
    """The table's numbers, without its headings and labels."""
    found = [line.split()[-3:] for line in out.splitlines()]
    return [line for line in found if len(line) == 3 and line[0][:2] in ("0.", "1e")]


def test_json_has_what_the_trade_off_function_says(run: Run) -> None:
    answer = told(run, "tradeoff", *FULL)
    f = hs.tradeoff(hs.DPSGD(rate=1, steps=9, noise_multiplier=4))
    (plan,) = answer["plans"]
    assert [row["fpr"] for row in plan["rates"]] == DEFAULT_RATES
    for row in plan["rates"]:
        assert row["tpr_upper"] == pytest.approx(f.power(row["fpr"]), rel=1e-9)
        assert row["fnr_lower"] == pytest.approx(f(row["fpr"]), rel=1e-9)
    assert plan["advantage_upper"] == pytest.approx(float(f.advantage), rel=1e-9)
    assert plan["bayes_error_lower"] == pytest.approx(float(f.bayes_error(0.5)), rel=1e-9)
    assert plan["reading"] == attack_in_words(0.01, f.power(0.01))
    assert plan["adjacency"] == plan["description"]["adjacency"] == "add-remove"
    assert any("clipped" in sentence for sentence in plan["assumptions"])
    assert (answer["plot"], answer["version"]) == (None, hs.__version__)


def test_every_number_is_rounded_to_its_safe_side(run: Run) -> None:
    (plan,) = told(run, "tradeoff", *FULL)["plans"]
    _, out, _ = run("tradeoff", *FULL)
    shown = rows(out)
    assert len(shown) == len(DEFAULT_RATES)
    for row, (fpr, found, missed) in zip(plan["rates"], shown, strict=True):
        assert float(fpr) == row["fpr"]
        assert Decimal(row["tpr_upper"]) <= Decimal(found) <= Decimal(row["tpr_upper"] * 1.00001)
        assert Decimal(row["fnr_lower"] * 0.99999) <= Decimal(missed) <= Decimal(row["fnr_lower"])


PLAN = 'title = "One query"\n[[release]]\nmechanism = "Gaussian"\nnoise_multiplier = 1.0\n'
WITH_DELTA = "delta = 1e-5\n" + PLAN


@pytest.mark.parametrize("in_one_run", [False, True])
def test_json_has_all_that_was_found(
    run: Run, write: Write, tmp_path: Path, *, in_one_run: bool
) -> None:
    # What really ran has half the noise of the plan.
    noise = np.random.default_rng(2).normal(0.0, 0.5, (2, 600))
    given = str(tmp_path / "scores.npz")
    np.savez(given, scores_in=noise[0] + 1.0, scores_out=noise[1])
    flags = ["--one-run"] * in_one_run
    status, out, err = run("audit", given, write(WITH_DELTA), "--json", *flags)
    held = hs.audit.load_scores(given)
    found = audited(
        Audit(name=given, scores=held, in_one_run=in_one_run), plan=hs.Gaussian(1.0), delta=1e-5
    )
    answer = json.loads(out)
    assert (status, err) == (int(found.is_refuted), "")
    assert answer.pop("version") == hs.__version__
    assert answer.pop("title") == "One query"
    assert answer.pop("description") == hs.calibration.describe(hs.Gaussian(1.0))
    assert answer == json.loads(json.dumps(found.as_dict()))
    one_run = hs.audit.falsify_one_run(hs.Gaussian(1.0), held.scores, held.included)
    assert (answer["verdict"] == one_run.as_dict()) is in_one_run
    assert in_one_run or answer["verdict"]["kind"] == "refuted"
