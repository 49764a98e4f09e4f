"""Which pairs of data sets count as neighbours."""

from __future__ import annotations

from typing import Self

from hockeystick._validate import WordEnum


class Adjacency(WordEnum):
    """What one person's example may do between two neighbouring data sets.

    - ``ADD_REMOVE`` ("add-remove"): one data set has one example more than the other.
    - ``REPLACE_ONE`` ("replace-one"): one example has another value; the sizes are equal.
    - ``ZERO_OUT`` ("zero-out"): one example is replaced by one that contributes zero.

    Example:
        >>> from hockeystick import Adjacency
        >>> Adjacency("zero-out") is Adjacency.ZERO_OUT
        True
    """

    meaning: str  # what neighbouring data sets are, as a sentence for a reviewer

    def __new__(cls, name: str, meaning: str = "") -> Self:
        made = str.__new__(cls, name)
        made._value_, made.meaning = name, meaning
        return made

    ADD_REMOVE = "add-remove", "Neighbouring data sets differ by one example added or removed."
    REPLACE_ONE = "replace-one", "Neighbouring data sets differ in the value of one example."
    ZERO_OUT = "zero-out", "Neighbouring data sets differ by one example that contributes zero."
