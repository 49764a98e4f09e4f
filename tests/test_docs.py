"""What the pages in docs/ show is what happens, and Sphinx builds them without a warning."""

from __future__ import annotations

import gc
import importlib
import inspect
import re
import subprocess
import sys
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants import ACCOUNTANTS
from hockeystick.mechanisms import MECHANISMS
from tests.documents import ROOT, check_page, dead_links_of, needed_by

DOCS = ROOT / "docs"
PAGES = sorted(
    str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if "_build" not in str(path)
)
# What a page shows is run here, and the gallery's blocks in test_gallery.
RUN = [page for page in PAGES if page != "gallery.md"]
# What is not in docs/ has links as well.
DOCUMENTS = [
    *(f"docs/{page}" for page in PAGES),
    *sorted(path.name for path in ROOT.glob("*.md")),
    *sorted(f"benchmarks/{path.name}" for path in (ROOT / "benchmarks").glob("*.md")),
]
FROM_THE_NETWORK = re.compile(r"<(?:script|link|img)[^>]*(?:src|href)=\"(?:https?:)?//")
# What the extra `test` brings along; the blocks of a page may need more than that.
BROUGHT = {"flint", "jinja2", "sqlalchemy"}
DESCRIBED = re.compile(r"^\.\. autoclass:: hockeystick\.(?:\w+\.)*(\w+)$", re.MULTILINE)
LISTED = re.compile(r"^\| \[`(\w+)`\]", re.MULTILINE)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def with_its_marks(page: str) -> Any:
    """Return a page as a parameter, marked where its blocks need another extra."""
    needs_more = set(needed_by(text_of(page))) - BROUGHT
    return pytest.param(page, marks=[pytest.mark.extras] * bool(needs_more))


@pytest.mark.parametrize("page", [with_its_marks(page) for page in RUN])
def test_a_page_does_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = text_of(page)
    for library in needed_by(text):
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
        # What other libraries warn of is theirs.
        warnings.simplefilter("ignore")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    check_page(text, tmp_path, page)
    if needed_by(text):
        # What they leave open is closed while their warnings are ignored.
        gc.collect()


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_link_leads_to_a_page_and_a_heading_of_it(page: str) -> None:
    assert dead_links_of(ROOT / page) == []


def test_every_accountant_has_a_section() -> None:
    headings = " ".join(re.findall(r"^## (.+)$", text_of("accountants.md"), re.MULTILINE))
    assert {name for name in ACCOUNTANTS if name not in headings} == set()


def test_every_public_name_is_in_the_reference_and_every_mechanism_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(DOCS / "_ext")
    generated = importlib.import_module("generated")
    shown = "".join(
        generated.filled(text_of(page))
        for page in PAGES
        if page.startswith("reference/") and page != "reference/command.md"
    )
    missing = [
        name
        for name in {*hs.__all__, *MECHANISMS}
        if re.search(rf":: hockeystick\.(\w+\.)*{name}\n", shown) is None
    ]
    # Rooms have pages of their own; G is short for GaussianTradeOff.
    rooms = {name for name in hs.__all__ if inspect.ismodule(getattr(hs, name))}
    assert set(missing) <= {*rooms, "G", "tuning"}
    assert "hockeystick.mechanisms.training.schedules\n" in shown
    described = Counter(DESCRIBED.findall(shown))
    assert {described[name] for name in MECHANISMS} == {1}
    # What composes others is described, but in no family.
    listed = set(LISTED.findall(shown))
    assert set(MECHANISMS) - listed == {"Composed", "Parallel", "Repeated"}


@pytest.mark.extras
def test_sphinx_builds_the_pages_without_a_warning(tmp_path: Path) -> None:
    for name in ("sphinx", "myst_parser", "furo", "sphinx_copybutton"):
        if find_spec(name) is None:
            pytest.skip(f"the extra docs is not installed: {name} is missing")
    command = [sys.executable, "-m", "sphinx", "-E", "-W", "--keep-going", "-q", "-b", "html"]
    built = subprocess.run(
        [*command, "-d", str(tmp_path / "trees"), str(DOCS), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    for page in PAGES:
        html = (tmp_path / "html" / page).with_suffix(".html").read_text(encoding="utf-8")
        assert not FROM_THE_NETWORK.search(html), page
        assert "% generated" not in html, page
