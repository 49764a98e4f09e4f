"""Numbers in texts, read without losing their range."""

from __future__ import annotations

import math
import re
from decimal import Decimal


def parse(text: str) -> float | Decimal | str:
    """Return the number that a text stands for; the text itself where it is none.

    A quotient of two, as 1/60000, is a float next to it. A number that a float would turn into
    inf or 0 comes as a ``Decimal``. The library's own checks then refuse it, as they refuse the
    text, by the name of the parameter.
    """
    try:
        return int(text)
    except ValueError:
        above, stroke, below = text.partition("/")
        return _quotient(text, above, below) if stroke else parse_real(text)


def _quotient(text: str, above: str, below: str) -> float | str:
    """Return a float next to a quotient; the text itself where it is none, or out of range."""
    try:
        quotient = float(above) / float(below)
    except (ValueError, ZeroDivisionError):
        return text
    return quotient if math.isfinite(quotient) and quotient else text


def parse_real(text: str) -> float | Decimal | str:
    """Return the float that a text stands for, or what says why there is none."""
    try:
        value = float(text)
    except ValueError:
        return text
    overflowed = math.isinf(value) and "inf" not in text.lower()
    vanished = value == 0 and re.search("[1-9]", text.lower().partition("e")[0])
    return Decimal(text) if overflowed or vanished else value
