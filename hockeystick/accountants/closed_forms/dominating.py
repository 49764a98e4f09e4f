"""Upper ends from closed forms of what dominates a plan, where its own losses have none."""

from __future__ import annotations

import math

from hockeystick.accountants.closed_forms.closed_form import ClosedForm
from hockeystick.errors import UnsupportedError
from hockeystick.privacy_loss import Terms


def closed_epsilon_upper(terms: Terms, delta: float) -> float:
    """Return a proven upper bound of epsilon; inf where there is no closed form."""
    above = _above(terms)
    if above is None:
        return math.inf
    try:
        return ClosedForm().epsilon_of(above, delta).upper
    except UnsupportedError:
        return math.inf


def closed_delta_upper(terms: Terms, epsilon: float) -> float:
    """Return a proven upper bound of delta; inf where there is no closed form."""
    above = _above(terms)
    if above is None:
        return math.inf
    try:
        return ClosedForm().delta_of(above, epsilon).upper
    except UnsupportedError:
        return math.inf


def _above(terms: Terms) -> Terms | None:
    """Return the losses above, None where they are the losses themselves."""
    above = tuple((loss.closed_form_dominating_loss, count) for loss, count in terms)
    return None if above == terms else above
