"""All that is wrong with a plan file: of each table, what is wrong first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hockeystick.errors import PlanFileError
from hockeystick.io.contents import document_of
from hockeystick.io.plan_file import (
    TOP_CHECKS,
    dpsgd_of,
    plan_file_of,
    question_at,
    refuse_release,
    release_of,
    text_at,
)
from hockeystick.io.vocabulary import TOP_KEYS


def problems_in(content: bytes) -> list[str]:
    """Return what is wrong first with the top and with each table of a plan file."""
    try:
        document = document_of(content)
    except PlanFileError as error:
        return [str(error)]
    checks: list[Callable[[], object]] = [partial(check, document) for check in TOP_CHECKS]
    checks += [partial(text_at, document, key) for key in TOP_KEYS[:3]]
    checks += [partial(question_at, document, key) for key in TOP_KEYS[3:]]
    checks.append(partial(refuse_release, document))
    if "dpsgd" in document:
        checks.append(partial(dpsgd_of, document["dpsgd"], {}, None))
    given = document.get("release")
    for index, table in enumerate(given if isinstance(given, list) else (), 1):
        checks.append(partial(release_of, table, f"[[release]] number {index}", None))
    found = [told for check in checks if (told := _told(check))]
    return found or [told for told in [_told(partial(plan_file_of, document, {}))] if told]


def _told(check: Callable[[], object]) -> str:
    """Return what a check finds wrong, nothing where all is well."""
    try:
        check()
    except PlanFileError as error:
        return str(error)
    return ""
