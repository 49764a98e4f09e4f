"""The examples that end every help, run as they stand, in a folder that has plan.toml alone."""

import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from hockeystick.cli.command import hockeystick
from tests.cli.conftest import Run


def commands(group: click.Group, path: str) -> dict[str, Any]:
    """Return every command by its path."""
    context = click.Context(group)
    found: dict[str, Any] = {path: group}
    for name in group.list_commands(context):
        one = group.get_command(context, name)
        assert one is not None
        below = f"{path} {name}"
        found.update(commands(one, below) if isinstance(one, click.Group) else {below: one})
    return found


COMMANDS = commands(hockeystick, "hockeystick")
EXAMPLES = {path: one.epilog.split("\n  ")[1:] for path, one in COMMANDS.items()}


def test_every_command_has_examples_and_ends_its_help_with_them(run: Run) -> None:
    for path, lines in EXAMPLES.items():
        assert any(path in line for line in lines)
        status, out, err = run(*path.split()[1:], "--help")
        assert (status, err) == (0, "")
        shown = "".join(f"    {line}\n" for line in lines)
        assert out.endswith(f":\n{shown}")
        assert max(map(len, out.splitlines())) <= 100
        assert len(out.splitlines()) <= 40


@pytest.mark.parametrize("path", EXAMPLES)
def test_every_example_runs(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOCKEYSTICK_LEDGER", raising=False)
    if path == "hockeystick explore":
        page = pytest.importorskip("hockeystick.explore.page", reason="the page needs Bokeh")
        monkeypatch.setattr(page, "serve", lambda file, port, opened: opened("http://127.0.0.1/"))
    if path != "hockeystick":
        assert run("init")[0] == 0
    for line in EXAMPLES[path]:
        if line.startswith("export "):
            monkeypatch.setenv(*line.removeprefix("export ").split("="))
            continue
        status, err = ran(run, line)
        assert (status, err) == (0, ""), line


def ran(run: Run, line: str) -> tuple[int, str]:
    """Run a line as a shell does: what it prints may go to a file."""
    words = shlex.split(line, comments=True)
    command, file = words, None
    if words[-2:-1] in ([">"], [">>"]):
        command, (mode, file) = words[:-2], words[-2:]
    if command[0] == "printf":
        status, out, err = 0, command[1].encode().decode("unicode_escape"), ""
    else:
        status, out, err = run(*command[1:])
    if file is not None:
        with open(file, "a" if mode == ">>" else "w", encoding="utf-8") as written:
            written.write(out)
    return status, err
