"""Whose data a federated plan protects, and how clients and records are drawn."""

from __future__ import annotations

from hockeystick._validate import WordEnum
from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms.registry import registered


@registered
class Unit(WordEnum):
    """What two neighbouring data sets differ by.

    - ``CLIENT`` ("client"): all the records of one client.
    - ``INSTANCE`` ("instance"): one record of one client.

    Example:
        >>> from hockeystick.mechanisms import Unit
        >>> print(Unit.CLIENT)
        client
    """

    CLIENT = "client"
    INSTANCE = "instance"

    def meaning(self, adjacency: Adjacency) -> str:
        """Return what neighbouring data sets are, as a sentence for a reviewer."""
        return f"{_PROTECTED[self]} {_CHANGES[adjacency].format(_THINGS[self])}"


_PROTECTED = {
    Unit.CLIENT: "What is protected is a client with all its records (client level):",
    Unit.INSTANCE: "What is protected is one record of one client (instance level):",
}
_THINGS = {Unit.CLIENT: "client's data", Unit.INSTANCE: "record"}
_CHANGES = {
    Adjacency.ADD_REMOVE: "neighbouring data sets differ by one {} added or removed.",
    Adjacency.REPLACE_ONE: "neighbouring data sets differ by one {} with other values.",
    Adjacency.ZERO_OUT: "neighbouring data sets differ by one {} that contributes zero.",
}


@registered
class ClientSampling(WordEnum):
    """How clients are drawn, and who sees it.

    - ``POISSON`` ("poisson"): each client in each round by a coin of its own, and nobody sees it.
    - ``FIXED_SIZE`` ("fixed-size"): a random set of a fixed size in each round; nobody sees it.
    - ``REVEALED`` ("revealed"): the same, and the set is seen by whom the plan protects against, as
      a server sees who takes part.

    Example:
        >>> from hockeystick.mechanisms import ClientSampling
        >>> print(ClientSampling.REVEALED)
        revealed
    """

    POISSON = "poisson"
    FIXED_SIZE = "fixed-size"
    REVEALED = "revealed"


@registered
class RecordSampling(WordEnum):
    """How the records of a local step are drawn.

    - ``TWO_STAGE`` ("two-stage"): clients are drawn for a round, which is seen; each of them then
      draws a random set of a fixed size of its own records for each local step, which is not.
    - ``TWO_STAGE_POISSON`` ("two-stage-poisson"): the same, but a client draws each of its records
      by a coin of its own.
    - ``POISSON`` ("poisson"): each record in each local step by a coin of its own, with the same
      chance on average; nobody sees any of it.

    Example:
        >>> from hockeystick.mechanisms import RecordSampling
        >>> print(RecordSampling.TWO_STAGE)
        two-stage
    """

    TWO_STAGE = "two-stage"
    TWO_STAGE_POISSON = "two-stage-poisson"
    POISSON = "poisson"


@registered
class Sensitivity(WordEnum):
    """What the noise of a local step is scaled by.

    - ``CLIPPING_NORM`` ("clipping-norm"): the clipping norm, a public number.
    - ``L2_MAX`` ("l2-max"): the largest norm in the private batch; it has no guarantee at all.

    Example:
        >>> from hockeystick.mechanisms import Sensitivity
        >>> print(Sensitivity.CLIPPING_NORM)
        clipping-norm
    """

    CLIPPING_NORM = "clipping-norm"
    L2_MAX = "l2-max"
