import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from hockeystick.cli import main


class Ran(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Ran]
Write = Callable[[str | bytes], str]


def told(run: Run, *arguments: str) -> dict[str, Any]:
    """Return what a command prints as JSON, which must be strict."""
    status, out, err = run(*arguments, "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out, parse_constant=pytest.fail)
    assert isinstance(answer, dict)
    return answer


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def ran(*arguments: str) -> Ran:
        status = main(arguments)
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return ran
