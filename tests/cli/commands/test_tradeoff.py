import csv
import json
import shlex
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.tradeoffs.reading import reading

Run = Callable[..., tuple[int, str, str]]

FULL = ("--rate", "1", "--steps", "9", "--noise-multiplier", "4")
SAMPLED = ("--rate", "0.1", "--steps", "100", "--noise-multiplier", "2")
DEFAULT_RATES = [0.1, 0.05, 0.01, 0.001, 0.0001, 0.00001]
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def matplotlib() -> Any:
    return pytest.importorskip("matplotlib", reason="pictures need matplotlib")


@pytest.fixture
def plans(tmp_path: Path) -> list[str]:
    """Three plan files without a title, with one, and with the same one."""
    paths = []
    for noise, title in (("2", ""), ("3", "title = 'Named'"), ("4", "title = 'Named'")):
        path = tmp_path / f"plan-{noise}.toml"
        path.write_text(f"{title}\n[dpsgd]\nrate = 1\nsteps = 4\nnoise_multiplier = {noise}\n")
        paths.append(str(path))
    return paths


def told(run: Run, *arguments: str) -> dict[str, Any]:
    status, out, err = run("tradeoff", *arguments, "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert isinstance(answer, dict)
    return answer


def rows(out: str) -> list[list[str]]:
    """The table's numbers, without its headings and labels."""
    words = [line.strip("│ ").split()[-3:] for line in out.splitlines()]
    start = next(i for i, line in enumerate(words) if line == ["FNR", "at", "least"])
    end = next(i for i, line in enumerate(out.splitlines()) if " TPR: true" in line)
    return [line for line in words[start:end] if len(line) == 3 and line[0][0] in "01"]


def test_the_numbers_of_the_curves_go_to_a_file_at_the_rates_asked_or_all(
    run: Run, plans: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "curve.csv"
    assert run("tradeoff", *plans[:2], "--fpr", "0.01,0.1", "-o", str(out))[0] == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["plan"], row["fpr"]) for row in rows] == [
        (label, fpr) for label in ("plan-2.toml", "Named") for fpr in ("0.01", "0.1")
    ]
    f = hs.tradeoff(hs.Gaussian(2) ** 4)
    assert (float(rows[0]["tpr_upper"]), float(rows[0]["fnr_lower"])) == (f.power(0.01), f(0.01))
    assert (rows[0]["adjacency"], rows[0]["version"]) == ("add-remove", hs.__version__)
    assert "give --force to replace it" in run("tradeoff", plans[0], "-o", str(out))[2]
    assert run("tradeoff", plans[0], "-o", str(out), "--force")[0] == 0
    rates = [float(row["fpr"]) for row in csv.DictReader(out.read_text().splitlines())]
    assert (len(rates), rates) == (192, sorted(set(rates)))
    assert (rates[0], rates[-1]) == (0, 1)


@pytest.mark.parametrize("flags", [FULL, SAMPLED])
def test_json_has_what_the_trade_off_function_says(run: Run, flags: tuple[str, ...]) -> None:
    answer = told(run, *flags)
    rate, steps, noise = (float(text) for text in flags[1::2])
    f = hs.tradeoff(hs.DPSGD(rate=rate, steps=int(steps), noise_multiplier=noise))
    (plan,) = answer["plans"]
    assert [row["fpr"] for row in plan["rates"]] == DEFAULT_RATES
    for row in plan["rates"]:
        assert row["tpr_upper"] == pytest.approx(f.power(row["fpr"]), rel=1e-9)
        assert row["fnr_lower"] == pytest.approx(f(row["fpr"]), rel=1e-9)
    assert plan["advantage_upper"] == pytest.approx(float(f.advantage), rel=1e-9)
    assert plan["bayes_error_lower"] == pytest.approx(float(f.bayes_error(0.5)), rel=1e-9)
    assert plan["reading"] == reading(0.01, f.power(0.01))
    assert plan["adjacency"] == plan["plan"]["adjacency"] == "add-remove"
    assert any("clipped" in sentence for sentence in plan["assumptions"])
    assert (answer["plot"], answer["version"]) == (None, hs.__version__)


def test_every_number_is_rounded_to_its_safe_side(run: Run) -> None:
    (plan,) = told(run, *FULL)["plans"]
    _, out, _ = run("tradeoff", *FULL)
    shown = rows(out)
    assert len(shown) == len(DEFAULT_RATES)
    for row, (fpr, found, missed) in zip(plan["rates"], shown, strict=True):
        assert float(fpr) == row["fpr"]
        assert Decimal(row["tpr_upper"]) <= Decimal(found) <= Decimal(row["tpr_upper"] * 1.00001)
        assert Decimal(row["fnr_lower"] * 0.99999) <= Decimal(missed) <= Decimal(row["fnr_lower"])
    words = " ".join(out.replace("│", " ").split())
    advantage = words.partition("advantage at most ")[2].split()[0]
    assert Decimal(plan["advantage_upper"]) <= Decimal(advantage)
    error = words.partition("Bayes error at least ")[2].split()[0]
    assert Decimal(error) <= Decimal(plan["bayes_error_lower"])


def test_several_plans_each_have_their_rows_and_a_label_of_their_own(
    run: Run, plans: list[str]
) -> None:
    answer = told(run, *plans)["plans"]
    labels = ["plan-2.toml", f"Named ({plans[1]})", f"Named ({plans[2]})"]
    assert [plan["label"] for plan in answer] == labels
    assert [plan["title"] for plan in answer] == [None, "Named", "Named"]
    found = [plan["rates"][2]["tpr_upper"] for plan in answer]
    assert found == sorted(found, reverse=True)
    _, out, _ = run("tradeoff", *plans)
    assert len(rows(out)) == 3 * len(DEFAULT_RATES)
    assert out.count("no attack finds more than") == 3
    assert out.count("holds if") == 4  # what all share, and what is each plan's own


def test_flags_override_every_plan(run: Run, plans: list[str]) -> None:
    answer = told(run, *plans, "--noise-multiplier", "5")["plans"]
    assert [plan["plan"]["noise_multiplier"] for plan in answer] == [5, 5, 5]


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_picture_of_all_plans_is_written(
    run: Run, matplotlib: Any, plans: list[str], tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"curves.{kind}"
    answer = told(run, *plans, "--plot", str(path))
    assert answer["plot"] == str(path)
    first = path.read_bytes()
    status, out, _ = run("tradeoff", *plans, "--plot", str(path), "--force")
    assert status == 0
    assert f"curves.{kind}" in "".join(line.strip("│ ") for line in out.splitlines())
    assert path.read_bytes() == first


WRONG = [
    ("tradeoff", "Give a plan file, or --noise-multiplier"),
    ("tradeoff nowhere.toml", "nowhere.toml: no such file"),
    ("tradeoff PLAN nowhere.toml", "nowhere.toml: no such file"),
    ("tradeoff PLAN --fpr 2", "fpr must be a number from 0 to 1; got 2"),
    ("tradeoff PLAN --fpr -0.1", "fpr must be a number from 0 to 1; got -0.1"),
    ("tradeoff PLAN --fpr 1e-400", "within the range of a float; got 1E-400"),
    ("tradeoff PLAN --fpr", "'--fpr' requires an argument"),
    ("tradeoff PLAN --plot a.txt", "plot must be a file name that ends in .svg, .png or .pdf; got"),
    ("tradeoff PLAN --plot ''", "plot must be a file name"),
    ("tradeoff PLAN --delta 1e-5", "--delta"),
    ("tradeoff PLAN --rate 2", "rate must be a number from 0 to 1; got 2"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_input_is_one_line(run: Run, plans: list[str], arguments: str, message: str) -> None:
    given = [plans[0] if word == "PLAN" else word for word in shlex.split(arguments)]
    for more in ([], ["--json"]):
        status, out, err = run(*given, *more) if "requires" not in message else run(*given)
        assert (status, "error" in out) == (2, bool(more) and "requires" not in message)
        assert message in err
        assert len(err.splitlines()) == 1


def test_a_plan_without_an_analysis_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unknown(plan: hs.Mechanism) -> hs.tradeoffs.TradeOff:
        raise hs.errors.UnsupportedError("contour", "the plan", "nobody knows")

    monkeypatch.setattr(hs, "tradeoff", unknown)
    said = "hockeystick: accountant 'contour' cannot account for the plan: nobody knows\n"
    assert run("tradeoff", *FULL) == (2, "", said)
    status, out, err = run("tradeoff", *FULL, "--json")
    assert (status, err) == (2, said)
    assert json.loads(out)["error"]["reason"] == "nobody knows"


def test_a_missing_matplotlib_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused = run("tradeoff", *FULL, "--plot", str(tmp_path / "curve.svg"))
    said = "hockeystick: pictures need matplotlib: install hockeystick[plot]\n"
    assert refused == (2, "", said)
    assert run("tradeoff", *FULL)[0] == 0


def test_an_example_costs_what_the_readme_says(run: Run) -> None:
    (plan,) = told(run, str(EXAMPLES / "mnist-tutorial.toml"), "--fpr", "0.01")["plans"]
    assert plan["reading"] == "At FPR 1 %, no attack finds more than 4.03 % of the members"
