"""The page in a real browser: drawn without a complaint, in both schemes, on a phone, on paper."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.reports import Findings, Subject, investigate, page
from hockeystick.reports.ledgered import ledgered
from tests.reports.browsers import BROKEN, complaints, running
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


def test_the_page_may_not_load_anything_even_if_it_wanted_to(opened: Open) -> None:
    page = opened()
    refused = page.execute_async_script(
        "const done = arguments[0]; document.addEventListener('securitypolicyviolation', "
        "(event) => done(event.effectiveDirective)); "
        "fetch('https://example.invalid/').catch(() => {});"
    )
    assert refused == "connect-src"


@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_nothing_sticks_out_to_the_right(opened: Open, width: int) -> None:
    page = opened(width)
    page.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("media", ["", "print"])
def test_no_number_is_broken_over_two_lines(opened: Open, media: str) -> None:
    page = opened(320, media=media)
    for width in range(320, 440, 4):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": True}
        page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert page.execute_script(BROKEN) == [], width


@pytest.mark.parametrize("width", [320, 1200])
def test_the_ledger_fits_the_page(browser: Any, tmp_path: Path, width: int) -> None:
    pytest.importorskip("sqlalchemy", reason="ledgers need SQLAlchemy")
    ledger = hs.Ledger(tmp_path / "ledger.db", "people", hs.ZCDP(rho=0.5))
    with ledger.reserve(hs.Gaussian(9.0) ** 2, key="k" * 200, by="ana", note="n" * 500):
        pass
    found = ledgered(ledger)
    findings = investigate(Subject(plan=hs.Gaussian(9.0), delta=1e-5, ledger=found))
    file = tmp_path / "report.html"
    file.write_text(page(findings, DAY), encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(file.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    rows = browser.find_elements("css selector", "#ledger tbody tr")
    assert [row.text.split()[1] for row in rows] == ["opened", "reserved", "committed"]
    assert all(row.rect["x"] + row.rect["width"] <= width for row in rows)


def test_the_dark_scheme_is_dark_and_its_curves_are_light(opened: Open) -> None:
    def seen(scheme: str) -> tuple[int, list[float]]:
        page = opened(1200, scheme)
        paper = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        red = int(paper.partition("(")[2].partition(",")[0])
        return red, [page.execute_script(INK, f"figure-{name}")[1] for name in CHARTS]

    (white, on_white), (black, on_black) = seen("light"), seen("dark")
    assert white > 240
    assert black < 40
    assert all(on_black[k] != on_white[k] for k in range(len(CHARTS)))
    colours = "return [...Object.values(Bokeh.index)][0].model.below[0].major_label_text_color"
    label = opened(1200, "dark").execute_script(colours)
    assert int(label[1:3], 16) > 200


def test_the_scheme_can_change_while_the_page_is_open(opened: Open) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    page = opened(1200, "light")
    colours = "return [...Object.values(Bokeh.index)][0].model.below[0].major_label_text_color"
    before = page.execute_script(colours)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    # The page hears of it a moment later.
    waiting = WebDriverWait(page, PATIENCE_SECONDS)
    assert waiting.until(lambda one: one.execute_script(colours) != before)


def test_paper_is_white_and_has_pictures_in_place_of_the_charts(opened: Open) -> None:
    page = opened(700, "dark", "print")
    assert page.execute_script("return getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    shown = page.execute_script(
        "return [...document.querySelectorAll('img.paper')].map((one) => "
        "[one.naturalWidth, one.getBoundingClientRect().width, one.alt.length, "
        "getComputedStyle(one.previousElementSibling).display])"
    )
    assert len(shown) == len(CHARTS)
    for natural, width, alt, chart in shown:
        assert natural > 100
        assert 100 < width <= 700
        assert alt > 10
        assert chart == "none"
    assert page.execute_script("return document.documentElement.scrollWidth") <= 700


def test_the_page_prints(opened: Open) -> None:
    page = opened(1200, "dark")
    printed = page.execute_cdp_cmd("Page.printToPDF", {})
    content = base64.b64decode(printed["data"])
    assert content.startswith(b"%PDF")
    assert content.count(b"/Subtype /Image") >= len(CHARTS)


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


def test_the_pointer_shows_both_ends_of_the_nearest_dot(opened: Open, found: Findings) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    page = opened(500)  # narrow, but with a pointer
    chart = page.find_element("id", "figure-epsilon-of-delta")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    ActionChains(page).move_to_element_with_offset(chart, 10, 5).perform()
    find = (
        f"{ALL} return all(document).filter((one) => one.tagName === 'DIV' && "
        "/^epsilon ≤ [0-9.]+$/.test(one.textContent))"
        ".map((one) => one.textContent)"
    )
    WebDriverWait(page, PATIENCE_SECONDS).until(lambda one: one.execute_script(find))
    (shown,) = page.execute_script(find)
    value = float(shown.removeprefix("epsilon ≤ "))
    assert any(value == pytest.approx(one.upper, rel=1e-5) for one in found.by_delta)


def test_without_scripts_the_numbers_are_there(browser: Any, path: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(path.as_uri())
        words = browser.find_element("tag name", "body").text
        assert "their numbers are in the tables" in words
        assert not browser.find_element("id", "figure-trade-off").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
