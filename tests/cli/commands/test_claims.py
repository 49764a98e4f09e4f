"""`hockeystick claims`: the table, its forms, and what is refused."""

import json

import pytest

import hockeystick as hs
from hockeystick.literature import check
from tests.cli.conftest import Run

SOME = "sense-and-sensitivity/section-5.2"


def _words(text: str) -> str:
    return " ".join(text.split())


def test_the_table_has_the_numbers_and_the_verdict(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, out, err = run("claims", f"{SOME}/variance", "privacy-preserving-ml/gaussian-mechanism")
    assert (status, err) == (0, "")
    assert "1 claim: only with a condition 1" in out
    assert "2; without: 4" in out
    for cell in (
        "<= 1e-5",
        "4.10756e-08",
        "without:",
        "2.26537e-05",
        "hs.calibration.gaussian_noise",
    ):
        assert cell in out
    assert out.index("Privacy-Preserving Machine Learning") < out.index("Sense and Sensitivity")


def test_json_has_every_claim_and_its_numbers(run: Run) -> None:
    status, out, err = run("claims", SOME, "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["version"] == hs.__version__
    assert [one["key"] for one in told["documents"]] == ["sense-and-sensitivity"]
    assert told["claims"] == [one.as_dict() for one in check(SOME)]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nothing-like-it"], "one of federated-f-dp, fed-alpha-cdp"),
        (["--json", "--markdown"], "--markdown and --json are both given"),
        (["--list", "considerations"], "takes nothing else"),
        (["--list", "--json"], "takes nothing else"),
        (["--verdict"], "No such option"),
    ],
)
def test_wrong_arguments_are_one_line_and_status_two(
    run: Run, arguments: list[str], why: str
) -> None:
    status, out, err = run("claims", *arguments)
    assert (status, "error" in out) == (2, "--json" in arguments)
    assert why in err
    assert len(err.splitlines()) == 1
