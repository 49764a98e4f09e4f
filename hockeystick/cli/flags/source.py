"""Where a plan comes from: a plan file, JSON, standard input, or a text that writes it out."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import click

from hockeystick._suggest import hint
from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.io import parse, parse_plan, shown
from hockeystick.io.building import Blanks, required_by
from hockeystick.io.call_text import is_call_text, plan_of_text
from hockeystick.io.plan_file import MOST_BYTES, PlanFile, content_of, plan_in, problems_in
from hockeystick.io.vocabulary import IN_PYTHON_ONLY, RELEASES
from hockeystick.notions import NOTIONS, Notion

STDIN: Final = "-"
# What a plan file may be called whose plan comes from elsewhere.
UNNAMED: Final = "plan.toml"
_JSON: Final = b"{"
# Notions of which a number is often given alone.
_NOTIONS_OF: Final = {"rho": "ZCDP", "mu": "GDP"}
_OF_A_NOTION: Final = re.compile(r"\s*(rho|mu)\s*=\s*(\S+)\s*", re.IGNORECASE)
_NO_FILE: Final = (
    f"{IN_PYTHON_ONLY} states a trade-off function, which no plan file and no text can hold: use "
    f"it in Python, hs.{IN_PYTHON_ONLY}(...); of guarantees, they hold "
    f"{', '.join(name for name in NOTIONS if name in RELEASES)}"
)


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A plan, as the command line has it.

    Args:
        text: What was given for it.
        content: What the file or standard input holds; None where the text itself is the plan.
        is_json: Whether that was JSON, of which the content is the plan as a plan file has it.
    """

    text: str
    content: bytes | None
    is_json: bool = False

    @property
    def name(self) -> str:
        """What to call it."""
        name = name_of(self.text)
        return f"the plan of {name}" if self.is_json else name

    @property
    def file_name(self) -> str | None:
        """The name of the plan file, or of one that would have this plan; None of a text."""
        if self.content is None:
            return None
        return UNNAMED if self.text == STDIN or self.is_json else self.text

    def plan_file(
        self,
        overrides: Mapping[str, object] | None = None,
        numbers: Mapping[str, object] | None = None,
        blanks: Blanks | None = None,
    ) -> PlanFile:
        """Return the plan, with what a file says about it.

        Args:
            overrides: Fields that replace those of the table [dpsgd], or of a DPSGD.
            numbers: Numbers that replace others of a plan file, by their paths.
            blanks: What collects the numbers that the plan leaves out.
        """
        if self.content is not None:
            try:
                return plan_in(self.content, self.name, overrides, numbers, blanks)
            except PlanFileError as error:
                if not (self.is_json or overrides or numbers or blanks):
                    _note_others(self, error)
                raise
        if numbers:
            raise click.UsageError(f"--set {next(iter(numbers))}: {self.text!r} is no plan file")
        return PlanFile(plan=plan_of_text(self.text, overrides or {}, blanks))

    def left_out(
        self,
        overrides: Mapping[str, object] | None = None,
        numbers: Mapping[str, object] | None = None,
    ) -> str | None:
        """Return the one number that the plan lacks, None where something else is wrong."""
        blanks = Blanks()
        try:
            self.plan_file(overrides, numbers, blanks)
        except HockeystickError:
            return None
        return blanks.names[0] if len(blanks.names) == 1 else None


def _note_others(given: Source, error: PlanFileError) -> None:
    """Note of an error of a plan file that there are others, and what lists them."""
    more = len(problems_in(given.content or b"")) - 1
    if more > 0:
        named = shlex.quote(given.text)
        verb = "lists them" if more > 1 else "tells it"
        error.add_note(f"{more} more: hockeystick check {named} {verb}")


def name_of(text: str) -> str:
    """Return what to call what was given for a plan."""
    return "standard input" if text == STDIN else shown(text)


def source(text: str) -> Source:
    """Return a source, of which a file is read."""
    if is_call_text(text):
        return Source(text, None)
    if text == STDIN:
        piped = b"" if sys.stdin is None else sys.stdin.buffer.read(MOST_BYTES + 1)
        return _of_content(text, piped, name_of(text))
    _refuse_bare(text)
    return _of_content(text, content_of(text), name_of(text))


def _of_content(text: str, content: bytes, name: str) -> Source:
    """Return a source that holds a plan file, or JSON that stands for one."""
    if not content.lstrip().startswith(_JSON):
        return Source(text, content)
    from hockeystick.cli.flags.from_json import toml_of

    written = toml_of(content, name)
    return Source(text, content) if written is None else Source(text, written, is_json=True)


def notion(text: str) -> Notion:
    """Return the notion that a text writes out, or raise."""
    if not isinstance(parse(text), str):
        example = f"ApproxDP({text.strip()}, 1e-5)"
        raise click.UsageError(f"{text!r} is only a number: write for example {example!r}")
    known = ", ".join(name for name in NOTIONS if name in RELEASES)
    wanted = f"write one of {known} with its numbers, such as 'ApproxDP(epsilon=3, delta=1e-5)'"
    try:
        plan = parse_plan(text)
    except PlanFileError as error:
        if any(name in text or name in str(error).partition("(did")[2] for name in NOTIONS):
            raise
        raise click.UsageError(f"{text!r} is no notion of privacy; {wanted}") from None
    if not isinstance(plan, Notion):
        raise click.UsageError(f"{text!r} is no notion; {wanted}")
    return plan


def load(text: str) -> PlanFile:
    """Return the plan that a text stands for."""
    return source(text).plan_file()


def _refuse_bare(text: str) -> None:
    """Raise where the name of a mechanism is given alone, and no file has it."""
    if os.path.exists(text):
        return
    if text in RELEASES:
        wanted = ", ".join(f"{name}=..." for name in required_by(RELEASES[text])) or "..."
        raise click.UsageError(f"{text} needs its numbers: write '{text}({wanted})'")
    if text.upper() == IN_PYTHON_ONLY:
        raise click.UsageError(_NO_FILE)
    if number := _OF_A_NOTION.fullmatch(text):
        wanted = f"{_NOTIONS_OF[number[1].lower()]}({number[1].lower()}={number[2]})"
        raise click.UsageError(f"{text!r} is neither a plan file nor a mechanism: write {wanted!r}")
    near = hint(text, RELEASES) if text.isidentifier() else ""
    if near:
        raise click.UsageError(f"{text!r} is neither a plan file nor a mechanism{near}")
