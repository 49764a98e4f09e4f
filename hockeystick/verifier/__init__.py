"""Checks an answer by a second program, so small that one person can read it.

It imports nothing else of the package, only the standard library and the ball arithmetic of Arb by
python-flint (extra ``verify``). A copy of this folder runs alone: ``python -m verifier FILE``.

`answers` says what an answer claims, `plans` what the runs of its plan lose, and `balls` how delta
follows.
"""

from .answers import Check, Verdict, answer_in, verify
from .plans import AnswerError

__all__ = ["AnswerError", "Check", "Verdict", "answer_in", "verify"]
