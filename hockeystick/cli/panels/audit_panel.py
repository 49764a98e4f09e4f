"""What the scores of an attack prove, for people."""

from __future__ import annotations

from typing import Final

from rich.console import RenderableType
from rich.text import Text

from hockeystick.cli.panels import render
from hockeystick.io.plan_file import PlanFile
from hockeystick.reports.audit import Audited, audit_told

_STYLES: Final = {"refuted": "bold red", "consistent": "bold green"}


def panel(audited: Audited, file: PlanFile | None) -> RenderableType:
    """Return the panel: the verdict, what was found and claimed, and what that supposes."""
    told, facts = audit_told(audited), render.facts_table()
    if told.verdict:
        facts.add_row(
            "verdict", Text.assemble((told.verdict, _STYLES[told.verdict]), f"  {told.sure}")
        )
    for label, text in told.facts:
        facts.add_row(label, render.one_line(text))
    if file is not None:
        render.add_plan(facts, file)
    blocks: list[RenderableType] = [facts, Text(), Text(told.meaning, style="dim")]
    blocks += render.listed(render.HOLDS_IF, told.assumptions)
    return render.framed(None if file is None else file.title, *blocks)
