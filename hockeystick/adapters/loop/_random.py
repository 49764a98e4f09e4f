"""Random numbers that are keyed from the operating system's secrets unless told otherwise."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.samplers import Bits, secret_bits

if TYPE_CHECKING:
    from numpy.random import Generator

_KEY_BYTES: Final = 16
_SEED: Final = Domain(symbol="seed", low=0, high=2**63 - 1, typical=(0, 2**31), whole=True)


def checked_seed(seed: object, not_private: object, limit: object) -> int | None:
    """Return a seed whose price is known to who gives it, or None; or raise."""
    if seed is None:
        if not_private is not False:
            raise ParameterError("not_private", not_private, "False where no seed is given")
        return None
    if not_private is not True:
        reason = "whoever knows the seed can subtract the noise, so that epsilon = inf"
        raise ParameterError("not_private", not_private, f"True where a seed is given: {reason}")
    if limit is not None:
        raise IncompatibleError(f"a seed has epsilon = inf, which is not within {limit}")
    return _validate.count("seed", seed, _SEED)


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
