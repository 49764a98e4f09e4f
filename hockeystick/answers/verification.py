"""Answers held against the verifier, which shares nothing with what computed them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from hockeystick.answers.document import document
from hockeystick.calibration import Calibrated
from hockeystick.errors import AnswerError, HockeystickError, ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.results import Certified

if TYPE_CHECKING:
    from hockeystick import verifier

_MOST_BYTES: Final = 100_000_000
_SHOWN: Final = 20


def verify(
    answer: Certified | Calibrated | Mapping[str, Any] | str | os.PathLike[str],
    plan: Mechanism | None = None,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
) -> verifier.Verdict:
    """Return what a second program says of an answer: verified, refuted or not covered.

    The second program is ``hockeystick.verifier``, which has its own definitions of the mechanisms,
    imports nothing else of this package, and computes in rigorous ball arithmetic.

    Guarantees:
        "verified" and "refuted" are proven, as far as that program and the ball arithmetic are
        right; "not covered" says nothing about the answer. Of a report, the answer inside it is
        verified; its visible text is not looked at. A solution is verified where the plan meets its
        target, an epsilon and delta or an advantage, and the one beyond it, if claimed, misses it.

    Args:
        answer: A ``Certified`` or a ``Calibrated``; a document, as an object or as text in JSON; or
            the path of a file that holds one: what ``--json`` printed, or a report.
        plan: What a ``Certified`` is of; None otherwise.
        delta: Where a ``Certified`` epsilon was asked, if that does not say it; None otherwise.
        epsilon: Where a ``Certified`` delta was asked, if that does not say it; None otherwise.

    Returns:
        The verdict: ``status``, ``reason`` where it is not "verified", and ``checks``, each a
        ``claim``, the ``ball`` that was computed and whether the claim ``holds``.

    Raises:
        AnswerError: If it cannot be read, or is no document of a schema that is known.
        ParameterError: If the answer is only an approximation, or what is given beside it is not
            what it needs.
        HockeystickError: If python-flint is not installed (extra ``verify``).

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1)
        >>> answer = hs.epsilon(plan, delta=1e-5)
        >>> hs.verify(answer, plan).status
        'verified'
    """
    program = require_verifier()
    text = _text(answer, plan=plan, delta=delta, epsilon=epsilon)
    with suppress(ValueError, RecursionError):  # which the verifier refuses
        if json.loads(text).get("kind") == "approximation":
            raise AnswerError("an approximation claims nothing that could be verified")
    with _refusals(program):
        verdict: verifier.Verdict = program.verify(text)
    return verdict


def load_answer(source: str | bytes | os.PathLike[str]) -> str:
    """Return the JSON text in a file, by its path, or in what ``--json`` or a report has.

    Raises:
        AnswerError: If the file cannot be read, or is neither, or a page without a document.
        HockeystickError: If it is a page and python-flint is not installed (extra ``verify``).

    Example:
        >>> from hockeystick.answers import load_answer
        >>> load_answer(b'{"schema": "hockeystick-answer/1"}')
        '{"schema": "hockeystick-answer/1"}'
    """
    text = _content(source)
    if text.lstrip().startswith("<"):
        verifier = require_verifier()
        with _refusals(verifier):
            text = verifier.answer_in(text)
    if not text.lstrip().startswith("{"):
        allowed = "an object in JSON, as --json prints it, or a page with one"
        raise AnswerError(f"an answer must be {allowed}; this begins {text[:_SHOWN]!r}")
    return text


def require_verifier() -> ModuleType:
    """Return the verifier, or raise and say how to install what it computes with."""
    try:
        import_module("flint")
    except ImportError:
        message = "verifying needs python-flint: install hockeystick[verify]"
        raise HockeystickError(message) from None
    from hockeystick import verifier

    return verifier


def _text(answer: Any, **given: Any) -> str:
    if not isinstance(answer, Mapping | str | os.PathLike):
        return json.dumps(document(answer, **given), allow_nan=False)
    for name, value in given.items():
        if value is not None:
            raise ParameterError(name, value, "left out beside a document, which says it itself")
    if not isinstance(answer, Mapping):
        return load_answer(answer)
    try:
        return json.dumps(dict(answer), allow_nan=False)
    except (TypeError, ValueError):
        raise ParameterError("answer", answer, "a document: numbers, texts, lists") from None


@contextmanager
def _refusals(verifier: ModuleType) -> Iterator[None]:
    try:
        yield
    except verifier.AnswerError as error:
        raise AnswerError(str(error)) from None


def _content(source: str | bytes | os.PathLike[str]) -> str:
    if isinstance(source, str) and source.lstrip()[:1] in ("{", "<", ""):
        return source
    content, name = source, "the answer" if isinstance(source, bytes) else str(source)
    try:
        if not isinstance(content, bytes):
            with open(content, "rb") as file:
                content = file.read(_MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: no name of a file, or no text
        raise AnswerError(f"cannot read {name}: {getattr(error, 'strerror', error)}") from None
    if len(content) > _MOST_BYTES:
        raise AnswerError(f"cannot read {name}: it is larger than {_MOST_BYTES:,} bytes")
    return text
