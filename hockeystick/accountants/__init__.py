"""Accountants: one walk over a plan adds up its losses; each accountant bounds the sum its way."""

from hockeystick.accountants.ask import (
    Answer,
    Direction,
    delta,
    directed_delta,
    directed_epsilon,
    epsilon,
)
from hockeystick.accountants.auto import ACCOUNTANTS
from hockeystick.accountants.comparison import (
    Comparison,
    GaussianSummary,
    Row,
    SamplingRow,
    compare,
    compare_samplings,
    gaussian_summary,
)
from hockeystick.accountants.limits import central_limit_mu
from hockeystick.accountants.monte_carlo import monte_carlo_delta
from hockeystick.accountants.rdp import best_order
from hockeystick.accountants.tradeoff import tradeoff

__all__ = [
    "ACCOUNTANTS",
    "Answer",
    "Comparison",
    "Direction",
    "GaussianSummary",
    "Row",
    "SamplingRow",
    "best_order",
    "central_limit_mu",
    "compare",
    "compare_samplings",
    "delta",
    "directed_delta",
    "directed_epsilon",
    "epsilon",
    "gaussian_summary",
    "monte_carlo_delta",
    "tradeoff",
]
