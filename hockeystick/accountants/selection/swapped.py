"""The loss of the same two distributions the other way round, where a loss tells it."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from hockeystick.privacy_loss import (
    CellLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    PrivacyLoss,
    SampledLoss,
    SkellamLoss,
    Terms,
)


def swapped_terms(terms: Terms) -> Terms | None:
    """Return the losses of (Q, P) for those of (P, Q); None where one is not known."""
    turned = [(swapped(loss), count) for loss, count in terms]
    known = tuple((loss, count) for loss, count in turned if loss is not None)
    return known if len(known) == len(terms) else None


@singledispatch
def swapped(loss: PrivacyLoss) -> PrivacyLoss | None:
    """Return the loss of (Q, P); None where it is not known."""
    return loss.opposite


@swapped.register(LaplaceLoss)
@swapped.register(DiscreteLaplaceLoss)
@swapped.register(DiscreteGaussianLoss)
@swapped.register(SkellamLoss)
def _(loss: PrivacyLoss) -> PrivacyLoss:
    # Symmetric noise about two places: mirrored, (Q, P) is (P, Q).
    return loss


@swapped.register
def _(loss: SampledLoss) -> PrivacyLoss | None:
    # ((1-p) Q + p P, Q) becomes (Q, (1-p) Q + p P), which is of the inner pair (Q, P).
    inner = swapped(loss.inner)
    if not isinstance(inner, CellLoss):
        return None
    return replace(loss, inner=inner, removing=not loss.removing)
