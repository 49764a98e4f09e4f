"""What is printed for people at any width: nothing of it is cut, no number is broken."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import hockeystick as hs

Run = Callable[..., tuple[int, str, str]]

EXAMPLES = Path(__file__).parents[2] / "examples"
# Each kind of table and panel once: the ends of an interval, a number per batch size, words only.
ASKED: tuple[tuple[str, ...], ...] = (
    ("epsilon", str(EXAMPLES / "private-pca.toml")),
    (
        "plan",
        *[
            "--examples",
            "6000",
            "--epsilon",
            "2",
            "--delta",
            "1e-5",
            "--epochs",
            "1",
            "--batch-size",
            "64,256,900",
        ],
    ),
    ("solve", "Laplace()**10 @ Gaussian(4)", "--epsilon", "2", "--delta", "1e-6"),
    ("convert", "Gaussian(1)", "--to", "RenyiDP", "--orders", "2,4.5,8"),
    ("convert", "GDP(1)", "--to", "FDP"),
    ("tradeoff", "Gaussian(4)", "Gaussian(3)"),
    ("diff", "Laplace(2)**3", "Laplace(3)**4", "--delta", "1e-6"),
    ("compare", "Gaussian(4) @ Laplace(2)**3", "--delta", "1e-6"),
    ("check", "Laplace(2)**3 @ Gaussian(4)"),
    ("claims", "--list"),
    ("epsilon", "Gaussian(4)", "--delta", "1e-6", "--digits", "20"),
)
EVERY = [
    (command, str(path))
    for path in sorted(EXAMPLES.glob("*.toml"))
    for command in ("epsilon", "compare")
]
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
# Of another run, these are others.
DURATION = re.compile(r"\b[\d.]+\s+(?:s|ms|us)\b")


@pytest.fixture(autouse=True)
def _worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hs.epsilon, hs.compare, hs.calibrate
    for question in asked:
        monkeypatch.setattr(hs, question.__name__, cache(question))
    monkeypatch.setattr(hs.calibration, "frontier", cache(hs.calibration.frontier))


@pytest.mark.parametrize(
    "arguments",
    [*ASKED, *EVERY],
    ids=lambda given: f"{given[0]}-{Path(given[-1]).stem}",
)
def test_every_number_is_there_uncut_at_every_width(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    def lines(columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        status, out, err = run(*arguments)
        assert (status, err) == (0, "")
        assert max(map(len, out.splitlines())) <= columns
        assert "…" not in out
        return DURATION.sub("", out)

    shown = set(NUMBER.findall(lines(200)))
    assert shown
    # The name of what is checked stays on one line.
    narrow = () if arguments[0] == "check" else (28,)
    for columns in (*narrow, 40, 60, 80, 120):
        assert shown <= set(NUMBER.findall(lines(columns)))


@pytest.mark.parametrize("columns", ["1", "7", "19"])
def test_a_terminal_too_narrow_for_any_word_is_taken_for_one_of_20_columns(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    asked = ("epsilon", "Gaussian(4)", "--delta", "1e-6")
    monkeypatch.setenv("COLUMNS", "20")
    least = run(*asked)
    monkeypatch.setenv("COLUMNS", columns)
    assert run(*asked) == least
    assert "1.06071" in least[1]
