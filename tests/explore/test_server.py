"""The server lets in who has the link, once, and nobody else."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("bokeh", reason="the page needs Bokeh")
pytest.importorskip("tornado", reason="the page needs Tornado")

from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.httpserver import HTTPServer

from hockeystick.explore import State, server
from hockeystick.explore.lanes import Refused
from hockeystick.explore.state import USUAL

PATHS = ("/", "/?token=guessed", "/static/bokeh.js", "/answers", "/solve", "/report", "/nowhere")
VALUES = b'{"values": {"delta": 1e-6}}'

Ask = Callable[..., Awaitable[HTTPResponse]]


class Answering:
    """A service that needs no processes."""

    state = State(USUAL)

    async def answers(self, values: dict[str, Any], *, fine: bool) -> AsyncIterator[dict[str, Any]]:
        yield {"part": "plan", "values": values, "fine": fine}
        yield {"part": "headline"}

    async def solve(self, values: dict[str, Any], name: str, target: object) -> dict[str, Any]:
        return {"name": name, "target": target}

    async def report(self, values: dict[str, Any]) -> Refused:
        return Refused("not today")


def visited(visit: Callable[[server.Door, Ask], Awaitable[None]]) -> None:
    async def run() -> None:
        bound = server.listening(0)
        door = server.Door(bound.getsockname()[1])
        service: Any = Answering()
        running = HTTPServer(server.application(door, service), max_body_size=1000)
        running.add_socket(bound)
        client = AsyncHTTPClient()

        async def ask(path: str, body: bytes | None = None, **headers: str) -> HTTPResponse:
            return await client.fetch(
                f"http://{server.HOST}:{door.port}{path}",
                method="GET" if body is None else "POST",
                body=body,
                headers=headers,
                follow_redirects=False,
                raise_error=False,
                connect_timeout=600,
                request_timeout=600,
            )

        try:
            await visit(door, ask)
        finally:
            running.stop()

    asyncio.run(run())


async def let_in(door: server.Door, ask: Ask) -> dict[str, str]:
    entered = await ask(f"/?token={door.token}")
    assert (entered.code, entered.headers["Location"]) == (302, "/")
    cookie = entered.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    return {"Cookie": cookie.partition(";")[0]}


def test_a_stranger_is_refused_everything() -> None:
    async def visit(door: server.Door, ask: Ask) -> None:
        for path in PATHS:
            for body in (None, VALUES):
                refused = await ask(path, body)
                assert (path, refused.code) == (path, 403)
                assert b"start hockeystick explore again" in refused.body
        key = await let_in(door, ask)
        for path in PATHS:
            assert (await ask(path)).code == 403
            assert (await ask(path, Cookie=f"{door.cookie}=guessed")).code == 403
        assert (await ask("/", **key)).code == 200

    visited(visit)


def test_the_link_opens_the_page_once() -> None:
    async def visit(door: server.Door, ask: Ask) -> None:
        link = f"/?token={door.token}"
        assert (await ask(link, **{"Sec-Purpose": "prefetch"})).code == 403
        key = await let_in(door, ask)
        assert (await ask(link)).code == 403
        assert (await ask(link, **key)).code == 302

    visited(visit)


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "127.0.0.1:1"}, {"Origin": "http://evil.example"}],
)
def test_another_site_is_refused_even_in_the_same_browser(headers: dict[str, str]) -> None:
    async def visit(door: server.Door, ask: Ask) -> None:
        assert (await ask(f"/?token={door.token}", **headers)).code == 403
        key = await let_in(door, ask)
        for path in ("/", "/static/paint.js"):
            assert (await ask(path, **key, **headers)).code == 403
        assert (await ask("/answers", VALUES, **key, **headers)).code == 403

    visited(visit)


def test_whoever_was_let_in_is_answered_line_by_line() -> None:
    async def visit(door: server.Door, ask: Ask) -> None:
        key = await let_in(door, ask)
        page = await ask("/", **key)
        assert b"Explore a plan" in page.body
        assert "script-src 'self'" in page.headers["Content-Security-Policy"]
        assert b"embed_item" in (await ask("/static/explore.js", **key)).body
        answered = await ask("/answers", VALUES, **key)
        assert [json.loads(line) for line in answered.body.splitlines()] == [
            {"part": "plan", "values": {"delta": 1e-6}, "fine": False},
            {"part": "headline"},
        ]
        asked = b'{"values": {}, "name": "epochs", "target": 2}'
        assert json.loads((await ask("/solve", asked, **key)).body) == {
            "name": "epochs",
            "target": 2,
        }
        assert json.loads((await ask("/report", VALUES, **key)).body) == {"refused": "not today"}

    visited(visit)
