"""What the README shows is what happens."""

import doctest
import os
import re
import shlex
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.cli import load_plan, main

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def steady(text: str) -> str:
    """Return the text without what differs from run to run: times, blanks, the last digits."""
    text = re.sub(r"\b\d+(\.\d+)? (us|ms|s)\b", "TIME", text)
    text = re.sub(r"(\d\.\d{8})\d+", r"\1", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


def shows(shown: str, happened: str) -> bool:
    """Return whether both are the same; a line of three dots stands for any lines."""
    pieces = [re.escape(piece) for piece in re.split(r"^\.\.\.$", steady(shown), flags=re.M)]
    return re.fullmatch(r"(?s:.*)".join(pieces), steady(happened)) is not None


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {name for name, _ in BLOCKS} == {"sh", "console", "pycon", "toml"}


def test_the_comparison_can_fail() -> None:
    assert shows("a\n...\nd\n", "a\nb\nc\nd\n")
    assert shows("took 3 ms, 1.234567891", "took 5.1 s,  1.234567899")
    assert not shows("a\nc\n", "a\nb\nc\n")
    assert not shows("1.23456789", "1.23456788")


@pytest.mark.parametrize("block", blocks("console"))
def test_a_command_prints_what_is_shown(
    block: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT)
    command, shown = block.split("\n", 1)
    prompt, name, *arguments = shlex.split(command)
    assert (prompt, name) == ("$", "hockeystick")
    assert main(arguments) == 0
    happened = capsys.readouterr().out
    assert shows(shown, happened), happened


@pytest.mark.parametrize("block", blocks("pycon"))
def test_a_session_answers_what_is_shown(block: str) -> None:
    class Checker(doctest.OutputChecker):
        def check_output(self, want: str, got: str, optionflags: int) -> bool:
            return super().check_output(steady(want), steady(got), optionflags)

    session = doctest.DocTestParser().get_doctest(block, {}, "README", "README.md", 0)
    report: list[str] = []
    result = doctest.DocTestRunner(Checker()).run(session, out=report.append)
    assert result.attempted > 3
    assert result.failed == 0, "".join(report)


def test_the_plan_file_is_the_plan_that_it_looks_like(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    file = load_plan(path)
    training = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
    assert file.plan == training @ hs.Gaussian(20) ** 3
    assert file.delta == 1e-5


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in "".join(blocks("sh")).splitlines():
        make, target, *_ = line.split()
        assert make == "make"
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_every_link_leads_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    assert all(os.path.exists(ROOT / link) for link in links)
