"""The page in a real browser: moved, solved, pinned, saved; on a phone and in the dark."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.io import load_plan
from hockeystick.numerics.numerals import at_most
from tests.explore.serving import served
from tests.reports.browsers import BROKEN, complaints, running

pytest.importorskip("selenium", reason="pages are looked at by Selenium")
pytest.importorskip("bokeh", reason="the page needs Bokeh")

pytestmark = pytest.mark.extras
PATIENCE_SECONDS = 300
PLAN = """title = "A <b>plan</b>"
delta = 1e-5
[dpsgd]
examples = 10_000
batch_size = 100
epochs = 8
noise_multiplier = 1.0
"""
SOURCES = """
const picture = Object.values(Bokeh.index).find((one) => one.model.tags[0] === arguments[0]).model;
const found = {};
for (const one of picture.renderers) found[one.name] = Array.from(one.data_source.data.at ?? []);
return found;
"""
# Sixty events a second, as a hand makes them.
DRAG = """
const [id, away, done] = arguments;
const slider = document.getElementById(id), from = Number(slider.value);
let k = 0;
const step = () => {
  if (k > 30) return done();
  slider.value = from + Math.round(away * k / 30);
  slider.dispatchEvent(new Event("input", {bubbles: true}));
  k += 1;
  requestAnimationFrame(step);
};
step();
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from running()


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the browser at the page, whose link opens it once."""
    plan = tmp_path_factory.mktemp("explore") / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    with served(str(plan)) as (_, url):
        look(browser)
        browser.get(url)
        settle(browser)
        yield browser


@pytest.fixture
def page(opened: Any) -> Any:
    """Return the page as it began."""
    look(opened)
    opened.refresh()
    settle(opened)
    opened.get_log("browser")
    return opened


def look(browser: Any, width: int = 1280, scheme: str = "light") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def settle(browser: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    script = "return document.documentElement.dataset.state === 'settled'"
    WebDriverWait(browser, PATIENCE_SECONDS).until(lambda one: one.execute_script(script))


def text(browser: Any, name: str) -> str:
    return str(browser.find_element("id", name).text)


def shown(**other: Any) -> str:
    """Return the headline of the plan with other numbers, as the library has it."""
    fields = {"examples": 10_000, "batch_size": 100, "epochs": 8, "noise_multiplier": 1.0}
    delta = other.pop("delta", 1e-5)
    answer = hs.epsilon(hs.DPSGD(**{**fields, **other}), delta=delta)
    return f"epsilon ≤ {at_most(answer.upper)} at delta = {delta!r}"


def value(browser: Any, name: str) -> float:
    script = "return document.querySelector(`[data-number='${arguments[0]}']`).value"
    return float(browser.execute_script(script, name))


@pytest.mark.parametrize("name", ["noise_multiplier", "batch_size", "epochs", "delta"])
def test_a_drag_moves_number_and_pictures(page: Any, name: str) -> None:
    before = {one: page.execute_script(SOURCES, f"figure-{one}") for one in ("course", "noise")}
    assert text(page, "headline") == shown()
    page.execute_async_script(DRAG, name, 6)
    settle(page)
    number = value(page, name)
    assert text(page, "headline") == shown(**{name: number})
    assert f"--{name.replace('_', '-')} {number:g}"[:20] in text(page, "command")
    if name == "noise_multiplier":
        assert page.execute_script(SOURCES, "figure-noise")["mark"] == [number]
    if name == "epochs":
        assert page.execute_script(SOURCES, "figure-course") != before["course"]
    assert complaints(page) == []


def test_keys_move_a_slider_and_a_field_takes_any_number(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    slider = page.find_element("id", "epochs")
    slider.send_keys(Keys.ARROW_RIGHT)
    settle(page)
    assert text(page, "headline") == shown(epochs=10)
    assert slider.get_attribute("aria-valuetext") == "10"
    field = page.find_element("css selector", "[data-number='noise_multiplier']")
    field.clear()
    field.send_keys("1.2345", Keys.TAB)
    settle(page)
    assert text(page, "headline") == shown(epochs=10, noise_multiplier=1.2345)


@pytest.mark.parametrize("name", ["noise_multiplier", "epochs"])
def test_what_is_solved_for_meets_the_target(page: Any, name: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    field = page.find_element("id", "target")
    field.clear()
    field.send_keys("1.5")
    page.find_element("css selector", f"[data-solve='{name}']").click()
    waiting = WebDriverWait(page, PATIENCE_SECONDS)
    waiting.until(lambda one: "within 1.5" in text(one, "solved"))
    settle(page)
    number = value(page, name)
    assert text(page, "headline") == shown(**{name: number})
    epsilon = float(re.findall(r"[\d.]+", text(page, "headline"))[0])
    assert 1.3 < epsilon <= 1.5


def test_plans_are_pinned_and_compared(page: Any) -> None:
    pin = page.find_element("id", "pin")
    pin.click()
    page.execute_async_script(DRAG, "noise_multiplier", 20)
    settle(page)
    pin.click()
    rows = page.find_elements("css selector", "#pins tr")
    assert len(rows) == 2
    assert shown().removeprefix("epsilon ≤ ").partition(" ")[0] in rows[0].text
    sources = page.execute_script(SOURCES, "figure-trade-off")
    assert len(sources["pin-0"]) > 5
    assert len(sources["pin-1"]) > 5
    rows[0].find_element("css selector", "button").click()
    settle(page)
    assert text(page, "headline") == shown()
    rows[0].find_elements("css selector", "button")[1].click()
    assert len(page.find_elements("css selector", "#pins tr")) == 1
    assert page.execute_script(SOURCES, "figure-trade-off")["pin-0"] == []


def test_plan_and_report_are_saved(page: Any, tmp_path: Path) -> None:
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    page.execute_async_script(DRAG, "noise_multiplier", 10)
    settle(page)
    number = value(page, "noise_multiplier")
    page.find_element("id", "save-plan").click()
    page.find_element("id", "save-report").click()
    for _ in range(PATIENCE_SECONDS):
        if (tmp_path / "plan.toml").exists() and (tmp_path / "report.html").exists():
            break
        time.sleep(1)
    file = load_plan(tmp_path / "plan.toml")
    plan = hs.DPSGD(examples=10_000, batch_size=100, epochs=8, noise_multiplier=number)
    assert (file.plan, file.delta, file.title) == (plan, 1e-5, "A <b>plan</b>")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"epsilon ≤ {at_most(hs.epsilon(plan, delta=1e-5).upper)} " in report
    assert "A &lt;b&gt;plan&lt;/b&gt;" in report


def test_what_the_library_refuses_is_told_and_forgotten(page: Any) -> None:
    from selenium.webdriver.support.ui import Select

    sampling = Select(page.find_element("id", "sampling"))
    sampling.select_by_visible_text("shuffle")
    settle(page)
    assert "use adjacency zero-out or replace-one" in text(page, "refused")
    assert "Traceback" not in page.find_element("tag name", "body").text
    sampling.select_by_visible_text("fixed-size")
    settle(page)
    assert text(page, "refused") == ""
    assert text(page, "headline") == shown(sampling="fixed-size")


def test_a_slow_plan_holds_no_quick_one_up(page: Any) -> None:
    from selenium.webdriver.support.ui import Select

    sampling = Select(page.find_element("id", "sampling"))
    sampling.select_by_visible_text("random-allocation")
    time.sleep(1)
    assert page.execute_script("return document.documentElement.dataset.state") != "settled"
    sampling.select_by_visible_text("poisson")
    settle(page)
    assert text(page, "headline") == shown()


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_sticks_out_and_the_number_stays_in_sight(page: Any, width: int) -> None:
    look(page, width)
    pin = page.find_element("id", "pin")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", pin)
    pin.click()
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    delta = page.find_element("id", "delta")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", delta)
    box = "return JSON.stringify(document.getElementById('headline').getBoundingClientRect())"
    seen = json.loads(page.execute_script(box))
    assert 0 <= seen["top"] < seen["bottom"] <= 900


def test_no_number_is_broken_over_two_lines(page: Any) -> None:
    for width in range(320, 440, 8):
        look(page, width)
        assert page.execute_script(BROKEN) == [], width
    assert page.execute_script("return document.querySelectorAll('#shown .unbroken').length") > 3
    assert page.execute_script("return document.querySelector('#headline .unbroken').textContent")


def test_the_dark_scheme_is_dark_and_its_text_has_contrast(page: Any) -> None:
    def brightness(colour: str) -> float:
        return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3

    paper = "return getComputedStyle(document.body).backgroundColor"
    label = "return Object.values(Bokeh.index)[0].model.below[0].major_label_text_color"
    assert brightness(page.execute_script(paper)) > 240
    look(page, 1280, "dark")
    time.sleep(0.5)
    assert brightness(page.execute_script(paper)) < 40
    assert int(page.execute_script(label)[1:3], 16) > 200
    for name in ("headline", "words", "meaning", "pin", "command"):
        colour = page.find_element("id", name).value_of_css_property("color")
        assert brightness(colour) > 140, name
