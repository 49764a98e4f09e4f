"""Sums of clipped gradients with noise, in exact or real arithmetic; and what is drawn at random.

In exact arithmetic the unit is ``2^-22`` clipping norms C. An example's gradient becomes a vector
m_i of integers, with ``|m_i| <= 2^22`` whatever the gradient. S is the sum of those in the batch,
and what is released is a function of ``S + round(N(0, s^2))`` with ``s >= z 2^22``.

**Theorem.** A training run has the guarantee of the Gaussian mechanism with noise multiplier z,
sampled and composed as the plan says.

*Proof.* S has integer coordinates, so ``S + round(N) = round(S + N)``: each step releases a
function of ``S + N`` with real noise N. One example moves S by at most 2^22 in L2 (by twice that
where one is replaced or whole batches are clipped, as the plan has it), so that ``S + N`` is the
plan's Gaussian mechanism or one with more noise. A second query, of bits or of directions, has
integers and noise of its own and shares z as ``Clip`` says. What is computed from these, divisions,
the next weights, the next clipping norm, is post-processing, given which the next step is such a
mechanism again.

Why floats compute exactly this:

- Sums of integers in float64 are exact below 2^53, in any order.
- A square of less than 2^48 is exact, and so is a squared length below 2^53. Sums of numbers >= 0
  never fall, rounded or not, so that a larger square or length stays above the limit of 2^44.
- No sum is used in which an example is beyond the limit. Such an example is scaled down once more,
  and then left out; which of these happens depends on it alone.
- 2^30 examples, of at most 2^22 in each coordinate, have a sum below 2^53.
- ``hockeystick.release.samplers`` draw exactly, and integers of 64 bits add noise and sum.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import torch

from hockeystick.adapters.loop import bits, numbers
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.kernels.integer_sums import LANES, add_rounded
from hockeystick.mechanisms import Encoder
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release import CorrelatedNoise
from hockeystick.release.samplers import rounded_gaussian

if TYPE_CHECKING:
    from numpy.random import Generator

Tensors = dict[str, Any]
Sums = list[Any]
# What adds noise of a standard deviation in units to the sum of that name, in doubles.
Noisy = Callable[[str, Any, float], Any]
NORM: Final = 2**22
# What the samplers allow, so that noise and sum stay below 2^53.
_MOST_NOISE: Final = 2.0**44
# Room for the errors of lengths in single precision, so that few are scaled again.
_ROOM: Final = 1 - 2.0**-18
# Numbers that are rounded at once on an accelerator.
_BLOCK: Final = 1 << 24
# Below this, numbers in single precision have fewer digits.
_LEAST: Final = 2.0**-126
_KEY_BITS: Final = 128


class Real:
    """Floats in place of real numbers, as torch rounds them."""

    name = "real"
    correlated = False
    key: int | None = None  # of all noise, where steps share some

    def units(self, norm: float) -> float:
        return norm

    def deviation(self, noise_multiplier: float, units: float) -> float:
        """Return a noise multiplier times a number of units, rounded up."""
        return float_up(largest_reading(noise_multiplier) * Fraction(units))

    def sums(self, parts: Sums, lengths: Any, norm: float, groups: int, weights: Any) -> Sums:
        """Return for each part of the gradients their clipped sums, one for each row of weights.

        Parts have a row for each example, whose gradient in one of the groups they are together, of
        the given length. One without a finite length counts as 0: an infinite or undefined one
        would be in the sum for all to see. The norm is that of all groups together.
        """
        limit = norm / math.sqrt(groups)
        scales = limit / lengths.clamp(min=limit)
        # No infinite or undefined length is, nor one of 10^37 norms, which no scale brings down.
        kept = scales >= _LEAST
        if not bool(kept.all()):
            scales = torch.where(kept, scales, 0.0)
            parts = [part.kept(kept) for part in parts]
        return [part.summed(weights * scales) for part in parts]

    def noise(self, seed: int | None, step: int, params: Tensors) -> Noisy:
        """Return what adds a step's noise to the sums of these parameters' gradients."""
        drawn = normals(seed, step, next(iter(params.values())).device)
        return lambda name, total, deviation: drawn(total.shape).mul_(deviation).add_(total)

    def state(self) -> dict[str, int]:
        return {}

    def check(self, steps: int, params: Tensors | None = None) -> None:
        """Raise where noise cannot go on after so many steps, with these parameters."""

    def done(self, steps: int) -> None:
        """Note that so many steps have come to their end."""


@final
class Exact(Real):
    """Integers: each example's gradient is rounded to a grid within the clipping norm."""

    name = "exact"

    def units(self, norm: float) -> float:
        return NORM

    def sums(self, parts: Sums, lengths: Any, norm: float, groups: int, weights: Any) -> Sums:
        """Return sums of integers of squared length at most ``2^44/groups``, in float64.

        A gradient is scaled to where rounding, by at most 1/2 in each coordinate, stays within.
        """
        limit = NORM**2 // groups
        matrices = [part.matrix for part in parts]
        entries = sum(one.shape[1] for one in matrices)
        within = max(_ROOM * math.sqrt(limit) - math.sqrt(entries) / 2, 0.0)
        scales = (within / lengths).clamp(max=NORM / norm)
        over = ~torch.isfinite(lengths)
        for shrunk in (0.0, 1 - 2.0**-8, 0.0):
            scales = torch.where(over, shrunk * scales if shrunk else 0.0, scales)
            left = scales != 0
            if not bool(left.all()):
                matrices = [torch.where(left.unsqueeze(1), one, 0.0) for one in matrices]
            found, squares = _rounded(matrices, scales, weights)
            over = ~(squares <= limit)
            if not bool(over.any()):
                break
        return found

    def noise(self, seed: int | None, step: int, params: Tensors) -> Noisy:
        source = bits(seed, "noise", step)

        def noisy(name: str, total: Any, deviation: float) -> Any:
            whole = total.to("cpu", torch.int64)
            if deviation > 0:
                drawn = rounded_gaussian(deviation, whole.numel(), bits=source)
                whole = whole + torch.from_numpy(drawn).reshape(whole.shape)
            return whole.to(total.device).double()

        return noisy

    def deviation(self, noise_multiplier: float, units: float) -> float:
        found = super().deviation(noise_multiplier, units)
        if found > _MOST_NOISE:
            allowed = "at most 2^22 clipping norms in exact arithmetic; use arithmetic='real'"
            raise ParameterError("noise_multiplier", noise_multiplier, allowed)
        return found


@final
class Correlated(Real):
    """Noise by the rows of ``C^-1 Z``, computed again from a key after a restart.

    New noise after an older state would be added to two sums with the same past noise, which no
    account covers: rows go on only where all before are known, as after the last counted step.
    """

    correlated = True

    def __init__(self, encoder: Encoder, seed: int | None) -> None:
        CorrelatedNoise(encoder)  # which refuses encoders without a strategy
        self._encoder, self._noise = encoder, dict[str, CorrelatedNoise]()
        self._at = 0  # the steps that have come to their end, with noise that is known
        self.key: int = secrets.randbits(_KEY_BITS) if seed is None else seed

    def sums(self, parts: Sums, lengths: Any, norm: float, groups: int, weights: Any) -> Sums:
        return [one.double() for one in super().sums(parts, lengths, norm, groups, weights)]

    def noise(self, seed: int | None, step: int, params: Tensors) -> Noisy:
        drawn = normals(self.key, step, next(iter(params.values())).device)
        self._noise = self._noise or {name: CorrelatedNoise(self._encoder) for name in params}

        def noisy(name: str, total: Any, deviation: float) -> Any:
            return self._noise[name].next(drawn(total.shape).mul_(deviation)).add_(total)

        return noisy

    def check(self, steps: int, params: Tensors | None = None) -> None:
        if self._at != steps:
            raise IncompatibleError(
                "this loop was ended by an error, or its journal has steps of unknown noise: load "
                "the state that was saved after the last of them"
            )
        if params is not None and self._noise and set(self._noise) != set(params):
            allowed = "the module whose parameters the first step trained: noise goes on with each"
            raise ParameterError("model", "other trained parameters", allowed)

    def done(self, steps: int) -> None:
        self._at = steps

    def state(self) -> dict[str, int]:
        return {"key": self.key}

    def load(self, key: object, steps: int, params: Tensors, deviation: float) -> None:
        """Go on after some steps with the noise of a key; or raise, and change nothing."""
        if type(key) is not int or not 0 <= key < 2**_KEY_BITS:
            raise ParameterError("key", type(key).__name__, "what state_dict returned")
        self.key, self._noise = key, {}
        for step in range(steps):
            noisy = self.noise(None, step, params)
            for name, value in params.items():
                noisy(name, torch.zeros_like(value), deviation)
        self._at = steps


def _rounded(parts: Sums, scales: Any, weights: Any) -> tuple[Sums, Any]:
    """Return sums of scaled and rounded rows by weights, and each row's squared length."""
    squares = scales.new_zeros((len(scales), LANES))
    found = [weights.new_zeros((len(weights), part.shape[1])) for part in parts]
    for part, sums in zip(parts, found, strict=True):
        if part.device.type == "cpu":
            arguments = part.contiguous(), scales, weights, sums, squares
            add_rounded(*(one.numpy() for one in arguments))
        else:
            _add_rounded(part, scales, weights, sums, squares)
    return found, squares.sum(dim=1)


def _add_rounded(rows: Any, scales: Any, weights: Any, sums: Any, squares: Any) -> None:
    """Do what the kernel of this name does, where an accelerator has the rows."""
    examples, entries = rows.shape
    width = max(_BLOCK // max(examples, 1), 1)
    for start in range(0, entries, width):
        here = slice(start, start + width)
        integers = torch.mul(rows[:, here], scales.unsqueeze(1)).round_()
        sums[:, here] += weights @ integers
        squares[:, 0] += integers.square_().sum(dim=1)


_TORCH_SEEDS: Final = 2**63
# Where in the state of torch's generator on a CPU the 624 words of the Mersenne twister are.
_WORDS: Final = slice(24, 24 + 8 * 624)
_WORD: Final = 2**32


@contextmanager
def keyed(source: Generator, devices: Sequence[Any] = ()) -> Iterator[None]:
    """Have all that draws from torch by itself, on a CPU, draw by a key of a source.

    Of a seed a CPU uses 32 bits, which who sees what is released could try.
    """
    with torch.random.fork_rng(devices=devices):
        state = torch.default_generator.manual_seed(0).get_state()
        words = source.integers(_WORD, size=624, dtype=np.int64)
        state[_WORDS].view(torch.int64).copy_(torch.from_numpy(words))
        torch.default_generator.set_state(state)
        yield


@contextmanager
def all_keyed(source: Generator) -> Iterator[None]:
    """Do so with all that draws from numpy or Python by itself as well, which takes longer."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002 - users' code draws from it
    try:
        random.seed(source.bytes(32))
        np.random.seed(source.integers(_WORD, size=8))  # noqa: NPY002 - users' code draws from it
        with keyed(source):
            yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002 - users' code draws from it


@contextmanager
def secret_randomness(seed: int | None, step: int, device: Any) -> Iterator[None]:
    """Draw what the model draws, as dropout does, from a generator that is keyed for this step.

    By a known seed one example more would give all others another mask, and move their gradients.
    """
    source = numbers(seed, "model", step)
    on_gpu = device.type == "cuda"
    with keyed(source, [device] if on_gpu else ()):
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(int(source.integers(_TORCH_SEEDS)))
        yield


def normals(seed: int | None, step: int, device: Any) -> Callable[[Any], Any]:
    """Return what draws a step's standard normal numbers of a shape, where its gradients are.

    Single precision would cut the tails off: its uniform numbers know nothing below 2^-24.
    """
    source = numbers(seed, "noise", step)
    if device.type == "cpu":
        return lambda shape: torch.as_tensor(source.standard_normal(shape), dtype=torch.float64)
    there = torch.Generator(device=device)
    there.manual_seed(int(source.integers(_TORCH_SEEDS)))  # all of which it uses, unlike a CPU's
    return lambda shape: torch.randn(shape, generator=there, dtype=torch.float64, device=device)
