"""Answers as documents, what a second program says of them, and what decides by them.

A document is a JSON object whose keys mean the same as long as its ``schema`` is the same.
"""

from __future__ import annotations

from hockeystick.answers.cautions import (
    Caution,
    Units,
    cautions,
    conversion_cautions,
    suggested_delta,
    units_of,
)
from hockeystick.answers.document import SCHEMA, Decision, decide, document
from hockeystick.answers.registration import registration
from hockeystick.answers.verification import load_answer, require_verifier, verify
from hockeystick.answers.wording import (
    Source,
    in_words,
    protected,
    sources,
    sources_of_all,
    steps_rules,
    titled,
)

__all__ = [
    "SCHEMA",
    "Caution",
    "Decision",
    "Source",
    "Units",
    "cautions",
    "conversion_cautions",
    "decide",
    "document",
    "in_words",
    "load_answer",
    "protected",
    "registration",
    "require_verifier",
    "sources",
    "sources_of_all",
    "steps_rules",
    "suggested_delta",
    "titled",
    "units_of",
    "verify",
]
