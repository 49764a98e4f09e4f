"""What a noisy sum may be divided by."""

from __future__ import annotations

from hockeystick.adjacency import Adjacency


def divided_words(adjacency: Adjacency, drawn: str, records: str) -> str:
    """Return what must hold of the divisor, as a sentence.

    Divided by a private number the noise has a scale that tells it: in many dimensions for sure.
    """
    told = f"The noisy sum is divided by a fixed number, never by {drawn}"
    if adjacency is Adjacency.ADD_REMOVE:
        told += f" or by the number of {records}, which is private"
    return f"{told}."
