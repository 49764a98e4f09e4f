"""Random numbers that are keyed from the operating system's secrets unless told otherwise."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import IncompatibleError
from hockeystick.release.samplers import Bits, secret_bits

if TYPE_CHECKING:
    from numpy.random import Generator

_KEY_BYTES: Final = 16
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 2**31), whole=True)


def checked_seed(not_private: object, *limits: object) -> int | None:
    """Return a seed unless it is None; raise where it is none, or where something limits epsilon.

    Whoever knows the seed can subtract the noise.
    """
    if not_private is None:
        return None
    if any(limit is not None for limit in limits):
        raise IncompatibleError("a seed has epsilon = inf, which no budget and no ledger covers")
    return _validate.count("not_private", not_private, _SEED)


def numbers(seed: int | None, purpose: str, index: int) -> Generator:
    """Return the generator of one step or epoch, on the CPU.

    It is numpy's, as torch's own ones there use 32 bits of their seed: who sees a noisy gradient
    could try them all. A seed is stretched to a key of its own for each purpose and index, so that
    a run that is resumed never repeats the noise of an earlier step.
    """
    from numpy.random import Generator, Philox

    if seed is None:
        key = secrets.token_bytes(_KEY_BYTES)
    else:
        key = hashlib.sha256(f"{purpose}/{index}/{seed}".encode()).digest()[:_KEY_BYTES]
    return Generator(Philox(key=int.from_bytes(key, "big")))


def bits(seed: int | None, purpose: str, index: int) -> Bits:
    """Return the source of random words of one step or epoch: secret, or replayed from a seed."""
    return secret_bits if seed is None else numbers(seed, purpose, index).bit_generator.random_raw
