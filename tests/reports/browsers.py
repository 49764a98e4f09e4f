"""A real browser for the tests of pages, where there is one."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)


def running() -> Iterator[Any]:
    """Give a browser that keeps what pages complain of; skip the test where there is none."""
    from selenium import webdriver

    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its driver: make browser installs both")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(driver)
    started = webdriver.Chrome(options=options, service=service)
    yield started
    started.quit()


def complaints(browser: Any) -> list[str]:
    """Return what pages complained of since this was asked last."""
    return [one["message"] for one in browser.get_log("browser") if one["level"] != "INFO"]
