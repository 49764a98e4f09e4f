"""What the README shows is what happens."""

import re

import pytest

from tests.documents import ROOT, blocks_of, check_command, check_session, shows

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks_of(README)


def blocks(language: str) -> list[str]:
    return [block.text for block in BLOCKS if block.language == language]


def test_the_comparison_can_fail() -> None:
    assert shows("a\n...\nd\n", "a\nb\nc\nd\n")
    assert shows("took 3 ms, 1.234567891", "took 5.1 s,  1.234567899")
    assert not shows("a\nc\n", "a\nb\nc\n")
    assert not shows("1.23456789", "1.23456788")


@pytest.mark.parametrize("block", blocks("console"))
def test_a_command_prints_what_is_shown(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT)
    check_command(block)


@pytest.mark.parametrize("block", blocks("pycon"))
def test_a_session_answers_what_is_shown(block: str) -> None:
    assert check_session(block, {}, "README.md") > 3


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in "".join(blocks("sh")).splitlines():
        make, target, *_ = line.split()
        assert make == "make"
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
