"""What people run on data: samplers, reports, and estimators with their exact errors."""

from __future__ import annotations

from hockeystick.release.local_means import LaplaceMean, LocalMean, OneBitMean
from hockeystick.release.multivariate_laplace import (
    draw_multivariate_laplace,
    multivariate_laplace_length,
    multivariate_laplace_log_density,
    multivariate_laplace_variance,
)
from hockeystick.release.randomized_response import (
    response_error,
    response_frequencies,
    response_reports,
)
from hockeystick.release.unary_encoding import (
    unary_error,
    unary_frequencies,
    unary_reports,
)

__all__ = [
    "LaplaceMean",
    "LocalMean",
    "OneBitMean",
    "draw_multivariate_laplace",
    "multivariate_laplace_length",
    "multivariate_laplace_log_density",
    "multivariate_laplace_variance",
    "response_error",
    "response_frequencies",
    "response_reports",
    "unary_error",
    "unary_frequencies",
    "unary_reports",
]
