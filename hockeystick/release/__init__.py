"""What people run on data: mechanisms on arrays, exact in floats, reports, and estimators."""

from __future__ import annotations

from hockeystick.release.decentralised.gopa import GopaRound, gopa_round
from hockeystick.release.decentralised.gossip import GossipRun, gossip_average
from hockeystick.release.decentralised.noisy_steps import noisy_iterations
from hockeystick.release.decentralised.token_walk import WalkRun, token_walk
from hockeystick.release.gaussian_reports import gaussian_error, gaussian_mean, gaussian_reports
from hockeystick.release.local_means import LaplaceMean, LocalMean, OneBitMean
from hockeystick.release.multivariate_laplace import (
    draw_multivariate_laplace,
    multivariate_laplace_length,
    multivariate_laplace_log_density,
    multivariate_laplace_variance,
)
from hockeystick.release.noise.integers import discrete_gaussian, geometric, skellam
from hockeystick.release.noise.radial import multivariate_laplace
from hockeystick.release.noise.real import gaussian, laplace
from hockeystick.release.noise.sinh_normal import sinh_normal
from hockeystick.release.noise.sinh_normal_vectors import (
    sinh_normal_divergences,
    sinh_normal_vector,
)
from hockeystick.release.randomized_response import (
    response_error,
    response_frequencies,
    response_reports,
)
from hockeystick.release.rappor import (
    rappor_again,
    rappor_error,
    rappor_filters,
    rappor_frequencies,
    rappor_once,
    rappor_reports,
    rappor_shares,
)
from hockeystick.release.selection.noisy_max import exponential, permute_and_flip, report_noisy_max
from hockeystick.release.selection.partitions import partition_selection, users_by_partition
from hockeystick.release.selection.thresholds import (
    ThresholdQueries,
    above_threshold,
    sparse_vector,
)
from hockeystick.release.selection.tuning import Best, grid_search, random_search
from hockeystick.release.statistics.coordinate_clipping import CoordinateClipping
from hockeystick.release.statistics.covariances import (
    PrincipalComponents,
    covariance,
    principal_components,
)
from hockeystick.release.statistics.fairness import GroupFairness
from hockeystick.release.statistics.layers import layered_sum
from hockeystick.release.statistics.means import mean
from hockeystick.release.statistics.normalisations import Normalisation, normalisation
from hockeystick.release.statistics.online_clipping import OnlineClipping
from hockeystick.release.statistics.pruned_sums import randomly_pruned_sum, selective_sum
from hockeystick.release.statistics.quantile_clipping import QuantileClipping
from hockeystick.release.streams.correlated_noise import CorrelatedNoise
from hockeystick.release.streams.matrix_factorization import CorrelatedSums, matrix_factorization
from hockeystick.release.streams.tree_aggregation import RunningSums, tree_aggregation
from hockeystick.release.unary_encoding import unary_error, unary_frequencies, unary_reports

__all__ = [
    "Best",
    "CoordinateClipping",
    "CorrelatedNoise",
    "CorrelatedSums",
    "GopaRound",
    "GossipRun",
    "GroupFairness",
    "LaplaceMean",
    "LocalMean",
    "Normalisation",
    "OneBitMean",
    "OnlineClipping",
    "PrincipalComponents",
    "QuantileClipping",
    "RunningSums",
    "ThresholdQueries",
    "WalkRun",
    "above_threshold",
    "covariance",
    "discrete_gaussian",
    "draw_multivariate_laplace",
    "exponential",
    "gaussian",
    "gaussian_error",
    "gaussian_mean",
    "gaussian_reports",
    "geometric",
    "gopa_round",
    "gossip_average",
    "grid_search",
    "laplace",
    "layered_sum",
    "matrix_factorization",
    "mean",
    "multivariate_laplace",
    "multivariate_laplace_length",
    "multivariate_laplace_log_density",
    "multivariate_laplace_variance",
    "noisy_iterations",
    "normalisation",
    "partition_selection",
    "permute_and_flip",
    "principal_components",
    "random_search",
    "randomly_pruned_sum",
    "rappor_again",
    "rappor_error",
    "rappor_filters",
    "rappor_frequencies",
    "rappor_once",
    "rappor_reports",
    "rappor_shares",
    "report_noisy_max",
    "response_error",
    "response_frequencies",
    "response_reports",
    "selective_sum",
    "sinh_normal",
    "sinh_normal_divergences",
    "sinh_normal_vector",
    "skellam",
    "sparse_vector",
    "token_walk",
    "tree_aggregation",
    "unary_error",
    "unary_frequencies",
    "unary_reports",
    "users_by_partition",
]
