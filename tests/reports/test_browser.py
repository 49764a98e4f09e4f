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
pytest.importorskip("bokeh", reason="reports need Bokeh")

pytestmark = pytest.mark.extras
PATIENCE_SECONDS = 300
CHARTS = ("epsilon-of-delta", "delta-of-epsilon", "trade-off", "low-rates", "course")
# The mean brightness of what a chart draws over the page, and how much of it is drawn at all.
INK = """
const chart = document.getElementById(arguments[0]);
const view = Object.values(Bokeh.index).find((one) => one.model.tags[0] === arguments[0]);
const canvas = view.export("png", true).canvas;
const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
let light = 0, count = 0;
for (let i = 0; i < data.length; i += 4) {
  if (data[i + 3] > 128) { light += data[i] + data[i + 1] + data[i + 2]; count += 1; }
}
return [count, light / (3 * count), chart.getBoundingClientRect().width];
"""

# Every element, those of shadow trees too.
ALL = (
    "const all = (root) => [...root.querySelectorAll('*')].flatMap("
    "(one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);"
)

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
        from selenium.webdriver.support.ui import WebDriverWait

        drawn = "return document.documentElement.dataset.charts === 'drawn'"
        WebDriverWait(browser, PATIENCE_SECONDS).until(lambda one: one.execute_script(drawn))
        return browser

    return ready


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_every_curve_is_drawn_without_a_complaint(opened: Open, width: int, scheme: str) -> None:
    page = opened(width, scheme)
    for name in CHARTS:
        count, _, wide = page.execute_script(INK, f"figure-{name}")
        assert count > 1000
        assert 0.5 * min(width, 500) < wide <= width
        assert page.execute_script(
            f"{ALL} return all(document.getElementById(arguments[0]))"
            ".filter((one) => one.tagName === 'CANVAS').length",
            f"figure-{name}",
        )
    assert complaints(page) == []


def test_nothing_is_asked_of_any_network(opened: Open) -> None:
    page = opened()
    resources = page.execute_script(
        "return performance.getEntriesByType('resource').map((one) => one.name)"
    )
    assert [one for one in resources if not one.startswith(("data:", "blob:"))] == []


def test_a_page_that_was_signed_and_saved_still_shows_its_answer(
    opened: Open, tmp_path: Path
) -> None:
    page = opened()
    for blank in page.find_elements("css selector", ".blank"):
        blank.send_keys("Ada <ada@example.org>\nagrees")
    page.find_element("css selector", ".checks input").click()
    saved = tmp_path / "saved.html"
    saved.write_text(page.execute_script("return document.documentElement.outerHTML"), "utf-8")
    assert hs.answers.altered_in(saved) == ()
    assert set(hs.answers.filled_in(saved).values()) == {"Ada <ada@example.org> agrees"}
    page.get(saved.as_uri())  # its "drawn" is saved with it
    assert page.find_element("css selector", ".checks input").is_selected()
    assert complaints(page) == []
    counted = "return [...document.querySelectorAll('.chart')].map((one) => one.children.length)"
    assert page.execute_script(counted) == [1] * len(CHARTS)
