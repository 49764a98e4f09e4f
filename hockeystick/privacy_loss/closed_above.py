"""Of a loss whose profile has no closed form, a loss above it whose profile has one."""

from __future__ import annotations

from functools import singledispatch

from hockeystick.privacy_loss.base import Loss, ProfiledLoss
from hockeystick.privacy_loss.dominated import DominatedLoss
from hockeystick.privacy_loss.symmetrized import SymmetrizedLoss, SymmetrizedProfiledLoss


@singledispatch
def closed_above(loss: Loss) -> Loss:
    """Return a loss that dominates one at every ``eps >= 0``; the loss itself where none is known.

    Only its profile may be read. Where neighbours may be exchanged, it is that of both directions.
    """
    return loss


@closed_above.register
def _(loss: DominatedLoss) -> Loss:
    return closed_above(loss.above)


@closed_above.register
def _(loss: SymmetrizedLoss) -> Loss:
    return SymmetrizedProfiledLoss(loss.one) if isinstance(loss.one, ProfiledLoss) else loss
