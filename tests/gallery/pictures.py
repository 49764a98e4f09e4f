"""The pictures of docs/gallery.md, made by the lines that the page shows."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.documents import ROOT, check_page

PAGE: Final = ROOT / "docs" / "gallery.md"
STORED: Final = ROOT / "docs" / "_static" / "gallery"
PLAN: Final = "examples/mnist-tutorial.toml"
_SHOWN: Final = re.compile(r"_static/gallery/([\w-]+\.\w+)\)")
_NUMBER: Final = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|-?\d+")
_ID: Final = re.compile(r'(id="|href="#|url\(#)[\w.-]+')
_WORDS: Final = re.compile(r"<!-- (.*?) -->")
_CREATOR: Final = re.compile(r"<dc:title>(.*?)</dc:title>")
_META: Final = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_HEARD: Final = re.compile(r"<(h1|h2|th|label|button|legend)\b[^>]*>(.*?)</\1>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]+>")
# The day that reports bear: 2026-01-31.
_DAY: Final = "1769817600"
# What a coordinate may differ by, in points, where another processor rounds otherwise.
_TOLERANCE: Final = 0.05
_LOADED: Final = 'return document.readyState === "complete"'
# A page to play with asks for its numbers once it is there, and then for its other curves.
_SETTLED: Final = """
const page = window.Bokeh?.documents[0];
return (page?.get_model_by_name("noise multiplier line")?.data.x.length ?? 0) > 1;
"""
_SIZE: Final = {"width": 1180, "height": 860, "deviceScaleFactor": 1, "mobile": False}


def pictures_of(text: str) -> list[str]:
    return _SHOWN.findall(text)


@contextlib.contextmanager
def drawing(folder: Path) -> Iterator[None]:
    """Work in a folder in which the examples are, and draw alike each time."""
    import matplotlib as mpl

    (folder / "examples").symlink_to(ROOT / "examples")
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = _DAY
    try:
        with contextlib.chdir(folder), mpl.rc_context({"svg.hashsalt": "hockeystick"}):
            mpl.use("agg")
            yield
    finally:
        os.environ.pop("SOURCE_DATE_EPOCH")
        if before is not None:
            os.environ["SOURCE_DATE_EPOCH"] = before


def is_same_picture(one: str, other: str) -> bool:
    """Return whether two SVGs draw the same, to what no eye can see."""
    if _by(one) != _by(other):
        return _WORDS.findall(one) == _WORDS.findall(other)
    texts, numbers = zip(*(_parts(picture) for picture in (one, other)), strict=True)
    if texts[0] != texts[1]:
        return False
    return all(abs(a - b) <= _TOLERANCE for a, b in zip(*numbers, strict=True))


def _by(picture: str) -> list[str]:
    return _CREATOR.findall(picture)


def _parts(picture: str) -> tuple[str, list[float]]:
    """Return an SVG without its numbers, and these; what names its parts is left out."""
    plain = _ID.sub(r"\1", _META.sub("", picture))
    return _NUMBER.sub("#", plain), [float(one) for one in _NUMBER.findall(plain)]


def words_of(html: str) -> str:
    """Return the headings and labels of a page, one a line."""
    heard = (" ".join(_TAG.sub("", text).split()) for _, text in _HEARD.findall(html))
    return "\n".join(heard)


def words_kept_in(name: str) -> str:
    """Return the headings and labels of the page of which a screenshot is stored."""
    from PIL import Image

    with Image.open(STORED / name) as seen:
        return str(seen.info["words"])


def main() -> None:
    from tests.explore.serving import served

    STORED.mkdir(exist_ok=True)
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, drawing(Path(folder)):
        check_page(text, Path(folder), "the gallery")
        for name in pictures_of(text):
            if name.endswith(".svg"):
                (STORED / name).write_bytes(Path(name).read_bytes())
        report = Path("report.html").resolve()
        _see("report.png", report.as_uri(), report.read_text(encoding="utf-8"), _LOADED)
    with served(PLAN) as (_, url):
        _see("explore.png", url, "", _SETTLED)
    sys.stdout.write("".join(f"{STORED / name}\n" for name in pictures_of(text)))


def _see(name: str, url: str, html: str, is_ready: str) -> None:
    """Store what a page looks like once a script finds it ready, with the words that it has."""
    from PIL import Image, PngImagePlugin
    from selenium.webdriver.support.ui import WebDriverWait

    from tests.reports.browsers import running

    for browser in running():
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", _SIZE)
        browser.get(url)
        WebDriverWait(browser, 300).until(lambda one: one.execute_script(is_ready))
        browser.save_screenshot(str(STORED / name))
    said = PngImagePlugin.PngInfo()
    said.add_text("words", words_of(html))
    with Image.open(STORED / name) as seen:
        seen.convert("RGB").save(STORED / name, pnginfo=said, optimize=True)


if __name__ == "__main__":
    main()
