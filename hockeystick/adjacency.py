"""Which pairs of data sets count as neighbours."""

from __future__ import annotations

from hockeystick._validate import WordEnum


class Adjacency(WordEnum):
    """What one person's example may do between two neighbouring data sets.

    - ``ADD_REMOVE`` ("add-remove"): one data set has one example more than the other.
    - ``REPLACE_ONE`` ("replace-one"): one example has another value; the sizes are equal.
    - ``ZERO_OUT`` ("zero-out"): one example is replaced by one that contributes zero.

    Wherever an adjacency is asked for, its text is accepted as well.

    Example:
        >>> from hockeystick import Adjacency
        >>> Adjacency("zero-out") is Adjacency.ZERO_OUT
        True
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"
    ZERO_OUT = "zero-out"

    @property
    def meaning(self) -> str:
        """What neighbouring data sets are, as a sentence for a reviewer."""
        return _MEANINGS[self]


_MEANINGS = {
    Adjacency.ADD_REMOVE: "Neighbouring data sets differ by one example added or removed.",
    Adjacency.REPLACE_ONE: "Neighbouring data sets differ in the value of one example.",
    Adjacency.ZERO_OUT: "Neighbouring data sets differ by one example that contributes zero.",
}
