"""One rule for every file that a command writes: nothing is replaced without ``--force``."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from hockeystick.cli.command import hockeystick

Run = Callable[..., Any]
Write = Callable[[str | bytes], str]

PLAN = "rate=1 steps=4 noise_multiplier=5"
WRITERS = {
    "curves.svg": f"tradeoff {PLAN} -o OUT",
    "page.html": f"report {PLAN} --delta 1e-5 -o OUT",
    "solved.toml": "solve 'Laplace()' --epsilon 1 --delta 0 -o OUT",
    "rows.csv": "sweep GRID -o OUT",
    "begun.toml": "init OUT",
}
EXTRAS = {"curves.svg": "matplotlib", "page.html": "matplotlib"}
GRID = "[dpsgd]\nrate = 1\nsteps = 4\n[grid]\nnoise_multiplier = [1, 2]\n[ask]\ndelta = 1e-5\n"


def commands(group: click.Group) -> list[click.Command]:
    context = click.Context(group)
    found = [group.get_command(context, name) for name in group.list_commands(context)]
    return [one for one in found if one is not None]


def test_every_command_that_writes_a_file_has_force() -> None:
    for command in commands(hockeystick):
        flags = {flag for one in command.params for flag in one.opts}
        writes = "--out" in flags or command.name == "init"
        assert writes == ("--force" in flags), command.name
        assert ("--out" in flags) == ("-o" in flags), command.name


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_there_goes_with_force_alone(
    run: Run, write: Write, tmp_path: Path, name: str
) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    out, grid = tmp_path / name, write(GRID)
    given = [{"OUT": str(out), "GRID": grid}.get(word, word) for word in shlex.split(WRITERS[name])]
    out.write_text("mine")
    status, shown, err = run(*given)
    assert (status, shown, out.read_text()) == (2, "", "mine")
    assert f"{out} is there already; give --force to replace it" in err
    assert run(*given, "--force").status == 0
    assert out.read_text() != "mine"
    assert {path.name for path in tmp_path.iterdir()} == {name, "plan.toml"}
    nowhere = [str(tmp_path / "no" / name) if word == str(out) else word for word in given]
    assert (
        run(*nowhere).err == f"hockeystick: cannot write {nowhere[-1]}: No such file or directory\n"
    )


@pytest.mark.parametrize("name", ["rows.csv", "begun.toml"])
def test_a_symbolic_link_stays_one_and_what_it_leads_to_is_written(
    run: Run, write: Write, tmp_path: Path, name: str
) -> None:
    grid, out, there = write(GRID), tmp_path / name, tmp_path / "there"
    there.mkdir()
    given = [{"OUT": str(out), "GRID": grid}.get(word, word) for word in shlex.split(WRITERS[name])]
    out.symlink_to(there / "real")
    assert run(*given).status == 0
    assert out.is_symlink()
    assert [path.name for path in there.iterdir()] == ["real"]
    (there / "real").write_text("mine")
    assert run(*given).status == 2
    assert (there / "real").read_text() == "mine"
    assert run(*given, "--force").status == 0
    assert out.is_symlink()
    assert (there / "real").read_text() != "mine"
    for target, why in (("no/real", "No such file or directory"), (name, "Too many levels")):
        out.unlink()
        out.symlink_to(target)
        status, _, err = run(*given)
        assert (status, why in err, out.is_symlink()) == (2, True, True)
