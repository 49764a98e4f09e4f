"""What ``--set PATH=NUMBER`` says beside a plan: any of its numbers, by a path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, final

import click

from hockeystick._suggest import hint
from hockeystick.calibration.solve.fields import locate
from hockeystick.calibration.sweeps.questions import with_fields
from hockeystick.cli.wording import wrong_parameter
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.io import parse
from hockeystick.io.building import parameters_of
from hockeystick.io.vocabulary import ALTERNATIVES
from hockeystick.mechanisms import DPSGD, Mechanism

_FORM: Final = (
    "--set takes PATH=NUMBER, such as release[0].scale=3 or parts[1].epsilon=0.5, and a choice by "
    "its path in a file, such as release[0].sampling=fixed-size"
)
_OF_FILE: Final = re.compile(r"release\[.*")
_OF_DPSGD: Final = re.compile(r"dpsgd\.(\w+)")
_PATH: Final = re.compile(r"[^\s,:]+")
# A choice by its name, as a file has sampling = "fixed-size".
_WORD: Final = re.compile(r"[a-z]+(-[a-z]+)*")


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """Numbers by their paths.

    Args:
        of_dpsgd: Those of a plan file's ``dpsgd.epochs`` and the like, by their names.
        of_file: Those by the other paths of a plan file, as ``release[0].scale``.
        of_plan: Those by the paths of a plan in Python, as ``parts[1].scale``, or by a name alone.
    """

    of_dpsgd: dict[str, object]
    of_file: dict[str, object]
    of_plan: dict[str, object]

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Name the flag where it is a number of it that is wrong."""
        try:
            yield
        except HockeystickError as error:
            wrong = wrong_parameter(error)
            path = None if wrong is None else self._path_of(wrong)
            if path is None:
                raise
            raise click.UsageError(f"--set {path}: {error}") from None

    def _path_of(self, wrong: ParameterError) -> str | None:
        """Return the path that was given for a parameter and its value, None for none."""
        of_dpsgd = {f"dpsgd.{name}": value for name, value in self.of_dpsgd.items()}
        given = {**of_dpsgd, **self.of_file, **self.of_plan}
        names = wrong.name.split(", ")
        found = (path for path in given if path.rpartition(".")[2] in names)
        return next((path for path in found if given[path] == wrong.value), None)

    def applied(self, plan: Mechanism) -> Mechanism:
        """Return the plan with its numbers in place, or raise."""
        for path in self.of_plan:
            _refuse_unknown(plan, path)
        return with_fields(plan, self.of_plan) if self.of_plan else plan


def settings(texts: Sequence[str]) -> Settings:
    """Return what is set, or raise."""
    found = Settings({}, {}, {})
    for text in texts:
        path, _, number = (part.strip() for part in text.partition("="))
        value = parse(number)
        place, name = _place(found, path.replace("-", "_"))
        is_choice = place is not found.of_plan and _WORD.fullmatch(number)
        if not path or (isinstance(value, str) and not is_choice):
            raise click.UsageError(f"{_FORM}; got {text!r}")
        if name in place:
            raise click.UsageError(f"{path} is set twice; set it once")
        place[name] = value
    return found


def _place(found: Settings, path: str) -> tuple[dict[str, object], str]:
    """Return where a number belongs, and under which name."""
    of_dpsgd = _OF_DPSGD.fullmatch(path)
    if of_dpsgd is not None:
        known = parameters_of(DPSGD)
        if of_dpsgd[1] not in known:
            near = hint(of_dpsgd[1], known)
            raise click.UsageError(f"--set {path}: [dpsgd] has no {of_dpsgd[1]}{near}")
        return found.of_dpsgd, of_dpsgd[1]
    return (found.of_file if _OF_FILE.fullmatch(path) else found.of_plan), path


def _refuse_unknown(plan: Mechanism, path: str) -> None:
    """Raise where a plan has no number at a path, with a guess at the one that was meant."""
    if isinstance(plan, DPSGD) and path in ALTERNATIVES:
        return
    try:
        locate(plan, path)
    except ParameterError as error:
        paths = _PATH.findall(error.allowed.partition(":")[2])
        near = hint(path, [*paths, *(one.rpartition(".")[2] for one in paths)])
        raise click.UsageError(f"--set {path}: this must be {error.allowed}{near}") from None
