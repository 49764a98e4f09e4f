import json
import shlex
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.tradeoffs.reading import reading

Run = Callable[..., tuple[int, str, str]]

FULL = ("rate=1", "steps=9", "noise_multiplier=4")
SAMPLED = ("rate=0.1", "steps=100", "noise_multiplier=2")
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
    found = [line.split()[-3:] for line in out.splitlines()]
    return [line for line in found if len(line) == 3 and line[0][:2] in ("0.", "1e")]


@pytest.mark.parametrize("flags", [FULL, SAMPLED])
def test_json_has_what_the_trade_off_function_says(run: Run, flags: tuple[str, ...]) -> None:
    answer = told(run, *flags)
    rate, steps, noise = (float(text.partition("=")[2]) for text in flags)
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
    advantage = words.partition("advantage at most ")[2].partition(";")[0]
    assert Decimal(plan["advantage_upper"]) <= Decimal(advantage)
    error = words.partition("Bayes error at least ")[2].split()[0]
    assert Decimal(error) <= Decimal(plan["bayes_error_lower"])


WRONG = [
    ("tradeoff", "Give a plan file, a plan as"),
    ("tradeoff nowhere.toml", "nowhere.toml: no such file"),
    ("tradeoff PLAN nowhere.toml", "nowhere.toml: no such file"),
    ("tradeoff PLAN --fpr 2", "fpr must be a number from 0 to 1; got 2"),
    ("tradeoff PLAN --fpr -0.1", "fpr must be a number from 0 to 1; got -0.1"),
    ("tradeoff PLAN --fpr 1e-400", "within the range of a float; got 1E-400"),
    ("tradeoff PLAN --fpr", "'--fpr' requires an argument"),
    ("tradeoff PLAN -o a.txt", "out must be a file name that ends in .csv or .svg or .png or .pdf"),
    ("tradeoff PLAN -o ''", "out must be a file name"),
    ("tradeoff PLAN --delta 1e-5", "--delta"),
    ("tradeoff PLAN rate=2", "rate must be a number from 0 to 1; got 2"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_input_is_one_line(run: Run, plans: list[str], arguments: str, message: str) -> None:
    given = [plans[0] if word == "PLAN" else word for word in shlex.split(arguments)]
    for more in ([], ["--json"]):
        status, out, err = run(*given, *more) if "requires" not in message else run(*given)
        assert (status, "error" in out) == (2, bool(more) and "requires" not in message)
        assert message in err
        assert len(err.splitlines()) == 1
