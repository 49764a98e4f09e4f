"""Time from a slider's move to the picture that shows its answer, in a real browser.

``python -m benchmarks.explore`` serves usual plans as ``hockeystick explore`` does and moves each
slider some forty times: from the move until the frame with its numbers is painted. It prints the
median and the ninth decile of each slider, beside the share within 100 ms. A browser without a
graphics card paints by the processor.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any, Final

from tests.explore.serving import served
from tests.reports.browsers import running

PLANS: Final = {
    "MNIST": (60_000, 256, 60, 1.1),
    "CIFAR-10": (50_000, 512, 30, 1.1),
    "a million": (1_000_000, 4096, 10, 0.8),
}
SLIDERS: Final = ("noise multiplier", "batch size", "epochs", "delta")
GOAL_MS: Final = 100.0
PATIENCE_SECONDS: Final = 300
SHOWN: Final = """
const answer = window.Bokeh?.documents[0]?.get_model_by_name("answer");
return Boolean(answer?.text);
"""
_MOVES: Final = """
const [name, done] = arguments, page = Bokeh.documents[0], times = [];
const slider = page.get_model_by_name(name), answer = page.get_model_by_name("answer");
const from = slider.value;
let sent = 0;
const step = () => {
  sent = performance.now();
  slider.value = slider.value === from ? from + 1 + times.length % 7 : from;
};
const painted = () => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    times.push(performance.now() - sent);
    if (times.length < 40) { setTimeout(step, 30); return; }
    answer.properties.text.change.disconnect(painted);
    done(times);
  };
  port2.postMessage(null);
});
answer.properties.text.change.connect(painted);
step();
"""


def times(examples: int, batch: int, epochs: int, noise: float) -> dict[str, list[float]]:
    """Return the milliseconds of each slider for a plan."""
    plan = (
        f"DPSGD(examples={examples}, batch_size={batch}, epochs={epochs}, noise_multiplier={noise})"
    )
    found: dict[str, list[float]] = {}
    with served(plan, "--delta", "1e-6") as (_, url):
        for browser in running():
            browser.set_script_timeout(PATIENCE_SECONDS)
            browser.get(url)
            wait(browser)
            found = {name: browser.execute_async_script(_MOVES, name) for name in SLIDERS}
    return found


def wait(browser: Any) -> None:
    """Wait until the page shows its first answer."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not browser.execute_script(SHOWN):
        if time.monotonic() > until:
            raise TimeoutError("the page shows no answer")
        time.sleep(0.05)


def main() -> None:
    """Print the table."""
    _say(f"{'plan':<12}{'slider':<18}{'median':>8}{'90 %':>8}  within {GOAL_MS:g} ms")
    for plan, numbers in PLANS.items():
        for name, found in times(*numbers).items():
            within = sum(one <= GOAL_MS for one in found) / len(found)
            median, most = statistics.median(found), statistics.quantiles(found, n=10)[-1]
            _say(f"{plan:<12}{name:<18}{median:>8.0f}{most:>8.0f}  {within:.0%}")


def _say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
