"""Answers as documents, and what a second program says of them.

A document is one JSON object: what the answer is of, as ``describe`` writes plans, and what it
claims. Its keys and what they mean stay the same as long as its ``schema`` does.
"""

from __future__ import annotations

from hockeystick.answers.document import SCHEMA, document
from hockeystick.answers.verification import load_answer, require_verifier, verify

__all__ = ["SCHEMA", "document", "load_answer", "require_verifier", "verify"]
