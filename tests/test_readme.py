"""What the README shows is what happens."""

import pytest

from tests.documents import ROOT, blocks_of, check_command, check_session

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks_of(README)


def blocks(language: str) -> list[str]:
    return [block.text for block in BLOCKS if block.language == language]


@pytest.mark.parametrize("block", blocks("console"))
def test_a_command_prints_what_is_shown(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT)
    check_command(block)


@pytest.mark.parametrize("block", blocks("pycon"))
def test_a_session_answers_what_is_shown(block: str) -> None:
    assert check_session(block, {}, "README.md") > 3
