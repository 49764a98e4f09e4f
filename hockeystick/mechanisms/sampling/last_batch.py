"""What becomes of the examples beyond an epoch's last whole batch."""

from __future__ import annotations

from hockeystick._validate import WordEnum
from hockeystick.mechanisms.registry import registered


@registered
class LastBatch(WordEnum):
    """What the last batch of a shuffled epoch is.

    - ``WHOLE`` ("whole"): as large as the others, which divide the examples.
    - ``SMALLER`` ("smaller"): the examples that are left, fewer than in the others.
    - ``DROPPED`` ("dropped"): the examples that are left sit out the epoch: others in each.

    Example:
        >>> from hockeystick.mechanisms import LastBatch
        >>> print(LastBatch.SMALLER)
        smaller
    """

    WHOLE = "whole"
    SMALLER = "smaller"
    DROPPED = "dropped"
