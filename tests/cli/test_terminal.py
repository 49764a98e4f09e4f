import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.cli import main
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "hockeystick"]
TRAINING = ("rate=0.1", "steps=100", "noise_multiplier=1", "--delta", "1e-5")


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


def test_nothing_asked_is_answered_with_the_help(run: Run) -> None:
    status, out, err = run()
    assert (status, err) == (0, "")
    assert out.startswith("Usage: hockeystick")


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


def test_a_closed_standard_output_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["epsilon", "Gaussian(4)", "--delta", "1e-6", "--short"]) == 2
    told = "hockeystick: cannot write the answer: standard output is closed\n"
    assert capsys.readouterr().err == told
