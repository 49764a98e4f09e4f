"""Numbers in texts, read without losing their range."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hockeystick.io.arithmetic import number_of
from hockeystick.io.vocabulary import TEXTS


def parse(text: str) -> float | Fraction | Decimal | str:
    """Return the number that a text stands for; the text itself where it is none.

    A quotient of two, as 1/60000, is a float next to it, and so is what has a root or a power, as
    2*sqrt(3); ``Fraction(1, 60000)`` is exact. A number that a float would turn into
    inf or 0 comes as a ``Decimal``. The library's own checks then refuse it, as they refuse the
    text, by the name of the parameter.
    """
    try:
        return int(text)
    except ValueError:
        found = number_of(text)
        if found is not None:
            return found
        above, stroke, below = text.partition("/")
        return _quotient(text, above, below) if stroke else parse_real(text)


def computed_in(node: Any) -> Any:
    """Return what a file holds, quotients, roots and powers in quotes computed.

    Other texts stay, a number in quotes among them, and so do the names that people give.

    Example:
        >>> from hockeystick.io.numbers import computed_in
        >>> computed_in({"rate": "1/98", "grid": ["2**0.5", "1.5", "1/0", "a/b"]})
        {'rate': 0.01020408163265306, 'grid': [1.4142135623730951, '1.5', '1/0', 'a/b']}
    """
    if isinstance(node, dict):
        return {key: one if key in TEXTS else computed_in(one) for key, one in node.items()}
    if isinstance(node, list):
        return [computed_in(one) for one in node]
    is_operation = isinstance(node, str) and ("/" in node or number_of(node) is not None)
    return parse(node) if is_operation else node


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
