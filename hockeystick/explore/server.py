"""The page's server: this machine alone, and whoever was given the link; all else is refused."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, final

from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.web import Application, HTTPError, RequestHandler

from hockeystick.explore.document import POLICY, STATIC, document
from hockeystick.explore.lanes import Refused, StoppedError
from hockeystick.explore.service import Service

HOST: Final = "127.0.0.1"
_NAMES: Final = (HOST, "localhost")
_MOST_BYTES: Final = 100_000
_TOKEN_BYTES: Final = 32


@final
@dataclass(slots=True)
class Door:
    """Who may come in: the one who brings the token first, then that browser alone.

    Args:
        port: Where the page is served.
    """

    port: int
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    _key: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))

    @property
    def url(self) -> str:
        """The link to the page, which opens it once."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie: that of another page, at another port, is another one."""
        return f"hockeystick-{self.port}"

    def admit(self, token: str) -> str | None:
        """Return the key for a token and forget the token, or None for any other one."""
        if self.token is None or not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        self.token = None
        return self._key

    def knows(self, key: str | None) -> bool:
        """Return whether a key is the one that was given out."""
        is_out = self.token is None and key is not None
        return is_out and hmac.compare_digest(str(key).encode(), self._key.encode())

    def is_own(self, host: str, origin: str | None) -> bool:
        """Return whether a request is to this server by its own name, and from its own page."""
        hosts = [f"{name}:{self.port}" for name in _NAMES]
        return host in hosts and origin in (None, f"http://{host}")


class _Guarded(RequestHandler):
    """A handler for whoever was let in."""

    def initialize(self, door: Door, service: Service) -> None:
        self.door = door
        self.service = service

    def set_default_headers(self) -> None:
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.set_header("Cache-Control", "no-store")
        self.clear_header("Server")

    def prepare(self) -> None:
        if not self.door.is_own(self.request.host, self.request.headers.get("Origin")):
            raise HTTPError(HTTPStatus.FORBIDDEN)
        if not self.door.knows(self.get_cookie(self.door.cookie)):
            raise HTTPError(HTTPStatus.FORBIDDEN)

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        reason = HTTPStatus(status_code).phrase
        hint = " The link opens the page once, in one browser; start hockeystick explore again."
        self.finish(f"{status_code} {reason}.{hint if status_code == HTTPStatus.FORBIDDEN else ''}")


class _Page(_Guarded):
    """The page, and the way in."""

    def prepare(self) -> None:
        token = self.get_query_argument("token", None)
        is_own = self.door.is_own(self.request.host, self.request.headers.get("Origin"))
        # A browser that only looks ahead must not use the link up.
        is_ahead = "prefetch" in self.request.headers.get("Sec-Purpose", "")
        key = self.door.admit(token) if token and is_own and not is_ahead else None
        if key is None:
            super().prepare()
        else:
            self.set_cookie(self.door.cookie, key, httponly=True, samesite="Strict", path="/")
        if token is not None:
            self.redirect("/")

    def get(self) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(document(self.service.state))


class _Static(_Guarded):
    """The scripts of the page."""

    def get(self, name: str) -> None:
        if name not in STATIC:
            raise HTTPError(HTTPStatus.NOT_FOUND)
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.finish(STATIC[name]())


class _Asked(_Guarded):
    """A handler of questions in JSON, which stops where the asker has gone."""

    _task: asyncio.Task[None] | None = None

    async def post(self) -> None:
        self._task = asyncio.ensure_future(self._answer(self._question()))
        with suppress(asyncio.CancelledError, StreamClosedError, StoppedError):
            await self._task

    def on_connection_close(self) -> None:
        super().on_connection_close()
        if self._task is not None:
            self._task.cancel()

    async def _answer(self, asked: dict[str, Any]) -> None:
        """Write the answer to a question."""
        raise NotImplementedError

    def _question(self) -> dict[str, Any]:
        """Return what is asked, or refuse it."""
        try:
            asked = json.loads(self.request.body)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict) or not isinstance(asked.get("values"), dict):
            raise HTTPError(HTTPStatus.BAD_REQUEST)
        return asked

    def _line(self, told: dict[str, Any]) -> None:
        """Write one part of an answer, as JSON on one line."""
        self.write(json.dumps(told, allow_nan=False) + "\n")


class _Answers(_Asked):
    """What is proven of a state, part by part."""

    async def _answer(self, asked: dict[str, Any]) -> None:
        self.set_header("Content-Type", "application/x-ndjson")
        async for part in self.service.answers(asked["values"], fine=bool(asked.get("fine"))):
            self._line(part)
            await self.flush()


class _Solve(_Asked):
    """A number that meets a target."""

    async def _answer(self, asked: dict[str, Any]) -> None:
        values, name, target = asked["values"], asked.get("name"), asked.get("target")
        self._line(await self.service.solve(values, str(name), target))


class _Report(_Asked):
    """The page for whoever approves a release."""

    async def _answer(self, asked: dict[str, Any]) -> None:
        text = await self.service.report(asked["values"])
        self._line({"refused": text.message} if isinstance(text, Refused) else {"html": text})


def application(door: Door, service: Service) -> Application:
    """Return the page, its scripts and its questions."""
    own = {"door": door, "service": service}
    return Application(
        [
            (r"/", _Page, own),
            (r"/static/([a-z]+\.js)", _Static, own),
            (r"/answers", _Answers, own),
            (r"/solve", _Solve, own),
            (r"/report", _Report, own),
        ],
        default_handler_class=_Nothing,
        default_handler_args=own,
        log_function=lambda handler: None,
    )


class _Nothing(_Guarded):
    """Any other address: refused to strangers, unknown to the page."""

    def prepare(self) -> None:
        super().prepare()
        raise HTTPError(HTTPStatus.NOT_FOUND)


async def serve(make: Callable[[], Service], port: int, opened: Callable[[str], None]) -> None:
    """Serve the page until the process is interrupted or told to end.

    Args:
        make: Makes what answers, once the port is known to be free.
        port: Where; 0 for any free port.
        opened: Is told the link.

    Raises:
        OSError: If the port cannot be used.
    """
    bound = listening(port)
    service = make()
    door = Door(bound.getsockname()[1])
    server = HTTPServer(application(door, service), max_body_size=_MOST_BYTES)
    try:
        server.add_socket(bound)
        opened(door.url)
        with _end() as ended:
            await ended.wait()
    finally:
        server.stop()
        service.stop()


def listening(port: int) -> socket.socket:
    """Return a socket that listens at a port of this machine, 0 for any free one.

    Raises:
        OSError: If the port cannot be used.
    """
    made = socket.socket()
    try:
        if os.name == "posix":
            # Elsewhere, this would let another program take the port over.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen()
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


@contextmanager
def _end() -> Iterator[asyncio.Event]:
    """Give an event that is set where the process is asked to end."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    for one in signals:
        # Windows has no such handlers: an interrupt is raised there.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(one, ended.set)
    yield ended
    for one in signals:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(one)
