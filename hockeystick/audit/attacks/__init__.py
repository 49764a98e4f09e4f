"""Attacks as scores on arrays: what one computes from a model's answers, larger where "in"."""

from hockeystick.audit.attacks.canaries import (
    canary_projections,
    canary_scores,
    dirac_direction,
    random_direction,
)
from hockeystick.audit.attacks.leakage import first_layer_input, nearest_candidate
from hockeystick.audit.attacks.likelihood import lira_offline, lira_online
from hockeystick.audit.attacks.losses import logit_gaps, loss_scores
from hockeystick.audit.attacks.neighbours import deviation_scan, neighbour_scores, noisy_neighbours
from hockeystick.audit.attacks.rates import ROC, auc, roc, tpr_at

__all__ = [
    "ROC",
    "auc",
    "canary_projections",
    "canary_scores",
    "deviation_scan",
    "dirac_direction",
    "first_layer_input",
    "lira_offline",
    "lira_online",
    "logit_gaps",
    "loss_scores",
    "nearest_candidate",
    "neighbour_scores",
    "noisy_neighbours",
    "random_direction",
    "roc",
    "tpr_at",
]
