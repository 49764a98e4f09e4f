"""`hockeystick claims`: the table, its forms, and what is refused."""

import json

import pytest

import hockeystick as hs
from hockeystick.cli.panels.claims_page import markdown_page
from hockeystick.cli.panels.claims_words import counted, shown
from hockeystick.literature import Found, catalogue, check
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


@pytest.mark.parametrize("columns", [40, 60, 80, 96, 200])
def test_the_table_fits_any_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    status, out, _ = run("claims", SOME, "considerations/section-3.3/renyi")
    assert status == 0
    assert max(map(len, out.splitlines())) <= min(columns, 130)
    assert ("paper, own" in _words(out)) is (columns < 96)
    assert "invalid" in out


def test_a_sentence_that_rows_share_is_said_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "130")
    _, out, _ = run("claims", "federated-f-dp/table-2/iterations")
    assert out.count("a client's number of iterations") == 1
    assert "7372" in out


def test_json_has_every_claim_and_its_numbers(run: Run) -> None:
    status, out, err = run("claims", SOME, "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["version"] == hs.__version__
    assert [one["key"] for one in told["documents"]] == ["sense-and-sensitivity"]
    assert told["claims"] == [one.as_dict() for one in check(SOME)]


def test_markdown_is_the_same_table(run: Run) -> None:
    status, out, err = run("claims", SOME, "--markdown")
    assert (status, err) == (0, "")
    assert out == markdown_page(check(SOME)) + "\n"
    lines = out.splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert [line.split("`")[1] for line in rows] == [f"{SOME}/variance", f"{SOME}/half-epsilon"]
    assert all(line.count(" | ") == 4 for line in rows)
    assert "2; without: 4" in rows[0]
    assert r"`sense-and-sensitivity/section-5.2/variance`<br>section 5.2" in rows[0]


def test_the_list_has_every_document(run: Run) -> None:
    status, out, err = run("claims", "--list")
    assert (status, err) == (0, "")
    claims = catalogue().claims.values()
    for key, document in catalogue().documents.items():
        count = sum(claim.document == key for claim in claims)
        assert f"{count} claims" in _words(out)
        assert key in out
        assert document.title.split(":")[0][:30] in out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["considerationz"], "did you mean 'considerations'?"),
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


def test_numbers_are_rounded_outward_where_they_are_intervals() -> None:
    assert shown(Found(1.0, 1.0, "exact")) == "1"
    assert shown(Found(-0.0, -0.0, "exact")) == "0"
    assert shown(Found(0.1234567, 0.1234567, "approximation", "delta")) == "~0.123457 (delta)"
    assert shown(Found(0.12345671, 0.2345671, "proven", "delta")) == "0.123456 to 0.234568 (delta)"
    assert shown(Found(-2.0, -1.00000001, "proven")) == "-2 to -1.00000"
    assert shown(Found(2.5999999999, 2.6, "proven")) == "2.6"
    assert shown(Found(float("inf"), float("inf"), "exact")) == "inf"
    assert shown(Found(2.0, float("inf"), "proven")) == "2 to inf"


def test_claims_are_counted_by_verdict() -> None:
    assert counted(check(SOME)) == "2 claims: reproduces 1, only with a condition 1"


def test_a_fitted_number_is_shown_as_multiples(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = run("claims", "sense-and-sensitivity/section-2.5")
    assert status == 0
    assert "2 claims: reproduces 1, consistent 1" in out
    assert "multiples of 0.4" in out
    assert "consistent, as 25 % of" in _words(out)


def test_what_is_stated_without_the_condition_is_shown(run: Run) -> None:
    status, out, _ = run("claims", "sense-and-sensitivity/section-5.3", "--markdown")
    assert status == 0
    assert "| 0.807468; without: 0.558622 |" in out
    assert "0.594498; without: 0.594498" in out or "0.594498 (epsilon); without: 0.594498" in out


def test_the_command_is_in_the_overview(run: Run) -> None:
    status, out, _ = run("--help")
    assert status == 0
    assert "Recompute published figures" in out


def test_the_source_and_the_finding_can_be_cited(run: Run) -> None:
    claim = "sense-and-sensitivity/section-3.5/query-noise"
    out = _words(run("claims", claim, "--cite")[1])
    assert 'Sources - Filippo Galli, "Sense and Sensitivity: ' in out
    assert 'Machine Learning", doctoral thesis, Scuola Normale Superiore, 2023/2024 To cite' in out
    assert out.endswith(f'- hockeystick {hs.__version__}, claim "{claim}": reproduces')
    assert "--json has the sources in any case" in run("claims", claim, "--cite", "--json")[2]
