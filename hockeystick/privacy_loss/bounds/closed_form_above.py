"""Of a loss whose profile has no closed form, a loss above it whose profile has one."""

from __future__ import annotations

from functools import singledispatch

from hockeystick.privacy_loss.core.base import PrivacyLoss, ProfiledLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.symmetrized import SymmetrizedLoss, SymmetrizedProfiledLoss


@singledispatch
def closed_form_dominating_loss(loss: PrivacyLoss) -> PrivacyLoss:
    """Return a loss that dominates one at every ``eps >= 0``; the loss itself where none is known.

    Only its profile may be read. Where neighbours may be exchanged, it is that of both directions.
    """
    return loss


@closed_form_dominating_loss.register
def _(loss: DominatedLoss) -> PrivacyLoss:
    return closed_form_dominating_loss(loss.above)


@closed_form_dominating_loss.register
def _(loss: SymmetrizedLoss) -> PrivacyLoss:
    return SymmetrizedProfiledLoss(loss.one) if isinstance(loss.one, ProfiledLoss) else loss
