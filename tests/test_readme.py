"""What the README shows is what happens."""

import re
import runpy
from typing import Any

import pytest

import hockeystick as hs
from tests.documents import ROOT, blocks_of, check_command, check_session, links_of, shows

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks_of(README)


def blocks(language: str) -> list[str]:
    return [block.text for block in BLOCKS if block.language == language]


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {name for name, _ in BLOCKS} == {"sh", "console", "pycon"}


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


SETUP: dict[str, Any] = runpy.run_path(str(ROOT / "setup.py"))
ADDRESSES: dict[str, str] = SETUP["addresses"]()


def in_the_tree(url: str) -> bool:
    """Return whether an address below the source's is a file, or a folder, of this tree."""
    view, _, rest = url.removeprefix(ADDRESSES["Source"] + "/").partition("/")
    tag, _, path = rest.partition("/")
    there = ROOT / path.partition("#")[0]
    is_what_it_says = there.is_dir() if view == "tree" else there.is_file()
    return tag in {f"v{hs.__version__}", "main"} and is_what_it_says


def test_a_package_index_shows_the_readme_with_links_that_lead_into_this_release() -> None:
    shown = SETUP["description"]()
    links = links_of(shown)
    assert len(links) == len(links_of(README)) > 20
    assert [link for link in links if not link.startswith("https://")] == []
    ours = [link for link in links if link.startswith(ADDRESSES["Source"])]
    assert len(ours) > 20
    assert [link for link in ours if not in_the_tree(link)] == []
    assert blocks_of(shown) == BLOCKS
    assert len(shown.splitlines()) == len(README.splitlines())


def test_a_link_of_each_kind_is_made_absolute_once() -> None:
    text = "[a](docs/start.md#x) ![b](LICENSE) [c](docs) [d](#e) [![f](LICENSE)](https://g.h)\n"
    there = "https://a.b/blob/v1/docs/start.md#x"
    first = SETUP["absolute"](text, "https://a.b", "v1")
    assert first.startswith(f"[a]({there}) ![b](https://a.b/raw/v1/LICENSE) [c](https://a.b/tree/")
    assert first.endswith("[d](#e) [![f](https://a.b/raw/v1/LICENSE)](https://g.h)\n")
    assert SETUP["absolute"](first, "https://a.b", "v1") == first
    code = "```sh\n[a](docs)\n```\n"
    assert SETUP["absolute"](code, "https://a.b", "v1") == code


def test_the_metadata_says_where_people_find_the_project() -> None:
    assert list(ADDRESSES) == ["Documentation", "Source", "Changelog", "Issues"]
    source = ADDRESSES["Source"]
    assert ADDRESSES["Issues"] == f"{source}/issues"
    for name in ("Documentation", "Changelog"):
        assert ADDRESSES[name].startswith(f"{source}/blob/main/")
        assert in_the_tree(ADDRESSES[name])
    assert not in_the_tree(f"{source}/blob/main/docs/none.md")
