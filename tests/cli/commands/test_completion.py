"""A shell completes commands, flags, names and files; what it is told is what there is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import Run

PLAN = "Gaussian(2)**10"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ep",), {"epsilon"}),
        (("epsilon", "exam"), {"exam"}),
        (("epsilon", "--adjacency", "re"), {"replace-one"}),
        (("epsilon", "--accountant", "pr"), {"prv"}),
        (("completion", ""), {"bash", "zsh", "fish"}),
    ],
)
def test_a_shell_is_told_what_may_follow(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: set[str]
) -> None:
    monkeypatch.setenv("_HOCKEYSTICK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("hockeystick", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    status, out, err = run()
    assert (status, err) == (0, "")
    assert {line.partition(",")[2] for line in out.splitlines()} == told


def test_an_interrupt_while_the_command_is_imported_is_one_line() -> None:
    interrupted = (
        "import sys, builtins\n"
        "real = builtins.__import__\n"
        "def stop(name, *rest, **more):\n"
        "    if name == 'hockeystick.cli':\n"
        "        raise KeyboardInterrupt\n"
        "    return real(name, *rest, **more)\n"
        "from hockeystick.__main__ import main\n"
        "builtins.__import__ = stop\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", interrupted], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (130, "hockeystick: interrupted\n")
