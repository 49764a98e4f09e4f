"""The page in a real browser: drawn without a complaint, in both schemes, on a phone, on paper."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.reports import Findings, page
from tests.reports.browsers import complaints, running
from tests.reports.conftest import DAY

pytest.importorskip("selenium", reason="pages are looked at by Selenium")
pytest.importorskip("matplotlib", reason="reports need Matplotlib")

pytestmark = pytest.mark.extras
CHARTS = ("epsilon-of-delta", "delta-of-epsilon", "trade-off", "low-rates", "course")
# How much of a curve is drawn, and the colour of its line.
INK = """
const curve = document.querySelector(`#${arguments[0]} svg`);
const line = [...curve.querySelectorAll("path")].map((one) => getComputedStyle(one).stroke);
return [curve.getBoundingClientRect().width, line];
"""
LINES = {"light": "rgb(0, 90, 156)", "dark": "rgb(124, 192, 255)"}

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from running()


@pytest.fixture(scope="module")
def path(found: Findings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(page(found, DAY), encoding="utf-8")
    return file


@pytest.fixture
def opened(browser: Any, path: Path) -> Open:
    def ready(width: int = 1200, scheme: str = "light", media: str = "") -> Any:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        wanted = {"media": media, "features": features}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
        browser.get_log("browser")
        browser.get(path.as_uri())
        return browser

    return ready


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_every_curve_is_drawn_without_a_complaint(opened: Open, width: int, scheme: str) -> None:
    page = opened(width, scheme)
    for name in CHARTS:
        wide, strokes = page.execute_script(INK, f"figure-{name}")
        assert 0.25 * width < wide <= width
        assert LINES[scheme] in strokes
    assert complaints(page) == []


def test_what_is_printed_is_black_on_white(opened: Open) -> None:
    page = opened(scheme="dark", media="print")
    for name in CHARTS:
        assert {"rgb(0, 0, 0)"} < {*page.execute_script(INK, f"figure-{name}")[1]}
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert page.execute_script(paper) == "rgb(255, 255, 255)"


def test_a_page_that_was_signed_and_saved_still_shows_its_answer(
    opened: Open, tmp_path: Path
) -> None:
    page = opened()
    for blank in page.find_elements("css selector", ".blank"):
        blank.send_keys("Ada <ada@example.org>\nagrees")
    page.find_element("css selector", ".checks input").click()
    saved = tmp_path / "saved.html"
    saved.write_text(page.execute_script("return document.documentElement.outerHTML"), "utf-8")
    assert hs.answers.load_answer(saved) == hs.answers.load_answer(Path(page.current_url[7:]))
    page.get(saved.as_uri())
    assert "Ada <ada@example.org>" in page.find_element("css selector", ".blank").text
    assert page.find_element("css selector", ".checks input").is_selected()
    assert complaints(page) == []
