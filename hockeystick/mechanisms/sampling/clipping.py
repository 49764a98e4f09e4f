"""What is clipped before noise is added."""

from __future__ import annotations

from hockeystick._validate import WordEnum
from hockeystick.mechanisms.registry import registered


@registered
class Clipping(WordEnum):
    """What is clipped to the clipping norm C.

    - ``INDIVIDUAL`` ("individual"): each example's gradient; one example moves a batch's sum by at
      most C, and replacing it by at most 2C.
    - ``BATCH`` ("batch"): the sum of a batch; one example may move it by 2C, however it came in.

    Example:
        >>> from hockeystick.mechanisms import Clipping
        >>> print(Clipping.BATCH)
        batch
    """

    INDIVIDUAL = "individual"
    BATCH = "batch"
