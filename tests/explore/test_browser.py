"""The page in a real browser: moved, solved, pinned, saved; on a phone and in the dark."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.numerics.numerals import at_most
from tests.explore.serving import served
from tests.reports.browsers import complaints, running

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
