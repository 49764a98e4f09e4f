"""The command ``explore``: what it refuses in one line, and a server that comes and goes."""

import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest

from tests.explore.serving import served

Run = Callable[..., tuple[int, str, str]]

PATIENCE_SECONDS = 300


def all_ended(group: int) -> bool:
    """Return whether no process of a group is left, soon."""
    for _ in range(PATIENCE_SECONDS * 10):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("missing", ["bokeh", "jinja2", "tornado"])
def test_a_missing_library_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    said = (
        "hockeystick: the page needs Bokeh, Jinja2 and Tornado: pip install 'hockeystick[report]'\n"
    )
    assert run("explore", "--no-browser") == (2, "", said)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_whoever_has_the_link_until_it_is_ended_and_leaves_nothing(how: int) -> None:
    pytest.importorskip("bokeh", reason="the page needs Bokeh")
    with served("examples/mnist-tutorial.toml") as (process, url):
        bare = url.partition("?")[0]
        assert bare.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            urllib.request.urlopen(bare)
        refused.value.close()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(url) as page:
            assert "<h1>" in page.read().decode()
        process.send_signal(how)
        _, err = process.communicate(timeout=600)
        assert (process.returncode, err) == (0, "")
        assert all_ended(process.pid)
