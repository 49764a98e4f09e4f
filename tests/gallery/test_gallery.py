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


def test_the_page_to_play_with_has_the_headings_and_labels_of_its_picture() -> None:
    words = pictures.words_of(pictures.page_to_play_with())
    assert "Find the noise" in words
    assert words == pictures.words_kept_in("explore.png"), REMAKE


def test_the_pictures_are_those_that_the_page_shows_and_small() -> None:
    stored = sorted(pictures.STORED.iterdir())
    assert [one.name for one in stored] == sorted(PICTURES)
    assert [one.name for one in stored if one.stat().st_size > MOST_BYTES] == []


def test_another_curve_word_or_part_is_another_picture() -> None:
    stored = (pictures.STORED / "attack.svg").read_text(encoding="utf-8")
    assert pictures.is_same_picture(stored, stored.replace('id="', 'id="x'))
    assert pictures.is_same_picture(
        stored, stored.replace("stroke-width: 1.6", "stroke-width: 1.61")
    )
    assert not pictures.is_same_picture(
        stored, stored.replace("stroke-width: 1.6", "stroke-width: 2")
    )
    assert not pictures.is_same_picture(stored, stored.replace("#d55e00", "#000000"))
    later = stored.replace("<dc:title>Matplotlib v", "<dc:title>Matplotlib v9")
    assert pictures.is_same_picture(stored, later.replace("stroke-width: 1.6", "stroke-width: 2"))
    assert not pictures.is_same_picture(stored, later.replace("200 steps", "300 steps"))
