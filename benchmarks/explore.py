"""Time from an event on a slider to the picture that shows its answer, in a real browser.

``python -m benchmarks.explore`` serves usual plans as ``hockeystick explore`` does, drags each
slider as a hand would, sixty events a second, and reads the page's own measurements: from the
event's time stamp until the frame with the answer is painted. It prints the median and the ninth
decile of each slider, beside the share within 100 ms. A browser without a graphics card paints by
the processor.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.explore.serving import served
from tests.reports.browsers import running

PLANS: Final = {
    "MNIST": (60_000, 256, 60, 1.1),
    "CIFAR-10": (50_000, 512, 30, 1.1),
    "a million": (1_000_000, 4096, 10, 0.8),
}
SLIDERS: Final = ("noise_multiplier", "batch_size", "epochs", "delta")
GOAL_MS: Final = 100.0
_TURNS: Final = 3
_PATIENCE_SECONDS: Final = 300
_DRAG: Final = """
const [id, away, done] = arguments;
const slider = document.getElementById(id), from = Number(slider.value);
let k = 0;
const step = () => {
  if (k > 60) return done();
  slider.value = from + Math.round(away * Math.sin(Math.PI * k / 60));
  slider.dispatchEvent(new Event("input", {bubbles: true}));
  k += 1;
  requestAnimationFrame(step);
};
step();
"""
_TIMES: Final = """
const found = performance.getEntriesByName("answer").map((one) => one.duration);
performance.clearMeasures("answer");
return found;
"""


def times(
    examples: int, batch: int, epochs: int, noise: float
) -> Iterator[tuple[str, list[float]]]:
    """Yield the milliseconds of each slider for a plan."""
    text = (
        f"delta = 1e-6\n[dpsgd]\nexamples = {examples}\nbatch_size = {batch}\n"
        f"epochs = {epochs}\nnoise_multiplier = {noise}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.toml"
        plan.write_text(text, encoding="utf-8")
        with served(str(plan)) as (_, url):
            for browser in running():
                browser.get(url)
                _settle(browser)
                for name in SLIDERS:
                    yield name, _dragged(browser, name)


def _dragged(browser: Any, name: str) -> list[float]:
    """Return the milliseconds of several drags there and back, the first one left out."""
    found: list[float] = []
    for turn in range(_TURNS + 1):
        browser.execute_async_script(_DRAG, name, 12)
        _settle(browser)
        times: list[float] = browser.execute_script(_TIMES)
        found += times if turn else []
    return found


def _settle(browser: Any) -> None:
    """Wait until the page has all that it asked for."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while browser.execute_script("return document.documentElement.dataset.state") != "settled":
        if time.monotonic() > until:
            raise TimeoutError("the page does not settle")
        time.sleep(0.05)


def main() -> None:
    """Print the table."""
    _say(f"{'plan':<12}{'slider':<18}{'answers':>8}{'median':>8}{'90 %':>8}  within {GOAL_MS:g} ms")
    for plan, numbers in PLANS.items():
        for name, found in times(*numbers):
            within = sum(one <= GOAL_MS for one in found) / len(found)
            median, most = statistics.median(found), statistics.quantiles(found, n=10)[-1]
            _say(f"{plan:<12}{name:<18}{len(found):>8}{median:>8.0f}{most:>8.0f}  {within:.0%}")


def _say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
