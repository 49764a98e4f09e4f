import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest
from numba.core.event import trigger_event

import hockeystick as hs
from hockeystick.cli import durations, main
from hockeystick.cli.commands.group import hockeystick
from hockeystick.cli.terminal import progress
from hockeystick.cli.terminal.captured import say
from hockeystick.cli.terminal.waiting import waiting
from hockeystick.io import parse
from hockeystick.kernels.compiled import COMPILATIONS

Run = Callable[..., tuple[int, str, str]]
Write = Callable[[str | bytes], str]

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "hockeystick"]
COMMANDS = hockeystick.list_commands(click.Context(hockeystick))
TRAINING = ("--rate", "0.1", "--steps", "100", "--noise-multiplier", "1", "--delta", "1e-5")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def process(
    *arguments: str, stdout: int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", **environment},
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
    )


def test_help_is_quick_because_it_loads_nothing_heavy() -> None:
    heavy = "scipy", "numba", "mpmath", "rich", "matplotlib"
    script = (
        "import sys; from hockeystick.cli import main; status = main(['--help']);"
        f"sys.exit(status or sum(name in sys.modules for name in {heavy}))"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("epsilon", "-h"), ("compare", "--help")])
def test_help_is_an_answer(run: Run, arguments: tuple[str, ...]) -> None:
    status, out, err = run(*arguments)
    assert (status, err) == (0, "")
    assert out.startswith("Usage: hockeystick")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_holds_no_control_character_written_out(run: Run, command: str) -> None:
    shown = run(*command.split(), "--help")[1]
    assert "\\b" not in shown
    assert "\b" not in shown


def test_the_version_is_one_line(run: Run) -> None:
    status, out, err = run("--version")
    assert (status, err) == (0, "")
    assert out.startswith("hockeystick ")
    assert len(out.splitlines()) == 1


def test_the_version_is_printed_without_loading_the_command(run: Run) -> None:
    code = (
        "import sys; from hockeystick.__main__ import main; sys.argv[1:] = ['--version']; "
        "status = main(); sys.exit(status or bool({'click', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, run("--version")[1], "")


def test_nobody_reading_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        run = process("epsilon", *TRAINING, stdout=writer)
    finally:
        os.close(writer)
    assert (run.returncode, run.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        run = process("epsilon", *TRAINING, stdout=full.fileno())
    assert run.returncode == 2
    assert run.stderr == b"hockeystick: cannot write the answer: No space left on device\n"


def test_an_interrupt_is_one_line_and_status_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        # Where the tests run in the background, the interrupt may be ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.signal(signal.SIGINT, before)

    monkeypatch.setattr(hs, "epsilon", interrupted)
    interrupted.__name__ = "epsilon"
    assert run("epsilon", *TRAINING) == (130, "", "hockeystick: interrupted\n")


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_is_for_terminals_unless_refused(
    monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert main(["epsilon", *TRAINING]) == 0
    assert ("\x1b[1;32m" in screen.getvalue()) == coloured


@pytest.mark.parametrize("columns", ["1", "20", "40", "500"])
@pytest.mark.parametrize("command", ["epsilon", "compare"])
def test_no_width_is_too_odd(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    status, out, err = run(command, *TRAINING)
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= (100 if command == "epsilon" else 130)


def test_a_plan_file_cannot_steer_the_terminal(run: Run, write: Write) -> None:
    text = "title = '[bold]x[/bold]'\nnotes = \"a\\u001b[31mb\\nc\"\n"
    path = write(f"{text}[dpsgd]\nrate = 0.1\nsteps = 100\nnoise_multiplier = 1\n")
    _, out, _ = run("epsilon", path, "--delta", "1e-5")
    assert "\x1b" not in out
    assert "[bold]x[/bold]" in out
    assert "a[31mb c" in out


def test_waiting_shows_only_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with waiting("thinking", patience=60):
        pass
    assert screen.getvalue() == ""
    with waiting("thinking", patience=0):
        while "thinking" not in screen.getvalue():
            pass


def test_waiting_says_that_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with waiting("thinking", patience=0):
        while "thinking" not in screen.getvalue():
            pass
        assert "compiling" not in screen.getvalue()
        COMPILATIONS.watch()
        with trigger_event("numba:compile"):
            while "compiling, once after installing" not in screen.getvalue():
                pass
    assert not COMPILATIONS.under_way


def test_waiting_says_on_lines_ever_more_rarely_for_how_long_where_nobody_watches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    captured = io.StringIO()
    monkeypatch.setattr(sys, "stderr", captured)
    monkeypatch.delenv("HOCKEYSTICK_PROGRESS")
    with waiting("thinking", first_line=0.4):
        until = time.monotonic() + 600
        while captured.getvalue().count("\n") < 3 and time.monotonic() < until:
            time.sleep(0.01)
    assert captured.getvalue() == (
        "hockeystick: thinking, under way for 0 s\n"
        "hockeystick: thinking, under way for 1 s\n"
        "hockeystick: thinking, under way for 2 s\n"
    )


@pytest.mark.parametrize("sign", [waiting, progress.bar])
def test_a_captured_run_says_once_that_kernels_are_compiled(
    monkeypatch: pytest.MonkeyPatch, sign: Callable[..., Any]
) -> None:
    captured = io.StringIO()
    monkeypatch.setattr(sys, "stderr", captured)
    monkeypatch.delenv("HOCKEYSTICK_PROGRESS")
    COMPILATIONS.watch()
    with sign("thinking", patience=0.0), trigger_event("numba:compile"):
        until = time.monotonic() + 600
        while not captured.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.6)
    assert captured.getvalue() == "hockeystick: compiling, once after installing\n"


def test_lines_that_nobody_reads_stop_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", closed)
    monkeypatch.delenv("HOCKEYSTICK_PROGRESS")
    with progress.bar("reporting", first_line=0.0) as tell:
        say("thinking")
        assert closed.getvalue() == "hockeystick: thinking\n"
        closed.close()
        # Each would raise, and the answer be lost.
        say("thinking")
        tell(1, 2)


def test_waiting_is_silent_in_a_pipe_at_first(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("thinking", patience=0):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("60_000", 60_000),
        ("1e-5", 1e-5),
        ("inf", float("inf")),
        ("-0", 0),
        ("0e-999", 0.0),
        ("1e400", Decimal("1e400")),
        ("-1e400", Decimal("-1e400")),
        ("1e-400", Decimal("1e-400")),
        ("0x10", "0x10"),
        ("9" * 5000, Decimal("9" * 5000)),
    ],
)
def test_a_number_is_read_without_losing_its_range(text: str, number: object) -> None:
    assert parse(text) == number


@pytest.mark.parametrize(
    ("seconds", "shown"), [(2.34, "2.3 s"), (0.123, "123 ms"), (0.00234, "2.3 ms"), (4e-6, "4 us")]
)
def test_a_duration_has_the_unit_that_suits_it(seconds: float, shown: str) -> None:
    assert durations.seconds(seconds) == shown


def test_a_closed_standard_output_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["epsilon", "Gaussian(4)", "--delta", "1e-6", "--short"]) == 2
    told = "hockeystick: cannot write the answer: standard output is closed\n"
    assert capsys.readouterr().err == told


def test_a_terminal_without_a_width_has_the_usual_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("epsilon", "Gaussian(4)", "--delta", "1e-6")
    monkeypatch.setenv("COLUMNS", "80")
    usual = run(*asked)
    monkeypatch.setenv("COLUMNS", "0")
    assert run(*asked) == usual


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("help epsilon", "No such command 'help': hockeystick epsilon --help"),
        ("version", "No such command 'version': hockeystick --version"),
        (
            "epsilon --clip 1",
            "leave it out, as --noise-multiplier is in units of the clipping norm",
        ),
        ("report --epsilon 8", "Did you mean '--at-most'?"),
        ("solve --zcdp 0.5", "Did you mean '--rho'?"),
        ("ledger init --rho 0.5", "a budget is written out, as --budget 'ZCDP(rho=0.5)'"),
    ],
)
def test_words_of_others_are_led_to_what_there_is(run: Run, asked: str, said: str) -> None:
    status, out, err = run(*asked.split())
    assert (status, out) == (2, "")
    assert said in err


def test_a_captured_run_says_on_lines_ever_more_rarely_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.delenv("HOCKEYSTICK_PROGRESS")
    for wanted in (True, False):
        now = 100.0
        with progress.bar("reporting") as tell:
            for now in (101.0, 129.0, 131.0, 145.0, 161.0, 163.0):
                tell(int(now) - 100, 74, "groups")
        lines = (
            "hockeystick: reporting: groups, 31 of 74 done after 31 s\n"
            "hockeystick: reporting: groups, 63 of 74 done after 63 s\n"
        )
        assert capsys.readouterr().err == (lines if wanted else "")
        monkeypatch.setenv("HOCKEYSTICK_PROGRESS", "off")
