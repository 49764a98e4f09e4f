"""The gallery shows what its own lines draw, and pages as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import check_page
from tests.gallery import pictures

TEXT = pictures.PAGE.read_text(encoding="utf-8")
PICTURES = pictures.pictures_of(TEXT)
REMAKE = "make the pictures anew by make gallery"
MOST_BYTES = 200_000


def test_every_picture_is_what_the_lines_beside_it_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pictures.drawing(tmp_path):
        check_page(TEXT, tmp_path, "gallery.md")
    for name in PICTURES:
        if name.endswith(".svg"):
            made, stored = ((one / name).read_text("utf-8") for one in (tmp_path, pictures.STORED))
            assert pictures.is_same_picture(made, stored), f"{name}: {REMAKE}"
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert pictures.words_of(html) == pictures.words_kept_in("report.png"), REMAKE


def test_the_pictures_are_those_that_the_page_shows_and_small() -> None:
    stored = sorted(pictures.STORED.iterdir())
    assert [one.name for one in stored] == sorted(PICTURES)
    assert [one.name for one in stored if one.stat().st_size > MOST_BYTES] == []
