"""Who sees what of a run: whom an epsilon holds against, and who is trusted."""

from __future__ import annotations

from typing import Final

_NOT_TRUSTED: Final = "Whoever is not trusted sees"
_NOTHING_BARE: Final = "nothing without the noise"
_SECURE: Final = "secure aggregation shows it noisy sums alone"


def noisy_seen(what: str, *, alone: str = "what single examples or clients add to them") -> str:
    """Return that all that is noisy is seen, and nothing else, as a sentence.

    By post-processing everything computed from it, as every model, may be seen too. Whoever adds up
    and adds the noise sees what the theorem does not cover.

    Args:
        what: What the theorem says is released, noise included.
        alone: What whoever adds the noise sees.
    """
    return (
        f"{_NOT_TRUSTED} {what}, and so every model, but {_NOTHING_BARE}: whoever adds it, as the "
        f"server of federated training, sees {alone}, and is trusted."
    )


def seen_of_clients(*, drawn_seen: bool) -> str:
    """Return who is trusted where noise is added to sums of what clients send, as a sentence.

    Noise that each client adds in full, before it sends, is that of a sum of one: the server sees
    whose it is, so that it is covered only where it may be seen who takes part.
    """
    also = " and who takes part" if drawn_seen else ""
    added = "each client adds all of this noise to its own change, or " if drawn_seen else ""
    return (
        f"{_NOT_TRUSTED} the noisy sums of all rounds{also}, and so every model, but "
        f"{_NOTHING_BARE}: the server is trusted, as it sees each client's change, unless {added}"
        f"{_SECURE}."
    )
