"""The losses of categories reported bit by bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from hockeystick.mechanisms.local.unary_encoding import RAPPOR, Encoding, UnaryEncoding
from hockeystick.numerics import ULP, FloatAndDecimal
from hockeystick.privacy_loss.core.atomic import FewAtoms, both
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.core.two_point import infinity_mass_pair

if TYPE_CHECKING:
    from hockeystick.precision.atoms import AtomList

_MOST_HASHES: Final = 10_000


@final
@dataclass(frozen=True, slots=True)
class UnaryEncodingLoss(FewAtoms):
    """``+-eps`` as e^eps to 1, and 0 where the two bits that differ contradict each other.

    Two binary randomized responses of eps/2 each for the symmetric kind; for the optimized one the
    loss is 0 with probability 1/2. The same in both directions.

    References:
        Wang, Blocki, Li and Jha 2017, section 4.3.
    """

    epsilon: float
    optimized: bool

    @property
    def supremum(self) -> float:
        return self.epsilon

    @property
    def exact_supremum(self) -> FloatAndDecimal:
        return FloatAndDecimal.of(self.epsilon)

    def exact_atoms(self, perturbation: int = 0) -> AtomList:
        from hockeystick.precision.atoms import binary_runs, optimized_unary
        from hockeystick.precision.profiles import exact

        epsilon = exact(self.epsilon) * (1 + perturbation * ULP)
        return optimized_unary(epsilon) if self.optimized else binary_runs(epsilon / 2, 2)


@final
@dataclass(frozen=True, slots=True)
class RAPPORLoss(FewAtoms):
    """The sum of ``bits`` binary randomized responses of ``ln((1 - f/2) / (f/2))`` each.

    The same in both directions.

    References:
        Erlingsson, Pihur and Korolova 2014, theorem 1.
    """

    flip: float
    bits: int

    def exact_atoms(self, perturbation: int = 0) -> AtomList:
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.atoms import binary_runs
        from hockeystick.precision.profiles import exact

        # ln(2/f - 1) loses what f is below 1; 1 - f loses f where it is small.
        with mp.extraprec(64):
            flip = min(exact(self.flip) * (1 - perturbation * ULP), 1)
            each = 2 * mp.atanh(1 - flip) if flip > 0.5 else mp.log(2 / flip - 1)
        return binary_runs(each, self.bits)


@dominating_pair.register
def _(mechanism: UnaryEncoding) -> DominatingPair:
    optimized = mechanism.kind is Encoding.OPTIMIZED
    if mechanism.epsilon == 0.0:
        return DominatingPair(None, None)
    if mechanism.epsilon == math.inf:
        return infinity_mass_pair(0.5 if optimized else 1.0)
    return both(UnaryEncodingLoss(mechanism.epsilon, optimized))


@dominating_pair.register
def _(mechanism: RAPPOR) -> DominatingPair:
    if mechanism.flip == 1.0:
        return DominatingPair(None, None)
    if mechanism.flip == 0.0:
        return infinity_mass_pair()
    if mechanism.hashes > _MOST_HASHES:
        raise NoAnalysisError(
            f"RAPPOR is analysed for up to {_MOST_HASHES:,} hashes; "
            "repeat RandomizedResponse for as many bits instead"
        )
    return both(RAPPORLoss(mechanism.flip, 2 * mechanism.hashes))
