"""Upper bounds by closed forms of losses that dominate a plan's, where its own have none."""

from __future__ import annotations

import math

from hockeystick.accountants.closed_forms.closed_form import ClosedForm
from hockeystick.errors import UnsupportedError
from hockeystick.privacy_loss import Terms


def closed_epsilon_upper(terms: Terms, delta: float) -> float:
    """Return a proven upper bound of epsilon; inf where there is no closed form."""
    dominating = _dominating(terms)
    if dominating is None:
        return math.inf
    try:
        return ClosedForm().epsilon_of(dominating, delta).upper
    except UnsupportedError:
        return math.inf


def closed_delta_upper(terms: Terms, epsilon: float) -> float:
    """Return a proven upper bound of delta; inf where there is no closed form."""
    dominating = _dominating(terms)
    if dominating is None:
        return math.inf
    try:
        return ClosedForm().delta_of(dominating, epsilon).upper
    except UnsupportedError:
        return math.inf


def are_dominated_by_closed_form(terms: Terms) -> bool:
    """Return whether losses that dominate a plan's have a closed form, where its own have none."""
    return closed_delta_upper(terms, 0.0) < math.inf


def _dominating(terms: Terms) -> Terms | None:
    """Return the dominating losses with a closed form, None if they are the losses themselves."""
    dominating = tuple((loss.closed_form_dominating_loss, count) for loss, count in terms)
    return None if dominating == terms else dominating
