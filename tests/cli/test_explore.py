"""The command ``explore``: what it refuses in one line, and a server that comes and goes."""

import http.client
import os
import signal
import time
import urllib.error
import urllib.request

import pytest

from tests.explore.serving import served

PATIENCE_SECONDS = 300
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def all_ended(group: int) -> bool:
    """Return whether no process of a group is left, soon."""
    for _ in range(PATIENCE_SECONDS * 10):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def status(url: str, **headers: str) -> int:
    """Return the status of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_whoever_has_the_link_until_it_is_ended_and_leaves_nothing(how: int) -> None:
    pytest.importorskip("bokeh", reason="the page needs Bokeh")
    with served("examples/mnist-tutorial.toml") as (process, url):
        bare, _, key = url.partition("?")
        assert bare.startswith("http://127.0.0.1:")
        name, _, session = key.partition("=")
        guessed = f"{bare}?{name}={session[:-1]}{'A' if session[-1] != 'A' else 'B'}"
        assert [status(bare), status(guessed), status(f"{bare}autoload.js")] == [403, 403, 403]
        assert [status(url), status(url)] == [200, 200]
        asking = http.client.HTTPConnection(bare.removeprefix("http://").rstrip("/"))
        asking.request("GET", "/ws", headers={**UPGRADE, "Origin": "http://evil.example"})
        assert asking.getresponse().status == 403
        asking.close()
        process.send_signal(how)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0
        assert "Traceback" not in err
        assert all_ended(process.pid)
